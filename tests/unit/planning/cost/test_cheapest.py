"""When running replicas move although that saves nothing."""

import pytest

from federation.planning.cost.cheapest import Floor, Tariff, plan_cheapest
from federation.planning.placement.replicas import Demand


@pytest.mark.parametrize(
    ("floor", "current", "expected"),
    [
        (Floor(0), {"spot": 4}, {"spot": 4, "own": 0}),
        (Floor(1), {"spot": 4}, {"spot": 3, "own": 1}),
        (Floor(1), {"spot": 3, "own": 1}, {"spot": 3, "own": 1}),
        (Floor(1), {"spot": 1, "own": 3}, {"spot": 1, "own": 3}),
    ],
    ids=["no floor", "below the floor", "at the floor", "a move saves too little"],
)
def test_replicas_move_to_reach_the_floor_and_else_only_if_that_saves_enough(
    floor: Floor, current: dict[str, int], expected: dict[str, int]
) -> None:
    tariff = Tariff({"spot": 90, "own": 100}, frozenset({"spot"}), floor, saving_percent_min=20)
    demand = Demand(4, ("own", "spot"), {}, "default/web", current=current, avoid_disruption=False)
    assert plan_cheapest(tariff, demand).replicas == expected
