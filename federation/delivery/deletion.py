"""Deletion: a federated object is removed when no cluster that answers has its object (docs/reference/sync.md).

Member objects are deleted, or released when the orphan annotation says so. When no cache shows one any more, every
member is queried whose watch has not shown the removal; only then is the finalizer removed. For a cluster that does not
answer a Leftover is written first: that durable record finishes the deletion when the cluster returns
(docs/decisions/0026). A cluster that answers and refuses blocks the deletion, and the condition's message and an event
name it.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import replace

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.finalizers import has_finalizer, without_finalizers
from federation.apimachinery.resources import SECRETS, Object
from federation.delivery.clusterdelivery import ClusterDelivery
from federation.delivery.host.deletionguard import DeletionGuard
from federation.delivery.host.followerwait import FollowerReadiness
from federation.delivery.host.tombstones import Tombstones
from federation.delivery.members.depot import Depot
from federation.delivery.members.propagation import BRIEF_S, Propagation, begin_propagation
from federation.delivery.rules.evidence import evidence_of
from federation.delivery.rules.names import (
    EVENT_DELETION_WAITS,
    EVENT_ENSURE_DELETION_FAILED,
    EVENT_LEFT_BEHIND,
    REASON_ENSURE_DELETION_FAILED,
)
from federation.delivery.rules.plan import ClusterState, Removal, decide_removal, is_removal_by_adoption
from federation.delivery.rules.status import ClusterStatus, plan_status
from federation.planning.leftovers.evidence import objection
from federation.planning.leftovers.record import Action, Reason, Record
from federation.runtime.controller import DONE, Key, Result
from federation.runtime.events import NORMAL, WARNING

_RECHECK_S = 5.0
_UNANSWERED_S = 10.0
"""How long the deletion waits for a cluster that is Ready and does not answer, before it leaves a record behind."""
_REPORTED_S = 10.0
"""How long a deletion takes before an event says what it waits for: most take less, and each event is a write."""
_UNANSWERED = frozenset(
    {
        ClusterStatus.CACHED_RETRIEVAL_FAILED,
        ClusterStatus.DELETION_TIMED_OUT,
        ClusterStatus.LABEL_REMOVAL_TIMED_OUT,
        ClusterStatus.RETRIEVAL_FAILED,
    }
)
_BLOCKING = _UNANSWERED | {ClusterStatus.DELETION_FAILED, ClusterStatus.LABEL_REMOVAL_FAILED}


class Deletion:
    """Removes the member objects of federated objects that are being deleted."""

    def __init__(
        self,
        depot: Depot,
        delivery: ClusterDelivery,
        follower_readiness: FollowerReadiness,
        guard: DeletionGuard,
        tombstones: Tombstones,
    ) -> None:
        self._objects = depot.host.objects
        self._clusters = depot.clusters
        self._delivery = delivery
        self._member_objects = depot.member_objects
        self._follower_readiness = follower_readiness
        self._tombstones = tombstones
        self._guard = guard
        self._recorder = depot.host.recorder
        self._clock = depot.host.clock
        self._presence = depot.host.presence
        self._since_s: dict[Key, float] = depot.kept.of_deletion({})
        self._unanswered_s: dict[Key, dict[str, float]] = depot.kept.of_deletion({})
        """Since when which clusters have not answered, by object."""
        self._reported: dict[Key, str] = depot.kept.of_deletion({})
        """The message of the last event about each deletion."""

    async def reconcile(self, key: Key, federated: Object, type_: FederatedType, *, recorded: Iterable[str]) -> Result:
        """Delete or release every member object, then remove the finalizer."""
        if not has_finalizer(federated, names.SYNC_FINALIZER):
            self._since_s.pop(key, None)
            return DONE
        if (wait := await self._guard.wait(key, federated, type_)) is not None:
            return wait
        propagation = begin_propagation(key, federated, type_, recorded=frozenset(recorded))
        states = [self._clusters.get(name) for name in sorted(recorded)]
        clusters = [state for state in states if state is not None and state.joined]
        await self._delivery.deliver(propagation, clusters)
        silent = self._silent_clusters(key, propagation)
        if propagation.results.keys() <= silent:
            # No cache shows the object any more: ask the members themselves.
            propagation.aim = replace(propagation.aim, is_last_look=True)
            await self._delivery.deliver(propagation, [each for each in clusters if each.name not in silent])
            silent = self._silent_clusters(key, propagation)
        if propagation.results.keys() <= silent:
            if (wait_s := self._follower_readiness.wait_before_release(key, federated)) is not None:
                return Result(requeue_after_s=wait_s)
            if (
                type_.resource == SECRETS
                and clusters
                and decide_removal(propagation.aim.subject.annotations, {}) is Removal.DELETE
            ):
                await self._revoke(propagation)
            await self._decide_about_removed_clusters(propagation)
            if silent:
                await self._leave_behind(propagation, [cluster for cluster in clusters if cluster.name in silent])
            self._since_s.pop(key, None)
            remaining = without_finalizers(federated, names.SYNC_FINALIZER)
            await self._objects.patch(key, federated, {"metadata": {"finalizers": remaining}})
            return DONE
        return await self._wait(key, federated, propagation, silent)

    def _silent_clusters(self, key: Key, propagation: Propagation) -> set[str]:
        """Return the clusters that do not answer: clusters that are not ready, and after a while hanging ones.

        The time counts from the first reconcile without an answer since the last one with an answer. A deletion that
        has taken long does not make a short gap, such as a cache that is filled again, a silence.
        """
        now_s, statuses = self._presence.present_s, propagation.statuses
        before = self._unanswered_s.get(key, {})
        since_s = {name: before.get(name, now_s) for name, status in statuses.items() if status in _UNANSWERED}
        self._unanswered_s[key] = since_s
        over = {name for name, since in since_s.items() if now_s - since >= _UNANSWERED_S}
        return over | {name for name, status in statuses.items() if status is ClusterStatus.CLUSTER_NOT_READY}

    async def _leave_behind(self, propagation: Propagation, clusters: Iterable[ClusterState]) -> None:
        """Record the object of each of the clusters durably, before the federated object is let go."""
        records = [record for cluster in clusters if (record := self._record_of(propagation, cluster)) is not None]
        await asyncio.gather(*map(self._tombstones.put, records))
        if records:
            where = ",".join(record.cluster for record in records)
            text = f"clusters [{where}] do not answer; what is there is removed when they do, see: fedctl leftovers"
            self._recorder.event(propagation.federated, NORMAL, EVENT_LEFT_BEHIND, text)

    async def _decide_about_removed_clusters(self, propagation: Propagation) -> None:
        """Record that the sources of copies in clusters that left are gone, and release those that were orphaned.

        The clusters were no members any more: the deletion says nothing about the copies, which users kept.
        """
        orphan = decide_removal(propagation.aim.subject.annotations, {}) is Removal.ORPHAN
        for record in self._tombstones.of_object(propagation.aim.subject.member_key("")):
            if record.reason is not Reason.CLUSTER_REMOVED or record.is_pending:
                continue
            if orphan:
                await self._tombstones.put(replace(record, action=Action.RELEASE, reason=Reason.SOURCE_DELETED))
            else:
                message = f"{record.message}; its source was deleted at {to_rfc3339(self._clock.now())}"
                await self._tombstones.put(replace(record, message=message))

    async def _revoke(self, propagation: Propagation) -> None:
        """Record that the Secret was deleted: a member that is restored from a backup must not bring it back."""
        key, now = propagation.aim.subject.member_key(""), to_rfc3339(self._clock.now())
        await self._tombstones.put(Record(*key, Action.DELETE, Reason.REVOKED, message=f"deleted at {now}", at=now))

    def _record_of(self, propagation: Propagation, cluster: ClusterState) -> Record | None:
        """Return the record to write; None when an earlier one is pending, over which nothing was written."""
        key = propagation.aim.subject.member_key(cluster.name)
        if self._tombstones.pending(key, cluster.uid) is not None:
            return None
        if objection(evidence_of(propagation.federated, cluster, is_recorded=True)):
            return None
        observed, live = self._member_objects.observe(key, propagation.aim.subject.annotations)
        if observed.derived_service_mismatch:
            return None
        if live is None and is_removal_by_adoption(propagation.aim.subject.annotations):
            action = Action.RELEASE_ADOPTED
        else:
            known = (live or {}).get("metadata", {}).get("annotations") or {}
            removal = decide_removal(propagation.aim.subject.annotations, known)
            action = Action.DELETE if removal is Removal.DELETE else Action.RELEASE
        uid = str((live or {}).get("metadata", {}).get("uid", ""))
        deleted = str(propagation.federated["metadata"]["deletionTimestamp"])
        return Record(*key, action, Reason.SOURCE_DELETED, cluster_uid=cluster.uid, uid=uid, at=deleted)

    async def _wait(self, key: Key, federated: Object, propagation: Propagation, silent: set[str]) -> Result:
        """Publish the clusters that the deletion waits for, once it takes long or is blocked."""
        since_s = self._since_s.setdefault(key, self._clock.monotonic())
        waited_s = self._clock.monotonic() - since_s
        awaited = {name: status for name, status in propagation.statuses.items() if name not in silent}
        blocking = sorted(name for name, status in awaited.items() if status in _BLOCKING)
        if not blocking and waited_s < BRIEF_S:
            return Result(requeue_after_s=BRIEF_S - waited_s)
        waiting = blocking or sorted(awaited)
        message = f"deletion waits for clusters [{','.join(waiting)}]"
        details = propagation.describe(name for name in waiting if blocking or propagation.results[name].message)
        text = f"{message}: {details}" if details else message
        if blocking:
            self._recorder.event(federated, WARNING, EVENT_ENSURE_DELETION_FAILED, text)
        elif waited_s >= _REPORTED_S and self._reported.get(key) != text:
            self._recorder.event(federated, NORMAL, EVENT_DELETION_WAITS, text)
            self._reported[key] = text
        status = plan_status(
            federated.get("status") or {},
            generation=int((federated.get("status") or {}).get("syncedGeneration") or 0),
            statuses=propagation.statuses,
            generations={cluster: result.generation for cluster, result in propagation.results.items()},
            messages={cluster: result.message for cluster, result in propagation.results.items()},
            reason=REASON_ENSURE_DELETION_FAILED if blocking else names.REASON_CHECK_CLUSTERS,
            message=message,
            now=self._clock.now(),
        )
        if status is not None:
            await self._objects.patch(key, federated, {"status": status}, subresource="status")
        return Result(requeue_after_s=min(propagation.recheck_after_s or _RECHECK_S, _RECHECK_S))
