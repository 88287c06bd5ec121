"""How many replicas may be missing at worst, and what a change costs, by kind and way of the change."""

from typing import Any

import pytest
from tests.support.manifests import a_policy
from tests.support.whatif import a_cluster, a_source, a_world, change, plan

from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS, JOBS, STATEFUL_SETS, Object, Resource
from federation.scheduling.whatif.consequences import lost_at_worst
from federation.scheduling.whatif.planresult import MemberObject, MemberPlan


def copy(replicas: int | None, image: str, strategy: Object) -> MemberObject | None:
    if replicas is None:
        return None
    spec = {"replicas": replicas, **strategy, "template": {"spec": {"containers": [{"image": image}]}}}
    return MemberObject({"spec": spec}, f"{replicas}{image}", "", replicas)


def rows(counts: dict[str, tuple[int | None, int | None]], *, updates: bool, strategy: Object) -> list[MemberPlan]:
    return [
        MemberPlan(name, copy(before, "1", strategy), copy(after, "2" if updates else "1", strategy))
        for name, (before, after) in counts.items()
    ]


ROLLING: Object = {"strategy": {"rollingUpdate": {"maxUnavailable": 1, "maxSurge": 1}}}
RECREATE: Object = {"strategy": {"type": "Recreate"}}
NONE: Object = {}


@pytest.mark.parametrize(
    ("counts", "updates", "strategy", "is_divided", "lost"),
    [
        ({"a": (4, 8)}, False, ROLLING, True, 0),
        ({"a": (8, 3)}, False, ROLLING, True, 5),
        ({"a": (4, None), "b": (4, None)}, False, ROLLING, True, 8),
        ({"a": (None, 4)}, False, ROLLING, True, 0),
        ({"a": (4, 2), "b": (4, 6)}, False, ROLLING, True, 1),
        ({"a": (4, None), "b": (4, 8)}, False, NONE, True, 2),
        ({"a": (4, 4), "b": (4, 4)}, True, ROLLING, True, 1),
        ({"a": (4, 4), "b": (4, 4)}, True, NONE, True, 2),
        ({"a": (4, 4), "b": (4, 4)}, True, RECREATE, True, 8),
        ({"a": (4, 2), "b": (4, 6)}, False, RECREATE, True, 2),
        ({"a": (4, 2), "b": (4, 3)}, True, ROLLING, True, 4),
        # Copies update in all clusters at the same time, and each that goes is gone.
        ({"a": (4, 4), "b": (4, 4)}, True, ROLLING, False, 2),
        ({"a": (4, 4), "b": (4, None)}, True, ROLLING, False, 5),
        ({"a": (4, None), "b": (None, 4)}, False, ROLLING, False, 4),
    ],
)
def test_replicas_missing_at_worst(
    counts: dict[str, tuple[int | None, int | None]], updates: bool, strategy: Object, is_divided: bool, lost: int
) -> None:
    listed = rows(counts, updates=updates, strategy=strategy)
    assert lost_at_worst(DEPLOYMENTS, listed, [], is_divided=is_divided) == lost


@pytest.mark.parametrize(("resource", "lost"), [(STATEFUL_SETS, 1), (JOBS, 0)])
def test_kinds_have_their_own_strategies(resource: Resource, lost: int) -> None:
    listed = rows({"a": (3, 3)}, updates=True, strategy=NONE)
    assert lost_at_worst(resource, listed, [], is_divided=True) == lost


def test_copies_under_waves_miss_what_the_largest_wave_does() -> None:
    listed = rows(dict.fromkeys("abcd", (4, 4)), updates=True, strategy=ROLLING)
    waves = [("canary", ["a"]), ("rest", ["b", "c", "d"])]
    assert lost_at_worst(DEPLOYMENTS, listed, waves, is_divided=False) == 3


def test_prices_are_those_of_all_replicas_before_and_after() -> None:
    rates: dict[str, Any] = {"price.federation.kubeadmiral.io/cpu": "0.1"}
    dear: dict[str, Any] = {"price.federation.kubeadmiral.io/cpu": "1"}
    clusters = [a_cluster("east", **rates), a_cluster("west", **dear), a_cluster("none")]
    free: dict[str, Any] = {
        "reschedulePolicy": {"replicaRescheduling": {"avoidDisruption": False}, "rescheduleWhen": {}}
    }
    world = a_world(clusters, [a_policy({"east": 1}, **free)], sources=[a_source("web", 6)])
    moved = plan(world, change(world, PROPAGATION_POLICIES, a_policy({"west": 1}, **free)))
    (obj,) = moved.objects
    assert (obj.costs["price"].before, obj.costs["price"].after) == (0.3, 3.0)  # half a core for each replica
    unknown = plan(world, change(world, PROPAGATION_POLICIES, a_policy({"none": 1}, **free)))
    assert unknown.objects[0].costs["price"].unknown == ("none",)
