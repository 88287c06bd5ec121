"""Triggers of ClusterProfiles, and their wiring: a FederatedCluster and its profile have the same name."""

import asyncio

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.conditions import find
from federation.apimachinery.resources import Object
from federation.features.clusterprofiles.names import CLUSTER_PROFILES
from federation.features.clusterprofiles.reconcile import Reconciler
from federation.runtime.controller import Controller
from federation.runtime.host import Host

_WORKERS = 2
_JOINING_S = 2.0
"""The delay of a profile whose cluster has no published health yet: a join writes several statuses within a second."""


class ClusterProfileController:
    """Keeps a ClusterProfile of each FederatedCluster. `run` runs until cancelled."""

    def __init__(self, host: Host) -> None:
        self._clusters = host.informers.for_resource(FEDERATED_CLUSTERS)
        self._profiles = host.informers.for_resource(CLUSTER_PROFILES)
        reconciler = Reconciler(host, self._clusters, self._profiles)
        self.controller: Controller[str] = Controller(
            "clusterprofile", reconciler.reconcile, workers=_WORKERS, clock=host.clock
        )
        self._clusters.add_handler(self._on_cluster)
        self._profiles.add_handler(self._on_profile)

    async def run(self) -> None:
        """Start the workers once the FederatedClusters and their profiles are cached."""
        await asyncio.gather(self._clusters.wait_synced(), self._profiles.wait_synced())
        await self.controller.run()

    def _on_cluster(self, old: Object | None, new: Object | None) -> None:
        cluster = new if new is not None else old or {}
        is_joining = find((cluster.get("status") or {}).get("conditions"), names.CLUSTER_READY) is None
        self.controller.enqueue(cluster["metadata"]["name"], after_s=_JOINING_S if is_joining else 0.0)

    def _on_profile(self, old: Object | None, new: Object | None) -> None:
        metadata = (new if new is not None else old or {})["metadata"]
        if metadata.get("namespace") == names.SYSTEM_NAMESPACE:
            self.controller.enqueue(metadata["name"])
