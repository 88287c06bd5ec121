"""The result cache: which results stay valid for the next snapshot, and how many are kept."""

from federation.scheduling.framework.resultcache import CachedResult, ClusterList, ResultCache
from federation.scheduling.framework.testing import a_cluster
from federation.scheduling.framework.types import Cluster

EAST, NORTH, WEST = (a_cluster(name).built() for name in ("east", "north", "west"))
CLUSTERS = (EAST, NORTH, WEST)


class Cached:
    """A result cache with its cluster list."""

    def __init__(self) -> None:
        self.cluster_list = ClusterList()
        self.cache = ResultCache(self.cluster_list, CachedResult)

    def update(self, key: str, clusters: tuple[Cluster, ...]) -> list[int]:
        """Update the result for the key; return the positions that were out of date."""
        self.cluster_list.update(clusters)
        known, stale = self.cache.find(key)
        known.clusters = clusters
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


def test_unused_results_are_removed_with_their_clusters() -> None:
    cached = Cached()
    cached.update("old", CLUSTERS)
    for _ in range(600):
        cached.update("used", (a_cluster("east").built(), NORTH, WEST))
    assert set(cached.cache._results) == {"used"}
