"""The planner of a rollout over all clusters gives every cluster what the vectors say."""

from typing import Any

from tests.support.rolloutplanner import ClusterPlan, Target, plan_rollout
from tests.support.vectors import each_case, filled, load


def _target(given: dict[str, Any]) -> Target:
    given = filled(
        given,
        desiredReplicas=0,
        replicas=0,
        actualReplicas=0,
        availableReplicas=0,
        updatedReplicas=0,
        updatedAvailableReplicas=0,
        currentNewReplicas=0,
        currentNewAvailableReplicas=0,
        updated=False,
        maxSurge=0,
        maxUnavailable=0,
    )
    return Target(
        cluster=given["cluster"],
        desired=given["desiredReplicas"],
        replicas=given["replicas"],
        actual=given["actualReplicas"],
        available=given["availableReplicas"],
        updated=given["updatedReplicas"],
        updated_available=given["updatedAvailableReplicas"],
        newest=given["currentNewReplicas"],
        newest_available=given["currentNewAvailableReplicas"],
        is_updated=given["updated"],
        surge_max=given["maxSurge"],
        unavailable_max=given["maxUnavailable"],
    )


def _plan(expected: dict[str, Any]) -> ClusterPlan:
    return ClusterPlan(
        expected.get("replicas"),
        expected.get("maxSurge"),
        expected.get("maxUnavailable"),
        bool(expected.get("onlyPatchReplicas")),
    )


@each_case(load("rollout_planner"))
def test_a_round_of_a_rollout_is_planned_as_in_the_vectors(case: dict[str, Any]) -> None:
    given = filled(case["input"], replicas=0, maxSurge=0, maxUnavailable=0, targets=[])
    targets = [_target(target) for target in given["targets"]]
    plans = plan_rollout(given["replicas"], given["maxSurge"], given["maxUnavailable"], targets)
    assert plans == {cluster: _plan(plan) for cluster, plan in (case["expected"].get("plans") or {}).items()}
