"""The result cache: which results stay valid for the next snapshot, and how many are kept."""

import gc
from dataclasses import replace
from typing import Any

from federation.scheduling.engine import Engine
from federation.scheduling.framework.clustergroup import ClusterGroup
from federation.scheduling.framework.profile import DEFAULT_PROFILE
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.framework.resultcache import CachedResult, ClusterList, ResultCache
from federation.scheduling.framework.testing import NOW, a_cluster, a_divided_unit
from federation.scheduling.framework.types import Cluster
from federation.scheduling.snapshot import ClusterCache

EAST, NORTH, WEST = (a_cluster(name).built() for name in ("east", "north", "west"))
CLUSTERS = (EAST, NORTH, WEST)
JOINED = {
    "conditions": [{"type": "Joined", "status": "True"}, {"type": "Ready", "status": "True"}],
    "apiResourceTypes": [{"group": "apps", "version": "v1", "kind": "Deployment"}],
}


class Cached:
    """A result cache with its cluster list."""

    def __init__(self) -> None:
        self.cluster_list = ClusterList()
        self.cache = ResultCache(self.cluster_list, CachedResult)

    def update(self, key: str, clusters: tuple[Cluster, ...]) -> list[int]:
        """Update the result for the key; return the positions that were out of date."""
        group = ClusterGroup.of(clusters)
        self.cluster_list.update(group)
        known, stale = self.cache.find(key, group)
        known.mark_valid(group)
        return list(stale)


def test_only_changed_clusters_are_out_of_date() -> None:
    cached = Cached()
    assert cached.update("s", CLUSTERS) == [0, 1, 2]
    assert cached.update("s", CLUSTERS) == []
    again = (EAST, a_cluster("north").labelled(a="b").built(), WEST)
    assert cached.update("s", again) == [1]
    assert cached.update("s", CLUSTERS) == [1]


def test_changes_between_two_uses_add_up() -> None:
    cached = Cached()
    cached.update("s", CLUSTERS)
    first = (EAST, a_cluster("north").built(), WEST)
    cached.update("other", first)
    assert cached.update("s", (a_cluster("east").built(), *first[1:])) == [0, 1]


def test_another_set_of_clusters_makes_every_result_out_of_date() -> None:
    cached = Cached()
    cached.update("s", CLUSTERS)
    assert cached.update("s", CLUSTERS[1:]) == [0, 1]
    assert cached.update("s", (WEST, NORTH)) == [0, 1]


def test_keys_do_not_share_results_and_are_limited() -> None:
    cached = Cached()
    for index in range(200):
        assert cached.update(f"key-{index}", CLUSTERS) == [0, 1, 2]
    assert len(cached.cache._results) == 128
    assert cached.update("key-0", CLUSTERS) == [0, 1, 2]


def test_only_what_does_not_depend_on_resources_stays_valid_after_a_report() -> None:
    cached = Cached()
    lasting: dict[Any, Any] = {}
    cached.update("s", CLUSTERS)
    known = cached.cache.find("s", ClusterGroup.of(CLUSTERS))[0]
    reported = ClusterGroup.of((replace(EAST, available={"cpu": 1}, memo={}), NORTH, WEST), lasting)
    assert list(known.more_than_resources(reported, (0,))) == []
    relabelled = ClusterGroup.of((EAST, a_cluster("north").labelled(a="b").built(), WEST))
    assert list(known.more_than_resources(relabelled, (1,))) == [1]
    known.mark_valid(reported)
    again = ClusterGroup.of((replace(EAST, available={"cpu": 2}, memo={}), NORTH, WEST), lasting)
    assert list(known.more_than_resources(again, (0,))) == []


def test_caches_hold_no_clusters_of_earlier_snapshots() -> None:
    engine, clusters = Engine(load_plugins()), ClusterCache()
    for cpu in ("1", "2"):
        resources = {
            "allocatable": {"cpu": "9", "memory": "9Gi"},
            "available": {"cpu": cpu, "memory": "1Gi"},
            "nodeClasses": [{"free": [{"nodes": 1, "resources": {"cpu": cpu, "pods": "9"}}]}],
        }
        for name in ("held-east", "held-west"):
            clusters.update({"metadata": {"name": name}, "status": {"resources": resources, **JOINED}})
        unit = a_divided_unit(3, request={"cpu": 1})
        assert engine.decide(unit, clusters.snapshot(), DEFAULT_PROFILE, now=NOW).is_success
    gc.collect()
    held = [each for each in gc.get_objects() if isinstance(each, Cluster) and each.name.startswith("held-")]
    assert [cluster.available["cpu"] for cluster in held] == [2000, 2000]
