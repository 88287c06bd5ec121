"""What sync knows of the clusters, kept up to date from the FederatedCluster informer as small facts.

Most changes of a FederatedCluster (probe times, resources) mean nothing to sync; `Clusters` tells its listener only
when a fact changed. It lives as long as the controller and owns no I/O.
"""

from collections.abc import Callable, Iterator
from typing import Any

from federation.api import conditions, names
from federation.api.resources import Object
from federation.dispatch.plan import ClusterFacts


def facts_of(cluster: Object) -> ClusterFacts:
    """Return the facts of a FederatedCluster."""
    metadata = cluster["metadata"]
    status: dict[str, Any] = cluster.get("status") or {}
    found = status.get("conditions")
    is_joined = conditions.is_true(found, names.CLUSTER_JOINED)
    return ClusterFacts(
        name=metadata["name"],
        ready=is_joined and conditions.is_true(found, names.CLUSTER_READY),
        joined=is_joined or bool(status.get("joinPerformed")),
        terminating=bool(metadata.get("deletionTimestamp")),
        cascading_delete=names.CASCADING_DELETE in (metadata.get("annotations") or {}),
        has_finalizer=names.CASCADING_DELETE_FINALIZER in (metadata.get("finalizers") or ()),
    )


class Clusters:
    """The facts of every cluster by name. `on_change` is told a cluster's name and whether only it appeared."""

    def __init__(self, on_change: Callable[[str], None]) -> None:
        self._facts: dict[str, ClusterFacts] = {}
        self._on_change = on_change

    def handle(self, old: Object | None, new: Object | None) -> None:
        """Take over a change that the informer reports."""
        name = (new if new is not None else old or {})["metadata"]["name"]
        before = self._facts.get(name)
        if new is None:
            self._facts.pop(name, None)
        else:
            self._facts[name] = facts_of(new)
        if self._facts.get(name) != before:
            self._on_change(name)

    def get(self, name: str) -> ClusterFacts | None:
        """Return a cluster's facts, None when there is no such cluster."""
        return self._facts.get(name)

    def __iter__(self) -> Iterator[ClusterFacts]:
        return iter(self._facts.values())
