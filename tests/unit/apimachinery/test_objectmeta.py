"""Validation of metadata: owner references, finalizers and field managers."""

from typing import Any

import pytest

from federation.apimachinery.objectmeta import (
    validate_managed_fields,
    validate_manager,
    validate_metadata,
    validate_metadata_update,
)

OWNER: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"}


def problems(*, are_known_finalizers: bool = False, **metadata: Any) -> list[str]:
    found = validate_metadata(
        {"name": "n", **metadata}, namespaced=False, name_rule=lambda _: [], are_known_finalizers=are_known_finalizers
    )
    return [f"{each['field']}: {each['message']}" for each in found]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"uid": ""}, "metadata.ownerReferences.uid"),
        ({"name": ""}, "metadata.ownerReferences.name"),
        ({"kind": ""}, "metadata.ownerReferences.kind"),
        ({"apiVersion": ""}, "metadata.ownerReferences.apiVersion"),
        ({"apiVersion": "a/b/c"}, "metadata.ownerReferences.apiVersion"),
        ({"kind": "Event"}, "metadata.ownerReferences"),
    ],
)
def test_an_owner_needs_its_fields_and_is_no_event(change: dict[str, Any], field: str) -> None:
    (problem,) = problems(ownerReferences=[{**OWNER, **change}])
    assert problem.startswith(f"{field}: Invalid value")


def test_the_owners_that_both_control_an_object_are_named() -> None:
    owners = [{**OWNER, "controller": True}, {**OWNER, "controller": True, "name": "p"}]
    (problem,) = problems(ownerReferences=owners)
    assert 'Found "true" in references for ConfigMap/o and ConfigMap/p' in problem


@pytest.mark.parametrize(
    ("finalizers", "count"),
    [
        (["hold"], 1),
        (["a.b/hold"], 0),
        (["kubernetes", "orphan"], 0),
        (["no such!"], 2),
        (["orphan", "foregroundDeletion"], 1),
    ],
)
def test_finalizers_of_built_in_kinds_are_known_or_have_a_domain(finalizers: list[str], count: int) -> None:
    assert len(problems(finalizers=finalizers, are_known_finalizers=True)) == count


def test_finalizers_of_custom_resources_need_no_domain() -> None:
    assert problems(finalizers=["hold"]) == []


def test_an_update_checks_finalizers_as_a_creation() -> None:
    found = validate_metadata_update({"finalizers": ["hold"]}, {}, are_known_finalizers=True)
    assert [each["field"] for each in found] == ["metadata.finalizers[0]"]


def test_a_generation_is_not_negative() -> None:
    assert problems(generation=-1) == ["metadata.generation: Invalid value: -1: must be greater than or equal to 0"]


def test_a_manager_is_short_and_printable() -> None:
    assert [each["reason"] for each in validate_manager("m", "é" * 65)] == ["FieldValueTooLong"]
    (problem,) = validate_manager("m", "é\n")
    assert problem["message"].endswith("invalid character U+000A (at position 2)")


def test_managed_fields_name_the_entry_with_a_wrong_manager() -> None:
    entries = [{"manager": "a"}, {"manager": "b\n"}, {"manager": "c", "subresource": "s" * 257}]
    assert [each["field"] for each in validate_managed_fields(entries)] == [
        "metadata.managedFields[1].manager",
        "metadata.managedFields[2].subresource",
    ]
