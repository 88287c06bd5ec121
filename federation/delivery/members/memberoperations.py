"""Operations on member objects: start them, wait for fast members, record their results.

The executor runs operations per cluster. `wait` waits for fast members only: the result of an operation that ends later
goes to the record of the member object, and the federated object is requeued. No reconcile waits for a slow member.
`clusterdispatch.py` and `deletion.py` decide which operations to start.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable, Iterable
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any, cast

from federation.api import names
from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import ApiError, ClusterError
from federation.apimachinery.resources import Object
from federation.client.client import Client
from federation.delivery.members.driftreports import DriftReports
from federation.delivery.members.executor import Action, Executor
from federation.delivery.members.memberrecords import MemberRecords
from federation.delivery.members.operations import MemberWriter, Outcome, Write
from federation.delivery.members.propagation import BRIEF_S, Propagation, StartedOperation
from federation.delivery.members.scalers import find_scaler
from federation.delivery.rules.memberrecord import MemberKey
from federation.delivery.rules.plan import PENDING_STATUS, TIMED_OUT_STATUS, Operation, Removal
from federation.delivery.rules.status import ClusterStatus
from federation.planning.rendering.retention import is_replicas_retained, is_scaled
from federation.runtime.controller import Key
from federation.runtime.events import WARNING, Recorder
from federation.runtime.indexer import revision_of
from federation.runtime.members import Members

_CONFIRMATION = "confirmation"
"""Key of a failed confirmation among failures, in the place of a template hash."""
_SCALER = "scaler"
"""Key of a failed look at autoscalers among failures, in the place of a template hash."""
_LOOK_UP_PAUSE_S = 30.0
"""How long a member that failed to answer about a new object is not asked about others."""
_SLOW_CHECK_INTERVAL_S = 0.1
"""How often waits check whether a member has become slow."""


class MemberOperations:
    """Starts operations and records their results. `enqueue` requeues a federated object."""

    def __init__(
        self,
        members: Members,
        executor: Executor,
        records: MemberRecords,
        drift: DriftReports,
        recorder: Recorder,
        clock: Clock,
        *,
        grace_s: float,
        enqueue: Callable[[Key], None],
    ) -> None:
        self._members = members
        self._executor = executor
        self._records = records
        self._drift = drift
        self._recorder = recorder
        self._clock = clock
        self._grace_s = grace_s
        self._enqueue = enqueue
        self._writer = MemberWriter()
        self._look_up_from_s: dict[str, float] = {}

    def forget_cluster(self, cluster: str) -> None:
        """Discard the state of a cluster that left, or that has another endpoint or credentials now."""
        self._executor.forget_cluster(cluster)
        self._records.forget_cluster(cluster)
        self._writer.forget_cluster(cluster)
        self._drift.forget_cluster(cluster)
        self._look_up_from_s.pop(cluster, None)

    def record_backoff(self, propagation: Propagation, key: MemberKey, digest: str, live: Object | None = None) -> bool:
        """Record the last failure with this content while its retry is not due; return whether it is not."""
        failure = self._records.get(key).failure_of(digest)
        if failure is None or (wait_s := failure.retry_at_s - self._clock.monotonic()) <= 0:
            return False
        propagation.record(key.cluster, failure.status, live, failure.message)
        propagation.recheck(wait_s)
        return True

    def ensure(self, propagation: Propagation, write: Write) -> None:
        """Create the member object, or update it."""
        operation = Operation.CREATE if write.live is None else Operation.UPDATE
        self._start(
            propagation,
            write.key,
            operation,
            write.desired.hash,
            lambda client: self._writer.ensure(client, write),
            write.live,
        )

    def await_scaler(self, propagation: Propagation, key: MemberKey, live: Object) -> bool:
        """Return True, and ask the member, while it is not known whether an autoscaler there owns the replicas."""
        path = propagation.type_.paths.replicas_spec
        if not path or is_replicas_retained(propagation.federated) or self._records.scaler_left_s(key) > 0:
            return False
        if not is_scaled(live) and not self._records.get(key).scaler_name:
            return False
        if self.record_backoff(propagation, key, _SCALER, live):
            return True
        propagation.record(key.cluster, ClusterStatus.UPDATE_TIMED_OUT, live, "its autoscalers are looked up")
        propagation.has_brief_wait = True
        if self._executor.is_pending(key):
            return True

        async def look(client: Client) -> Outcome:
            try:
                return Outcome(ClusterStatus.OK, message=await find_scaler(client, key))
            except (ApiError, ClusterError) as error:
                return Outcome(ClusterStatus.RETRIEVAL_FAILED, message=f"its autoscalers cannot be listed: {error}")

        future = self._executor.submit(key, look, owner=(propagation.key, key))
        future.add_done_callback(partial(self._record_scaler, propagation, key))
        return True

    def _record_scaler(self, propagation: Propagation, key: MemberKey, future: "asyncio.Future[Outcome]") -> None:
        """Record the answer about autoscalers, and requeue the federated object."""
        if future.cancelled() or future.exception() is not None:
            return
        outcome = future.result()
        if outcome.is_ok:
            self._records.forget_failure(key)
            before = self._records.get(key).scaler_name
            if self._records.record_scaler(key, outcome.message):
                self._drift.report_scaler(propagation.federated, key.cluster, before, outcome.message)
        else:
            status = ClusterStatus.RETRIEVAL_FAILED
            self._records.record_failure(key, status, outcome.message, _SCALER)
        self._enqueue(propagation.key)

    def remove(self, propagation: Propagation, cluster: str, live: Object, removal: Removal) -> None:
        """Delete the member object, or leave it in the member without our label."""
        key = propagation.member_key(cluster)
        uid = live["metadata"].get("uid", "")
        if self.record_backoff(propagation, key, uid, live):
            return
        if removal is Removal.DELETE:
            operation, write = Operation.DELETE, self._writer.remove
        else:
            operation, write = Operation.RELEASE, self._writer.release
        self._start(propagation, key, operation, uid, lambda client: write(client, key, uid), live)

    def confirm_absence(self, propagation: Propagation, cluster: str) -> "asyncio.Future[Outcome]":
        """Query the member for the object, unless its watch has shown the removal.

        The outcome is OK when the object is gone or not ours.
        """
        key = propagation.member_key(cluster)
        if self._executor.is_pending(key):
            # The pending operation may create or delete the object after the member has answered the query.
            return _known(Outcome(ClusterStatus.WAITING_FOR_REMOVAL, message="an operation is under way"))
        if self._records.get(key).is_gone(_final_owner(propagation)):
            return _known(Outcome(ClusterStatus.OK))

        async def confirm(client: Client) -> Outcome:
            return await self._writer.confirm(client, key)

        return self._executor.submit(key, confirm, owner=(propagation.key, key))

    async def look_up_unseen(self, propagation: Propagation) -> AsyncIterator[str]:
        """Query the clusters whose cache is incomplete, and yield those that do not have the object.

        So a new object need not wait for complete lists. A cluster that has the object, or does not answer soon, is
        left for the reconcile that follows its complete list or its late answer. One that is slow or failed lately is
        not asked: the requests that it still answers serve its list.
        """
        asked: dict[asyncio.Future[Outcome], str] = {}
        for cluster in sorted(propagation.unseen):
            if self._records.take_late_absence(propagation.member_key(cluster)) and cluster in propagation.lacking:
                yield cluster
            elif self._executor.is_slow(cluster) or self._clock.monotonic() < self._look_up_from_s.get(cluster, 0.0):
                continue
            elif self._executor.is_full(cluster):
                propagation.recheck(BRIEF_S)
            else:
                asked[self.confirm_absence(propagation, cluster)] = cluster
        deadline_s = self._clock.monotonic() + self._grace_s
        while asked and (remaining_s := deadline_s - self._clock.monotonic()) > 0:
            await self._wait_for_any(asked, remaining_s)
            for answer in [answer for answer in asked if answer.done()]:
                cluster = asked.pop(answer)
                if self._take_answer(propagation, cluster, answer):
                    yield cluster
            for answer in [answer for answer, cluster in asked.items() if self._executor.is_slow(cluster)]:
                self._await_late(propagation, asked.pop(answer), answer)
        for answer, cluster in asked.items():
            self._await_late(propagation, cluster, answer)

    def late_absences(self, propagation: Propagation, clusters: Iterable[str]) -> AbstractSet[str]:
        """Return the clusters that answered that they lack the object, but after the end of the reconcile that asked.

        That reconcile may have published the object as pending there, although it has sent no write.
        """
        return {each for each in clusters if self._records.is_late_absence(propagation.member_key(each))}

    def _take_answer(self, propagation: Propagation, cluster: str, answer: "asyncio.Future[Outcome]") -> bool:
        """Return whether the cluster answered that it lacks the object; a failure pauses further look-ups in it."""
        status = None if answer.cancelled() else answer.result().status
        if status is ClusterStatus.CLIENT_RETRIEVAL_FAILED:
            propagation.recheck(BRIEF_S)  # after a start, the connections follow the clusters
        elif status not in (ClusterStatus.OK, ClusterStatus.WAITING_FOR_REMOVAL, None):
            self._look_up_from_s[cluster] = self._clock.monotonic() + _LOOK_UP_PAUSE_S
        return status is ClusterStatus.OK

    def _await_late(self, propagation: Propagation, cluster: str, answer: "asyncio.Future[Outcome]") -> None:
        """Keep a late answer for a moment, and requeue the federated object, whose operations wait until then."""

        def keep(_: "asyncio.Future[Outcome]") -> None:
            if answer.cancelled():
                return
            if answer.exception() is None and self._take_answer(propagation, cluster, answer):
                self._records.record_late_absence(propagation.member_key(cluster))
            self._enqueue(propagation.key)

        answer.add_done_callback(keep)

    def await_earlier_write(self, propagation: Propagation, cluster: str) -> bool:
        """Return True, and record the wait, while an earlier write may still create an object that is not wanted.

        That is a pending write, or one that got no answer: it may have taken effect, or still do so. The cache of a
        member that does not answer cannot show that, so the member itself is queried.
        """
        key = propagation.member_key(cluster)
        if self._executor.is_pending(key):
            propagation.record(cluster, ClusterStatus.WAITING_FOR_REMOVAL)
            return True
        if not self._records.get(key).is_unconfirmed:
            return False
        if not self.record_backoff(propagation, key, _CONFIRMATION):
            propagation.record(cluster, ClusterStatus.WAITING_FOR_REMOVAL)
            future = self.confirm_absence(propagation, cluster)
            future.add_done_callback(partial(self._record_confirmation, propagation, key))
        return True

    def _record_confirmation(self, propagation: Propagation, key: MemberKey, future: "asyncio.Future[Outcome]") -> None:
        """Record whether the member has the object of an unconfirmed write, and requeue the federated object."""
        if future.cancelled() or future.exception() is not None:
            return
        outcome = future.result()
        if outcome.status is ClusterStatus.OK:
            self._records.record_absence(key)
        elif outcome.object is not None:
            self._records.record_write(key, outcome.object, "", is_subset=True)
        else:
            status = ClusterStatus.RETRIEVAL_FAILED
            self._records.record_failure(key, status, outcome.message, _CONFIRMATION)
        self._enqueue(propagation.key)

    def _start(
        self,
        propagation: Propagation,
        key: MemberKey,
        operation: Operation,
        digest: str,
        action: Action,
        live: Object | None,
    ) -> None:
        propagation.record(key.cluster, PENDING_STATUS[operation], live)
        if self._executor.is_pending(key):
            return
        if operation is Operation.DELETE:
            self._records.record_deleting(key, is_under_way=True)
        future = self._executor.submit(key, action, owner=(propagation.key, key))
        propagation.started.append(StartedOperation(key.cluster, future))
        if future.done():
            # Refused at once. A callback would run only after the reconcile has published its results.
            self._record_result(propagation, key, operation, digest, future)
        else:
            future.add_done_callback(partial(self._record_result, propagation, key, operation, digest))

    def retry(self, owner: Hashable) -> None:
        """Discard the backoff of an operation that an open circuit refused, and requeue its federated object."""
        key, member_key = cast("tuple[Key, MemberKey]", owner)
        self._records.forget_failure(member_key)
        self._enqueue(key)

    def _record_result(
        self,
        propagation: Propagation,
        key: MemberKey,
        operation: Operation,
        digest: str,
        future: "asyncio.Future[Outcome]",
    ) -> None:
        self._records.record_deleting(key, is_under_way=False)
        if future.cancelled():
            return
        if future.exception() is None:
            outcome = future.result()
            if outcome.is_ok:
                self._record_success(propagation, key, operation, digest, outcome)
            else:
                self._record_failure(propagation, key, operation, digest, outcome)
        if propagation.has_ended:
            self._enqueue(propagation.key)

    def _record_success(
        self, propagation: Propagation, key: MemberKey, operation: Operation, digest: str, outcome: Outcome
    ) -> None:
        if operation in (Operation.CREATE, Operation.UPDATE) and outcome.object is not None:
            self._records.record_write(key, outcome.object, digest, is_subset=outcome.is_complete)
            self._compare_with_cache(propagation, key, outcome.object)
            self._records.record_content(key, digest)
            if outcome.correction is not None:
                self._drift.record(propagation.federated, key, outcome.correction)
        else:
            self._records.record_deletion(key, digest, _final_owner(propagation))
        propagation.resources_updated = True
        if outcome.status is ClusterStatus.OK:
            propagation.record_written(key.cluster, outcome.object)
        else:
            propagation.record(key.cluster, outcome.status, outcome.object)

    def _compare_with_cache(self, propagation: Propagation, key: MemberKey, written: Object) -> None:
        """Handle a watch event that came before the answer to our write."""
        cached = self._members.get_cached(key.cluster, key.resource, key.namespace, key.name)
        if revision_of(cached) > revision_of(written):
            # Somebody wrote right after us. The event was taken for our own write because ours was still pending.
            self._enqueue(propagation.key)
        informer = self._members.informer(key.cluster, key.resource)
        if informer is not None and informer.has_seen(str(written["metadata"].get("resourceVersion", ""))):
            self._records.record_shown(key, revision_of(written))

    def _record_failure(
        self, propagation: Propagation, key: MemberKey, operation: Operation, digest: str, outcome: Outcome
    ) -> None:
        if outcome.is_unanswered and operation in (Operation.CREATE, Operation.UPDATE):
            self._records.record_unanswered_write(key)
        status = TIMED_OUT_STATUS[operation] if outcome.is_unanswered else outcome.status
        failure = self._records.record_failure(
            key, status, outcome.message, digest, retry_after_s=outcome.retry_after_s
        )
        propagation.record(key.cluster, failure.status, outcome.object, failure.message)
        propagation.recheck(max(failure.retry_at_s - self._clock.monotonic(), 0.0))
        if outcome.is_unanswered and (failure.count > 1 or self._executor.is_slow(key.cluster)):
            # A silent cluster affects all of its objects. Their conditions name it already; an Event for each would
            # cost the host more writes than the objects of all other clusters together.
            return
        reason = names.EVENT_OPERATION_IN_CLUSTER_FAILED.format(operation=operation.value)
        self._recorder.event(propagation.federated, WARNING, reason, _event_text(operation, key, failure.message))

    async def wait(self, propagation: Propagation) -> None:
        """Wait for the started operations, but neither for slow members nor longer than the grace period."""
        deadline_s = self._clock.monotonic() + self._grace_s
        while (remaining_s := deadline_s - self._clock.monotonic()) > 0:
            awaited = [
                started.future
                for started in propagation.started
                if not started.future.done() and not self._executor.is_slow(started.cluster)
            ]
            if not awaited:
                break
            await self._wait_for_any([asyncio.gather(*awaited, return_exceptions=True)], remaining_s)
        propagation.has_ended = True
        for started in propagation.started:
            if started.future.done() and not started.future.cancelled() and (error := started.future.exception()):
                raise error

    async def _wait_for_any(self, awaited: Iterable["asyncio.Future[Any]"], remaining_s: float) -> None:
        """Wait until one of them ends, the time is up, or the next check for slow members is due."""
        timer = asyncio.ensure_future(self._clock.sleep(min(remaining_s, _SLOW_CHECK_INTERVAL_S)))
        try:
            await asyncio.wait([*awaited, timer], return_when=asyncio.FIRST_COMPLETED)
        finally:
            timer.cancel()


def _final_owner(propagation: Propagation) -> str:
    """Return the uid of a federated object that is being deleted, "" for one that may be written again."""
    metadata = propagation.federated["metadata"]
    return str(metadata.get("uid", "")) if metadata.get("deletionTimestamp") else ""


def _known(outcome: Outcome) -> "asyncio.Future[Outcome]":
    future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
    future.set_result(outcome)
    return future


def _event_text(operation: Operation, key: MemberKey, message: str) -> str:
    resource = key.resource
    kind = "/".join(part for part in (resource.group, resource.version, resource.plural) if part)
    return f'{operation.value} {kind} "{key.name}" in cluster "{key.cluster}": {message}'
