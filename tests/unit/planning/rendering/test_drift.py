"""Which updates of a member object may have drifted, so that a reconcile has to look."""

from typing import Any

import pytest

from federation.apimachinery import wellknown
from federation.planning.rendering.drift import find_item, is_subset, may_have_drifted, pair_items

BEFORE = {
    "metadata": {
        "uid": "u",
        "generation": 1,
        "labels": {"a": "1"},
        "annotations": {wellknown.DEPLOYMENT_REVISION: "1"},
    },
    "spec": {"replicas": 1},
    "status": {"replicas": 1},
}


def _after(path: str, value: Any, base: dict[str, Any] = BEFORE) -> dict[str, Any]:
    *parents, last = path.split("/")
    found = {key: dict(part) for key, part in base.items()}
    target: dict[str, Any] = found
    for key in parents:
        target[key] = dict(target.get(key) or {})
        target = target[key]
    if value is None:
        target.pop(last, None)
    else:
        target[last] = value
    return found


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("metadata/labels/a", "2", True),
        ("metadata/labels/a", None, True),
        ("metadata/labels", None, True),
        ("metadata/labels/b", "1", False),
        (f"metadata/annotations/{wellknown.DEPLOYMENT_REVISION}", None, False),
        ("metadata/annotations/b", "1", False),
        ("metadata/generation", 2, True),
        ("metadata/uid", "other", True),
        ("metadata/deletionTimestamp", "2026-01-01T00:00:00Z", True),
        ("status/replicas", 2, False),
        ("spec/replicas", 2, False),
        ("metadata/resourceVersion", "9", False),
    ],
)
def test_with_a_generation_only_removed_or_changed_entries_count(path: str, value: Any, expected: bool) -> None:
    assert may_have_drifted(BEFORE, _after(path, value)) is expected


@pytest.mark.parametrize(
    ("path", "value", "expected"), [("spec/replicas", 2, True), ("data/a", "1", True), ("status/x", 1, False)]
)
def test_without_a_generation_every_part_but_the_status_counts(path: str, value: Any, expected: bool) -> None:
    bare = _after("metadata/generation", None)
    assert may_have_drifted(bare, _after(path, value, bare)) is expected
    assert not may_have_drifted(bare, bare)


@pytest.mark.parametrize(
    ("desired", "live", "expected"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, True),
        ({"a": 1}, {"a": 2}, False),
        ({"a": 1}, {}, False),
        ({"a": 1}, None, False),
        ({}, None, True),
        ({}, [], False),
        ([], None, True),
        ([1], None, False),
        ([], {}, False),
        ({"a": None}, {}, True),
        ({"a": {}}, {}, True),
        ({"a": 0}, {}, True),
        ({"labels": {"a": ""}}, {"labels": {}}, False),
        ({"cpu": "1"}, {"cpu": "1000m"}, False),
        ({"requests": {"cpu": "1"}}, {"requests": {"cpu": "1000m"}}, True),
        ({"requests": {"cpu": "1"}}, {"requests": {"cpu": "2"}}, False),
        ({"requests": {"cpu": "x"}}, {"requests": {"cpu": "y"}}, False),
        ({"finalizers": ["a"]}, {"finalizers": ["b", "a"]}, True),
        ({"finalizers": ["a"]}, {"finalizers": ["b"]}, False),
        ({"args": ["a"]}, {"args": ["b", "a"]}, False),
        ({"args": ["a", "b"]}, {"args": ["a", "b"]}, True),
        ({"a": True}, {"a": 1}, False),
    ],
)
def test_what_was_applied_is_there_beside_what_others_set(desired: Any, live: Any, expected: bool) -> None:
    assert is_subset(desired, live) is expected


@pytest.mark.parametrize("wanted", ["a name", ["name"], None, {"image": "x"}])
def test_items_without_keys_have_no_partner(wanted: Any) -> None:
    assert pair_items([wanted], [wanted], "containers") == []
    assert find_item(wanted, [wanted], "containers") is None
