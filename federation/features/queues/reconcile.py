"""A round: decide, write the annotations of admitted and evicted objects, and publish what waits.

Every write is one annotation of one federated object, so a crash at any line loses nothing: what was not written is
decided again. An object that was admitted holds its quota from the moment of the write on.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC
from typing import Any

import structlog
from msgspec import structs
from prometheus_client import Counter, Gauge, Histogram

from federation.api import names
from federation.api.resources import CLUSTER_JOB_QUEUES, JOB_QUEUES
from federation.apimachinery.errors import Conflict, FederationError, NotFound, forget_frames
from federation.apimachinery.quantity import parse
from federation.apimachinery.resources import Object, Resource
from federation.features.queues.ledgerevents import Observer
from federation.features.queues.names import EVENT_ADMITTED, EVENT_EVICTED
from federation.features.queues.rules.facts import Admitted, Amounts, Decisions, Eviction
from federation.features.queues.rules.faults import JobFailed
from federation.features.queues.rules.queueledger import Ledger
from federation.features.queues.rules.queuestatus import QueueStatuses, compute_statuses
from federation.planning.rendering.admittednodes import QUEUE_NODES
from federation.planning.rendering.names import QUEUE_RELEASED
from federation.runtime.controller import DONE, Result
from federation.runtime.events import NORMAL, WARNING
from federation.runtime.host import Host
from federation.scheduling.deadlines import Alternative
from federation.scheduling.jobqueues import ADMISSION, Admission, Phase

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

    def __init__(self, host: Host, ledger: Ledger, observer: Observer, ask: Callable[[str, Admitted], None]) -> None:
        self._host = host
        self._ask = ask
        self._objects = host.objects
        self._clock = host.clock
        self._ledger = ledger
        self._observer = observer
        self._status_at_s = float("-inf")
        self._writing = asyncio.Semaphore(_WRITES)
        self._measured: set[tuple[Gauge, tuple[str, ...]]] = set()
        """The gauges of queues, by labels."""

    async def reconcile(self, _: str) -> Result:
        """Run a round."""
        ledger = self._ledger
        if not ledger.job_queues and not ledger.queues and not ledger.entries:
            self._measure(QueueStatuses({}, {}, {}))
            return DONE
        now = self._clock.now().timestamp()
        try:
            decisions = ledger.decide(now)
        except JobFailed:
            self._log_faults()
            return Result(_CONTINUE_S)  # without a back-off: each call sets further jobs aside
        async with asyncio.TaskGroup() as tasks:
            for key, admitted in decisions.admitted.items():
                if ledger.must_ask(key, now):
                    self._ask(key, admitted)
                else:
                    alternatives = decisions.alternatives.get(key, ())
                    tasks.create_task(self._carry_out(key, self._admit(key, admitted, alternatives)))
            for key, eviction in decisions.evicted.items():
                tasks.create_task(self._carry_out(key, self._evict(key, eviction)))
            for key, holds in ledger.given_up().items():
                tasks.create_task(self._carry_out(key, self._return(key, holds)))
            for key, is_left in ledger.releases().items():
                tasks.create_task(self._carry_out(key, self._release(key, is_left=is_left)))
        self._log_faults()
        wait_s = self._status_at_s + _STATUS_S - self._clock.monotonic()
        if wait_s > 0:
            return Result(wait_s)
        self._status_at_s = self._clock.monotonic()
        await self._publish(decisions, now)
        return Result(_ROUND_S) if decisions.waits or decisions.admitted else DONE

    async def _carry_out(self, key: str, step: Awaitable[None]) -> None:
        """Await what is written about one job. An error sets the job aside, unless a new try of all can help."""
        try:
            await step
        except Exception as error:
            if isinstance(error, FederationError) and error.retryable:
                raise
            self._ledger.record_fault(key, error)

    def _log_faults(self) -> None:
        for fault in self._ledger.faults.take_new():
            _faults.inc()
            _log.error("a job was set aside", job=fault.key, exc_info=fault.error)
            forget_frames(fault.error)

    async def _admit(self, key: str, admitted: Admitted, alternatives: Sequence[Alternative]) -> None:
        entry = self._ledger.entries[key]
        queue = self._ledger.queue_of(entry)
        before, holds = entry.admission, _by_flavor(admitted.holds)
        admission = Admission(
            Phase.ADMITTED,
            entry.queue,
            self._clock.now().astimezone(UTC).replace(microsecond=0),
            holds=holds,
            clusters=sorted(admitted.clusters),
            refusals=before.refusals if before is not None else 0,
            losses=before.losses if before is not None else 0,
            alternatives=list(alternatives),
            pays=queue.queue.name if queue is not None else "",
            ended=entry.ended,
        )
        released = entry.is_suspended and (before is None or entry.released is not False)
        more = {**QUEUE_NODES.entry(list(admitted.nodes)), QUEUE_RELEASED: _text(is_left=released)}
        federated = await self._write(key, admission, more)
        if federated is not None and queue is not None:
            self._host.recorder.event(
                federated, NORMAL, EVENT_ADMITTED, f"JobQueue {entry.queue} admitted it, flavors {', '.join(holds)}"
            )
            _waits.labels(queue.queue.name).observe(max(0.0, self._clock.now().timestamp() - entry.created_s))

    async def _evict(self, key: str, eviction: Eviction) -> None:
        entry = self._ledger.entries[key]
        before = entry.admission
        if before is None:
            return
        now = self._clock.now()
        admission = Admission(
            Phase.EVICTED,
            before.queue,
            now.astimezone(UTC).replace(microsecond=0),
            holds=before.holds,
            because=eviction.because,
            losses=before.losses,
            pays=before.pays,
        )
        federated, queue = await self._write(key, admission), self._ledger.queue_of(entry)
        if federated is not None and queue is not None:
            self._ledger.record_eviction(queue.queue.name, now.timestamp())
            self._host.recorder.event(federated, WARNING, EVENT_EVICTED, eviction.because)
            _evictions.labels(queue.queue.name).inc()

    async def _return(self, key: str, holds: Amounts) -> None:
        """Write what is left to a job that has given up a part of what it held."""
        if (before := self._ledger.entries[key].admission) is not None:
            await self._write(key, structs.replace(before, holds=_by_flavor(holds)))

    async def _release(self, key: str, *, is_left: bool) -> None:
        """Write whether the suspension of an admitted job is left to the queue: only what it had from the start."""
        if (before := self._ledger.entries[key].admission) is not None:
            await self._write(key, before, {QUEUE_RELEASED: _text(is_left=is_left)})

    async def _write(
        self, key: str, admission: Admission, more: Mapping[str, str | None] | None = None
    ) -> Object | None:
        """Write the annotation; return the object, None if it changed meanwhile: then its event starts a round."""
        name = self._observer.key_of(key)
        async with self._writing:
            federated = self._objects.get(name)
            if federated is None:
                return None
            annotations = {**ADMISSION.entry(admission), **(more or {})}
            try:
                written = await self._objects.patch(
                    name, federated, {"metadata": {"annotations": annotations}}, writer=WRITER
                )
            except (Conflict, NotFound):
                return None
        if written is not None:
            self._observer.observe(written)
        return written

    # -- what users see

    async def _publish(self, decisions: Decisions, now: float) -> None:
        statuses = compute_statuses(self._ledger, decisions, now)
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


def _by_flavor(amounts: Amounts) -> dict[str, dict[str, int]]:
    holds: dict[str, dict[str, int]] = {}
    for (flavor, resource), amount in amounts.items():
        holds.setdefault(flavor, {})[resource] = amount
    return holds


def _text(*, is_left: bool) -> str:
    return "true" if is_left else "false"
