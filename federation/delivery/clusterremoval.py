"""Removal of a cluster: its finalizer, and the objects that it holds (docs/reference/sync.md).

Every joined FederatedCluster has our finalizer. When the cluster is deleted the finalizer is removed at once and the
member keeps its objects, unless the annotation cascading-delete asks for their deletion: then every managed object is
deleted or released first, as its federated object's orphan annotation says. An object without a federated object is
deleted; KubeAdmiral would wait for it without end.

A cluster that leaves by force (annotation forced-removal) is not waited for. Every object that it may hold is recorded
in a Leftover first, so that a later join knows what the host knew (docs/decisions/0026).
"""

import asyncio
import contextlib
from collections.abc import Callable
from functools import partial

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.amounts import to_count
from federation.apimachinery.errors import ApiError, ClusterError, NotFound
from federation.apimachinery.finalizers import has_finalizer, with_finalizers, without_finalizers
from federation.apimachinery.resources import Object, Resource
from federation.client.client import Client
from federation.client.servedversion import in_served_version
from federation.delivery.host.tombstones import Tombstones
from federation.delivery.members.clusters import recorded_clusters
from federation.delivery.members.operations import MemberWriter, Outcome
from federation.delivery.rules.content import member_key
from federation.delivery.rules.memberrecord import MemberKey
from federation.delivery.rules.names import EVENT_WAIT_FOR_CASCADING_DELETE, EVENT_WAIT_FOR_CASCADING_DELETE_ERROR
from federation.delivery.rules.plan import ClusterState, Removal, cluster_state_of, decide_removal
from federation.guard.suspensions import Suspensions
from federation.planning.leftovers.record import Action, Reason, Record
from federation.planning.leftovers.strays import is_kept
from federation.runtime.controller import DONE, Result, key_of
from federation.runtime.events import WARNING
from federation.runtime.host import Host

_RECHECK_S = 5.0
_PAGE_SIZE = 500
_RECORDS_AT_ONCE = 64
"""Records that are written concurrently, and share commits."""
_MANAGED = f"{names.MANAGED_LABEL}=true"


class ClusterRemoval:
    """Sets the cascading-delete finalizer of clusters and empties leaving clusters."""

    def __init__(
        self,
        host: Host,
        cluster: Callable[[str], Object | None],
        tombstones: Tombstones,
        suspensions: Suspensions,
        writer: MemberWriter,
    ) -> None:
        self._client = host.client
        self._cluster = cluster
        self._objects = host.objects
        self._members = host.members
        self._tombstones = tombstones
        self._suspensions = suspensions
        self._recorder = host.recorder
        self._writer = writer

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
        if (reason := _unrecorded_reason(cluster)) is not None:
            await self._record_all(state, reason)
            recorded = {"metadata": {"annotations": {names.LEFTOVERS_RECORDED: "true"}}}
            await self._patch(cluster, recorded)
            return DONE  # the event of the patch brings the finalizer here
        if not state.has_finalizer:
            return DONE
        if _takes_objects_along(cluster, state):
            if not state.ready:
                text = "objects in the cluster cannot be deleted while it is not ready"
                self._recorder.event(cluster, WARNING, EVENT_WAIT_FOR_CASCADING_DELETE, text)
                return Result(requeue_after_s=_RECHECK_S)
            if not await self._empty(cluster, name):
                return Result(requeue_after_s=_RECHECK_S)
        await self._set_finalizer(cluster, is_present=False)
        return DONE

    async def _set_finalizer(self, cluster: Object, *, is_present: bool) -> None:
        change = with_finalizers if is_present else without_finalizers
        finalizers, version = change(cluster, names.CASCADING_DELETE_FINALIZER), cluster["metadata"]["resourceVersion"]
        await self._patch(cluster, {"metadata": {"finalizers": finalizers, "resourceVersion": version}})

    async def _patch(self, cluster: Object, patch: Object) -> None:
        name = cluster["metadata"]["name"]
        with contextlib.suppress(NotFound):
            await self._client.patch(FEDERATED_CLUSTERS, name, patch, field_manager=names.FIELD_MANAGER)

    async def _record_all(self, state: ClusterState, reason: str) -> None:
        """Record every object that the cluster may hold, unless its deletion is pending already."""
        message = f"the cluster was removed by force: {reason}"
        records = []
        for federated in self._objects.scan():
            type_ = self._objects.type_of(federated)
            if type_ is None:
                continue
            key = member_key(federated, type_, state.name)
            # A cluster that is about to leave is not recorded any more; the cache still has its objects.
            if state.name not in recorded_clusters(federated) and self._members.get_cached(*key) is None:
                continue
            if self._tombstones.pending(key, state.uid) is not None:
                continue
            live = self._members.get_cached(*key)
            uid = str((live or {}).get("metadata", {}).get("uid", ""))
            records.append(Record(*key, Action.KEEP, Reason.CLUSTER_REMOVED, state.uid, uid, message))
        for start in range(0, len(records), _RECORDS_AT_ONCE):
            await asyncio.gather(*map(self._tombstones.put, records[start : start + _RECORDS_AT_ONCE]))

    async def _empty(self, cluster: Object, name: str) -> bool:
        """Delete or release every managed object of the cluster; True when none is left."""
        remaining, failures = 0, []
        try:
            member = self._members.client(name)
        except NotFound:
            return False
        for type_ in self._objects.types.all():
            try:
                left, failed = await in_served_version(
                    member, type_.resource, partial(self._empty_of, member, name, type_)
                )
            except NotFound:
                continue
            except (ApiError, ClusterError) as error:
                failures.append(f"{type_.resource.plural}: {error}")
                continue
            remaining += left
            failures += failed
        if failures:
            text = f"{len(failures)} failures, the first: {failures[0]}"
            self._recorder.event(cluster, WARNING, EVENT_WAIT_FOR_CASCADING_DELETE_ERROR, text)
        elif remaining:
            text = f"waiting for {to_count(remaining, 'object')} to be deleted"
            self._recorder.event(cluster, WARNING, EVENT_WAIT_FOR_CASCADING_DELETE, text)
        return not remaining and not failures

    async def _empty_of(
        self, member: Client, cluster: str, type_: FederatedType, served: Resource
    ) -> tuple[int, list[str]]:
        """Remove one type's objects, listed in a version that the member serves; return their number and failures."""
        count, failures = 0, []
        async for obj in member.list_all(served, label_selector=_MANAGED, limit=_PAGE_SIZE):
            count += 1
            outcome = await self._remove(member, cluster, type_, obj)
            if outcome is not None and not outcome.is_ok:
                failures.append(f"{type_.resource.plural} {obj['metadata']['name']}: {outcome.message}")
        return count, failures

    async def _remove(self, member: Client, cluster: str, type_: FederatedType, obj: Object) -> Outcome | None:
        metadata = obj["metadata"]
        if self._is_suspended(cluster, obj):
            return None
        key = MemberKey(cluster, type_.resource, *key_of(obj))
        if self._removal(type_, obj) is Removal.ORPHAN:
            return await self._writer.release(member, key, metadata["uid"])
        if metadata.get("deletionTimestamp"):
            return None
        is_wanted = partial(self._is_to_be_deleted, cluster, type_, obj)
        return await self._writer.remove(member, key, metadata["uid"], is_wanted=is_wanted)

    def _removal(self, type_: FederatedType, obj: Object) -> Removal:
        if is_kept(type_.resource) or self._tombstones.is_forgotten(obj):
            return Removal.ORPHAN  # the sources were not deleted, and data would go with these objects
        federated = self._objects.get(self._objects.key_of_source(type_, obj))
        annotations = (federated["metadata"].get("annotations") or {}) if federated is not None else {}
        return decide_removal(annotations, obj["metadata"].get("annotations") or {})

    def _is_suspended(self, cluster: str, obj: Object) -> bool:
        return self._suspensions.find(obj, key_of(obj).namespace, cluster, only_cluster_wide=True) is not None

    def _is_to_be_deleted(self, name: str, type_: FederatedType, obj: Object) -> bool:
        """Return whether the object still has to go: to empty a cluster takes minutes, and users change their mind."""
        cluster = self._cluster(name)
        if cluster is None or not _takes_objects_along(cluster, cluster_state_of(cluster)):
            return False
        return not self._is_suspended(name, obj) and self._removal(type_, obj) is Removal.DELETE


def _takes_objects_along(cluster: Object, state: ClusterState) -> bool:
    """Return whether the cluster leaves, and its objects are deleted with it."""
    is_forced = names.FORCED_REMOVAL in (cluster["metadata"].get("annotations") or {})
    return state.terminating and state.cascading_delete and state.joined and not is_forced


def _unrecorded_reason(cluster: Object) -> str | None:
    """Return why the cluster leaves by force, None if it does not or what it may hold is recorded."""
    annotations = cluster["metadata"].get("annotations") or {}
    return None if names.LEFTOVERS_RECORDED in annotations else annotations.get(names.FORCED_REMOVAL)


def is_removal_due(cluster: Object) -> bool:
    """Return whether the finalizer must be added, or the cluster is leaving and still has it."""
    if cluster["metadata"].get("deletionTimestamp") and _unrecorded_reason(cluster) is not None:
        return True
    is_held = has_finalizer(cluster, names.CASCADING_DELETE_FINALIZER)
    return is_held == bool(cluster["metadata"].get("deletionTimestamp"))
