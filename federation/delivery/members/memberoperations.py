"""Operations on member objects: start them, wait for fast members, record their results.

The executor runs operations per cluster. `wait` waits for fast members only: the result of an operation that ends later
goes to the record of the member object, and the federated object is requeued. No reconcile waits for a slow member.
`rules/decide.py` decides which operations to start.
"""

import asyncio
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple, cast

from federation.apimachinery.clock import Clock
from federation.apimachinery.objectshape import revision_of
from federation.apimachinery.resources import Object
from federation.delivery.members.clusters import recorded_clusters
from federation.delivery.members.depot import Depot
from federation.delivery.members.driftreports import DriftReports
from federation.delivery.members.executor import Action
from federation.delivery.members.operations import Outcome
from federation.delivery.members.propagation import Aim, Propagation, StartedOperation
from federation.delivery.rules import names
from federation.delivery.rules.decision import Decision
from federation.delivery.rules.evidence import evidence_of
from federation.delivery.rules.memberchange import matters
from federation.delivery.rules.memberrecord import MemberKey
from federation.delivery.rules.plan import TIMED_OUT_STATUS, Operation, Removal, decide_removal, removal_attempt
from federation.delivery.rules.status import ClusterStatus
from federation.guard.suspensions import Suspensions
from federation.planning.federatedobject.placements import effective_placement
from federation.planning.leftovers.evidence import Evidence
from federation.runtime.controller import Key
from federation.runtime.events import WARNING

_SLOW_CHECK_INTERVAL_S = 0.1
"""How often waits check whether a member has become slow."""


class _Attempt(NamedTuple):
    """The aim of an operation: the hash of the content or the uid of the object, the text of failures, the revision."""

    operation: Operation
    digest: str
    text: str
    revision: int


class MemberOperations:
    """Starts operations and records their results. `enqueue` requeues a federated object."""

    def __init__(self, depot: Depot, drift: DriftReports, suspensions: Suspensions) -> None:
        self._objects = depot.host.objects
        self._suspensions = suspensions
        self._clusters = depot.clusters
        self._members = depot.host.members
        self._executor = depot.executor
        self._writer = depot.writer
        self._records = depot.records
        self._drift = drift
        self._recorder = depot.host.recorder
        self._clock = depot.host.clock
        self._grace_s = depot.grace_s
        self._enqueue = depot.enqueue

    def start(self, propagation: Propagation, cluster: str, decision: Decision, live: Object | None) -> None:
        """Start the operation of a decision."""
        key, operation = propagation.aim.subject.member_key(cluster), decision.operation
        assert operation is not None
        digest, action = self._action(propagation, key, decision, live)
        text = decision.write.attempt if decision.write is not None else removal_attempt(digest, operation)
        attempt = _Attempt(operation, digest, text, revision_of(live))
        if operation is Operation.DELETE:
            self._records.record_deleting(key, is_under_way=True)
        future = self._executor.submit(key, action, owner=(propagation.aim.key, key))
        started = StartedOperation(cluster, future)
        propagation.started.append(started)
        record = partial(self._record_result, propagation, started, key, attempt)
        if future.done():
            # Refused at once. A callback would run only after the reconcile has published its results.
            record(future)
        else:
            future.add_done_callback(record)

    def _action(
        self, propagation: Propagation, key: MemberKey, decision: Decision, live: Object | None
    ) -> tuple[str, Action]:
        """Return what to run, and what it is for: the hash of the content, or the uid of the object to be removed."""
        if decision.write is not None:
            return decision.write.desired.hash, partial(self._writer.ensure, write=decision.write)
        uid = str((live or {}).get("metadata", {}).get("uid", ""))
        if decision.operation is Operation.DELETE:
            find = partial(self._find_evidence, propagation.aim, key.cluster, live)
            return uid, partial(
                self._writer.remove, key=key, uid=uid, is_foreground=decision.is_foreground, find_evidence=find
            )
        return uid, partial(self._writer.release, key=key, uid=uid)

    def _find_evidence(self, aim: Aim, cluster: str, live: Object | None) -> Evidence | None:
        """Return the evidence that the copy has to go; it may be placed or suspended while the operation waits."""
        federated, state = self._objects.get(aim.key) or aim.subject.federated, self._clusters.get(cluster)
        template = federated["spec"]["template"]
        if self._suspensions.find(template, aim.key.namespace, cluster, only_cluster_wide=True) is not None:
            return None
        metadata = federated["metadata"]
        if not metadata.get("deletionTimestamp"):
            if aim.is_deleted:
                return evidence_of(aim.subject.federated, state, is_recorded=True)
            if cluster in effective_placement(federated):
                return None
            return evidence_of(federated, state, is_recorded=cluster in recorded_clusters(federated) | aim.recorded)
        held = (live or {}).get("metadata", {}).get("annotations") or {}
        removal = Removal.DELETE if live is None else decide_removal(metadata.get("annotations") or {}, held)
        return evidence_of(federated, state, is_recorded=True) if removal is Removal.DELETE else None

    def retry(self, owner: Hashable) -> None:
        """Discard the backoff of an operation that an open circuit refused, and requeue its federated object."""
        key, member_key = cast("tuple[Key, MemberKey]", owner)
        self._records.record_retry(member_key)
        self._enqueue(key)

    def _record_result(
        self,
        propagation: Propagation,
        started: StartedOperation,
        key: MemberKey,
        attempt: "_Attempt",
        future: "asyncio.Future[Outcome]",
    ) -> None:
        started.is_recorded = True
        self._records.record_deleting(key, is_under_way=False)
        if future.cancelled():
            return
        if future.exception() is None:
            outcome = future.result()
            if outcome.is_withdrawn:
                self._enqueue(propagation.aim.key)
                return
            if outcome.is_ok:
                self._record_success(propagation, key, attempt.operation, attempt.digest, outcome)
            else:
                self._record_failure(propagation, key, attempt, outcome)
        if propagation.has_ended:
            self._enqueue(propagation.aim.key)

    def _record_success(
        self, propagation: Propagation, key: MemberKey, operation: Operation, digest: str, outcome: Outcome
    ) -> None:
        if operation in (Operation.CREATE, Operation.UPDATE) and outcome.object is not None:
            self._records.record_write(key, outcome.object, digest, is_subset=outcome.is_complete)
            self._records.record_content(key, digest)
            self._compare_with_cache(propagation, key, outcome.object)
            if outcome.correction is not None:
                self._drift.record(propagation.federated, key, outcome.correction)
        else:
            self._records.record_deletion(key, digest, propagation.aim.owner)
        propagation.has_written = True
        if outcome.status is ClusterStatus.OK:
            propagation.record_written(key.cluster, outcome.object)
        else:
            propagation.record(key.cluster, outcome.status, outcome.object)

    def _compare_with_cache(self, propagation: Propagation, key: MemberKey, written: Object) -> None:
        """Handle watch events that came before the answer to our write: all were taken for our own write.

        Usually a controller of the member has written the status in between, which changes nothing for sync.
        """
        cached = self._members.get_cached(key.cluster, key.resource, key.namespace, key.name)
        if cached is not None and revision_of(cached) > revision_of(written) and matters(key.resource, written, cached):
            self._enqueue(propagation.aim.key)
        informer = self._members.informer(key.cluster, key.resource)
        if informer is not None and informer.has_seen(str(written["metadata"].get("resourceVersion", ""))):
            self._records.record_shown(key, cached)

    def _record_failure(self, propagation: Propagation, key: MemberKey, attempt: "_Attempt", outcome: Outcome) -> None:
        operation = attempt.operation
        if outcome.is_unanswered and operation in (Operation.CREATE, Operation.UPDATE):
            self._records.record_unanswered_write(key)
        status = TIMED_OUT_STATUS[operation] if outcome.is_unanswered else outcome.status
        failure = self._records.record_failure(
            key, status, outcome.message, attempt.text, retry_after_s=outcome.retry_after_s
        )
        propagation.record(key.cluster, failure.status, outcome.object, failure.message)
        propagation.recheck(max(failure.retry_at_s - self._clock.monotonic(), 0.0))
        if revision_of(self._members.get_cached(*key)) > attempt.revision:
            # The object has changed meanwhile, perhaps by this operation: an error can come after its effect.
            self._enqueue(propagation.aim.key)
        if outcome.is_unanswered and (failure.count > 1 or self._executor.is_slow(key.cluster)):
            # A silent cluster affects all of its objects. Their conditions name it already; an Event for each would
            # cost the host more writes than the objects of all other clusters together.
            return
        reason = names.EVENT_OPERATION_IN_CLUSTER_FAILED.format(operation=operation.value)
        self._recorder.event(propagation.federated, WARNING, reason, _event_text(operation, key, failure.message))

    async def wait(self, propagation: Propagation) -> None:
        """Wait for the started operations, but neither for slow members nor longer than the grace period."""
        await wait_for_results(self._clock, propagation.started, self._executor.is_slow, self._grace_s)
        propagation.has_ended = True
        for started in propagation.started:
            if started.future.done() and not started.future.cancelled() and (error := started.future.exception()):
                raise error


async def wait_for_results(
    clock: Clock, started: Sequence[StartedOperation], is_slow: Callable[[str], bool], grace_s: float
) -> None:
    """Wait until the results of operations in fast members are recorded, no longer than the grace period.

    A future that is done is not enough: the reconcile would publish without its result, and be repeated for it.
    """
    deadline_s = clock.monotonic() + grace_s
    while (remaining_s := deadline_s - clock.monotonic()) > 0:
        awaited = [each.future for each in started if not each.is_recorded and not is_slow(each.cluster)]
        if not awaited:
            return
        await wait_for_any(clock, [asyncio.gather(*awaited, return_exceptions=True)], remaining_s)


async def wait_for_any(clock: Clock, awaited: Iterable["asyncio.Future[Any]"], remaining_s: float) -> None:
    """Wait until one of them ends, the time is up, or the next check for slow members is due."""
    timer = asyncio.ensure_future(clock.sleep(min(remaining_s, _SLOW_CHECK_INTERVAL_S)))
    try:
        await asyncio.wait([*awaited, timer], return_when=asyncio.FIRST_COMPLETED)
    finally:
        timer.cancel()


def _event_text(operation: Operation, key: MemberKey, message: str) -> str:
    resource = key.resource
    kind = "/".join(part for part in (resource.group, resource.version, resource.plural) if part)
    return f'{operation.value} {kind} "{key.name}" in cluster "{key.cluster}": {message}'
