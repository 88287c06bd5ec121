"""Shares of Jobs: completions add up, do not change once placed, and are never run twice."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.planning.division.jobs import JobShares, divide_job

CLUSTERS = st.sampled_from(["a", "b", "c", "d", "e"])
SHARES = st.dictionaries(CLUSTERS, st.integers(1, 20), min_size=1)


def test_completions_follow_the_division_of_the_parallelism() -> None:
    shares = divide_job({"completions": 10, "parallelism": 4}, {"east": 3, "north": 1}, placed={})
    assert shares == JobShares({"east": 3, "north": 1}, {"east": 7, "north": 3})


def test_a_job_without_completions_divides_its_parallelism_only() -> None:
    assert divide_job({"parallelism": 4}, {"east": 3, "north": 1}, placed={}) == JobShares({"east": 3, "north": 1})


def test_an_indexed_job_runs_in_one_cluster_or_says_why_not() -> None:
    spec = {"completions": 4, "parallelism": 4, "completionMode": "Indexed"}
    assert divide_job(spec, {"east": 4}, placed={}) == JobShares({"east": 4})
    problem = divide_job(spec, {"east": 2, "north": 2}, placed={}).problem
    assert problem.startswith("the indexes of an Indexed Job cannot be divided: set schedulingMode to Duplicate")


def test_a_paused_job_is_divided_when_it_runs() -> None:
    spec = {"completions": 4, "parallelism": 0}
    assert "spec.parallelism is 0" in divide_job(spec, {"east": 0, "north": 0}, placed={}).problem
    placed = {"east": 3, "north": 1}
    paused = divide_job(spec, {"east": 0, "north": 0}, placed=placed, current=placed)
    assert paused == JobShares({"east": 0, "north": 0}, placed)


def test_completions_stay_when_the_parallelism_changes() -> None:
    placed = {"east": 5, "north": 5}
    shares = divide_job({"completions": 10, "parallelism": 8}, {"east": 6, "north": 2}, placed=placed, current=placed)
    assert shares == JobShares({"east": 6, "north": 2}, placed)


def test_a_new_cluster_gets_what_another_one_lost() -> None:
    placed = {"east": 6, "north": 4}
    shares = divide_job({"completions": 10, "parallelism": 2}, {"east": 1, "west": 1}, placed=placed, current=placed)
    assert shares == JobShares({"east": 1, "west": 1}, {"east": 6, "west": 4})


def test_a_new_cluster_without_completions_gets_no_pods() -> None:
    placed = {"east": 6, "north": 4}
    wanted = {"east": 1, "north": 1, "west": 2}
    shares = divide_job({"completions": 10, "parallelism": 4}, wanted, placed=placed, current=placed)
    assert shares == JobShares({"east": 2, "north": 2}, placed)


def test_completions_cannot_move_to_clusters_that_have_some() -> None:
    placed = {"east": 6, "north": 4}
    shares = divide_job({"completions": 10, "parallelism": 2}, {"east": 2}, placed=placed, current=placed)
    assert shares.problem.startswith("the completions of north cannot move")


def test_a_job_that_was_placed_whole_cannot_be_divided_later() -> None:
    spec = {"completions": 10, "parallelism": 2}
    assert "create it again" in divide_job(spec, {"a": 1, "b": 1}, placed={}, current=["a"]).problem
    assert divide_job(spec, {"a": 2}, placed={}, current=["a"]) == JobShares({"a": 2})
    assert divide_job(spec, {"b": 2}, placed={}, current=["a"]) == JobShares({"b": 2}, {"b": 10})


@pytest.mark.parametrize("completions", [None, 0, "odd"])
def test_other_completions_are_not_divided(completions: Any) -> None:
    assert divide_job({"completions": completions}, {"a": 1, "b": 1}, placed={}).completions == {}


def test_a_cron_job_is_divided_anew_each_time() -> None:
    assert divide_job({"completions": 10}, {"a": 1, "b": 1}) == JobShares({"a": 1, "b": 1}, {"a": 5, "b": 5})
    assert divide_job({"completions": 3}, {"a": 0, "b": 0}).completions == {"a": 1, "b": 2}


@given(SHARES, st.integers(0, 500))
def test_the_first_division_gives_every_cluster_at_least_its_pods(parallelism: dict[str, int], more: int) -> None:
    completions = sum(parallelism.values()) + more
    shares = divide_job({"completions": completions}, parallelism, placed={})
    assert sum(shares.completions.values()) == completions
    assert all(shares.completions[name] >= count for name, count in parallelism.items())


@given(SHARES, SHARES)
def test_completions_add_up_and_stay_after_every_decision(first: dict[str, int], then: dict[str, int]) -> None:
    completions = sum(first.values()) * 3
    spec = {"completions": completions}
    placed = divide_job(spec, first, placed={}).completions
    shares = divide_job(spec, then, placed=placed, current=placed)
    if shares.problem:
        assert then.keys() < placed.keys()
        return
    assert sum(shares.completions.values()) == completions
    assert all(shares.completions[name] == placed[name] for name in placed.keys() & then.keys())
    assert shares.parallelism.keys() == shares.completions.keys() <= then.keys()
    assert sum(shares.parallelism.values()) == sum(then.values())
