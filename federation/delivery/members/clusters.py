"""The states of the clusters that sync depends on, and the clusters that a federated object names.

Most updates of a FederatedCluster (probe times, resources) do not matter to sync; `Clusters.update` detects those that
do. It lives as long as the controller and does no I/O.
"""

from collections.abc import Mapping
from typing import Any

from federation.apimachinery.resources import Object
from federation.delivery.rules.plan import ClusterState, cluster_state_of
from federation.delivery.rules.status import clusters_of
from federation.planning.federatedobject.placements import departed_clusters, effective_placement

BY_CLUSTER = "sync/cluster"
"""The index of federated objects by `clusters_of_interest`."""


class Clusters:
    """The state of every cluster by name."""

    def __init__(self) -> None:
        self._states: dict[str, ClusterState] = {}

    def update(self, name: str, cluster: Object | None) -> bool:
        """Record the state of a cluster, None when it was deleted; return whether the state changed."""
        before = self._states.get(name)
        if cluster is None:
            self._states.pop(name, None)
        else:
            self._states[name] = cluster_state_of(cluster)
        return self._states.get(name) != before

    def get(self, name: str) -> ClusterState | None:
        """Return a cluster's state, None when there is no such cluster."""
        return self._states.get(name)


def recorded_clusters(federated: Mapping[str, Any]) -> set[str]:
    """Return the clusters that may hold the object although it is not placed there (any more)."""
    return clusters_of(federated).keys() | departed_clusters(federated)


def clusters_of_interest(federated: Mapping[str, Any]) -> set[str]:
    """Return every cluster whose state matters to the object."""
    return recorded_clusters(federated) | effective_placement(federated)
