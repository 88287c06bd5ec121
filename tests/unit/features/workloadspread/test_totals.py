"""Replicas of targets in corner cases."""

from typing import Any

import pytest
from tests.support.spreads import a_spread

from federation.apimachinery.errors import InvalidInput
from federation.features.workloadspread.rules.totals import UNKNOWN, has_pods, replicas_at, total_replicas


@pytest.mark.parametrize(
    ("kind", "workload", "total"),
    [
        ("Deployment", {"spec": {"replicas": 3}}, 3),
        ("Deployment", {}, 1),
        ("Job", {"spec": {"parallelism": 2, "completions": 9}}, 2),
        ("GameServerSet", {"spec": {"replicas": 3}}, UNKNOWN),
    ],
)
def test_replicas_are_read_from_the_field_of_the_kind(kind: str, workload: dict[str, Any], total: int) -> None:
    assert total_replicas(a_spread([], kind), workload) == total


def test_other_kinds_show_their_replicas_in_their_path_or_scale() -> None:
    spread = a_spread([], "GameServerSet")
    assert (
        total_replicas(spread, {"spec": {"size": 4}}, replicas_path="spec.size", scale={"spec": {"replicas": 9}}) == 4
    )
    assert total_replicas(spread, {}, scale={"spec": {"replicas": 9}}) == 9
    assert total_replicas(spread, {}, scale={}) == 0


@pytest.mark.parametrize("value", [True, "5", None, 1.5, {}])
def test_a_path_must_lead_to_an_integer(value: Any) -> None:
    with pytest.raises(InvalidInput):
        replicas_at({"spec": {"size": value}}, "spec.size")


@pytest.mark.parametrize("path", ["list.2", "list.-1", "list.x", "list.0.x", "text.0"])
def test_a_path_must_exist(path: str) -> None:
    with pytest.raises(InvalidInput):
        replicas_at({"list": [1, 2], "text": "12"}, path)


def test_the_paths_of_the_filter_come_first_and_are_added() -> None:
    spread = a_spread([], "Deployment", targetFilter={"replicasPathList": ["spec.master", "spec.workers.1.size"]})
    workload = {"spec": {"replicas": 9, "master": 1, "workers": [{"size": 5}, {"size": 3}]}}
    assert total_replicas(spread, workload, replicas_path="spec.replicas") == 4


@pytest.mark.parametrize(
    ("workload", "expected"),
    [
        (None, False),
        ({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "spec": {"replicas": 2}}, False),
        ({"spec": {"replicas": 0}}, False),
        ({"spec": {"parallelism": 0}}, False),
        ({"spec": {"replicas": 1}}, True),
        ({}, True),
    ],
)
def test_pods_of_a_workload_that_goes_do_not_count(workload: Any, expected: bool) -> None:
    assert has_pods(workload) is expected


def test_a_missing_workload_has_no_replicas() -> None:
    assert total_replicas(a_spread([], "Deployment", targetFilter={"replicasPathList": ["x"]}), None) == 0


def test_an_empty_path_is_zero() -> None:
    assert replicas_at({"": 5}, "") == 0
