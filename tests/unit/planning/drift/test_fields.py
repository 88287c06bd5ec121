"""Which fields a member has changed, and who did it, from well-formed and hostile managed fields."""

from typing import Any

import pytest

from federation.planning.drift.fields import (
    FIELDS_MAX,
    Author,
    Field,
    author_of,
    drifted_fields,
    managers_of,
    printable,
)

WANTED = {
    "metadata": {"labels": {"app": "web", "example.com/tier": "gold"}},
    "spec": {
        "replicas": 3,
        "template": {
            "spec": {
                "containers": [
                    {"name": "web", "image": "nginx:1", "args": ["a", "b"], "ports": [{"containerPort": 80}]},
                    {"name": "log", "image": "log:1"},
                ]
            }
        },
    },
}


def _live(**changes: Any) -> dict[str, Any]:
    spec = {**WANTED["spec"], **changes}
    return {"metadata": WANTED["metadata"], "spec": spec}


def _containers(*containers: dict[str, Any]) -> dict[str, Any]:
    return _live(template={"spec": {"containers": list(containers)}})


def _names(live: dict[str, Any]) -> list[str]:
    return [field.name for field in drifted_fields(WANTED, live)]


def _owned(fields: Any, manager: Any = "editor", operation: Any = "Update", **more: Any) -> dict[str, Any]:
    return {"manager": manager, "operation": operation, "time": "2026-01-01T00:00:00Z", "fieldsV1": fields, **more}


def _author(live: dict[str, Any], *entries: Any) -> Author | None:
    metadata = {**live["metadata"], "managedFields": list(entries)}
    return author_of(drifted_fields(WANTED, live), {**live, "metadata": metadata})


def test_only_the_smallest_changed_parts_are_named() -> None:
    assert _names(_live()) == []
    assert _names(_live(replicas=9)) == ["spec.replicas"]
    web = {"name": "web", "image": "hacked", "args": ["a"], "ports": [{"containerPort": 80, "protocol": "TCP"}]}
    found = _names(_containers({"name": "log", "image": "log:1"}, web))
    assert found == ["spec.template.spec.containers[web].image", "spec.template.spec.containers[web].args"]


def test_a_missing_part_is_named_by_what_should_hold_it() -> None:
    without_label = {"metadata": {"labels": {"app": "web"}}, "spec": WANTED["spec"]}
    assert _names(without_label) == ['metadata.labels["example.com/tier"]']
    log = {"name": "log", "image": "log:1"}
    assert _names(_containers(log)) == ["spec.template.spec.containers"]
    assert _names({"metadata": WANTED["metadata"], "spec": "odd"}) == ["spec"]


def test_the_number_of_names_and_their_length_are_limited() -> None:
    wanted = {"data": {f"{number}{'k' * 300}": "a" for number in range(50)}}
    found = drifted_fields(wanted, {"data": {}})
    assert len(found) == FIELDS_MAX
    assert max(len(field.name) for field in found) == 200


def test_the_author_is_the_latest_other_owner_of_the_field() -> None:
    replicas = {"f:spec": {"f:replicas": {}}}
    ours = _owned(replicas, "federation", "Apply", time="2026-01-03T00:00:00Z")
    other = _owned({"f:spec": {"f:paused": {}}}, "other", time="2026-01-04T00:00:00Z")
    later = _owned(replicas, "scaler", time="2026-01-02T00:00:00Z", subresource="scale")
    live = _live(replicas=9)
    assert _author(live, ours, _owned(replicas), later, other) == Author("scaler", "Update", "2026-01-02T00:00:00Z")
    assert _author(live, ours, other) is None
    # Somebody who borrows our name but does not apply as we do is somebody else.
    assert _author(live, _owned(replicas, "federation")) == Author("federation", "Update", "2026-01-01T00:00:00Z")


def test_items_of_lists_are_matched_by_their_keys() -> None:
    live = _containers({**WANTED["spec"]["template"]["spec"]["containers"][0], "image": "hacked"}, {"name": "log"})  # type: ignore[index]
    image = {"f:image": {}}

    def owner_of(item: str) -> Author | None:
        tree = {"f:spec": {"f:template": {"f:spec": {"f:containers": {item: image}}}}}
        return author_of(drifted_fields(WANTED, live)[:1], {"metadata": {"managedFields": [_owned(tree)]}})

    assert owner_of('k:{"name":"web"}') == Author("editor", "Update", "2026-01-01T00:00:00Z")
    assert owner_of('k:{"name":"log"}') is None
    assert owner_of('k:{"name":') is None


def test_an_owner_of_a_whole_owns_its_parts() -> None:
    live = _live(replicas=9)
    assert _author(live, _owned({"f:spec": {}})) is not None
    assert _author(live, _owned({})) is None


@pytest.mark.parametrize(
    "managed",
    [
        "odd",
        {"a": 1},
        [None, 3, "x", []],
        [{"manager": "x", "fieldsV1": "odd"}, {"fieldsV1": {"f:spec": 3}}, {"fieldsV1": {"f:spec": ["f:replicas"]}}],
        [{}] * 200 + [{"manager": "beyond the limit", "fieldsV1": {"f:spec": {"f:replicas": {}}}}],
    ],
)
def test_malformed_entries_name_nobody(managed: Any) -> None:
    fields = (Field("spec.replicas", ("spec", "replicas")),)
    assert author_of(fields, {"metadata": {"managedFields": managed}}) is None


@pytest.mark.parametrize(
    ("manager", "shown"),
    [
        ("x" * 1_000_000, "x" * 63 + "…"),
        ('\x1b[31mred\n"quoted"\u202e', "?[31mred??quoted??"),
        (None, "unknown"),
        (["a"], "unknown"),
        ("", "unknown"),
    ],
)
def test_what_a_member_says_of_itself_is_short_and_printable(manager: Any, shown: str) -> None:
    entry = {"manager": manager, "operation": "x" * 100, "time": "x" * 100, "fieldsV1": {"f:spec": {"f:replicas": {}}}}
    assert _author(_live(replicas=9), entry) == Author(shown, "", "")


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        ("f:replicas", "spec.replicas"),
        ("f:" + "x" * 64, "spec." + "x" * 64),
        ("f:" + "x" * 65, "spec"),
        ("k:a", "spec"),
    ],
)
def test_only_short_plain_names_of_parts_are_shown(key: str, shown: str) -> None:
    entry = {"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:spec": {key: {}}}}
    assert [parts for _, parts in managers_of({"metadata": {"managedFields": [entry]}})] == [(shown,)]


@pytest.mark.parametrize(
    ("value", "expected"), [("abcd", "abcd"), ("abcde", "abc…"), ('a"\n', "a??"), (None, ""), (5, "")], ids=str
)
def test_what_a_member_calls_itself_is_shortened_and_printable(value: Any, expected: str) -> None:
    assert printable(value, 4) == expected
