"""How a live object differs from what is applied, field by field, with authors."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.api import names
from federation.planning.drift.fields import Author, drifted_fields, value_at
from federation.planning.drift.livediff import FIELDS_MAX, FieldDifference, compare_live

EDITOR = Author("kubectl-edit", "Update", "2026-01-01T00:00:00Z")


def owned(fields: Any, manager: Any = "kubectl-edit", **more: Any) -> dict[str, Any]:
    return {"manager": manager, "operation": "Update", "time": "2026-01-01T00:00:00Z", "fieldsV1": fields, **more}


def a_manifest(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def test_a_changed_field_of_a_list_has_both_values_and_its_author() -> None:
    wanted = a_manifest(containers=[{"name": "log", "image": "log:1"}, {"name": "web", "image": "nginx:1"}])
    live = a_manifest(containers=[{"name": "web", "image": "nginx:2"}, {"name": "log", "image": "log:1"}])
    containers = {'k:{"name":"web"}': {"f:image": {}}}
    live["metadata"]["managedFields"] = [owned({"f:spec": {"f:containers": containers}})]
    found = compare_live(wanted, wanted, live)
    assert found.different == (FieldDifference("spec.containers[web].image", "nginx:1", "nginx:2", EDITOR),)
    assert (found.kept, found.has_more) == ((), False)


def test_a_removed_field_has_no_author() -> None:
    live = a_manifest()
    (difference,) = compare_live(a_manifest(paused=True), a_manifest(paused=True), live).different
    assert difference == FieldDifference("spec.paused", "true", "", None)


def test_replicas_that_an_autoscaler_owns_are_kept() -> None:
    rendered, applied, live = a_manifest(replicas=3, paused=True), a_manifest(paused=True), a_manifest(replicas=7)
    live["spec"]["paused"] = True
    live["metadata"]["managedFields"] = [
        owned({"f:spec": {"f:replicas": {}}}, "vpa", subresource="scale"),
        owned({"f:status": {"f:replicas": {}}}, "controller", subresource="status"),
    ]
    found = compare_live(rendered, applied, live)
    assert [(each.field, each.wanted, each.live, each.author) for each in found.kept] == [
        ("spec.replicas", "3", "7", Author("vpa", "Update", "2026-01-01T00:00:00Z"))
    ]
    assert found.different == ()
    assert [(manager.author.manager, manager.parts) for manager in found.managers] == [("vpa", ("spec.replicas",))]


def test_neither_bookkeeping_nor_our_own_entry_is_shown() -> None:
    wanted = a_manifest(replicas=1)
    wanted["metadata"]["annotations"] = {names.SOURCE_GENERATION: "2"}
    ours = {"manager": names.FIELD_MANAGER, "operation": "Apply", "fieldsV1": {"f:spec": {"f:replicas": {}}}}
    live = a_manifest(replicas=1)
    live["metadata"]["managedFields"] = [ours]
    found = compare_live(wanted, wanted, live)
    assert (found.different, found.managers) == ((), ())


def test_values_of_secrets_and_keys_of_other_owners_stay_hidden() -> None:
    wanted = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"password": "b25l"}}
    live: dict[str, Any] = {**wanted, "metadata": {"name": "s"}, "data": {"password": "dHdv", "other": "dGhyZWU="}}
    live["metadata"]["managedFields"] = [owned({"f:data": {"f:other": {}, "f:password": {}}})]
    found = compare_live(wanted, wanted, live)
    shown = repr(found)
    assert [(each.field, each.wanted, each.live) for each in found.different] == [
        ("data.password", "*** (wanted)", "*** (live)")
    ]
    assert found.managers[0].parts == ("data",)
    for hidden in ("b25l", "dHdv", "dGhyZWU=", "other"):
        assert hidden not in shown


def test_the_list_of_fields_is_limited() -> None:
    wanted = a_manifest(**{f"f{number}": number + 1 for number in range(FIELDS_MAX + 1)})
    found = compare_live(wanted, wanted, a_manifest())
    assert (len(found.different), found.has_more) == (FIELDS_MAX, True)


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["f:spec", "f:a", "k:{", "."]), inner),
    max_leaves=8,
)


@given(JUNK)
def test_hostile_managed_fields_are_skipped(junk: Any) -> None:
    live = a_manifest(replicas=2)
    live["metadata"]["managedFields"] = [junk, owned(junk)] if not isinstance(junk, list) else junk
    found = compare_live(a_manifest(replicas=1), a_manifest(replicas=1), live)
    assert [each.field for each in found.different] == ["spec.replicas"]


VALUES = st.dictionaries(
    st.sampled_from("abc"), st.integers(1, 3) | st.dictionaries(st.sampled_from("xy"), st.integers())
)


@given(VALUES, VALUES)
def test_the_value_at_a_differing_field_differs(wanted: dict[str, Any], live: dict[str, Any]) -> None:
    for field in drifted_fields(wanted, live):
        assert value_at(wanted, field.steps) != value_at(live, field.steps)


@pytest.mark.parametrize(
    ("kind", "field", "is_hidden"),
    [
        ("Secret", "data", True),
        ("Secret", "stringData", True),
        ("Secret", "type", False),
        ("ConfigMap", "data", False),
    ],
)
def test_only_the_data_of_secrets_is_hidden(kind: str, field: str, is_hidden: bool) -> None:
    def a_manifest_with(value: str) -> dict[str, Any]:
        content = {"key": value} if field.lower().endswith("data") else value
        return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "s"}, field: content}

    wanted, live = a_manifest_with("b25l"), a_manifest_with("dHdv")
    (difference,) = compare_live(wanted, wanted, live).different
    assert ("b25l" in difference.wanted, "dHdv" in difference.live) == (not is_hidden, not is_hidden)
    assert difference.wanted != difference.live
