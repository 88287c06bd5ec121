"""The clusters whose objects the host shows in a namespace: those where the federation placed something of it.

One count per namespace and cluster, kept with every change of a federated object, so that a request costs one look-up.
A cluster that an object is leaving counts until its object there is gone.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol

from federation.apimachinery.resources import Object
from federation.client.pool import ClusterPool
from federation.planning.federatedobject.placements import departed_clusters, effective_placement


class Visibility(Protocol):
    """The clusters whose objects the host shows."""

    def clusters(self, namespace: str) -> list[str]:
        """Return the clusters with objects to show in the namespace, "" for any namespace; sorted."""
        ...

    def is_visible(self, cluster: str, namespace: str) -> bool:
        """Return whether the host shows the cluster's objects of the namespace."""
        ...

    def listening(self, on_change: Callable[[], None]) -> AbstractContextManager[None]:
        """Call `on_change` during the block whenever an answer of the other methods may have changed."""
        ...


class PlacedClusters:
    """A `Visibility` from the placements of the federated objects: `changed` is a handler of all their events."""

    def __init__(self, pool: ClusterPool) -> None:
        self._pool = pool
        self._counts: dict[str, Counter[str]] = {}
        self._listeners: list[Callable[[], None]] = []

    def clusters(self, namespace: str) -> list[str]:
        """Return the joined clusters with something of the namespace."""
        joined = self._pool.clusters
        if namespace:
            counts = self._counts.get(namespace, Counter())
            return [cluster for cluster in joined if cluster in counts]
        placed = {cluster for counts in self._counts.values() for cluster in counts}
        return [cluster for cluster in joined if cluster in placed]

    def is_visible(self, cluster: str, namespace: str) -> bool:
        """Return whether the cluster has something of the namespace."""
        return cluster in self._counts.get(namespace, ())

    @contextmanager
    def listening(self, on_change: Callable[[], None]) -> Iterator[None]:
        """Call `on_change` during the block whenever a namespace gets or loses a cluster."""
        self._listeners.append(on_change)
        try:
            yield
        finally:
            self._listeners.remove(on_change)

    def changed(self, old: Object | None, new: Object | None) -> None:
        """Count a federated object that was added, changed or removed."""
        before, after = _clusters_of(old), _clusters_of(new)
        if before == after:
            return
        namespace = ((new or old or {}).get("metadata") or {}).get("namespace") or ""
        counts = self._counts.setdefault(namespace, Counter())
        known = frozenset(counts)
        counts.subtract(before)
        counts.update(after)
        for cluster in [cluster for cluster, count in counts.items() if count <= 0]:
            del counts[cluster]
        if frozenset(counts) == known:
            return
        if not counts:
            del self._counts[namespace]
        for listener in list(self._listeners):
            listener()


class EveryCluster:
    """A `Visibility` of kinds without a namespace: every joined cluster."""

    def __init__(self, pool: ClusterPool) -> None:
        self._pool = pool

    def clusters(self, namespace: str) -> list[str]:  # noqa: ARG002  # an interface's signature
        """Return the joined clusters."""
        return self._pool.clusters

    def is_visible(self, cluster: str, namespace: str) -> bool:  # noqa: ARG002  # an interface's signature
        """Return True."""
        return True

    def listening(self, on_change: Callable[[], None]) -> AbstractContextManager[None]:  # noqa: ARG002  # see above
        """Do nothing: these kinds cannot be watched."""
        return nullcontext()


def _clusters_of(federated: Object | None) -> frozenset[str]:
    return effective_placement(federated) | departed_clusters(federated) if federated is not None else frozenset()
