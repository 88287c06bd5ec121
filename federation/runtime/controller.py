"""The reconcile loop: the one place that owns retry, back-off, deadlines, outcome metrics and the line in the log.

A controller is a queue, some workers and a function `reconcile(key) -> Result`. The outcome decides the retry: a
conflict is retried soon and silently, a retryable error backs off, any other error is logged with its trace and backs
off too. Constructors start nothing; `run()` runs until cancelled.
"""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable, Hashable, Iterable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, Generic, NamedTuple, TypeVar

import structlog
from prometheus_client import Counter, Gauge, Histogram

from federation.apimachinery.clock import Clock, SystemClock
from federation.apimachinery.errors import AlreadyExists, ApiError, Conflict, FederationError
from federation.apimachinery.metrics import LATENCY_BUCKETS_S, show
from federation.runtime.indexer import cache_key
from federation.runtime.replay import priority_offset
from federation.runtime.timeslice import TimeSlice, replay_slice
from federation.runtime.workqueue import Jitter, QueueOptions, WorkQueue

_log = structlog.get_logger(__name__)

_outcomes = Counter("federation_runtime_reconciles_total", "Reconciles by how they ended", ["controller", "outcome"])
_durations = Histogram(
    "federation_runtime_reconcile_seconds", "Time of one reconcile", ["controller"], buckets=LATENCY_BUCKETS_S
)
_active = Gauge("federation_runtime_workers_active", "Workers that run a reconcile now", ["controller"])

_REPLAYING_MAX = 16
"""Workers of one controller that also take keys of a replay."""
_ROUNDING_S = 1e-6
"""Sums of floats may miss a deadline by their last digit."""
OUTCOMES = ("done", "requeued", "conflict", "retryable", "failed", "timeout")


class Key(NamedTuple):
    """The usual request of a controller: an object by namespace ("" for cluster-scoped ones) and name."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a successful reconcile. `requeue_after_s` requeues the key after that time."""

    requeue_after_s: float | None = None


DONE = Result()


def key_of(obj: dict[str, Any]) -> Key:
    """Return the key of an object, with the strings that the keys of caches have."""
    return Key(*cache_key(obj))


@dataclass(frozen=True, slots=True)
class ControllerOptions:
    """Limits of one controller."""

    reconcile_timeout_s: float = 30.0
    """Deadline of a reconcile; then it is cancelled and counts as a failure."""
    conflict_backoff_s_max: float = 1.0
    """Longest back-off after a conflict: a new read resolves it."""
    slice_s: float = 0.005
    """The time of all workers together in one iteration of the event loop. A reconcile that has begun is not cut."""
    slice_keys_max: int = 64
    """The same, counted in reconciles."""
    queue: QueueOptions = field(default_factory=QueueOptions)


class _Worker:
    """The current reconcile of one worker, for the deadline watcher."""

    __slots__ = ("is_expired", "is_urgent", "started_s", "task")

    def __init__(self, *, is_urgent: bool) -> None:
        self.is_urgent = is_urgent
        """Whether it does not take keys of a replay, so that a change of a user finds a worker at once."""
        self.task: asyncio.Task[Any] | None = None
        self.started_s: float | None = None
        self.is_expired = False


class Controller(Generic[K]):
    """Runs `reconcile` for queued keys with `workers` tasks at a time, never twice at once for the same key.

    `resync` returns every existing key; it is called after the queue refused keys, so that none is lost.
    `priority_of` returns the priority of a key that its own reconcile requeues. With `ends_delays` a reconcile replaces
    the delayed requests of its key: for a `reconcile` that always returns when the key is due next.
    """

    def __init__(
        self,
        name: str,
        reconcile: Callable[[K], Awaitable[Result]],
        *,
        workers: int = 4,
        clock: Clock | None = None,
        options: ControllerOptions | None = None,
        jitter: Jitter = random.random,
        resync: Callable[[], Iterable[K]] | None = None,
        priority_of: Callable[[K], int] | None = None,
        ends_delays: bool = False,
    ) -> None:
        self.name = name
        self._priority_of = priority_of or (lambda _: 0)
        self._reconcile = reconcile
        self._clock = clock or SystemClock()
        self._options = options or ControllerOptions()
        self._resync = resync
        self.queue: WorkQueue[K] = WorkQueue(
            name, clock=self._clock, options=self._options.queue, jitter=jitter, ends_delays=ends_delays
        )
        replaying = max(1, min(_REPLAYING_MAX, workers // 2))
        self._workers = [_Worker(is_urgent=number >= replaying) for number in range(workers)]
        self._slice = TimeSlice(self._options.slice_s, self._options.slice_keys_max)
        self._busy = asyncio.Event()
        self._log: Any = _log
        self._counts = {outcome: _outcomes.labels(name, outcome) for outcome in OUTCOMES}
        self._durations = _durations.labels(name)
        show(_active.labels(name), self, attrgetter("active"))

    @property
    def active(self) -> int:
        """The number of running reconciles."""
        return sum(worker.started_s is not None for worker in self._workers)

    def enqueue(self, key: K, *, after_s: float = 0.0, priority: int = 0, postpones: bool = False) -> None:
        """Queue the key now, or in `after_s` seconds; behind all others while existing objects are replayed.

        With `postpones` that time replaces an earlier one.
        """
        priority += priority_offset()
        if after_s > 0:
            self.queue.add_after(key, after_s, priority, postpones=postpones)
        else:
            self.queue.add(key, priority)

    def share_time(self, time_slice: TimeSlice) -> None:
        """Take the time for each iteration of the event loop from this slice, which others may take from, too."""
        self._slice = time_slice

    async def wait_idle(self) -> None:
        """Wait until no key is queued or running; delayed keys do not count."""
        await self.queue.wait_idle()

    async def run(self) -> None:
        """Run until cancelled."""
        self._log = _log.bind(controller=self.name)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.queue.run(), name=f"{self.name}-timers")
                group.create_task(self._watch_deadlines(), name=f"{self.name}-deadlines")
                for number, worker in enumerate(self._workers):
                    group.create_task(self._work(worker), name=f"{self.name}-{number}")
        finally:
            for worker in self._workers:
                worker.task = None  # its traceback refers to the worker

    async def _work(self, worker: _Worker) -> None:
        worker.task = asyncio.current_task()
        queue, monotonic, replays = self.queue, self._clock.monotonic, replay_slice()
        while True:
            await queue.wait_ready(is_urgent=worker.is_urgent)
            is_replayed = not worker.is_urgent and queue.prefers_replayed()
            time_slice = replays if is_replayed else self._slice
            if not time_slice.take(monotonic()):
                await time_slice.wait()
                continue
            key = queue.pop(replayed=is_replayed)
            worker.started_s, worker.is_expired = monotonic(), False
            if not self._busy.is_set():
                self._busy.set()
            try:
                await self._run_one(worker, key)
            finally:
                worker.started_s = None
                queue.done(key)
            if queue.overflowed and queue.is_idle and self._resync is not None:
                queue.overflowed = False
                for every in self._resync():
                    queue.add(every, self._priority_of(every))

    async def _run_one(self, worker: _Worker, key: K) -> None:
        started_s = self._clock.monotonic()
        try:
            result = await self._reconcile(key)
        except asyncio.CancelledError:
            if not worker.is_expired or worker.task is None or worker.task.uncancel() > 0:
                raise
            delay_s = self.queue.add_rate_limited(key, priority=self._priority_of(key))
            outcome, error = "timeout", f"took longer than {self._options.reconcile_timeout_s:g} s"
        except Exception as failure:  # noqa: BLE001  # one of the two places that may: logs, counts, decides
            outcome, delay_s = self._fail(key, failure)
            error = "" if outcome == "failed" else str(failure)
        else:
            self._succeed(key, result, started_s)
            return
        self._counts[outcome].inc()
        self._durations.observe(self._clock.monotonic() - started_s)
        if error:
            log = self._log.debug if outcome == "conflict" else self._log.info
            log("reconcile failed", key=str(key), outcome=outcome, error=error, retry_in_s=round(delay_s, 3))

    def _succeed(self, key: K, result: Result, started_s: float) -> None:
        self.queue.forget(key)
        outcome = "done"
        if result.requeue_after_s is not None:
            outcome = "requeued"
            self.queue.add_after(key, result.requeue_after_s, self._priority_of(key))
        duration_s = self._clock.monotonic() - started_s
        self._counts[outcome].inc()
        self._durations.observe(duration_s)
        self._log.debug("reconciled", key=str(key), outcome=outcome, duration_ms=round(duration_s * 1000, 3))

    def _fail(self, key: K, failure: Exception) -> tuple[str, float]:
        """Queue the key again and return the outcome and the delay; unexpected errors are logged with their trace."""
        if isinstance(failure, Conflict | AlreadyExists):
            delay_s = self.queue.add_rate_limited(
                key, delay_s_max=self._options.conflict_backoff_s_max, priority=self._priority_of(key)
            )
            return "conflict", delay_s
        if isinstance(failure, FederationError) and failure.retryable:
            delay_s = self.queue.add_rate_limited(
                key, delay_s_min=_retry_after_s(failure), priority=self._priority_of(key)
            )
            return "retryable", delay_s
        delay_s = self.queue.add_rate_limited(key, priority=self._priority_of(key))
        if isinstance(failure, ApiError):
            self._log.info(
                "reconcile refused", key=str(key), outcome="failed", error=str(failure), retry_in_s=round(delay_s, 3)
            )
        else:
            self._log.error(
                "reconcile failed", key=str(key), outcome="failed", retry_in_s=round(delay_s, 3), exc_info=failure
            )
        return "failed", delay_s

    async def _watch_deadlines(self) -> None:
        """Cancel reconciles that take too long. One sleeper for all workers: a timer per reconcile would cost more."""
        timeout_s = self._options.reconcile_timeout_s
        while True:
            now = self._clock.monotonic()
            oldest: float | None = None
            for worker in self._workers:
                if worker.started_s is None or worker.is_expired or worker.task is None:
                    continue
                if now - worker.started_s >= timeout_s - _ROUNDING_S:
                    worker.is_expired = True
                    worker.task.cancel()
                elif oldest is None or worker.started_s < oldest:
                    oldest = worker.started_s
            if oldest is None:
                self._busy.clear()
                await self._busy.wait()
                oldest, now = 0.0, 0.0  # no reconcile runs; any that starts now has the whole timeout
            await self._clock.sleep(oldest + timeout_s - now)


def _retry_after_s(failure: FederationError) -> float:
    """Return the retry delay that the server requested, 0 for none."""
    if isinstance(failure, ApiError):
        with contextlib.suppress(TypeError, ValueError):
            return min(float(failure.details.get("retryAfterSeconds") or 0), 60.0)
    return 0.0
