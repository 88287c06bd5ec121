"""KubeFed's planner against the reference's own answers."""

from typing import Any

from tests.support.kubefedplanner import plan_kubefed, select_clusters
from tests.support.vectors import each_case, filled, load

from federation.planning.placement.replicas import Demand, Preference


@each_case([*load("kubefed_planner"), *load("kubefed_planner_random")])
def test_one_call_answers_like_the_reference(case: dict[str, Any]) -> None:
    given = filled(
        case["input"],
        totalReplicas=0,
        clusters=[],
        rsp={},
        replicaSetKey="",
        currentReplicaCount={},
        estimatedCapacity={},
        rebalance=False,
    )
    expected = filled(case["expected"], plan={}, overflow={})
    demand = Demand(
        total=given["totalReplicas"],
        clusters=tuple(given["clusters"]),
        preferences={
            cluster: Preference(entry.get("weight") or 0, entry.get("minReplicas") or 0, entry.get("maxReplicas"))
            for cluster, entry in given["rsp"].items()
        },
        key=given["replicaSetKey"],
        current=given["currentReplicaCount"],
        estimated=given["estimatedCapacity"],
    )
    plan = plan_kubefed(demand, rebalance=given["rebalance"])
    assert (plan.replicas, plan.overflow) == (expected["plan"], expected["overflow"]), case


@each_case(load("kubefed_placement"))
def test_placement_answers_like_the_reference(case: dict[str, Any]) -> None:
    given = case["input"]
    clusters = {cluster["name"]: cluster.get("labels") or {} for cluster in given.get("clusters") or ()}
    chosen = select_clusters(clusters, given.get("clusterNames"), given.get("clusterSelector"))
    assert chosen == (case["expected"].get("names") or [])


def test_a_list_of_clusters_beats_a_selector() -> None:
    clusters = {"a": {"x": "y"}, "b": {}}
    assert select_clusters(clusters, ["b", "gone"], {"x": "y"}) == ["b"]
    assert select_clusters(clusters, [], {"x": "y"}) == []
    assert select_clusters(clusters, None, {}) == ["a", "b"]


def test_a_scale_down_empties_clusters_as_seed_003_shows() -> None:
    preferences = {cluster: Preference(10) for cluster in "ABC"}
    demand = Demand(15, ("A", "B", "C"), preferences, current={"A": 15, "B": 15})
    assert sorted(plan_kubefed(demand, rebalance=False).replicas.values()) == [0, 0, 15]
