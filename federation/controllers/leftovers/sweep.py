"""The sweep of one member: compare the managed objects in it with what should be there.

It runs when the member becomes ready, when an object appears that nothing delivers, and daily. An object that is found
is delivered again, removed, released or reported (`planning/leftovers/strays.py`). The caches only say what exists:
before the host counts as not knowing an object, its API server is queried. Members are not written here: sync removes
what is placed elsewhere, `reconcile.py` acts on the records.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import partial

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.errors import ApiError, ClusterError, NotFound
from federation.apimachinery.resources import SECRETS, Object
from federation.client.client import Client
from federation.client.servedversion import find_served_version
from federation.controllers.leftovers.findings import Finding, Findings
from federation.controllers.leftovers.names import EVENT_SWEPT
from federation.delivery.host.tombstones import Tombstones
from federation.delivery.rules.plan import cluster_state_of, is_name_collision
from federation.planning.federatedobject.eligibility import exclusion
from federation.planning.federatedobject.placements import DEPARTED, departed_clusters
from federation.planning.guard.ledger import Cause, GuardOptions, Ledger
from federation.planning.leftovers.evidence import Evidence, Word, membership_of
from federation.planning.leftovers.record import Action, Reason, Record
from federation.planning.leftovers.strays import (
    Policy,
    StrayAction,
    decided_at,
    is_written_by_us,
    judge_excluded,
    judge_federated,
    judge_unknown,
    policy_of,
    settle,
)
from federation.runtime.controller import DONE, Key, Result
from federation.runtime.events import NORMAL
from federation.runtime.host import Host

_PAGE_SIZE = 500
_AGAIN_S = 30.0
"""First interval of sweeps while a member's kind cannot be listed or an object is not scheduled yet; it doubles."""
_SLICE = 256
"""Objects to judge before the event loop runs other tasks."""
_REVOKED_MAX = 10_000
"""Records of deleted Secrets; beyond it the oldest are removed."""


class Sweep:
    """Sweeps members. `cluster` returns a FederatedCluster by name."""

    def __init__(
        self,
        host: Host,
        tombstones: Tombstones,
        *,
        cluster: Callable[[str], Object | None],
        period_s: float,
        guard: GuardOptions,
    ) -> None:
        self._host = host.client
        self._tombstones = tombstones
        self._objects = host.objects
        self._members = host.members
        self._recorder = host.recorder
        self._cluster = cluster
        self._period_s = period_s
        self._clock = host.clock
        self._guard = guard
        self._ledger: Ledger[str] = Ledger(guard)
        self._unfinished: dict[str, int] = {}

    async def reconcile(self, name: str) -> Result:
        """Sweep one member that answers."""
        cluster = self._cluster(name)
        if cluster is None or not cluster_state_of(cluster).ready or cluster_state_of(cluster).terminating:
            return DONE  # its next change requeues it
        try:
            member = self._members.client(name)
        except NotFound:
            return DONE
        await self._take_over_records(cluster)
        findings, policy = Findings(), policy_of(cluster)
        for type_ in self._objects.types.all():
            try:
                async for obj in self._managed(member, name, type_):
                    if not is_written_by_us(obj):
                        continue
                    await self._judge(cluster, type_, obj, policy, findings)
            except NotFound:
                pass  # the member does not serve the kind, so it has no objects of it
            except (ApiError, ClusterError):
                findings.is_unfinished = True
                continue
            try:
                await self._forget_absent(member, cluster, type_, findings)
            except (ApiError, ClusterError):
                findings.is_unfinished = True
        await self._remove(name, findings)
        if text := findings.describe():
            self._recorder.event(cluster, NORMAL, EVENT_SWEPT, text)
        await self._tombstones.limit("", _REVOKED_MAX)
        if not findings.is_unfinished:
            self._unfinished.pop(name, None)
            return Result(requeue_after_s=self._period_s)
        count = self._unfinished[name] = self._unfinished.get(name, 0) + 1
        return Result(requeue_after_s=min(_AGAIN_S * 2 ** min(count - 1, 20), self._period_s))

    async def _take_over_records(self, cluster: Object) -> None:
        """Give the records of a member that joined under another name before its present name."""
        name, uid = cluster["metadata"]["name"], str((cluster.get("status") or {}).get("clusterUid") or "")
        for record in self._tombstones.all():
            if uid and record.cluster_uid == uid and record.cluster != name and self._cluster(record.cluster) is None:
                moved = replace(record, cluster=name, revision="")
                key = self._key(record)
                federated = self._objects.get(key) if key is not None else None
                is_delivered = federated is not None and (
                    judge_federated(federated, name, None) is StrayAction.DELIVERED
                )
                if record.reason is Reason.KEPT or not is_delivered:
                    await self._tombstones.put(moved)
                await self._tombstones.remove(record)

    async def _managed(self, member: Client, cluster: str, type_: FederatedType) -> AsyncIterator[Object]:
        """Yield the managed objects of one type, from the cache where there is one."""
        informer = self._members.informer(cluster, type_.resource)
        if informer is not None and informer.has_synced and informer.server.is_served:
            for number, obj in enumerate(informer.cache.scan()):
                if number % _SLICE == _SLICE - 1:
                    await asyncio.sleep(0)
                yield obj
            return
        async for obj in _listed(member, type_, label_selector=f"{names.MANAGED_LABEL}=true"):
            yield obj

    async def _judge(
        self, cluster: Object, type_: FederatedType, obj: Object, policy: Policy | None, findings: Findings
    ) -> None:
        metadata = obj["metadata"]
        uid, name = str(metadata.get("uid", "")), str(metadata["name"])
        where = (cluster["metadata"]["name"], type_.resource, metadata.get("namespace", ""), name)
        cluster_uid = str((cluster.get("status") or {}).get("clusterUid") or "")
        stray = Record(*where, Action.KEEP, Reason.STRAY, cluster_uid, uid, "a sweep found it in the member")
        record = self._tombstones.find(*where)
        findings.records.add(stray.record_name)
        if record is not None and not record.is_in(cluster_uid):
            record = None  # it is about another cluster that had the name
        if metadata.get("deletionTimestamp") or (record is not None and record.is_pending):
            return
        federated = self._objects.get(self._objects.key_for(type_, stray.namespace, name))
        if federated is not None and is_name_collision(federated["metadata"].get("annotations") or {}, obj):
            return
        evidence = Evidence(
            Word.ELSEWHERE, membership_of(cluster), created=str(metadata.get("creationTimestamp") or "")
        )
        if federated is not None:
            chosen = judge_federated(federated, stray.cluster, policy)
            word = Word.SOURCE if federated["metadata"].get("deletionTimestamp") else Word.ELSEWHERE
            made = str(federated["metadata"].get("creationTimestamp") or "")
            evidence = replace(evidence, word=word, at=decided_at(federated), object_created=made)
        elif (source := await self._find_on_host(type_, stray)) is not None:
            chosen = judge_excluded(policy) if exclusion(source) else StrayAction.UNDECIDED
        else:
            revoked = self._revocation(stray)
            chosen = judge_unknown(type_.resource, policy, is_revoked=revoked is not None)
            evidence = replace(evidence, word=Word.SOURCE, at=revoked.at if revoked is not None else "")
        if policy is Policy.REMOVE:
            evidence = Evidence(Word.ANSWER, evidence.membership)
        about_copy = record if record is not None and record.uid in ("", uid) else None
        chosen, why = settle(chosen, evidence, about_copy, policy)
        if chosen in (StrayAction.DEPART, StrayAction.DELETE) and self._tombstones.is_forgotten(obj):
            chosen = StrayAction.REPORT  # the host's backup is older than the object: it is no evidence
        found = Finding(chosen, replace(stray, message=f"{stray.message}; {why}") if why else stray, record, federated)
        if chosen in (StrayAction.DEPART, StrayAction.DELETE):
            findings.removals.append(found)  # the guard must know how many there are
        else:
            await self._conclude(found, findings)

    async def _remove(self, cluster: str, findings: Findings) -> None:
        """Remove what the sweep found to be removed, unless that is more than the guard allows at a time."""
        cause, now_s = Cause("Sweep", "", cluster), self._clock.now().timestamp()
        removals, options = findings.removals, self._guard
        count = len(removals) + self._ledger.moved(cause, now_s)
        is_held = options.share < 1 and count > options.allowed(len(findings.records))
        for found in removals:
            if is_held:
                held = replace(
                    found.stray, reason=Reason.HELD, message=f"the sweep would remove {count} objects at a time"
                )
                await self._tombstones.put(held)
                findings.add("held, see fedctl leftovers", held)
            else:
                self._ledger.record(found.stray.record_name, (cause,), now_s)
                await self._conclude(found, findings)

    async def _conclude(self, found: Finding, findings: Findings) -> None:
        stray, record = found.stray, found.record
        if found.action is StrayAction.UNDECIDED:
            findings.is_unfinished = True
        elif found.action is StrayAction.DELIVERED:
            if record is not None:
                await self._tombstones.remove(record)
                findings.add("managed again", stray)
        elif found.action is StrayAction.DEPART:
            assert found.federated is not None
            await self._depart(stray, found.federated)
            if record is not None:
                await self._tombstones.remove(record)
            findings.add("removed, placed elsewhere", stray)
        elif found.action is StrayAction.DELETE:
            await self._tombstones.put(replace(stray, action=Action.DELETE, at=to_rfc3339(self._clock.now())))
            findings.add("removed", stray)
        elif found.action is StrayAction.RELEASE:
            kept = record.reason if record is not None and record.is_kept else stray.reason
            await self._tombstones.put(replace(stray, action=Action.RELEASE, reason=kept))
            findings.add("released", stray)
        elif record is None or (record.uid and record.uid != stray.uid):
            await self._tombstones.put(stray)
            findings.add("reported, see fedctl leftovers", stray)

    async def _depart(self, stray: Record, federated: Object) -> None:
        """Let sync remove the object, as it removes one whose placement has changed."""
        key = self._key(stray)
        assert key is not None
        departed = departed_clusters(federated) | {stray.cluster}
        body = {"metadata": {"annotations": DEPARTED.entry(departed)}}
        await self._objects.patch(key, federated, body)

    async def _find_on_host(self, type_: FederatedType, stray: Record) -> Object | None:
        """Return the source or else the federated object, None without both; the API server decides, not a cache."""
        key = self._objects.key_for(type_, stray.namespace, stray.name)
        for resource, name in ((type_.resource, stray.name), (type_.federated_resource, key.name)):
            with contextlib.suppress(NotFound):
                return await self._host.get(resource, name, stray.namespace)
        return None

    def _revocation(self, stray: Record) -> Record | None:
        """Return the record that a Secret of this name was deleted on the host, None without one."""
        return self._tombstones.find("", SECRETS, stray.namespace, stray.name) if stray.resource == SECRETS else None

    async def _forget_absent(self, member: Client, cluster: Object, type_: FederatedType, findings: Findings) -> None:
        """Delete the reports about objects of the type that are gone, or no longer ours and not kept by a user."""
        name, cluster_uid = cluster["metadata"]["name"], str((cluster.get("status") or {}).get("clusterUid") or "")
        absent = [
            record
            for record in self._tombstones.in_cluster(name)
            if (record.resource.group, record.resource.kind) == (type_.resource.group, type_.resource.kind)
            and record.is_in(cluster_uid)
            and not record.is_pending
            and record.record_name not in findings.records
        ]
        uids: set[str] = set()
        if any(record.reason is Reason.KEPT for record in absent):
            async for obj in _listed(member, type_):
                uids.add(str(obj["metadata"].get("uid", "")))
        for record in absent:
            if record.reason is not Reason.KEPT or record.uid not in uids:
                await self._tombstones.remove(record)

    def _key(self, record: Record) -> Key | None:
        type_ = self._objects.types.for_resource(record.resource)
        return self._objects.key_for(type_, record.namespace, record.name) if type_ is not None else None


async def _listed(member: Client, type_: FederatedType, label_selector: str = "") -> AsyncIterator[Object]:
    """Yield the member's objects of a type, in a version that it serves; NotFound if it does not serve the type."""
    listed = partial(member.list_all, label_selector=label_selector, limit=_PAGE_SIZE)
    try:
        async for obj in listed(type_.resource):
            yield obj
    except NotFound:
        served = await find_served_version(member, type_.resource)
        if served is None:
            raise
        async for obj in listed(served):
            yield obj
