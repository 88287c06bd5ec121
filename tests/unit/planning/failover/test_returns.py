"""Replicas that return to a cluster in batches: the rest of the decision waits with them."""

import pytest

from federation.planning.failover.eviction import Placement, return_batch, without_returns


@pytest.mark.parametrize(
    ("allowed", "clusters_max", "expected"),
    [
        ({}, None, {"east": 2, "west": 4}),
        ({"east": 2}, None, {"east": 2, "west": 4}),
        ({"east": 1}, None, {"east": 1, "west": 5}),
        ({"east": 0}, None, {"east": 0, "west": 6}),
        ({"east": 1}, 2, {"east": 1, "west": 5}),
        ({"east": 1}, 1, {"east": 2, "west": 4}),
        ({"east": 0}, 1, {"east": 0, "west": 6}),
    ],
)
def test_as_many_replicas_return_as_are_allowed(
    allowed: dict[str, int], clusters_max: int | None, expected: dict[str, int]
) -> None:
    before: Placement = {"east": 0, "west": 6}
    assert without_returns(before, {"east": 2, "west": 4}, allowed, (), clusters_max) == expected


def test_new_replicas_and_those_of_rejected_clusters_are_no_returns() -> None:
    assert without_returns({"west": 6}, {"east": 2, "west": 6}, {"east": 0}) == {"east": 2, "west": 6}
    assert without_returns({"west": 6}, {"east": 6}, {"east": 0}, ("west",)) == {"east": 6}
    assert without_returns({"west": None}, {"east": None}, {"east": 0}) == {"east": None}


@pytest.mark.parametrize(
    ("before", "ideal", "expected"),
    [
        pytest.param({"east": 2}, {"west": 2}, {"west": 2}, id="an emptied cluster leaves"),
        pytest.param({"east": 2}, {"west": 2, "east": 0}, {"west": 2, "east": 0}, id="an ideal one stays without any"),
        pytest.param({"east": 3}, {"west": 3}, {"east": 1, "west": 2}, id="no more than allowed"),
    ],
)
def test_a_batch_returns_and_leaves_nothing_behind(
    before: dict[str, int], ideal: dict[str, int], expected: dict[str, int]
) -> None:
    assert return_batch(before, ideal, {"west": 2}) == expected
