"""Invariants of the capacity planner, and of its bound for other planners."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from federation.planning.placement.binpack import plan_binpack
from federation.planning.placement.capacity import (
    FreeCapacity,
    countable_replicas,
    plan_by_capacity,
    plan_within_capacity,
)
from federation.planning.placement.nearest import plan_nearest
from federation.planning.placement.replicas import Demand, Preference

CLUSTERS = tuple("abcdef")


@st.composite
def rooms(draw: st.DrawFn) -> FreeCapacity:
    free = {cluster: draw(st.integers(0, 40)) for cluster in CLUSTERS}
    sure = {cluster: draw(st.integers(0, count)) for cluster, count in free.items()}
    sizes = {cluster: draw(st.integers(1, 60)) for cluster in CLUSTERS}
    return FreeCapacity(free, sure, sizes, draw(st.dictionaries(st.sampled_from(CLUSTERS), st.integers(1, 9))))


@st.composite
def demands(draw: st.DrawFn, *, bounded: bool = False, **fixed: Any) -> Demand:
    clusters = tuple(draw(st.lists(st.sampled_from(CLUSTERS), unique=True, min_size=1)))
    preferences = {}
    for cluster in clusters if bounded else ():
        minimum = draw(st.integers(0, 5))
        preferences[cluster] = Preference(0, minimum, draw(st.none() | st.integers(minimum, 30)))
    counts = st.dictionaries(st.sampled_from(CLUSTERS), st.integers(0, 20))
    fields: dict[str, Any] = {
        "total": draw(st.integers(0, 120)),
        "clusters": clusters,
        "preferences": preferences,
        "key": draw(st.sampled_from(("default/web", "ns/api"))),
        "current": draw(counts),
        "limited": draw(counts) if bounded else {},
        "avoid_disruption": draw(st.booleans()),
    }
    return Demand(**fields | fixed)


@given(demands(), rooms())
def test_every_replica_is_placed(demand: Demand, room: FreeCapacity) -> None:
    assert sum(plan_by_capacity(room, demand).replicas.values()) == demand.total


@given(demands(), rooms())
def test_no_cluster_gets_more_than_fits_while_another_has_capacity(demand: Demand, room: FreeCapacity) -> None:
    plan = plan_by_capacity(room, demand).replicas
    for surest in room.tiers:
        tops = {c: demand.current.get(c, 0) + surest[c] for c in demand.clusters}
        if any(plan[c] > tops[c] for c in tops):
            assert all(plan[c] >= tops[c] for c in tops)


@given(demands(bounded=True), rooms())
def test_bounds_hold(demand: Demand, room: FreeCapacity) -> None:
    plan = plan_by_capacity(room, demand).replicas
    assert sum(plan.values()) <= demand.total
    for cluster, count in plan.items():
        assert 0 <= count <= demand.limited.get(cluster, count)
        maximum = demand.preferences[cluster].maximum
        held = demand.current.get(cluster, 0) if demand.avoid_disruption else 0
        assert maximum is None or count <= max(maximum, held)


@given(demands(avoid_disruption=True), rooms())
def test_running_replicas_move_only_down_with_the_total(demand: Demand, room: FreeCapacity) -> None:
    plan = plan_by_capacity(room, demand).replicas
    held = {cluster: demand.current.get(cluster, 0) for cluster in demand.clusters}
    if sum(held.values()) <= demand.total:
        assert all(plan[cluster] >= count for cluster, count in held.items())
    else:
        assert all(plan[cluster] <= count for cluster, count in held.items())


@given(demands(avoid_disruption=True), rooms())
def test_a_division_is_a_fixed_point(demand: Demand, room: FreeCapacity) -> None:
    plan = plan_by_capacity(room, demand).replicas
    assert plan_by_capacity(room, replace(demand, current=plan)).replicas == plan


@given(demands(), rooms(), st.randoms())
def test_the_order_of_clusters_does_not_matter(demand: Demand, room: FreeCapacity, random: Any) -> None:
    shuffled = replace(demand, clusters=tuple(random.sample(demand.clusters, len(demand.clusters))))
    assert plan_by_capacity(room, shuffled) == plan_by_capacity(room, demand)


def test_few_replicas_go_to_as_many_clusters_the_emptiest_first() -> None:
    free = {"big": 100, "half": 10, "small": 5}
    demand = Demand(2, tuple(free), {}, "default/web")
    plan = plan_by_capacity(FreeCapacity(free, free, {"big": 1000, "half": 20, "small": 40}), demand)
    assert plan.replicas == {"big": 1, "half": 1, "small": 0}


def test_replicas_that_fit_nowhere_wait_in_large_clusters() -> None:
    demand = Demand(10, ("a", "b", "full"), {}, "default/web")
    steps: list[dict[str, Any]] = []
    free = {"a": 2, "b": 0, "full": 0}
    plan = plan_by_capacity(FreeCapacity(free, free, {"a": 30, "b": 10, "full": 10}), demand, steps)
    assert [step["step"] for step in steps] == ["room", "beyondRoom"]
    assert sum(plan.replicas.values()) == 10
    assert plan.replicas["a"] > plan.replicas["b"] > 0


def test_reserved_capacity_is_used_last() -> None:
    demand = Demand(6, ("a", "b"), {}, "default/web")
    plan = plan_by_capacity(FreeCapacity({"a": 9, "b": 4}, {"a": 1, "b": 4}, {"a": 9, "b": 9}), demand)
    assert plan.replicas == {"a": 2, "b": 4}


@given(demands(avoid_disruption=True), rooms(), st.data())
def test_weights_hold_within_free_capacity(demand: Demand, room: FreeCapacity, data: st.DataObject) -> None:
    weighted = {cluster: Preference(data.draw(st.integers(1, 9))) for cluster in demand.clusters}
    demand = replace(demand, preferences=weighted)
    plan = plan_within_capacity(room, plan_nearest, demand).totals()
    held = {cluster: demand.current.get(cluster, 0) for cluster in demand.clusters}
    assert sum(plan.values()) == demand.total
    tops = {cluster: held[cluster] + room.free[cluster] for cluster in held}
    if any(plan.get(cluster, 0) > top for cluster, top in tops.items()):
        assert all(plan.get(cluster, 0) >= tops[cluster] for cluster in tops)


@given(demands(current={}), rooms())
def test_clusters_are_filled_in_order_up_to_their_capacity(demand: Demand, room: FreeCapacity) -> None:
    plan = plan_within_capacity(replace(room, unreserved=room.free), plan_binpack, demand).totals()
    assert sum(plan.values()) == demand.total
    last = max((i for i, c in enumerate(demand.clusters) if plan.get(c)), default=0)
    assert all(plan[c] >= room.free[c] for c in demand.clusters[:last])


def test_a_scale_down_first_frees_capacity_where_pods_wait() -> None:
    full = {"calm": 0, "crowded": 0}
    demand = Demand(12, ("calm", "crowded"), {}, "default/web", current={"calm": 8, "crowded": 8})
    plan = plan_by_capacity(FreeCapacity(full, full, {"calm": 9, "crowded": 9}, {"crowded": 7}), demand)
    assert plan.replicas == {"calm": 8, "crowded": 4}


def test_stuck_replicas_that_stay_are_not_kept_a_second_time() -> None:
    full = {"a": 0, "b": 0}
    demand = Demand(4, ("a", "b"), {}, "default/web", {"a": 2, "b": 2}, {"b": 0}, keep_unschedulable=True)
    assert plan_by_capacity(FreeCapacity(full, full, {"a": 9, "b": 9}), demand).totals() == {"a": 2, "b": 2}
    some = {"a": 2, "b": 0}
    assert plan_by_capacity(FreeCapacity(some, some, {"a": 9, "b": 9}), demand).totals() == {"a": 4, "b": 2}


def test_stuck_replicas_are_not_kept_where_others_that_run_are_too_many() -> None:
    """A replica that stayed there would take the place of the one that was to go."""
    full = {"a": 0, "c": 0}
    current, believed = {"a": 2, "c": 3}, {"a": 1, "c": 3}
    demand = Demand(3, ("a", "c"), {}, "default/web", current, believed, keep_unschedulable=True)
    assert sum(plan_by_capacity(FreeCapacity(full, full, {"a": 1, "c": 3}), demand).totals().values()) == 3


def test_what_bounds_leave_goes_to_the_one_cluster_without_bound() -> None:
    free = {"a": 0, "b": 0}
    demand = Demand(10_000, ("a", "b"), {"b": Preference(0, 0, 5)}, "default/web")
    steps: list[dict[str, Any]] = []
    plan = plan_by_capacity(FreeCapacity(free, free, {"a": 1, "b": 10**6}), demand, steps)
    assert plan.replicas == {"a": 9_995, "b": 5}
    assert len(steps) <= 4


@given(demands(avoid_disruption=True), rooms(), st.data())
def test_a_scale_down_leaves_minimums_where_they_run_as_long_as_others_have_more(
    demand: Demand, room: FreeCapacity, data: st.DataObject
) -> None:
    held = countable_replicas(demand)
    minimums = {cluster: data.draw(st.integers(0, 5)) for cluster in demand.clusters}
    total = data.draw(st.integers(0, sum(held.values())))
    preferences = {cluster: Preference(0, least) for cluster, least in minimums.items()}
    plan = plan_by_capacity(room, replace(demand, total=total, preferences=preferences)).totals()
    kept = {cluster: min(minimums[cluster], count) for cluster, count in held.items()}
    if total >= sum(kept.values()):
        assert all(plan.get(cluster, 0) >= least for cluster, least in kept.items())
    else:
        assert all(plan.get(cluster, 0) <= least for cluster, least in kept.items())
