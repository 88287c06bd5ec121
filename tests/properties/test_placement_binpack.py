"""Invariants of the bin packing planner, over arbitrary demands."""

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from federation.planning.placement.binpack import is_due, plan_binpack
from federation.planning.placement.replicas import Demand, Preference

CLUSTERS = tuple("abcde")


@st.composite
def fresh_demands(draw: st.DrawFn) -> Demand:
    clusters = tuple(draw(st.lists(st.sampled_from(CLUSTERS), unique=True, min_size=1)))
    bounds = {}
    for cluster in clusters:
        minimum = draw(st.integers(0, 10))
        bounds[cluster] = Preference(0, minimum, draw(st.none() | st.integers(minimum, 40)))
    return Demand(draw(st.integers(1, 150)), clusters, bounds, avoid_disruption=draw(st.booleans()))


@given(fresh_demands())
def test_no_more_than_wanted_and_never_negative(demand: Demand) -> None:
    plan = plan_binpack(demand)
    assert sum(plan.replicas.values()) <= demand.total
    assert all(replicas >= 0 for replicas in plan.replicas.values())


@given(fresh_demands())
def test_a_cluster_is_used_beyond_its_minimum_only_when_those_before_it_are_full(demand: Demand) -> None:
    plan = plan_binpack(demand)
    is_open = False
    for cluster in demand.clusters:
        own = demand.preferences[cluster]
        if is_open:
            assert plan.replicas[cluster] <= own.minimum
        is_open = is_open or own.maximum is None or plan.replicas[cluster] < own.maximum


@given(fresh_demands())
def test_feeding_the_plan_back_changes_nothing(demand: Demand) -> None:
    plan = plan_binpack(demand)
    assert plan_binpack(replace(demand, current=plan.totals())) == plan


@given(fresh_demands())
def test_a_trace_does_not_change_the_answer(demand: Demand) -> None:
    steps: list[dict[str, Any]] = []
    assert plan_binpack(demand, steps) == plan_binpack(demand)
    assert steps


def test_an_unconfirmed_division_is_kept() -> None:
    demand = Demand(10, ("a", "b"), {}, current={"a": 6}, scheduled={"a": 4})
    steps: list[dict[str, Any]] = []
    assert plan_binpack(demand, steps).replicas == {"a": 6}
    assert steps[0]["step"] == "wait"


def test_a_running_division_is_confirmed_below_a_higher_estimate() -> None:
    order = dict.fromkeys("ab", Preference())
    demand = Demand(2, ("a", "b"), order, "default/web", {"a": 2, "b": 2}, {"a": 3}, scheduled={"a": 2, "b": 2})
    assert is_due(demand, allows_higher_estimate=True)
    assert not is_due(demand), "KubeAdmiral waits"
    assert plan_binpack(demand, waits=False).totals() == {"a": 2, "b": 0}
