"""Objects that a member keeps when its cluster leaves the federation: they are the user's, recorded and released.

An object is released when it has no label and no annotation of ours any more. Before that a Leftover records it, by
which a later join of the cluster offers it again (docs/decisions/0208). A pending record of the object is replaced: to
keep it is the newer word. The cluster waits until no managed object is found; one that lost our rights to list a kind
keeps these objects as they are, with a record of what it may hold.
"""

import asyncio
from functools import partial

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.apimachinery.amounts import to_count
from federation.apimachinery.errors import ApiError, ClusterError, Forbidden, NotFound, Unauthorized
from federation.apimachinery.resources import Object, Resource
from federation.client.client import Client
from federation.client.servedversion import in_served_version
from federation.delivery.host.tombstones import Tombstones
from federation.delivery.members.clusters import recorded_clusters
from federation.delivery.members.operations import MemberWriter, Outcome
from federation.delivery.rules.content import member_key
from federation.delivery.rules.memberrecord import MemberKey
from federation.delivery.rules.names import EVENT_WAIT_FOR_RELEASE
from federation.delivery.rules.plan import ClusterState
from federation.planning.leftovers.record import Action, Reason, Record
from federation.planning.leftovers.strays import is_written_by_us
from federation.runtime.controller import key_of
from federation.runtime.events import WARNING
from federation.runtime.host import Host

_RETRY_S = 5.0
_CONFIRM_S = 1.0
_PAGE_SIZE = 500
_AT_ONCE = 16
"""Objects of a member that are released concurrently."""
_RECORDS_AT_ONCE = 64
"""Records that are written concurrently, and share commits."""
_MANAGED = f"{names.MANAGED_LABEL}=true"
_MESSAGE = "kept in the cluster when it left the federation"


class Keeping:
    """Releases what clusters keep, and records what a cluster that leaves by force may hold."""

    def __init__(self, host: Host, tombstones: Tombstones, writer: MemberWriter) -> None:
        self._objects = host.objects
        self._members = host.members
        self._tombstones = tombstones
        self._recorder = host.recorder
        self._writer = writer

    async def release(self, cluster: Object, state: ClusterState) -> float:
        """Release every managed object of the cluster; return after how many seconds to look again, 0 for never."""
        try:
            member = self._members.client(state.name)
        except NotFound:
            return _RETRY_S
        count, failures, forbidden = 0, list[str](), list[FederatedType]()
        renew = f"renew the credentials with: fedctl join --update-credentials {state.name} --kubeconfig FILE"
        types = self._objects.types.all()
        for type_ in types:
            try:
                found, failed = await in_served_version(
                    member, type_.resource, partial(self._release_of, member, state, type_)
                )
            except NotFound:
                continue  # the member does not serve the kind, so it has no objects of it
            except Forbidden:
                forbidden.append(type_)
                continue
            except Unauthorized as error:
                failures.append(f"{type_.resource.plural}: {error.message}; {renew}")
                break
            except (ApiError, ClusterError) as error:
                failures.append(f"{type_.resource.plural}: {error}")
                continue
            count += found
            failures += failed
        if types and len(forbidden) == len(types):
            failures.append(f"the account has no rights; {renew}")
        elif not failures:
            for type_ in forbidden:
                await self.record_all(state, "not released, because the account may not list its kind", type_)
        if failures:
            text = (
                f"the cluster waits until its objects have lost our label: {to_count(len(failures), 'failure')}, the"
                f" first: {failures[0]}; if it is lost: fedctl unjoin {state.name} --force --reason TEXT"
            )
            self._recorder.event(cluster, WARNING, EVENT_WAIT_FOR_RELEASE, text)
            return _RETRY_S
        return _CONFIRM_S if count else 0.0

    async def _release_of(
        self, member: Client, state: ClusterState, type_: FederatedType, served: Resource
    ) -> tuple[int, list[str]]:
        """Release one type's objects, listed in a version that the member serves; return their number and failures."""
        found = [
            obj
            async for obj in member.list_all(served, label_selector=_MANAGED, limit=_PAGE_SIZE)
            if is_written_by_us(obj)
        ]
        failures = []
        for start in range(0, len(found), _AT_ONCE):
            chunk = found[start : start + _AT_ONCE]
            outcomes = await asyncio.gather(*(self._release(member, state, type_, obj) for obj in chunk))
            failures += [
                f"{type_.resource.plural} {obj['metadata']['name']}: {outcome.message}"
                for obj, outcome in zip(chunk, outcomes, strict=True)
                if not outcome.is_ok
            ]
        return len(found), failures

    async def _release(self, member: Client, state: ClusterState, type_: FederatedType, obj: Object) -> Outcome:
        key, uid = MemberKey(state.name, type_.resource, *key_of(obj)), str(obj["metadata"]["uid"])
        await self._tombstones.put(Record(*key, Action.KEEP, Reason.KEPT, state.uid, uid, _MESSAGE))
        return await self._writer.release(member, key, uid, is_for_good=True)

    async def record_all(self, state: ClusterState, message: str, of_type: FederatedType | None = None) -> None:
        """Record every object that the cluster may hold, of one type or of all, unless its deletion is pending."""
        records = []
        for federated in self._objects.scan():
            type_ = self._objects.type_of(federated)
            if type_ is None or (of_type is not None and type_.name != of_type.name):
                continue
            key = member_key(federated, type_, state.name)
            live = self._members.get_cached(*key)
            # A cluster that is about to leave is not recorded any more; the cache still has its objects.
            if state.name not in recorded_clusters(federated) and live is None:
                continue
            if self._tombstones.pending(key, state.uid) is not None:
                continue
            uid = str((live or {}).get("metadata", {}).get("uid", ""))
            records.append(Record(*key, Action.KEEP, Reason.CLUSTER_REMOVED, state.uid, uid, message))
        for start in range(0, len(records), _RECORDS_AT_ONCE):
            await asyncio.gather(*map(self._tombstones.put, records[start : start + _RECORDS_AT_ONCE]))
