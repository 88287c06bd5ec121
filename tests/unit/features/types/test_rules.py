"""The three states of a shipped configuration: what shipped before, what the host has, what ships now."""

from typing import Any

import pytest

from federation.api.federatedtype import default_type_configs
from federation.apimachinery.mergepatch import apply_merge_patch
from federation.features.types.rules import first_shipped, plan_update, shipped_part


def _part(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"annotations": {}}, "spec": spec}


def _live(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "x", "resourceVersion": "7"}, "spec": spec}


@pytest.mark.parametrize(
    ("before", "live", "after", "expected"),
    [
        ({}, {}, {"a": 1}, {"a": 1}),
        ({"a": 1}, {"a": 1}, {"a": 2}, {"a": 2}),
        ({"a": 1}, {"a": 3}, {"a": 2}, {"a": 3}),
        ({"a": 1}, {}, {"a": 2}, {}),
        ({"a": 1}, {"a": 1}, {}, {}),
        ({"a": 1}, {"a": 3}, {}, {"a": 3}),
        ({}, {"a": 3}, {"a": 2}, {"a": 3}),
        ({}, {"b": 3}, {"a": 2}, {"a": 2, "b": 3}),
        ({"m": {"a": 1}}, {"m": {"a": 1, "own": 5}}, {"m": {"a": 2, "b": 3}}, {"m": {"a": 2, "b": 3, "own": 5}}),
        ({"m": {"a": 1}}, {}, {"m": {"a": 2}}, {}),
        ({"m": {"a": 1}}, {"m": {"a": 1}}, {}, {}),
        ({"l": [1, 2]}, {"l": [1, 2]}, {"l": [1, 2, 3]}, {"l": [1, 2, 3]}),
        ({"l": [1, 2]}, {"l": [2, 1]}, {"l": [1, 2, 3]}, {"l": [2, 1]}),
        ({"a": True}, {"a": 1}, {"a": False}, {"a": 1}),
    ],
    ids=[
        "a new field is added",
        "an untouched field follows",
        "a changed field stays",
        "a removed field stays removed",
        "a field that ships no more goes",
        "a changed field that ships no more stays",
        "a field that was written first stays",
        "a field of the administrator's own stays",
        "maps are compared by field",
        "a removed map stays removed",
        "an untouched map that ships no more goes",
        "an untouched list follows",
        "a changed list stays",
        "a number is no truth value",
    ],
)
def test_a_field_follows_what_ships_unless_it_was_changed(
    before: dict[str, Any], live: dict[str, Any], after: dict[str, Any], expected: dict[str, Any]
) -> None:
    patch = plan_update(_part(**before), _live(**live), _part(**after))
    assert apply_merge_patch(_live(**live), patch)["spec"] == expected
    assert (patch == {}) == (live == expected)
    if patch:
        assert patch["metadata"]["resourceVersion"] == "7"


def test_annotations_are_merged_as_well() -> None:
    live = {"metadata": {"name": "x", "resourceVersion": "7", "annotations": {"mine": "1"}}, "spec": {}}
    after = {"metadata": {"annotations": {"path": "spec.x"}}, "spec": {}}
    patch = plan_update(_part(), live, after)
    assert apply_merge_patch(live, patch)["metadata"]["annotations"] == {"mine": "1", "path": "spec.x"}


def test_what_shipped_first_lacks_the_later_types_and_paths() -> None:
    first, now = (
        first_shipped(),
        {config["metadata"]["name"]: shipped_part(config) for config in default_type_configs()},
    )
    assert now.keys() - first.keys() == {
        "apiservices.apiregistration.k8s.io",
        "clonesets.apps.kruise.io",
        "ingressclasses.networking.k8s.io",
        "mutatingwebhookconfigurations.admissionregistration.k8s.io",
        "networkpolicies.networking.k8s.io",
        "poddisruptionbudgets.policy",
        "priorityclasses.scheduling.k8s.io",
        "statefulsets.apps.kruise.io",
        "validatingadmissionpolicies.admissionregistration.k8s.io",
        "validatingadmissionpolicybindings.admissionregistration.k8s.io",
        "validatingwebhookconfigurations.admissionregistration.k8s.io",
        "workloadspreads.apps.kruise.io",
    }
    assert {name for name in first if first[name] != now[name]} == {"cronjobs.batch", "jobs.batch", "statefulsets.apps"}
