"""Filter and score results that are reused between scheduling cycles.

Units under one policy mostly have equal cache keys (`Cacheable`), and between two cycles only one or two members have
reported. A result is therefore kept per cache key for all clusters; after a report it is computed again for the changed
clusters only. Clusters are compared by version: `ClusterCache` returns the same object until a cluster changes. Results
hold numbers and statuses, never clusters, so that they keep no reports in memory. The cache affects the cost of
decisions, never their outcome. `filtering.py` and `scoring.py` store their results here.

Decision: docs/decisions/0019-kept-answers.md
"""

from collections.abc import Callable, Hashable, Sequence
from itertools import compress
from operator import is_not
from typing import Any, Generic, TypeVar

from federation.scheduling.framework.clustergroup import ClusterGroup

_KEYS_MAX = 128
"""Cache size; the oldest key is removed when it is exceeded."""


class ClusterList:
    """The clusters of the newest snapshot, and the positions that changed since an earlier one."""

    def __init__(self) -> None:
        self.versions: tuple[int, ...] = ()
        self.membership_generation = 0
        """Incremented when clusters are added, removed or reordered."""
        self._names: tuple[str, ...] = ()
        self._changed_since: dict[int, tuple[tuple[int, ...], tuple[int, ...]]] = {}

    def update(self, clusters: ClusterGroup) -> None:
        """Switch to the clusters of a snapshot."""
        if clusters.versions is self.versions:
            return
        if clusters.names != self._names:
            self.membership_generation += 1
        self.versions, self._names = clusters.versions, clusters.names
        self._changed_since.clear()

    def changed_positions(self, clusters: ClusterGroup, old: tuple[int, ...]) -> tuple[int, ...]:
        """Return the positions at which the cluster has another version than in `old`, which has the same length."""
        # The entry holds `old` itself, so that its id cannot be reused while the entry exists.
        known = self._changed_since.get(id(old))
        if known is None:
            known = self._changed_since[id(old)] = (old, clusters.changed_since(old))
        return known[1]


class CachedResult:
    """The result for one cache key, valid for clusters of these `versions`."""

    def __init__(self) -> None:
        self.versions: tuple[int, ...] = ()
        self._lastings: tuple[dict[Any, Any], ...] = ()

    def mark_valid(self, clusters: ClusterGroup) -> None:
        """Record that the result is up to date for these clusters."""
        self.versions, self._lastings = clusters.versions, clusters.lastings

    def more_than_resources(self, clusters: ClusterGroup, changed: Sequence[int]) -> Sequence[int]:
        """Return those of the changed positions where not only resources differ from the cluster of the result."""
        if not self.versions:
            return changed
        if self._lastings is clusters.lastings:
            return ()
        return tuple(compress(range(len(clusters)), map(is_not, self._lastings, clusters.lastings)))


R = TypeVar("R", bound=CachedResult)


class ResultCache(Generic[R]):
    """Results by cache key, all for the clusters of one `ClusterList`. It lives as long as its framework."""

    def __init__(self, cluster_list: ClusterList, make: Callable[[], R]) -> None:
        self._cluster_list = cluster_list
        self._make = make
        self._results: dict[Hashable, R] = {}
        self._membership_generation = 0

    def find(self, key: Hashable, clusters: ClusterGroup) -> tuple[R, tuple[int, ...]]:
        """Return the result for the key, and the positions of clusters for which it is out of date.

        The caller updates it and calls `mark_valid`. A new result is out of date at every position.
        """
        result = self._get(key)
        if result.versions is clusters.versions:
            return result, ()
        if not result.versions:
            return result, tuple(range(len(clusters)))
        return result, self._cluster_list.changed_positions(clusters, result.versions)

    def find_lasting(self, key: Hashable, clusters: ClusterGroup) -> tuple[R, Sequence[int]]:
        """Return the same for a result that does not depend on resources: changes of these leave it valid."""
        result = self._get(key)
        return result, result.more_than_resources(clusters, range(len(clusters)))

    def _get(self, key: Hashable) -> R:
        current = self._cluster_list
        if current.membership_generation != self._membership_generation:
            self._results.clear()
            self._membership_generation = current.membership_generation
        result = self._results.get(key)
        if result is None:
            if len(self._results) >= _KEYS_MAX:
                del self._results[next(iter(self._results))]
            result = self._results[key] = self._make()
        return result
