"""Filter and score results that are reused between scheduling cycles.

Units under one policy mostly have equal cache keys (`Cacheable`), and between two cycles only one or two members have
reported. A result is therefore kept per cache key for all clusters; after a report it is computed again for the changed
clusters only. Clusters are compared by identity: `ClusterCache` returns the same object until a cluster changes. The
cache affects the cost of decisions, never their outcome. `filtering.py` and `scoring.py` store their results here.
"""

from collections.abc import Callable, Hashable, Sequence
from itertools import compress
from operator import attrgetter, is_not
from typing import Generic, TypeVar

from federation.scheduling.framework.types import Cluster

_LASTING = attrgetter("lasting")
_KEYS_MAX = 128
"""Cache size; the oldest key is removed when it is exceeded."""
_UNUSED_CHANGES_MAX = 256
"""Results that were not used during so many cluster changes (at least one per cluster) are removed."""


class ClusterList:
    """The clusters of the newest snapshot, and the positions that changed since an earlier one."""

    def __init__(self) -> None:
        self.clusters: tuple[Cluster, ...] = ()
        self.changes = 0
        """Number of cluster changes so far."""
        self.membership_generation = 0
        """Incremented when clusters are added, removed or reordered."""
        self._changed_since: dict[int, tuple[tuple[Cluster, ...], tuple[int, ...]]] = {}

    def update(self, clusters: tuple[Cluster, ...]) -> None:
        """Switch to the clusters of a snapshot."""
        if clusters is self.clusters:
            return
        old, self.clusters = self.clusters, clusters
        self._changed_since.clear()
        changed = self.changed_positions(old) if len(old) == len(clusters) else ()
        self.changes += len(changed)
        if len(old) != len(clusters) or any(old[at].name != clusters[at].name for at in changed):
            self.membership_generation += 1

    def changed_positions(self, old: tuple[Cluster, ...]) -> tuple[int, ...]:
        """Return the positions at which the cluster is another object than in `old`, which has the same length."""
        # The entry holds `old` itself, so that its id cannot be reused while the entry exists.
        known = self._changed_since.get(id(old))
        if known is None:
            positions = tuple(compress(range(len(old)), map(is_not, old, self.clusters)))
            known = self._changed_since[id(old)] = (old, positions)
        return known[1]


class CachedResult:
    """The result for one cache key, valid for `clusters`."""

    def __init__(self) -> None:
        self.clusters: tuple[Cluster, ...] = ()
        self.used_at = 0

    def more_than_resources(self, clusters: tuple[Cluster, ...], changed: Sequence[int]) -> Sequence[int]:
        """Return those of the changed positions where not only resources differ from the cluster of the result."""
        if not self.clusters:
            return changed
        if len(changed) < len(clusters):
            return [at for at in changed if self.clusters[at].lasting is not clusters[at].lasting]
        differs = map(is_not, map(_LASTING, self.clusters), map(_LASTING, clusters))
        return list(compress(range(len(clusters)), differs))


R = TypeVar("R", bound=CachedResult)


class ResultCache(Generic[R]):
    """Results by cache key, all for the clusters of one `ClusterList`. It lives as long as its framework."""

    def __init__(self, cluster_list: ClusterList, make: Callable[[], R]) -> None:
        self._cluster_list = cluster_list
        self._make = make
        self._results: dict[Hashable, R] = {}
        self._membership_generation = 0
        self._cleaned_at = 0

    def find(self, key: Hashable) -> tuple[R, tuple[int, ...]]:
        """Return the result for the key, and the positions of clusters for which it is out of date.

        The caller updates it and sets its `clusters`. A new result is out of date at every position.
        """
        current = self._cluster_list
        if current.membership_generation != self._membership_generation:
            self._results.clear()
            self._membership_generation = current.membership_generation
        elif current.changes - self._cleaned_at >= max(_UNUSED_CHANGES_MAX, len(current.clusters)):
            # Unused results would keep old clusters, and the manifests they came from, in memory.
            oldest, self._cleaned_at = self._cleaned_at, current.changes
            self._results = {key: result for key, result in self._results.items() if result.used_at > oldest}
        result = self._results.get(key)
        if result is None:
            if len(self._results) >= _KEYS_MAX:
                del self._results[next(iter(self._results))]
            result = self._results[key] = self._make()
        result.used_at = current.changes
        if result.clusters is current.clusters:
            return result, ()
        if not result.clusters:
            return result, tuple(range(len(current.clusters)))
        return result, current.changed_positions(result.clusters)
