"""The simulated Deployment controller's arithmetic follows Kubernetes' rolling update."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.simulator.controllers.rollout import (
    ReplicaSetState,
    RolloutLimits,
    compute_limits,
    compute_status,
    plan_recreate,
    plan_rolling_update,
)


def a_deployment(replicas: int = 4, **rolling: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {"replicas": replicas}
    if rolling:
        spec["strategy"] = {"type": "RollingUpdate", "rollingUpdate": rolling}
    return {"metadata": {"name": "web", "generation": 3}, "spec": spec}


def test_surge_rounds_up_and_unavailable_rounds_down() -> None:
    assert compute_limits(a_deployment(10)) == RolloutLimits(10, 3, 2)


def test_one_pod_may_be_unavailable_when_both_limits_are_zero() -> None:
    assert compute_limits(a_deployment(10, maxSurge=0, maxUnavailable=0)) == RolloutLimits(10, 0, 1)


def test_without_old_replicas_the_new_replica_set_gets_all_replicas() -> None:
    new = ReplicaSetState("new", 2, 2, 2)
    assert plan_rolling_update(RolloutLimits(7, 1, 1), new, [ReplicaSetState("old", 0, 0, 0)]) == {"new": 7}


def test_the_first_step_scales_up_by_max_surge_and_down_by_max_unavailable() -> None:
    limits = RolloutLimits(4, 1, 1)
    changes = plan_rolling_update(limits, ReplicaSetState("new", 0, 0, 0), [ReplicaSetState("old", 4, 4, 4)])
    assert changes == {"new": 1, "old": 3}


def test_unavailable_old_pods_are_removed_first() -> None:
    limits = RolloutLimits(4, 1, 0)
    changes = plan_rolling_update(limits, ReplicaSetState("new", 1, 1, 1), [ReplicaSetState("old", 4, 4, 3)])
    assert changes["old"] == 3


def test_recreate_waits_until_all_old_pods_are_deleted() -> None:
    new = ReplicaSetState("new", 0, 0, 0)
    assert plan_recreate(3, new, [ReplicaSetState("old", 3, 3, 3)]) == {"old": 0}
    assert plan_recreate(3, new, [ReplicaSetState("old", 0, 1, 0)]) == {}
    assert plan_recreate(3, new, [ReplicaSetState("old", 0, 0, 0)]) == {"new": 3}


@given(
    desired=st.integers(1, 40),
    surge=st.integers(0, 10),
    unavailable=st.integers(0, 10),
)
def test_a_rollout_converges_within_its_limits(desired: int, surge: int, unavailable: int) -> None:
    limits = RolloutLimits(desired, surge, max(min(unavailable, desired), 1 if surge == 0 else 0))
    new, old = ReplicaSetState("new", 0, 0, 0), ReplicaSetState("old", desired, desired, desired)
    for _ in range(4 * desired + 4):
        changes = plan_rolling_update(limits, new, [old])
        if not changes:
            break
        new_wanted, old_wanted = changes.get("new", new.replicas), changes.get("old", old.replicas)
        assert new_wanted + old_wanted <= desired + limits.surge
        assert min(new.available, new_wanted) + min(old.available, old_wanted) >= desired - limits.unavailable
        new = ReplicaSetState("new", new_wanted, new_wanted, new_wanted)
        old = ReplicaSetState("old", old_wanted, old_wanted, old_wanted)
    assert (new.replicas, old.replicas) == (desired, 0)


@pytest.mark.parametrize(("available", "expected"), [(3, "True"), (2, "False")])
def test_the_available_condition_requires_the_minimum(available: int, expected: str) -> None:
    new = ReplicaSetState("web-1", 4, 4, available)
    status = compute_status(
        a_deployment(4, maxSurge=1, maxUnavailable=1), new, [new], available, "2026-01-01T00:00:00Z"
    )
    conditions = {c["type"]: c for c in status["conditions"]}
    assert conditions["Available"]["status"] == expected
    assert status["observedGeneration"] == 3
    assert status["unavailableReplicas"] == 4 - available


def test_an_unchanged_condition_keeps_its_times() -> None:
    deployment = a_deployment(1)
    new = ReplicaSetState("web-1", 1, 1, 1)
    deployment["status"] = compute_status(deployment, new, [new], 1, "2026-01-01T00:00:00Z")
    assert compute_status(deployment, new, [new], 1, "2026-01-02T00:00:00Z") == deployment["status"]
