"""Removal of a cluster: its finalizer, and the objects that it holds (docs/reference/sync.md).

Every joined FederatedCluster has our finalizer. When the cluster is deleted, its member keeps its objects, and they are
the user's: each is recorded in a Leftover (reason Kept) and loses our label and annotations before the finalizer is
removed, and with it our account. The annotation cascading-delete asks for their deletion instead: then every managed
object is deleted, or released as its federated object's orphan annotation says. An object without a federated object is
deleted; KubeAdmiral would wait for it without end. `keeping.py` releases what is kept.

A cluster that leaves by force (annotation forced-removal) is not waited for. Every object that it may hold is recorded
in a Leftover first, so that a later join knows what the host knew (docs/decisions/0026).
"""

import contextlib
from collections.abc import Callable
from functools import partial

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery import conditions
from federation.apimachinery.amounts import to_count
from federation.apimachinery.errors import ApiError, ClusterError, NotFound
from federation.apimachinery.finalizers import has_finalizer, with_finalizers, without_finalizers
from federation.apimachinery.resources import Object, Resource
from federation.client.client import Client
from federation.client.servedversion import in_served_version
from federation.delivery.host.tombstones import Tombstones
from federation.delivery.keeping import Keeping
from federation.delivery.members.operations import MemberWriter, Outcome
from federation.delivery.rules.memberrecord import MemberKey
from federation.delivery.rules.names import EVENT_WAIT_FOR_CASCADING_DELETE, EVENT_WAIT_FOR_CASCADING_DELETE_ERROR
from federation.delivery.rules.plan import ClusterState, Removal, cluster_state_of, decide_removal
from federation.guard.suspensions import Suspensions
from federation.planning.leftovers.evidence import Evidence, Word, membership_of
from federation.planning.leftovers.record import Action, Record
from federation.planning.leftovers.strays import is_kept
from federation.runtime.controller import DONE, Result, key_of
from federation.runtime.events import WARNING
from federation.runtime.host import Host

_RECHECK_S = 5.0
_PAGE_SIZE = 500
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
        self._keeping = Keeping(host, tombstones, writer)

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
            await self._keeping.record_all(state, f"the cluster was removed by force: {reason}")
            recorded = {"metadata": {"annotations": {names.LEFTOVERS_RECORDED: "true"}}}
            await self._patch(cluster, recorded)
            return DONE  # the event of the patch brings the finalizer here
        if not state.has_finalizer:
            return DONE
        if _takes_objects_along(cluster, state):
            if not state.ready:
                text = (
                    "objects in the cluster cannot be deleted while it is not ready;"
                    f" if it is lost: fedctl unjoin {name} --force --reason TEXT"
                )
                self._recorder.event(cluster, WARNING, EVENT_WAIT_FOR_CASCADING_DELETE, text)
                return Result(requeue_after_s=_RECHECK_S)
            if not await self._empty(cluster, name):
                return Result(requeue_after_s=_RECHECK_S)
        elif _keeps_objects(cluster) and (wait_s := await self._keeping.release(cluster, state)) > 0:
            return Result(requeue_after_s=wait_s)
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
        if self._removal(cluster, type_, obj) is Removal.ORPHAN:
            return await self._writer.release(member, key, metadata["uid"])
        if metadata.get("deletionTimestamp"):
            return None
        find = partial(self._find_evidence, cluster, type_, obj)
        return await self._writer.remove(member, key, metadata["uid"], find_evidence=find)

    def _removal(self, cluster: str, type_: FederatedType, obj: Object) -> Removal:
        if is_kept(type_.resource) or self._tombstones.is_forgotten(obj):
            return Removal.ORPHAN  # the sources were not deleted, and data would go with these objects
        record = self._tombstones.find(cluster, type_.resource, *key_of(obj))
        if record is not None and record.uid in ("", obj["metadata"]["uid"]) and _spares(record, obj):
            return Removal.ORPHAN  # the user kept it: when the cluster left before, or when the source was deleted
        federated = self._objects.get(self._objects.key_of_source(type_, obj))
        annotations = (federated["metadata"].get("annotations") or {}) if federated is not None else {}
        return decide_removal(annotations, obj["metadata"].get("annotations") or {})

    def _is_suspended(self, cluster: str, obj: Object) -> bool:
        return self._suspensions.find(obj, key_of(obj).namespace, cluster, only_cluster_wide=True) is not None

    def _find_evidence(self, name: str, type_: FederatedType, obj: Object) -> Evidence | None:
        """Return the evidence while the object has to go: to empty a cluster takes minutes, and users may stop it."""
        cluster = self._cluster(name)
        if cluster is None or not _takes_objects_along(cluster, cluster_state_of(cluster)):
            return None
        if self._is_suspended(name, obj) or self._removal(name, type_, obj) is not Removal.DELETE:
            return None
        return Evidence(Word.ANSWER, membership_of(cluster))


def _spares(record: Record, obj: Object) -> bool:
    """Return whether the user's last word about the object was to keep it."""
    if record.action is Action.RELEASE_ADOPTED:
        return (obj["metadata"].get("annotations") or {}).get(names.ADOPTED) == "true"
    return record.is_kept or record.action is Action.RELEASE


def _takes_objects_along(cluster: Object, state: ClusterState) -> bool:
    """Return whether the cluster leaves, and its objects are deleted with it."""
    return state.terminating and state.cascading_delete and state.joined and not _is_forced(cluster)


def _keeps_objects(cluster: Object) -> bool:
    """Return whether its objects are released before it leaves; they are when it is no longer joined."""
    is_joined = conditions.is_true((cluster.get("status") or {}).get("conditions"), names.CLUSTER_JOINED)
    return is_joined and not _is_forced(cluster)


def _is_forced(cluster: Object) -> bool:
    return names.FORCED_REMOVAL in (cluster["metadata"].get("annotations") or {})


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
