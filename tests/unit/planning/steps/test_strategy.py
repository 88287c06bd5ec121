"""The limits of updates, as Kubernetes and OpenKruise resolve them."""

from typing import Any

import pytest

from federation.api.resources import ADVANCED_STATEFUL_SETS, CLONE_SETS
from federation.apimachinery.resources import CONFIGMAPS, DEPLOYMENTS, STATEFUL_SETS, Object, Resource
from federation.planning.steps.strategy import (
    Limits,
    can_surge,
    is_paused,
    old_pods_kept,
    strategy_of,
    with_limits,
    with_strategy_of,
)


def a_deployment(rolling: Any = None, **strategy: Any) -> Object:
    return {"spec": {"strategy": {**strategy, "rollingUpdate": rolling}}}


@pytest.mark.parametrize(
    ("surge", "unavailable", "replicas", "limits"),
    [
        (None, None, 10, Limits(3, 2)),
        (None, None, 1, Limits(1, 0)),
        ("0%", "10%", 5, Limits(0, 1)),
        (0, 0, 5, Limits(0, 1)),
        (2, 0, 5, Limits(2, 0)),
        ("150%", "100%", 4, Limits(6, 4)),
        ("x%", -1, 4, Limits(0, 1)),
        ([], True, 4, Limits(0, 1)),
    ],
    ids=str,
)
def test_limits_of_a_deployment_round_surge_up_and_unavailable_down(
    surge: Any, unavailable: Any, replicas: int, limits: Limits
) -> None:
    rolling = {key: value for key, value in (("maxSurge", surge), ("maxUnavailable", unavailable)) if value is not None}
    assert strategy_of(DEPLOYMENTS, a_deployment(rolling)).limits(replicas) == limits


@pytest.mark.parametrize("workload", [{}, {"spec": None}, {"spec": {"strategy": None}}, a_deployment()], ids=str)
def test_a_deployment_without_a_strategy_has_the_default(workload: Object) -> None:
    assert strategy_of(DEPLOYMENTS, workload).limits(8) == Limits(2, 2)


def test_recreate_updates_without_limits_and_moves_with_the_default() -> None:
    strategy = strategy_of(DEPLOYMENTS, a_deployment(type="Recreate"))
    assert (strategy.limits(8), strategy.budget(8)) == (Limits(0, 8), Limits(2, 2))


def test_limits_of_a_clone_set_round_unavailable_up_without_surge() -> None:
    def limits(**strategy: Any) -> Limits:
        return strategy_of(CLONE_SETS, {"spec": {"updateStrategy": strategy}}).limits(7)

    assert limits() == Limits(0, 2)
    assert limits(maxSurge="10%") == Limits(1, 1)


@pytest.mark.parametrize("resource", [STATEFUL_SETS, ADVANCED_STATEFUL_SETS], ids=lambda resource: resource.group)
def test_a_stateful_set_has_one_unavailable_pod_unless_it_says_otherwise(resource: Resource) -> None:
    def limits(rolling: Object | None) -> Limits:
        return strategy_of(resource, {"spec": {"updateStrategy": {"rollingUpdate": rolling}}}).limits(10)

    assert limits(None) == limits({"maxUnavailable": "5%"}) == Limits(0, 1)
    assert limits({"maxUnavailable": "30%"}) == Limits(0, 3)


def test_on_delete_replaces_no_pods() -> None:
    assert not strategy_of(STATEFUL_SETS, {"spec": {"updateStrategy": {"type": "OnDelete"}}}).is_rolling


def test_limits_are_written_as_numbers_where_the_kind_has_them() -> None:
    deployment = with_limits(DEPLOYMENTS, {"spec": {"replicas": 3}}, Limits(1, 0))
    assert deployment == {"spec": {"replicas": 3, "strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}}}
    stateful_set = with_limits(STATEFUL_SETS, {"spec": {}}, Limits(0, 2))
    assert stateful_set == {"spec": {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 2}}}}


def test_a_workload_takes_the_strategy_of_the_live_object_or_none() -> None:
    wanted = {"spec": {"replicas": 2, "strategy": {"type": "Recreate"}}}
    live = a_deployment({"maxSurge": 1})
    assert with_strategy_of(DEPLOYMENTS, wanted, live)["spec"] == {"replicas": 2, **live["spec"]}
    assert with_strategy_of(DEPLOYMENTS, wanted, {})["spec"] == {"replicas": 2}


def test_updates_are_paused_where_the_kind_has_the_field() -> None:
    assert is_paused(DEPLOYMENTS, {"spec": {"paused": True}})
    assert is_paused(CLONE_SETS, {"spec": {"updateStrategy": {"paused": True}}})
    assert is_paused(ADVANCED_STATEFUL_SETS, {"spec": {"updateStrategy": {"rollingUpdate": {"paused": True}}}})
    assert not is_paused(STATEFUL_SETS, {"spec": {"paused": True}})
    assert not is_paused(DEPLOYMENTS, {"spec": None})


def test_a_partition_leaves_pods_on_the_old_revision() -> None:
    partitioned = {"spec": {"updateStrategy": {"rollingUpdate": {"partition": 3}, "partition": "50%"}}}
    assert old_pods_kept(STATEFUL_SETS, partitioned, 2) == 2
    assert old_pods_kept(CLONE_SETS, partitioned, 5) == 3
    assert old_pods_kept(DEPLOYMENTS, partitioned, 5) == 0


@pytest.mark.parametrize(
    ("resource", "workload", "replicas", "expected"),
    [
        (DEPLOYMENTS, a_deployment(), 4, True),
        (DEPLOYMENTS, a_deployment({"maxSurge": 0}), 4, False),
        (STATEFUL_SETS, {"spec": {}}, 4, False),
        (CLONE_SETS, {"spec": {}}, 4, False),
        (CLONE_SETS, {"spec": {"updateStrategy": {"maxSurge": 1}}}, 4, True),
        (CONFIGMAPS, {"data": {}}, 4, False),
    ],
)
def test_only_a_workload_with_a_surge_is_replaced_before_it_is_removed(
    resource: Resource, workload: Object, replicas: int, expected: bool
) -> None:
    assert can_surge(resource, workload, replicas) is expected
