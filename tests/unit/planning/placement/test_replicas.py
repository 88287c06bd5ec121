"""The spread planner in the numbers of seed 003, and its trace."""

from typing import Any

import pytest

from federation.apimachinery.hashing import fnv1_32, fnv1_32_each
from federation.planning.placement.replicas import Demand, Plan, Preference, plan_replicas

CLUSTERS = ("a", "b", "c")
EQUAL = {cluster: Preference(10) for cluster in CLUSTERS}


def test_a_scale_down_removes_in_proportion_to_the_surplus() -> None:
    demand = Demand(15, CLUSTERS, EQUAL, "default/web", current={"a": 15, "b": 15})
    steps: list[dict[str, Any]] = []
    plan = plan_replicas(demand, steps)
    assert plan.replicas["c"] == 0
    assert sorted((plan.replicas["a"], plan.replicas["b"])) == [7, 8]
    desired, moved = steps[-2:]
    assert desired == {"step": "desired", "replicas": {"a": 5, "b": 5, "c": 5}, "current": {"a": 15, "b": 15}}
    assert (moved["step"], moved["difference"]) == ("scaleDown", -15)


def test_replicas_that_cannot_run_in_one_cluster_move_to_the_others() -> None:
    demand = Demand(6, CLUSTERS, EQUAL, current={"a": 2, "b": 2, "c": 2}, estimated={"c": 0})
    assert plan_replicas(demand) == Plan({"a": 3, "b": 3, "c": 0}, {})


def test_weights_of_40_30_40() -> None:
    weights = {"a": Preference(40), "b": Preference(30), "c": Preference(40)}
    assert plan_replicas(Demand(110, CLUSTERS, weights)).replicas == {"a": 40, "b": 30, "c": 40}


def test_kept_replicas_count_on_top() -> None:
    demand = Demand(6, CLUSTERS, EQUAL, current={"a": 2, "b": 2, "c": 2}, estimated={"c": 0}, keep_unschedulable=True)
    plan = plan_replicas(demand)
    assert plan.totals()["c"] == plan.overflow["c"] > 0
    assert sum(plan.replicas.values()) == 6


def test_a_division_without_clusters_is_empty() -> None:
    assert plan_replicas(Demand(5, (), {})).replicas == {}
    assert plan_replicas(Demand(5, CLUSTERS, {"elsewhere": Preference(1)})).replicas == {}


def test_hashing_many_is_hashing_each() -> None:
    assert fnv1_32_each(CLUSTERS, "ns/ü") == [fnv1_32(cluster + "ns/ü") for cluster in CLUSTERS]
    assert fnv1_32("") == 2166136261


@pytest.mark.parametrize("running", [0, 1, 2])
def test_a_maximum_below_the_minimum_wins_where_replicas_are_added_to_a_current_division(running: int) -> None:
    demand = Demand(7, ("a",), {"a": Preference(0, 10, 3)}, "default/web", current={"a": running})
    assert plan_replicas(demand).replicas == {"a": 3}
