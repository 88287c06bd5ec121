"""The patch of a decision."""

from typing import Any

import pytest

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.apimachinery.resources import CONFIGMAPS
from federation.scheduling import decisionpatch
from federation.scheduling.policyspec import compile_policy

CONFIGMAP_TYPE = FederatedType("configmaps", CONFIGMAPS, ((names.GLOBAL_SCHEDULER,), ("later",)))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1m", "1m0s"),
        ("90s", "1m30s"),
        ("45s", "45s"),
        ("1h", "1h0m0s"),
        ("1h1m1s", "1h1m1s"),
        ("soon", "soon"),
        ("5", "5"),
        ("²s", "²s"),
        ("", ""),
    ],
)
def test_durations_read_as_go_prints_them(text: str, expected: str) -> None:
    assert decisionpatch.to_go_duration(text) == expected


def a_fed_object() -> dict[str, Any]:
    annotations = {names.PENDING_CONTROLLERS: f'[["{names.GLOBAL_SCHEDULER}"],["later"]]'}
    return {
        "metadata": {"name": "c", "resourceVersion": "5", "annotations": annotations},
        "spec": {"template": {"kind": "ConfigMap"}},
    }


def test_a_type_without_replicas_gets_no_overrides() -> None:
    policy = compile_policy({"spec": {"autoMigration": {"when": {"podUnschedulableFor": "2m"}}}})
    patch, is_moved = decisionpatch.place(a_fed_object(), CONFIGMAP_TYPE, policy, {"east": None}, {})
    assert is_moved
    assert patch is not None
    assert set(patch["spec"]) == {"placements"}
    annotations = patch["metadata"]["annotations"]
    assert annotations[names.POD_UNSCHEDULABLE_THRESHOLD] == "2m0s"
    assert annotations[names.SCHEDULING] == '{"placement":{"east":null}}'
    assert annotations[names.PENDING_CONTROLLERS] == '[["later"]]'
    assert patch["metadata"]["resourceVersion"] == "5"


def test_an_unchanged_placement_advances_the_pending_controllers_once() -> None:
    federated = a_fed_object()
    patch = decisionpatch.keep(federated, CONFIGMAP_TYPE, {})
    assert patch == {
        "metadata": {"annotations": {names.PENDING_CONTROLLERS: '[["later"]]'}, "resourceVersion": "5"},
    }
    federated["metadata"] = {"name": "c", "resourceVersion": "6", "annotations": {names.PENDING_CONTROLLERS: "[]"}}
    assert decisionpatch.keep(federated, CONFIGMAP_TYPE, {}) is None


def test_controllers_that_are_idle_for_the_object_are_not_pending() -> None:
    federated = a_fed_object()
    federated["metadata"]["annotations"] = {
        names.PENDING_CONTROLLERS: f'[["{names.GLOBAL_SCHEDULER}"]]',
        names.IDLE_CONTROLLERS: "later",
    }
    policy = compile_policy({"spec": {}})
    patch, _ = decisionpatch.place(federated, CONFIGMAP_TYPE, policy, {"east": None}, {})
    assert patch is not None
    assert patch["metadata"]["annotations"][names.PENDING_CONTROLLERS] == "[]"


def test_another_controller_acts_first_on_a_decision_that_changes_something() -> None:
    federated, policy = a_fed_object(), compile_policy({"spec": {}})
    federated["metadata"]["annotations"] = {names.PENDING_CONTROLLERS: f'[["{names.GLOBAL_SCHEDULER}"],["later"]]'}
    patch, _ = decisionpatch.place(federated, CONFIGMAP_TYPE, policy, {"east": None}, {}, awaited="other")
    assert patch is not None
    assert patch["metadata"]["annotations"][names.PENDING_CONTROLLERS] == '[["other"],["later"]]'

    federated["spec"]["placements"] = [{"controller": names.GLOBAL_SCHEDULER, "placement": [{"cluster": "east"}]}]
    for quotas, expected in ((None, '[["later"]]'), ("{}", '[["other"],["later"]]')):
        annotations = {names.WORKLOAD_SPREAD: quotas}
        patch, is_moved = decisionpatch.place(
            federated, CONFIGMAP_TYPE, policy, {"east": None}, annotations, awaited="other"
        )
        assert patch is not None
        assert (is_moved, patch["metadata"]["annotations"][names.PENDING_CONTROLLERS]) == (False, expected)


def test_a_policy_without_auto_migration_removes_its_settings() -> None:
    policy = compile_policy({"metadata": {"name": "p", "namespace": "default"}, "spec": {}})
    found = decisionpatch.migration_annotations(a_fed_object(), CONFIGMAP_TYPE, policy)
    assert found == {names.POD_UNSCHEDULABLE_THRESHOLD: None, names.FAILBACK: None}
