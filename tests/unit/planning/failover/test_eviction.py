"""The placement while only some replicas may leave, case by case."""

import pytest

from federation.planning.failover.eviction import Eviction, Placement, evict, movable, without_replacements


@pytest.mark.parametrize(
    ("before", "after", "excess", "expected"),
    [
        ({"a": 3, "b": 1}, {"b": 4}, {}, 3),
        ({"a": 3, "b": 1}, {"b": 4}, {"b": 0}, 3),
        ({"a": 3, "b": 1}, {"b": 4}, {"b": 2}, 1),
        ({"a": 3, "b": 1}, {"b": 4}, {"b": -2}, 3),
        ({"a": 3, "b": 1}, {"b": 4}, {"b": 5}, 0),
        ({"a": 3, "b": 1}, {"b": 2}, {}, 1),
        ({"a": 3}, {"b": 2, "c": 1}, {}, 3),
        ({"a": 3}, {"b": 2, "c": 1}, {"c": 1}, 2),
        ({"a": 3}, {"a": 3}, {}, 0),
        ({"a": None}, {"b": None}, {}, 5),
        ({"a": None, "b": None}, {"b": None}, {}, 1),
    ],
)
def test_what_fits_elsewhere_may_leave(
    before: Placement, after: Placement, excess: dict[str, int], expected: int
) -> None:
    assert movable(before, after, {"a"}, excess, 5) == expected


def test_replicas_that_may_not_leave_take_the_place_of_new_ones() -> None:
    before, after = {"a": 3, "b": 1}, {"b": 3, "c": 1}
    assert evict(before, after, {"a"}, {"a": 3}, excess={}) == Eviction({"b": 3, "c": 1}, {"a": 3})
    assert evict(before, after, {"a"}, {"a": 1}, excess={}) == Eviction({"b": 1, "c": 1, "a": 2}, {"a": 1}, {"a": 2})
    found = evict(before, after, {"a"}, {"a": 2}, excess={"c": 1})
    assert found == Eviction({"b": 3, "a": 1}, {"a": 2}, {"a": 1}), "what would only wait gives way first"


def test_a_copy_that_stays_with_its_volumes_gets_no_replacement_beside_it() -> None:
    east, both = {"east": None}, {"east": None, "west": None}
    assert without_replacements(east, {"west": 2, "north": 1}, {"east"}) == east
    assert without_replacements(both, {"west": 2, "north": 1}, {"east"}) == {"east": None, "west": 2}
    assert without_replacements({"east": 2}, {"west": None}, {"east"}) == {"east": 2}
    assert without_replacements(east, {"west": None, "north": None}, {"east"}) == {"east": None, "north": None}
    assert without_replacements({"east": 2}, {"west": 2}, {"east"}) == {"west": 2}, "evict counts what is divided"
