"""The cost planner finds the cheapest feasible division, compared with all divisions of small cases."""

from collections.abc import Mapping
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from federation.planning.cost.cheapest import Floor, Tariff, plan_cheapest
from federation.planning.placement.replicas import Demand, Preference

NAMES = ("a", "b", "c")
few = st.integers(0, 4)


@st.composite
def preferences(draw: st.DrawFn) -> Preference:
    maximum = draw(st.none() | few)
    return Preference(0, draw(few) if maximum is None else draw(st.integers(0, maximum)), maximum)


def per_cluster(values: st.SearchStrategy[int]) -> st.SearchStrategy[dict[str, int]]:
    return st.dictionaries(st.sampled_from(NAMES), values)


@st.composite
def demands(draw: st.DrawFn) -> Demand:
    return Demand(
        total=draw(st.integers(0, 7)),
        clusters=NAMES,
        preferences={name: draw(preferences()) for name in NAMES},
        current=draw(per_cluster(few)),
        limited=draw(per_cluster(few)),
        avoid_disruption=draw(st.booleans()),
    )


tariffs = st.builds(
    Tariff,
    st.fixed_dictionaries({name: st.integers(0, 5) for name in NAMES}),
    st.frozensets(st.sampled_from(NAMES)),
    st.builds(Floor, few, st.sampled_from((0, 50))),
)


def bounds_of(demand: Demand) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Return the least and most replicas by cluster, computed in another way than by the planner."""
    least, most = {}, {}
    for name in NAMES:
        caps = [demand.total, demand.limited.get(name), demand.preferences[name].maximum]
        most[name] = min(cap for cap in caps if cap is not None)
        least[name] = 0
    if demand.avoid_disruption:
        held = {name: min(demand.current.get(name, 0), demand.limited.get(name, 99)) for name in NAMES}
        if sum(held.values()) > demand.total:
            return least, held
        return held, {name: max(most[name], held[name]) for name in NAMES}
    return least, most


def rank(tariff: Tariff, demand: Demand, counts: Mapping[str, int]) -> tuple[int, int, int, int]:
    """Return what a division is judged by: placed replicas, minimums, the floor, and the cost, in this order."""
    most = bounds_of(demand)[1]
    minimums = sum(min(counts[n], demand.preferences[n].minimum, most[n]) for n in NAMES)
    on_demand = sum(counts[name] for name in NAMES if name not in tariff.spot)
    floor = min(on_demand, tariff.floor.of(demand.total))
    return -sum(counts.values()), -minimums, -floor, sum(counts[name] * (tariff.each[name] or 0) for name in NAMES)


@given(tariffs, demands())
def test_no_feasible_division_is_cheaper(tariff: Tariff, demand: Demand) -> None:
    least, most = bounds_of(demand)
    plan = plan_cheapest(tariff, demand).replicas
    assert all(least[name] <= plan[name] <= most[name] for name in NAMES)
    assert sum(plan.values()) <= demand.total
    every = product(*(range(least[name], most[name] + 1) for name in NAMES))
    feasible = [dict(zip(NAMES, counts, strict=True)) for counts in every if sum(counts) <= demand.total]
    assert rank(tariff, demand, plan) == min(rank(tariff, demand, counts) for counts in feasible)


@given(tariffs, demands())
def test_a_division_stays_when_it_is_divided_again(tariff: Tariff, demand: Demand) -> None:
    plan = plan_cheapest(tariff, demand).replicas
    again = Demand(
        total=demand.total,
        clusters=NAMES,
        preferences=demand.preferences,
        current=plan,
        limited=demand.limited,
        avoid_disruption=demand.avoid_disruption,
    )
    assert sum(plan_cheapest(tariff, again).replicas.values()) == sum(plan.values())
    if not demand.avoid_disruption:
        assert plan_cheapest(tariff, again).replicas == plan


@given(tariffs, demands(), st.integers(1, 100))
def test_running_replicas_move_only_if_that_saves_enough(tariff: Tariff, demand: Demand, percent: int) -> None:
    careful = Tariff(tariff.each, tariff.spot, tariff.floor, percent)
    plan, cheapest = plan_cheapest(careful, demand).replicas, plan_cheapest(tariff, demand).replicas
    cost, lowest = careful.cost_of(plan)[1], tariff.cost_of(cheapest)[1]
    if plan != cheapest:
        assert sum(plan.values()) == sum(cheapest.values())
        assert (cost - lowest) * 100 < cost * percent or cost == lowest
