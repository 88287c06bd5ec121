"""Invariants of the spread planner, over arbitrary demands."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.support.generated import examples

from federation.planning.placement.replicas import Demand, Plan, Preference, plan_replicas

CLUSTERS = tuple("abcdefg")


@st.composite
def preferences(draw: st.DrawFn) -> Preference:
    minimum = draw(st.integers(0, 20))
    maximum = draw(st.none() | st.integers(minimum, 60))
    return Preference(draw(st.integers(0, 10)), minimum, maximum)


@st.composite
def demands(draw: st.DrawFn, **fixed: Any) -> Demand:
    clusters = tuple(draw(st.lists(st.sampled_from(CLUSTERS), unique=True, min_size=1)))
    counts = st.dictionaries(st.sampled_from(CLUSTERS), st.integers(0, 40))
    fields: dict[str, Any] = {
        "total": draw(st.integers(0, 200)),
        "clusters": clusters,
        "preferences": {cluster: draw(preferences()) for cluster in clusters},
        "key": draw(st.sampled_from(("", "default/web", "ns/api"))),
        "current": draw(counts),
        "estimated": draw(counts),
        "limited": draw(counts),
        "avoid_disruption": draw(st.booleans()),
        "keep_unschedulable": draw(st.booleans()),
    }
    return Demand(**fields | fixed)


def placed(plan: Plan) -> int:
    return sum(plan.replicas.values())


@given(demands())
def test_no_more_replicas_are_planned_than_wanted(demand: Demand) -> None:
    assert placed(plan_replicas(demand)) <= demand.total


@given(demands(estimated={}, keep_unschedulable=False))
def test_without_feedback_nothing_overflows(demand: Demand) -> None:
    plan = plan_replicas(demand)
    assert plan.overflow == {}
    assert plan.totals() == plan.replicas


@given(demands())
def test_no_cluster_gets_a_negative_number_or_more_than_its_caps(demand: Demand) -> None:
    for cluster, replicas in plan_replicas(demand).replicas.items():
        assert replicas >= 0
        assert replicas <= demand.limited.get(cluster, replicas)
        assert replicas <= demand.estimated.get(cluster, replicas)


@given(demands(avoid_disruption=False))
def test_the_maximum_holds_when_replicas_may_move(demand: Demand) -> None:
    for cluster, replicas in plan_replicas(demand).replicas.items():
        maximum = demand.preferences[cluster].maximum
        assert maximum is None or replicas <= maximum


@given(demands(estimated={}, limited={}, avoid_disruption=False))
def test_the_total_is_placed_when_capacity_suffices(demand: Demand) -> None:
    has_open_end = any(p.weight > 0 and p.maximum is None for p in demand.preferences.values())
    if has_open_end:
        assert placed(plan_replicas(demand)) == demand.total


@given(demands(), st.randoms())
def test_the_order_of_clusters_does_not_matter(demand: Demand, random: Any) -> None:
    shuffled = list(demand.clusters)
    random.shuffle(shuffled)
    reordered = replace(
        demand, clusters=tuple(shuffled), preferences={c: demand.preferences[c] for c in sorted(demand.preferences)}
    )
    assert plan_replicas(reordered) == plan_replicas(demand)


@given(demands())
def test_a_trace_does_not_change_the_answer(demand: Demand) -> None:
    steps: list[dict[str, Any]] = []
    assert plan_replicas(demand, steps) == plan_replicas(demand)
    assert steps


@given(demands(estimated={}, limited={}, avoid_disruption=True, keep_unschedulable=False), st.integers(1, 50))
def test_scaling_up_takes_nothing_from_any_cluster(demand: Demand, more: int) -> None:
    settled = plan_replicas(demand).replicas
    grown = plan_replicas(replace(demand, current=settled, total=sum(settled.values()) + more)).replicas
    assert all(grown[cluster] >= settled[cluster] for cluster in settled)


@given(demands(estimated={}, limited={}, avoid_disruption=True, keep_unschedulable=False), st.integers(1, 50))
def test_scaling_down_gives_nothing_to_any_cluster(demand: Demand, less: int) -> None:
    settled = plan_replicas(demand).replicas
    total = max(0, sum(settled.values()) - less)
    shrunk = plan_replicas(replace(demand, current=settled, total=total)).replicas
    assert all(shrunk[cluster] <= settled[cluster] for cluster in settled)


@given(demands(keep_unschedulable=False))
@examples(300)
def test_feeding_the_plan_back_reaches_a_fixed_point(demand: Demand) -> None:
    # Overflow counts as running in the next round and moves one replica's worth at a time, hence the generous bound.
    last = plan_replicas(demand)
    for _ in range(demand.total + 4):
        plan = plan_replicas(replace(demand, current=last.totals()))
        if plan == last:
            return
        last = plan
    raise AssertionError(f"no fixed point: {last}")


@given(demands(estimated={}, limited={}, avoid_disruption=False), st.integers(1, 20))
def test_a_larger_maximum_gives_a_cluster_no_less(demand: Demand, more: int) -> None:
    for cluster in demand.clusters:
        own = demand.preferences[cluster]
        if own.maximum is None:
            continue
        wider = {**demand.preferences, cluster: own._replace(maximum=own.maximum + more)}
        before, after = plan_replicas(demand).replicas, plan_replicas(replace(demand, preferences=wider)).replicas
        assert after[cluster] >= before[cluster]
