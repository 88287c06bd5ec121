"""Removal by capacity: waiting replicas go first, up to half of a cluster's, and minimums last."""

import pytest

from federation.planning.placement.capacity import FreeCapacity, plan_by_capacity, plan_within_capacity
from federation.planning.placement.nearest import plan_nearest
from federation.planning.placement.replicas import Demand, Preference, Steps

NONE = {"a": 0, "b": 0}


@pytest.mark.parametrize(
    ("current", "waiting", "total", "expected"),
    [
        ({"a": 5, "b": 5}, {"a": 9}, 7, {"a": 2, "b": 5}),
        ({"a": 5, "b": 5}, {"a": 9}, 9, {"a": 4, "b": 5}),
        ({"a": 1, "b": 5}, {"a": 9}, 5, {"a": 0, "b": 5}),
        ({"a": 6, "b": 4}, {"a": 9}, 7, {"a": 3, "b": 4}),
        ({"a": 5, "b": 5}, {"a": 2}, 8, {"a": 3, "b": 5}),
        ({"a": 5, "b": 5}, {"a": 1}, 8, {"a": 3, "b": 5}),
        ({"a": 8, "b": 2}, {}, 5, {"a": 4, "b": 1}),
    ],
    ids=[
        "half of an odd number is rounded up",
        "one",
        "half of one is one",
        "half of an even number",
        "no more than wait",
        "the rest is removed in proportion",
        "nothing waits",
    ],
)
def test_waiting_replicas_are_removed_first(
    current: dict[str, int], waiting: dict[str, int], total: int, expected: dict[str, int]
) -> None:
    capacity = FreeCapacity(NONE, NONE, {"a": 20, "b": 20}, waiting)
    demand = Demand(total, ("a", "b"), {}, "default/web", current=current)
    assert plan_by_capacity(capacity, demand).replicas == expected


@pytest.mark.parametrize(
    ("minimum", "total", "expected"),
    [(4, 6, {"a": 4, "b": 2}), (2, 6, {"a": 2, "b": 4}), (4, 3, {"a": 3, "b": 0}), (0, 6, {"a": 1, "b": 5})],
)
def test_minimums_are_removed_last(minimum: int, total: int, expected: dict[str, int]) -> None:
    capacity = FreeCapacity(NONE, NONE, {"a": 20, "b": 20}, {"a": 9})
    preferences = {"a": Preference(0, minimum)}
    demand = Demand(total, ("a", "b"), preferences, "default/web", current={"a": 5, "b": 5})
    assert plan_by_capacity(capacity, demand).replicas == expected


@pytest.mark.parametrize("is_explained", [True, False])
@pytest.mark.parametrize(("total", "beyond"), [(3, 0), (5, 0), (9, 4)])
def test_another_planner_divides_what_has_no_room_last(is_explained: bool, total: int, beyond: int) -> None:
    capacity = FreeCapacity({"a": 3, "b": 2}, {"a": 1, "b": 2}, {"a": 20, "b": 20})
    steps: Steps | None = [] if is_explained else None
    demand = Demand(total, ("a", "b"), dict.fromkeys(("a", "b"), Preference(1)), "default/web")
    assert sum(plan_within_capacity(capacity, plan_nearest, demand, steps).replicas.values()) == total
    without = [step["difference"] for step in steps or () if step["step"] == "beyondRoom"]
    assert without == ([beyond] if beyond and is_explained else [])


@pytest.mark.parametrize(
    ("current", "expected"),
    [({"a": 6}, {"a": 7, "b": 3}), ({"a": 6, "b": 2}, {"a": 6, "b": 4}), ({}, {"a": 5, "b": 5})],
    ids=["nothing", "less", "no replicas anywhere"],
)
def test_new_replicas_go_first_to_a_cluster_that_is_emptier_than_others(
    current: dict[str, int], expected: dict[str, int]
) -> None:
    room = {"a": 10, "b": 10}
    demand = Demand(10, ("a", "b"), {}, "default/web", current=current)
    assert plan_by_capacity(FreeCapacity(room, room, {"a": 20, "b": 20}), demand).replicas == expected
