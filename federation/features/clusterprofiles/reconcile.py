"""The steps for one FederatedCluster: write its ClusterProfile, unless another manager has one of that name."""

from federation.api import names
from federation.apimachinery.resources import Object
from federation.features.clusterprofiles.names import CLUSTER_PROFILES, EVENT_PROFILE_TAKEN
from federation.features.clusterprofiles.rules import changes_of, is_ours, to_profile, to_status
from federation.runtime.controller import DONE, Result
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
