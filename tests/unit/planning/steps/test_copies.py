"""Copies that stay in clusters which their workload has left, case by case."""

from dataclasses import replace

import pytest

from federation.planning.steps.copies import awaited_clusters, plan_copies
from federation.planning.steps.steps import UNKNOWN_PODS, Step, Target
from federation.planning.steps.strategy import Strategy


def serving(cluster: str, replicas: int = 4) -> Target:
    """Return a copy with all of its pods."""
    strategy = Strategy("25%", "25%")
    return Target(cluster, replicas, replicas, replicas, replicas, wanted_strategy=strategy)


def leaving(cluster: str, available: int = 4) -> Target:
    return replace(serving(cluster), wanted=0, available=available, is_departing=True)


ABSENT = Target("new", 4, exists=False)
SILENT = replace(serving("new"), is_answering=False)
UNSEEN = Target("new", 4, pods=UNKNOWN_PODS)


@pytest.mark.parametrize("successor", [ABSENT, SILENT, UNSEEN, replace(serving("new"), available=2)])
def test_a_copy_stays_until_its_successor_serves(successor: Target) -> None:
    assert plan_copies({"new"}, [leaving("old"), successor]) == {"old": Step(4)}
    assert plan_copies({"new"}, [leaving("old"), serving("new")]) == {}


@pytest.mark.parametrize(
    ("wanted", "available", "is_enough"), [(4, 3, True), (4, 2, False), (1, 0, False), (0, 0, True)]
)
def test_a_successor_serves_with_the_pods_that_the_strategy_demands(
    wanted: int, available: int, is_enough: bool
) -> None:
    successor = replace(serving("new", wanted), available=available)
    assert (awaited_clusters({"new"}, [successor]) == []) is is_enough
    ordered = replace(successor, wanted_strategy=Strategy(0, 1))
    assert (awaited_clusters({"new"}, [ordered]) == []) is is_enough, "one unavailable pod of one is none"


def test_a_successor_that_cannot_be_rendered_is_awaited() -> None:
    assert plan_copies({"new"}, [leaving("old")]) == {"old": Step(4)}


def test_one_copy_stays_per_successor_the_best_ones_first() -> None:
    old = [leaving("a", 1), leaving("b", 3), leaving("c", 3), leaving("d", 0)]
    assert list(plan_copies({"x", "y"}, old)) == ["b", "c"]
    assert list(plan_copies({"x", "y"}, [*old, serving("x")])) == ["b"]
    assert plan_copies({"x", "y"}, [*old, serving("x"), serving("y")]) == {}


@pytest.mark.parametrize("left", [leaving("old", 0), replace(leaving("old"), is_answering=False)])
def test_what_serves_nobody_is_not_kept(left: Target) -> None:
    assert plan_copies({"new"}, [left, ABSENT]) == {}


def test_a_cluster_that_leaves_without_a_successor_is_not_kept() -> None:
    assert plan_copies((), [leaving("old"), replace(serving("other"), available=0)]) == {}
