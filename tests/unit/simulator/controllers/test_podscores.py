"""Scores of nodes in the simulated kube-scheduler. Expected numbers are computed by hand from the documented formulas."""

import pytest

from federation.simulator.controllers.podplacement import SchedulerCache
from federation.simulator.controllers.podscores import Spread, resource_score, scored_request, spread_scores

GIB = 1024**3
NODE = {"cpu": 4000, "memory": 8 * GIB}


def test_a_container_without_requests_counts_as_a_tenth_of_a_core_and_200_mebibytes() -> None:
    spec = {"containers": [{}, {"resources": {"requests": {"cpu": "1"}}}]}
    assert scored_request(spec, {"cpu": 1000}) == {"cpu": 1100, "memory": 400 * 1024**2}


@pytest.mark.parametrize(
    ("used", "request_", "score"),
    [
        # Free: (75 + 75) / 2; balance stays 100, so 50 + 50 / 2.
        ({}, {"cpu": 1000, "memory": 2 * GIB}, 75 + 75),
        # Free: (75 + 100) / 2, rounded down; balance falls from 100 to 87, so 50 + (50 - 13) / 2, rounded down.
        ({}, {"cpu": 1000, "memory": 0}, 87 + 68),
        # Free: (50 + 50) / 2; balance rises from 75 to 100.
        ({"cpu": 2000, "memory": 0}, {"cpu": 0, "memory": 4 * GIB}, 50 + 87),
        # A full node has nothing free, and more than full is no worse.
        ({"cpu": 4000, "memory": 8 * GIB}, {"cpu": 1000, "memory": GIB}, 0 + 75),
        # Balance does not count for pods without requests.
        ({}, {"cpu": 0, "memory": 0}, 100),
    ],
)
def test_free_resources_and_their_balance(used: dict[str, int], request_: dict[str, int], score: int) -> None:
    assert resource_score(NODE, used, used, request_, request_) == score


def test_a_node_that_says_nothing_is_scored() -> None:
    assert resource_score({}, {}, {}, {"cpu": 1}, {"cpu": 1, "memory": 1}) == 75


@pytest.mark.parametrize(
    ("spreads", "scores"),
    [
        # Two nodes, ln 4 = 1.386: sums 2, 3 (3.39) and 5 (4.77); 100 (5 + 2 - sum) / 5.
        ([Spread(3, [0, 1, 2], 2)], [100, 80, 40]),
        # No pods and no skew that is tolerated: all nodes are the best.
        ([Spread(1, [0, 0], 2)], [100, 100]),
        # A node without the key gets nothing, not even what is tolerated.
        ([Spread(3, [0, None], 2)], [0, 100]),
    ],
)
def test_the_spread_of_pods(spreads: list[Spread], scores: list[int]) -> None:
    assert spread_scores(spreads) == scores


def test_pods_of_an_owner_are_spread_over_nodes_and_zones_though_another_node_is_freer() -> None:
    cache = SchedulerCache()
    for name, zone in (("a", "1"), ("b", "1"), ("c", "2")):
        metadata = {"name": name, "labels": {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": zone}}
        cache.set_node({"metadata": metadata, "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "9"}}})
    cache.add_pod("other", "c", {"cpu": 400, "memory": GIB})
    owned = {"ownerReferences": [{"kind": "ReplicaSet", "uid": "set", "controller": True}]}
    cache.add_pod("one", "a", {"cpu": 100, "memory": GIB // 4}, owned)
    spec = {"containers": [{"resources": {"requests": {"cpu": "100m", "memory": "256Mi"}}}]}
    request_ = {"cpu": 100, "memory": GIB // 4}
    assert cache.select_node(spec, request_)[0] == "b"
    assert cache.select_node(spec, request_, owner="set")[0] == "c"
    assert cache.select_node(spec, request_, owner="another set")[0] == "b"
    cache.remove_pod("one")
    assert cache.select_node(spec, request_, owner="set")[0] == "a"
