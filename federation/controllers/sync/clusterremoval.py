"""Removal of a cluster: its finalizer, and the objects that it holds (docs/reference/sync.md).

Every joined FederatedCluster has our finalizer. When the cluster is deleted the finalizer is removed at once and the
member keeps its objects, unless the annotation cascading-delete asks for their deletion: then every managed object is
deleted or released first, as its federated object's orphan annotation says. An object without a federated object is
deleted; KubeAdmiral would wait for it without end.
"""

from collections.abc import Callable

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.errors import ApiError, ClusterError, NotFound
from federation.apimachinery.resources import Object
from federation.client.client import Client
from federation.controllers.sync.clusters import cluster_state_of
from federation.dispatch.expectations import MemberKey
from federation.dispatch.operations import MemberWriter, Outcome
from federation.dispatch.plan import Removal, decide_removal
from federation.runtime.controller import DONE, Result
from federation.runtime.events import WARNING, Recorder
from federation.runtime.federatedobjects import FederatedObjects
from federation.runtime.members import Members

_RECHECK_S = 5.0
_PAGE_SIZE = 500
_MANAGED = f"{names.MANAGED_LABEL}=true"


class ClusterRemoval:
    """Sets the cascading-delete finalizer of clusters and empties leaving clusters."""

    def __init__(
        self,
        client: Client,
        cluster: Callable[[str], Object | None],
        objects: FederatedObjects,
        members: Members,
        recorder: Recorder,
    ) -> None:
        self._client = client
        self._cluster = cluster
        self._objects = objects
        self._members = members
        self._recorder = recorder
        self._writer = MemberWriter()

    async def reconcile(self, name: str) -> Result:
        """Add or remove one cluster's finalizer as its state requires."""
        cluster = self._cluster(name)
        if cluster is None:
            return DONE
        state = cluster_state_of(cluster)
        if not state.terminating:
            if state.joined and not state.has_finalizer:
                await self._set_finalizer(cluster, is_present=True)
            return DONE
        if not state.has_finalizer:
            return DONE
        if state.cascading_delete and state.joined:
            if not state.ready:
                text = "objects in the cluster cannot be deleted while it is not ready"
                self._recorder.event(cluster, WARNING, names.EVENT_WAIT_FOR_CASCADING_DELETE, text)
                return Result(requeue_after_s=_RECHECK_S)
            if not await self._empty(cluster, name):
                return Result(requeue_after_s=_RECHECK_S)
        await self._set_finalizer(cluster, is_present=False)
        return DONE

    async def _set_finalizer(self, cluster: Object, *, is_present: bool) -> None:
        metadata = cluster["metadata"]
        remaining = [name for name in metadata.get("finalizers") or () if name != names.CASCADING_DELETE_FINALIZER]
        finalizers = [*remaining, names.CASCADING_DELETE_FINALIZER] if is_present else remaining
        patch = {"metadata": {"finalizers": finalizers, "resourceVersion": metadata["resourceVersion"]}}
        try:
            await self._client.patch(FEDERATED_CLUSTERS, metadata["name"], patch, field_manager=names.FIELD_MANAGER)
        except NotFound:
            return

    async def _empty(self, cluster: Object, name: str) -> bool:
        """Delete or release every managed object of the cluster; True when none is left."""
        remaining, failures = 0, []
        try:
            member = self._members.client(name)
        except NotFound:
            return False
        for type_ in self._objects.types.all():
            try:
                left, failed = await self._empty_of(member, name, type_)
            except NotFound:
                continue
            except (ApiError, ClusterError) as error:
                failures.append(f"{type_.resource.plural}: {error}")
                continue
            remaining += left
            failures += failed
        if failures:
            text = f"{len(failures)} failures, the first: {failures[0]}"
            self._recorder.event(cluster, WARNING, names.EVENT_WAIT_FOR_CASCADING_DELETE_ERROR, text)
        elif remaining:
            text = f"waiting for {remaining} objects to be deleted"
            self._recorder.event(cluster, WARNING, names.EVENT_WAIT_FOR_CASCADING_DELETE, text)
        return not remaining and not failures

    async def _empty_of(self, member: Client, cluster: str, type_: FederatedType) -> tuple[int, list[str]]:
        """Remove one type's objects; return their number and the failures."""
        count, failures, token = 0, [], ""
        while True:
            page = await member.list(type_.resource, label_selector=_MANAGED, limit=_PAGE_SIZE, continue_token=token)
            for obj in page.items:
                count += 1
                outcome = await self._remove(member, cluster, type_, obj)
                if outcome is not None and not outcome.is_ok:
                    failures.append(f"{type_.resource.plural} {obj['metadata']['name']}: {outcome.message}")
            token = page.continue_token
            if not token:
                return count, failures

    async def _remove(self, member: Client, cluster: str, type_: FederatedType, obj: Object) -> Outcome | None:
        metadata = obj["metadata"]
        federated = self._objects.get(self._objects.key_for(type_, metadata.get("namespace", ""), metadata["name"]))
        annotations = (federated["metadata"].get("annotations") or {}) if federated is not None else {}
        removal = decide_removal(annotations, metadata.get("annotations") or {})
        key = MemberKey(cluster, type_.resource, metadata.get("namespace", ""), metadata["name"])
        if removal is Removal.ORPHAN:
            return await self._writer.release(member, key, metadata["uid"])
        if metadata.get("deletionTimestamp"):
            return None
        return await self._writer.remove(member, key, metadata["uid"])


def is_removal_due(cluster: Object) -> bool:
    """Return whether the finalizer must be added, or the cluster is leaving and still has it."""
    has_finalizer = names.CASCADING_DELETE_FINALIZER in (cluster["metadata"].get("finalizers") or ())
    return has_finalizer == bool(cluster["metadata"].get("deletionTimestamp"))
