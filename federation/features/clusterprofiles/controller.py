"""ClusterProfiles: triggers, and the steps for one FederatedCluster. It and its profile have the same name."""

import asyncio

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.conditions import find
from federation.apimachinery.resources import Object
from federation.features.clusterprofiles.names import CLUSTER_PROFILES, EVENT_PROFILE_TAKEN
from federation.features.clusterprofiles.rules import changes_of, is_ours, to_profile, to_status
from federation.runtime.controller import DONE, Controller, Result
from federation.runtime.events import WARNING
from federation.runtime.host import Host
from federation.runtime.informer import Informer


class Reconciler:
    """Reconciles the profile of one cluster per call."""

    def __init__(self, host: Host, clusters: Informer, profiles: Informer) -> None:
        self._client = host.client
        self._recorder = host.recorder
        self._clock = host.clock
        self._clusters = clusters
        self._profiles = profiles

    async def reconcile(self, name: str) -> Result:
        """Write what changed. The profile of a deleted cluster is garbage, because the cluster owns it."""
        cluster = self._clusters.get("", name)
        if cluster is None or cluster["metadata"].get("deletionTimestamp"):
            return DONE
        wanted = to_profile(cluster)
        profile = self._profiles.get(names.SYSTEM_NAMESPACE, name)
        if profile is None:
            profile = await self._client.create(CLUSTER_PROFILES, wanted, field_manager=names.FIELD_MANAGER)
        elif not is_ours(profile):
            text = f"another manager has the ClusterProfile {names.SYSTEM_NAMESPACE}/{name}, so this cluster has none"
            self._recorder.event(cluster, WARNING, EVENT_PROFILE_TAKEN, text)
            return DONE
        elif changes := changes_of(wanted, profile):
            profile = await self._patch(name, changes)
        status = to_status(cluster, profile.get("status") or {}, self._clock.now())
        if any((profile.get("status") or {}).get(key) != value for key, value in status.items()):
            await self._client.patch_status(CLUSTER_PROFILES, profile, status, field_manager=names.FIELD_MANAGER)
        return DONE

    async def _patch(self, name: str, changes: Object) -> Object:
        return await self._client.patch(
            CLUSTER_PROFILES, name, changes, namespace=names.SYSTEM_NAMESPACE, field_manager=names.FIELD_MANAGER
        )


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
