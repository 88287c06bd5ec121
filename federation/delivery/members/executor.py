"""Runs operations on members, with one bounded queue per member, so that a hanging member delays no other.

Each member has a limit of operations in flight and a deadline per operation. An operation that passes its deadline
counts as a failure of the member's circuit breaker (`client/limitedtransport.py`). While that circuit is open,
operations fail at once, and their owners are notified when it closes. Operations on one object never overlap. The
content of an operation is in `operations.py`, the decision for it in `rules/decide.py`.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import structlog
from prometheus_client import Counter, Gauge, Histogram

from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import NotFound
from federation.apimachinery.metrics import MEMBER_BUCKETS_S, show
from federation.client.breaker import Breaker
from federation.client.client import Client
from federation.delivery.members.operations import Outcome, unanswered
from federation.delivery.rules.memberrecord import MemberKey
from federation.delivery.rules.status import ClusterStatus

_log = structlog.get_logger(__name__)
_operations = Counter(
    "federation_dispatch_operations_total", "Operations on members by their result", ["cluster", "result"]
)
_durations = Histogram(
    "federation_dispatch_operation_seconds", "Time in flight of an operation", ["cluster"], buckets=MEMBER_BUCKETS_S
)
_queued = Gauge("federation_dispatch_queue_length", "Operations that wait to be started", ["cluster"])

Action = Callable[[Client], Awaitable[Outcome]]
_ROUNDING_S = 1e-6
"""Tolerance for sums of floats, which can miss a deadline by their last digit."""


class Connections(Protocol):
    """Clients and circuit breakers of the members: a `ClusterPool` or `Members`."""

    def client(self, cluster: str) -> Client:
        """Return the cluster's client; NotFound when it is not a member."""
        ...

    def breaker(self, cluster: str) -> Breaker | None:
        """Return the cluster's circuit breaker, None without a client."""
        ...

    def add_recovery_listener(self, on_recovered: Callable[[str], None]) -> None:
        """Call the listener with the name of each cluster whose circuit closes again."""
        ...


@dataclass(frozen=True, slots=True)
class ExecutorOptions:
    """Limits per member."""

    in_flight_max: int = 12
    """Concurrent operations on one member."""
    queue_length_max: int = 50_000
    """Operations that wait for one member; further ones fail and are retried later."""
    deadline_s: float = 10.0
    """Longest time in flight; then the operation is cancelled and counts as unanswered."""
    slow_after_s: float = 0.7
    """Reconciles stop waiting for a member that has answered no operation for so long, while one is in flight."""


class _Entry:
    __slots__ = ("action", "future", "key", "owner", "started_s", "task")

    def __init__(self, key: MemberKey, action: Action, owner: Hashable, future: "asyncio.Future[Outcome]") -> None:
        self.key = key
        self.action = action
        self.owner = owner
        self.future = future
        self.started_s = 0.0
        self.task: asyncio.Task[Outcome] | None = None


class _Queue:
    """Operations of one member: waiting and in flight."""

    def __init__(self, cluster: str) -> None:
        self.cluster = cluster
        self.waiting: deque[_Entry] = deque()
        self.entries: dict[MemberKey, _Entry] = {}
        self.in_flight: dict[MemberKey, _Entry] = {}
        self.refused: set[Hashable] = set()
        """Owners to notify when the circuit closes."""
        self.answered_s = 0.0
        """When the last operation got an answer."""
        self.results = {result: _operations.labels(cluster, result) for result in ("ok", "failed", "unanswered")}
        self.durations = _durations.labels(cluster)
        show(_queued.labels(cluster), self, lambda queue: len(queue.waiting))

    @property
    def oldest_start_s(self) -> float | None:
        """Start time of the oldest operation in flight."""
        # The dict keeps the order in which operations were started.
        return next((entry.started_s for entry in self.in_flight.values()), None)


class Executor:
    """Runs operations per member.

    `on_recovered` receives the owner of each operation that an open circuit refused, once the circuit closes.
    """

    def __init__(
        self,
        connections: Connections,
        *,
        clock: Clock,
        options: ExecutorOptions | None = None,
        on_recovered: Callable[[Hashable], None] = lambda _: None,
    ) -> None:
        self.on_recovered = on_recovered
        self._connections = connections
        self._clock = clock
        self._options = options or ExecutorOptions()
        self._queues: dict[str, _Queue] = {}
        self._is_running = False
        self._busy = asyncio.Event()
        connections.add_recovery_listener(self._recover)

    def is_pending(self, key: MemberKey) -> bool:
        """Return True while an operation on this object waits or is in flight."""
        queue = self._queues.get(key.cluster)
        return queue is not None and key in queue.entries

    def is_full(self, cluster: str) -> bool:
        """Return True while another operation on this member would wait for those in flight."""
        queue = self._queues.get(cluster)
        return queue is not None and len(queue.in_flight) + len(queue.waiting) >= self._options.in_flight_max

    def is_slow(self, cluster: str) -> bool:
        """Return True while waiting for this member is useless: its circuit is open or it answers nothing.

        A busy member takes long for each operation, and still answers one after the other. A reconcile that left
        without its answer would write the host twice and be repeated, which makes a busy machine busier.
        """
        queue = self._queues.get(cluster)
        if queue is None:
            return False
        if self._is_open(cluster):
            return True
        if (oldest_s := queue.oldest_start_s) is None:
            return False
        return self._clock.monotonic() - max(oldest_s, queue.answered_s) > self._options.slow_after_s

    def submit(self, key: MemberKey, action: Action, *, owner: Hashable) -> "asyncio.Future[Outcome]":
        """Queue an operation and return the future of its outcome.

        While an operation on the same object is pending, return that operation's future instead.
        """
        queue = self._queues.get(key.cluster)
        if queue is None:
            queue = self._queues[key.cluster] = _Queue(key.cluster)
        if (present := queue.entries.get(key)) is not None:
            return present.future
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        if self._is_open(key.cluster):
            queue.refused.add(owner)
            future.set_result(_no_answer("it has not answered lately"))
        elif len(queue.waiting) >= self._options.queue_length_max:
            future.set_result(_no_answer("too many operations wait for it"))
        else:
            entry = _Entry(key, action, owner, future)
            queue.entries[key] = entry
            # The operation stays pending until its callbacks run, this one first. Otherwise a reconcile in between
            # would find neither a pending operation nor its recorded result, and would repeat it.
            future.add_done_callback(partial(_remove, queue, entry))
            queue.waiting.append(entry)
            self._start_waiting(queue)
        return future

    def end_cluster(self, cluster: str) -> None:
        """Fail all operations of a cluster that left."""
        queue = self._queues.pop(cluster, None)
        if queue is None:
            return
        for entry in list(queue.entries.values()):
            self._settle(queue, entry, _no_answer("its connection was replaced"))
            if entry.task is not None:
                entry.task.cancel()
        self._notify(queue)

    async def run(self) -> None:
        """Run operations until cancelled; those submitted earlier start now."""
        self._is_running = True
        try:
            for queue in self._queues.values():
                self._start_waiting(queue)
            await self._watch_deadlines()
        finally:
            self._is_running = False
            await self._stop()

    async def _stop(self) -> None:
        tasks: list[asyncio.Task[Any]] = []
        for queue in self._queues.values():
            tasks += [entry.task for entry in queue.in_flight.values() if entry.task is not None]
            for entry in queue.entries.values():
                entry.future.cancel()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._queues.clear()

    def _start_waiting(self, queue: _Queue) -> None:
        """Start waiting operations up to the limit, or fail all of them while the circuit is open."""
        while self._is_running and queue.waiting and len(queue.in_flight) < self._options.in_flight_max:
            entry = queue.waiting.popleft()
            if entry.future.done():
                continue
            if self._is_open(queue.cluster):
                self._settle(queue, entry, _no_answer("it has not answered lately"))
                continue
            try:
                client = self._connections.client(queue.cluster)
            except NotFound:
                outcome = Outcome(ClusterStatus.CLIENT_RETRIEVAL_FAILED, message="it is not a member")
                self._settle(queue, entry, outcome)
                continue
            entry.started_s = self._clock.monotonic()
            queue.in_flight[entry.key] = entry
            entry.task = asyncio.ensure_future(_call(entry.action, client))
            entry.task.add_done_callback(partial(self._finish, queue, entry))
            self._busy.set()

    def _finish(self, queue: _Queue, entry: _Entry, task: "asyncio.Task[Outcome]") -> None:
        """Settle an operation with its task's result; nothing changes if its deadline settled it first."""
        if task.cancelled():
            entry.future.cancel()
        elif (error := task.exception()) is not None:
            # Not logged here: the reconcile that awaits the future raises it, and the controller logs it.
            self._settle(queue, entry, error)
        else:
            self._settle(queue, entry, task.result())
        self._start_waiting(queue)

    def _settle(self, queue: _Queue, entry: _Entry, result: Outcome | BaseException) -> None:
        """Set an operation's result, unless it has one, and count it."""
        if queue.in_flight.pop(entry.key, None) is not None:
            queue.durations.observe(self._clock.monotonic() - entry.started_s)
        if entry.future.done():
            return
        if isinstance(result, BaseException):
            queue.results["failed"].inc()
            entry.future.set_exception(result)
            return
        queue.results["unanswered" if result.is_unanswered else "ok" if result.is_ok else "failed"].inc()
        if not result.is_unanswered:
            queue.answered_s = self._clock.monotonic()
        entry.future.set_result(result)
        if result.is_unanswered and self._is_open(queue.cluster):
            queue.refused.add(entry.owner)

    def _is_open(self, cluster: str) -> bool:
        """Return True while the cluster's circuit refuses calls; once its pause is over, a probe may start."""
        breaker = self._connections.breaker(cluster)
        return breaker is not None and breaker.retry_in_s > 0

    def _recover(self, cluster: str) -> None:
        queue = self._queues.get(cluster)
        if queue is not None:
            _log.info("member answers again", cluster=cluster, waiting=len(queue.refused))
            self._notify(queue)

    def _notify(self, queue: _Queue) -> None:
        refused, queue.refused = queue.refused, set()
        for owner in refused:
            self.on_recovered(owner)

    async def _watch_deadlines(self) -> None:
        """Cancel operations that pass their deadline. One sleeper serves all: a timer per operation costs more."""
        deadline_s = self._options.deadline_s
        while True:
            now_s = self._clock.monotonic()
            starts = [start for queue in self._queues.values() if (start := queue.oldest_start_s) is not None]
            if not starts:
                self._busy.clear()
                await self._busy.wait()
                continue
            if (left_s := min(starts) + deadline_s - now_s) > _ROUNDING_S:
                await self._clock.sleep(left_s)
                continue
            for queue in list(self._queues.values()):
                self._expire(queue, now_s - deadline_s + _ROUNDING_S)

    def _expire(self, queue: _Queue, started_before_s: float) -> None:
        breaker = self._connections.breaker(queue.cluster)
        for entry in [entry for entry in queue.in_flight.values() if entry.started_s <= started_before_s]:
            if breaker is not None:
                # The client sees only a cancellation, which says nothing about the member.
                breaker.record_failure()
            self._settle(queue, entry, _no_answer(f"it did not answer within {self._options.deadline_s:g} s"))
            if entry.task is not None:
                entry.task.cancel()
        self._start_waiting(queue)


def _remove(queue: _Queue, entry: _Entry, _: "asyncio.Future[Outcome]") -> None:
    if queue.entries.get(entry.key) is entry:
        del queue.entries[entry.key]


async def _call(action: Action, client: Client) -> Outcome:
    return await action(client)


def _no_answer(reason: str) -> Outcome:
    return unanswered(f"no answer from the cluster: {reason}")
