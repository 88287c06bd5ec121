"""The steps for one Leftover: once its member answers, remove or release the object, then delete the record.

The member is queried for every decision; no cache decides about a deletion. The object is deleted by its uid. While a
record is pending, sync writes nothing over the object. So the object that is found is the one that was left, unless its
uid differs: then nothing is done to it, and the record becomes a report.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.errors import ApiError, ClusterError, NotFound
from federation.apimachinery.resources import Object
from federation.client.client import Client
from federation.client.servedversion import in_served_version
from federation.controllers.leftovers import names
from federation.delivery.host.tombstones import Tombstones
from federation.delivery.members.keptstate import KeptState
from federation.delivery.members.operations import MemberWriter, Outcome
from federation.delivery.rules.memberrecord import MemberKey
from federation.delivery.rules.plan import cluster_state_of
from federation.guard.suspensions import Suspensions
from federation.planning.federatedobject.placements import departed_clusters, effective_placement
from federation.planning.leftovers.evidence import Evidence, membership_of, objection
from federation.planning.leftovers.record import (
    Action,
    Reason,
    Record,
    Step,
    as_report,
    evidence_of_record,
    next_step,
    without_deletion,
)
from federation.runtime.controller import DONE, Result
from federation.runtime.events import WARNING
from federation.runtime.host import Host

_CONFIRM_S = 1.0
_RETRY_S = 10.0


class Reconciler:
    """Acts on the records of members that answer. `cluster` returns a FederatedCluster by name."""

    def __init__(
        self,
        host: Host,
        tombstones: Tombstones,
        suspensions: Suspensions,
        *,
        cluster: Callable[[str], Object | None],
    ) -> None:
        self._suspensions = suspensions
        self._tombstones = tombstones
        self._objects = host.objects
        self._members = host.members
        self._recorder = host.recorder
        self._cluster = cluster
        self._clock = host.clock
        self._writer = MemberWriter(KeptState())

    async def reconcile(self, name: str) -> Result:
        """Do the next step for one record."""
        record = self._tombstones.get(name)
        if record is None or not record.is_pending:
            return DONE
        cluster = self._cluster(record.cluster)
        if cluster is None or not record.is_in(str((cluster.get("status") or {}).get("clusterUid") or "")):
            return DONE
        record = await self._with_time(record)
        if not cluster_state_of(cluster).ready:
            return DONE  # its next change requeues the record
        if record.reason is Reason.STRAY and self._is_delivered(record):
            await self._tombstones.remove(record)
            return DONE
        try:
            member = self._members.client(record.cluster)
        except NotFound:
            return DONE
        try:
            live = await find_live(member, record)
        except (ApiError, ClusterError):
            return Result(requeue_after_s=_RETRY_S)
        return await self._act(record, cluster, member, live)

    async def _with_time(self, record: Record) -> Record:
        """Store when the answer of an administrator was seen: it is about the membership of that time."""
        if record.at or record.action is Action.RELEASE:
            return record
        answered = replace(record, at=to_rfc3339(self._clock.now()))
        await self._tombstones.put(answered)
        return answered

    async def _act(self, record: Record, cluster: Object, member: Client, live: Object | None) -> Result:
        step, evidence = next_step(record, live), evidence_of_record(record, membership_of(cluster))
        report = as_report
        if step is Step.DELETE and objection(evidence):
            step, report = Step.REPORT, without_deletion
        if step in (Step.DELETE, Step.RELEASE) and not record.uid and live and self._tombstones.is_forgotten(live):
            step = Step.REPORT  # the record may be about an earlier object, from before the host's restore
        uid = str((live or {}).get("metadata", {}).get("uid", ""))
        key = MemberKey(record.cluster, record.resource, record.namespace, record.name)
        if step is Step.FORGET:
            await self._tombstones.remove(record)
        elif step is Step.REPORT:
            if self._is_delivered(record):
                await self._tombstones.remove(record)
            else:
                await self._tombstones.put(report(record, uid))
        elif step is Step.KEEP:
            await self._tombstones.put(replace(record, action=Action.KEEP, reason=Reason.KEPT, uid=uid, at=""))
        elif step in (Step.DELETE, Step.RELEASE):
            suspended = self._suspensions.find(live or {}, record.namespace, record.cluster, only_cluster_wide=True)
            if suspended is not None:
                return Result(requeue_after_s=self._suspensions.left_s(suspended))  # its end requeues the record, too
            is_terminating = bool((live or {}).get("metadata", {}).get("deletionTimestamp"))
            if step is Step.RELEASE:
                outcome = await self._writer.release(member, key, uid, is_for_good=record.is_kept)
            elif not is_terminating:
                find = partial(self._find_evidence, record, live)
                outcome = await self._writer.remove(member, key, uid, find_evidence=find)
            else:
                return Result(requeue_after_s=_RETRY_S)  # finalizers of the member hold it
            return self._requeue(record, cluster, outcome)
        return DONE

    def _find_evidence(self, record: Record, live: Object | None) -> Evidence | None:
        """Return the evidence while the record exists and nothing holds it. Users delete records to keep objects."""
        suspended = self._suspensions.find(live or {}, record.namespace, record.cluster, only_cluster_wide=True)
        if suspended is not None or self._tombstones.get(record.record_name) != record:
            return None
        cluster = self._cluster(record.cluster)
        return evidence_of_record(record, membership_of(cluster) if cluster is not None else None)

    def _requeue(self, record: Record, cluster: Object, outcome: Outcome) -> Result:
        """Look again soon, to see that the object is gone."""
        if outcome.is_ok:
            return Result(requeue_after_s=_CONFIRM_S)
        if not outcome.is_unanswered:
            what = f"{record.resource.kind} {record.namespace}/{record.name}".replace(" /", " ")
            text = f"{record.action.value} of the leftover {what} failed: {outcome.message}"
            self._recorder.event(cluster, WARNING, names.EVENT_LEFTOVER_FAILED, text)
        return Result(requeue_after_s=max(_RETRY_S, outcome.retry_after_s))

    def _is_delivered(self, record: Record) -> bool:
        """Return whether a federated object delivers, or is about to remove, the object in its cluster."""
        type_ = self._objects.types.for_resource(record.resource)
        if type_ is None:
            return False
        federated = self._objects.get(self._objects.key_for(type_, record.namespace, record.name))
        if federated is None:
            return False
        return record.cluster in effective_placement(federated) | departed_clusters(federated)


async def find_live(member: Client, record: Record) -> Object | None:
    """Return the member's object of a record, None when there is none; ApiError, ClusterError."""
    try:
        return await in_served_version(
            member, record.resource, lambda resource: member.get(resource, record.name, record.namespace)
        )
    except NotFound:
        return None
