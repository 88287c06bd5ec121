"""Invariants of the division over subsets and clusters, for the planners that the scheduler uses."""

from collections.abc import Mapping
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from federation.planning.placement.capacity import FreeCapacity, Planner, plan_by_capacity, plan_within_capacity
from federation.planning.placement.nearest import plan_nearest
from federation.planning.placement.replicas import Demand, Plan, Preference, Steps
from federation.planning.placement.subsetquotas import (
    SubsetClusters,
    SubsetSpread,
    attribute_replicas,
    plan_quotas,
    planned_quotas,
)

_CLUSTERS = ("c1", "c2", "c3", "c4")
_counts = st.dictionaries(st.sampled_from(_CLUSTERS), st.integers(0, 12))
_few = st.integers(0, 4)
_subsets = st.lists(
    st.tuples(st.none() | st.integers(0, 12), st.frozensets(st.sampled_from((*_CLUSTERS, "elsewhere")))),
    min_size=1,
    max_size=4,
).map(lambda drawn: tuple(SubsetClusters(f"s{n}", cap, clusters) for n, (cap, clusters) in enumerate(drawn)))
_rooms = st.fixed_dictionaries({name: st.integers(0, 8) for name in _CLUSTERS})
_weights = st.fixed_dictionaries({name: st.integers(1, 5) for name in _CLUSTERS})


def _planner(room: Mapping[str, int] | None, *, by_capacity: bool) -> Planner:
    if room is None:
        return plan_nearest
    capacity = FreeCapacity(room, room, dict.fromkeys(room, 10))
    return partial(plan_by_capacity, capacity) if by_capacity else partial(plan_within_capacity, capacity, plan_nearest)


def _demand(total: int, weights: Mapping[str, int], current: Mapping[str, int], *, avoid_disruption: bool) -> Demand:
    preferences = {name: Preference(weight) for name, weight in weights.items()}
    return Demand(total, _CLUSTERS, preferences, "default/web", current, avoid_disruption=avoid_disruption)


def _plan(
    spread: SubsetSpread, room: Mapping[str, int], planner: Planner, demand: Demand
) -> tuple[Plan, dict[str, dict[str, int]]]:
    steps: Steps = []
    plan = plan_quotas(spread, room, planner, demand, steps)
    return plan, {name: dict(own) for name, own in planned_quotas(steps).items()}


_cases = st.fixed_dictionaries(
    {
        "subsets": _subsets,
        "total": st.integers(0, 30),
        "weights": _weights,
        "current": _counts,
        "room": st.none() | _rooms,
        "by_capacity": st.booleans(),
        "avoid_disruption": st.booleans(),
        "frozen": st.frozensets(st.sampled_from(_CLUSTERS)),
    }
)


@given(_cases)
def test_sums_match_and_no_subset_exceeds_its_cap_or_its_clusters(case: dict[str, object]) -> None:
    subsets, total, room = case["subsets"], case["total"], case["room"]
    spread = SubsetSpread("web", subsets, frozen=case["frozen"])
    demand = _demand(total, case["weights"], case["current"], avoid_disruption=case["avoid_disruption"])
    planner = _planner(room, by_capacity=case["by_capacity"])
    plan, quotas = _plan(spread, room or {}, planner, demand)
    for cluster in _CLUSTERS:
        assert plan.replicas[cluster] == sum(own.get(cluster, 0) for own in quotas.values())
    for subset in subsets:
        own = quotas[subset.name]
        assert own.keys() <= subset.clusters
        assert all(count > 0 for count in own.values())
        assert subset.cap is None or sum(own.values()) <= subset.cap
    assert sum(plan.replicas.values()) <= total
    if set(_CLUSTERS) - case["frozen"]:
        assert sum(plan.replicas.values()) == total


@given(_cases)
def test_replicas_of_silent_clusters_are_removed_only_after_all_others(case: dict[str, object]) -> None:
    frozen, current, total = case["frozen"], case["current"], case["total"]
    spread = SubsetSpread("web", case["subsets"], frozen=frozen)
    demand = _demand(total, case["weights"], current, avoid_disruption=case["avoid_disruption"])
    plan, _ = _plan(spread, case["room"] or {}, _planner(case["room"], by_capacity=case["by_capacity"]), demand)
    held = sum(current.get(name, 0) for name in frozen)
    assert all(plan.replicas[name] <= current.get(name, 0) for name in frozen)
    if held <= total:
        assert all(plan.replicas[name] == current.get(name, 0) for name in frozen)
    else:
        assert sum(plan.replicas[name] for name in _CLUSTERS if name not in frozen) == 0


@given(_cases)
def test_nothing_moves_without_a_change_of_the_total(case: dict[str, object]) -> None:
    current = case["current"]
    spread = SubsetSpread("web", case["subsets"])
    demand = _demand(sum(current.values()), case["weights"], current, avoid_disruption=True)
    plan, _ = _plan(spread, case["room"] or {}, _planner(case["room"], by_capacity=case["by_capacity"]), demand)
    assert {name: count for name, count in plan.replicas.items() if count} == {n: c for n, c in current.items() if c}


@given(_subsets, st.integers(0, 30), _weights)
def test_subsets_fill_in_order(subsets: tuple[SubsetClusters, ...], total: int, weights: Mapping[str, int]) -> None:
    _, quotas = _plan(
        SubsetSpread("web", subsets), {}, plan_nearest, _demand(total, weights, {}, avoid_disruption=True)
    )
    left = total
    for subset in subsets:
        wanted = left if subset.cap is None else min(left, subset.cap)
        if not subset.clusters & set(_CLUSTERS):
            wanted = 0
        assert sum(quotas[subset.name].values()) == wanted
        left -= wanted
    assert sum(quotas[""].values()) == left


@given(_subsets, st.integers(0, 30), st.integers(0, 30), _weights)
def test_scale_in_takes_from_the_last_subset_first(
    subsets: tuple[SubsetClusters, ...], more: int, fewer: int, weights: Mapping[str, int]
) -> None:
    spread = SubsetSpread("web", subsets)
    first, before = _plan(spread, {}, plan_nearest, _demand(more + fewer, weights, {}, avoid_disruption=True))
    held = {name: own for name, own in before.items() if name}
    spread = SubsetSpread("web", subsets, held)
    _, after = _plan(spread, {}, plan_nearest, _demand(fewer, weights, first.replicas, avoid_disruption=True))
    is_open = True
    for name in [*(subset.name for subset in subsets), ""]:
        have, keep = sum(before[name].values()), sum(after[name].values())
        assert keep <= have
        assert is_open or keep == 0
        is_open = is_open and keep == have


@given(_subsets, _counts, st.dictionaries(st.sampled_from(("s0", "s1", "s2", "s9")), _counts))
def test_attribution_is_stable_and_within_caps(
    subsets: tuple[SubsetClusters, ...], replicas: Mapping[str, int], known: Mapping[str, Mapping[str, int]]
) -> None:
    quotas = attribute_replicas(subsets, replicas, known)
    assert attribute_replicas(subsets, replicas, quotas) == quotas
    for subset in subsets:
        own = quotas.get(subset.name, {})
        assert own.keys() <= subset.clusters
        assert subset.cap is None or sum(own.values()) <= subset.cap
    for cluster in _CLUSTERS:
        assert sum(own.get(cluster, 0) for own in quotas.values()) <= replicas.get(cluster, 0)


def test_a_full_subset_passes_the_rest_on() -> None:
    subsets = (SubsetClusters("base", 100, frozenset({"c1"})), SubsetClusters("elastic", None, frozenset({"c2"})))
    room = {"c1": 3, "c2": 50, "c3": 50, "c4": 50}
    demand = _demand(10, dict.fromkeys(_CLUSTERS, 1), {}, avoid_disruption=True)
    plan, quotas = _plan(SubsetSpread("web", subsets), room, _planner(room, by_capacity=True), demand)
    assert quotas == {"base": {"c1": 3}, "elastic": {"c2": 7}, "": {}}
    assert plan.replicas == {"c1": 3, "c2": 7, "c3": 0, "c4": 0}


def test_a_lowered_cap_moves_nothing_until_scale_in() -> None:
    clusters = frozenset({"c1"})
    subsets = (SubsetClusters("a", 5, clusters), SubsetClusters("b", None, frozenset({"c2"})))
    held = {"a": {"c1": 8}, "b": {"c2": 2}}
    spread, weights = SubsetSpread("web", subsets, held), dict.fromkeys(_CLUSTERS, 1)
    current = {"c1": 8, "c2": 2}
    plan, quotas = _plan(spread, {}, plan_nearest, _demand(10, weights, current, avoid_disruption=True))
    assert (plan.replicas["c1"], plan.replicas["c2"]) == (8, 2)
    assert quotas == {"a": {"c1": 5}, "b": {"c2": 2}, "": {"c1": 3}}
    plan, _ = _plan(spread, {}, plan_nearest, _demand(8, weights, current, avoid_disruption=True))
    assert (plan.replicas["c1"], plan.replicas["c2"]) == (6, 2)


@given(_cases, st.dictionaries(st.sampled_from(_CLUSTERS), st.dictionaries(st.sampled_from(("s0", "s1")), _few)))
def test_a_subset_without_nodes_gets_no_more_while_another_cluster_takes_all(
    case: dict[str, object], running: Mapping[str, Mapping[str, int]]
) -> None:
    spread = SubsetSpread("web", case["subsets"], running=running)
    demand = _demand(case["total"], case["weights"], case["current"], avoid_disruption=case["avoid_disruption"])
    plan, quotas = _plan(spread, {}, plan_nearest, demand)
    assert sum(plan.replicas.values()) == case["total"]
    for subset in case["subsets"]:
        own = quotas[subset.name]
        assert subset.cap is None or sum(own.values()) <= subset.cap
        if set(_CLUSTERS) - running.keys():
            assert all(own.get(cluster, 0) <= marked.get(subset.name, 99) for cluster, marked in running.items())
