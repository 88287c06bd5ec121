"""A round: decide, write the annotations of admitted and evicted objects, and publish what waits.

Every write is one annotation of one federated object, so a crash at any line loses nothing: what was not written is
decided again. An object that was admitted holds its quota from the decision on. A write whose answer is lost is written
again, and nothing else is decided about its object until then.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import structlog
from prometheus_client import Counter, Gauge, Histogram

from federation.api import names
from federation.api.resources import CLUSTER_JOB_QUEUES, JOB_QUEUES
from federation.apimachinery.errors import Conflict, FederationError, NotFound, forget_frames, is_refusal
from federation.apimachinery.objectshape import revision_of
from federation.apimachinery.quantity import parse
from federation.apimachinery.resources import Object, Resource
from federation.features.queues.names import EVENT_ADMITTED, EVENT_EVICTED
from federation.features.queues.queueevents import Observer
from federation.features.queues.rules.facts import Admitted, Decisions
from federation.features.queues.rules.faults import JobFailed
from federation.features.queues.rules.queuestate import QueueState
from federation.features.queues.rules.queuestatus import QueueStatuses, compute_statuses
from federation.features.queues.rules.records import Record
from federation.runtime.controller import DONE, Result
from federation.runtime.events import NORMAL, WARNING
from federation.runtime.host import Host
from federation.scheduling.jobqueues import Phase

_log = structlog.get_logger(__name__)

WRITER = "queues"
_WRITES = 16
"""Writes at the same time."""
_STATUS_S = 1.0
"""Least time between two statuses of the queues."""
_CONTINUE_S = 0.5
"""Pause after a call that has set as many jobs aside as it may."""
_ROUND_S = 30.0
"""A round takes place at least so often while anything waits: retries and backoffs end by time alone."""

_pending = Gauge("federation_queue_pending_jobs", "Jobs that wait in a ClusterJobQueue", ["queue"])
_admitted = Gauge("federation_queue_admitted_jobs", "Admitted jobs of a ClusterJobQueue that have not ended", ["queue"])
_oldest = Gauge(
    "federation_queue_oldest_wait_seconds",
    "Time since the creation of the oldest job that waits for quota, room or its turn",
    ["queue"],
)
_used = Gauge(
    "federation_queue_used_ratio",
    "The part of a ClusterJobQueue's own quota that its jobs use; above 1 it borrows",
    ["queue", "flavor", "resource"],
)
_waits = Histogram(
    "federation_queue_wait_seconds",
    "Time from the creation of a job to its admission",
    ["queue"],
    buckets=(1, 10, 60, 300, 900, 3600, 4 * 3600, 24 * 3600, 7 * 24 * 3600),
)
_faults = Counter("federation_queue_faults_total", "Errors for which a job was set aside")
_evictions = Counter("federation_queue_evictions_total", "Running jobs that gave way to others", ["queue"])


class Reconciler:
    """Runs the rounds."""

    def __init__(self, host: Host, state: QueueState, observer: Observer, ask: Callable[[str, Admitted], None]) -> None:
        self._host = host
        self._ask = ask
        self._objects = host.objects
        self._clock = host.clock
        self._state = state
        self._observer = observer
        self._status_at_s = float("-inf")
        self._writing = asyncio.Semaphore(_WRITES)
        self._measured: set[tuple[Gauge, tuple[str, ...]]] = set()
        """The gauges of queues, by labels."""

    async def reconcile(self, _: str) -> Result:
        """Run a round."""
        state = self._state
        if not state.job_queues and not state.queues and not state.entries:
            self._measure(QueueStatuses({}, {}, {}))
            return DONE
        now = self._clock.now().timestamp()
        try:
            decisions = state.decide(now)
        except JobFailed:
            self._log_faults()
            return Result(_CONTINUE_S)  # without a back-off: each call sets further jobs aside
        for key, admitted in decisions.admitted.items():
            if state.must_ask(key, now):
                self._ask(key, admitted)
        async with asyncio.TaskGroup() as tasks:
            for key, record in state.records(decisions, self._clock.now()).items():
                tasks.create_task(self._carry_out(key, record))
        self._log_faults()
        wait_s = self._status_at_s + _STATUS_S - self._clock.monotonic()
        if wait_s > 0:
            return Result(wait_s)
        self._status_at_s = self._clock.monotonic()
        await self._publish(decisions, now)
        return Result(_ROUND_S) if decisions.waits or decisions.admitted or state.has_unstarted else DONE

    async def _carry_out(self, key: str, record: Record) -> None:
        """Write what is decided about one job. An error sets it aside, unless a new try of all can help."""
        try:
            await self._write(key, record)
        except Exception as error:
            if isinstance(error, FederationError) and error.retryable:
                raise
            self._state.record_fault(key, error)

    def _log_faults(self) -> None:
        for fault in self._state.faults.take_new():
            _faults.inc()
            _log.error("a job was set aside", job=fault.key, exc_info=fault.error)
            forget_frames(fault.error)

    async def _write(self, key: str, record: Record) -> None:
        """Write the annotations; if the object changed meanwhile, its event starts another round."""
        name = self._observer.key_of(key)
        async with self._writing:
            federated = self._objects.get(name)
            if federated is None:
                return
            self._state.assume(key, record, revision_of(federated))
            try:
                body = {"metadata": {"annotations": record.annotations}}
                written = await self._objects.patch(name, federated, body, writer=WRITER)
            except (Conflict, NotFound):
                return
            except Exception as failure:
                if is_refusal(failure):  # without an answer, the next version of the object shows what was written
                    self._state.revoke(key)
                raise
        if written is not None:
            self._report(key, record, written)
            self._observer.observe(written)

    def _report(self, key: str, record: Record, written: Object) -> None:
        entry = self._state.entries.get(key)
        if not record.event or entry is None or (queue := self._state.queue_of(entry)) is None:
            return
        if record.admission.phase is Phase.ADMITTED:
            self._host.recorder.event(written, NORMAL, EVENT_ADMITTED, record.event)
            _waits.labels(queue.queue.name).observe(max(0.0, self._clock.now().timestamp() - entry.created_s))
        else:
            self._host.recorder.event(written, WARNING, EVENT_EVICTED, record.event)
            _evictions.labels(queue.queue.name).inc()

    # -- what users see

    async def _publish(self, decisions: Decisions, now: float) -> None:
        statuses = compute_statuses(self._state, decisions, now)
        self._measure(statuses)
        for name, status in statuses.cluster_queues.items():
            await self._set_status(CLUSTER_JOB_QUEUES, "", name, status)
        for (namespace, name), status in statuses.job_queues.items():
            await self._set_status(JOB_QUEUES, namespace, name, status)

    def _measure(self, statuses: QueueStatuses) -> None:
        """Set the gauges. Those of queues that are gone are removed: an alert would never end."""
        measured: set[tuple[Gauge, tuple[str, ...]]] = set()
        for name, status in statuses.cluster_queues.items():
            counts = {_pending: status["pending"], _admitted: status["admitted"], _oldest: statuses.oldest_s[name]}
            for gauge, value in counts.items():
                gauge.labels(name).set(value)
                measured.add((gauge, (name,)))
            for line in status.get("usage") or ():
                labels = (name, line["flavor"], line["resource"])
                quota = parse(line["nominalQuota"]).nanos
                _used.labels(*labels).set(parse(line["used"]).nanos / quota if quota else 0.0)
                measured.add((_used, labels))
        for gauge, gone in self._measured - measured:
            gauge.remove(*gone)
        self._measured = measured

    async def _set_status(self, resource: Resource, namespace: str, name: str, status: Mapping[str, Any]) -> None:
        present = self._observer.present(resource, namespace, name)
        if present is None or present.get("status") == status:
            return
        cleared = {field: None for field in present.get("status") or {} if field not in status}
        try:
            await self._host.client.patch(
                resource,
                name,
                {"status": {**cleared, **status}},
                namespace=namespace,
                subresource="status",
                field_manager=names.FIELD_MANAGER,
            )
        except NotFound:
            return
