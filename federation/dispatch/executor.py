"""Carries operations out, each member in its own lane, so that one that hangs costs the others nothing (D7, D9).

A lane has a bounded queue, a limit of operations in flight, a deadline per operation and a circuit: after several
operations in a row without any answer it opens, refuses everything at once, and asks the member for a sign of life in
growing intervals; when one comes, the owners of what was refused are told. Operations of one object never overlap. The
executor knows nothing of what an operation does (`operations.py`) or why (`plan.py`). It lives as long as the control
plane.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from functools import partial
from typing import Any

import structlog
from prometheus_client import Counter, Gauge, Histogram

from federation.base.clock import Clock
from federation.base.errors import ApiError, ClusterError
from federation.base.metrics import LATENCY_BUCKETS_S
from federation.client.protocol import Client
from federation.dispatch.ledger import MemberKey
from federation.dispatch.operations import Outcome
from federation.dispatch.status import ClusterStatus

_log = structlog.get_logger(__name__)
_operations = Counter(
    "federation_dispatch_operations_total", "Operations on members by their result", ["cluster", "result"]
)
_durations = Histogram(
    "federation_dispatch_operation_seconds", "Time in flight of an operation", ["cluster"], buckets=LATENCY_BUCKETS_S
)
_queued = Gauge("federation_dispatch_queue_length", "Operations that wait for their lane", ["cluster"])
_circuits = Gauge("federation_dispatch_circuit_open", "1 while nothing is sent to the member", ["cluster"])

Action = Callable[[Client], Awaitable[Outcome]]
_ROUNDING_S = 1e-6
"""Sums of floats may miss a deadline by their last digit."""

Clients = Callable[[str], Client | None]
"""The client of a cluster, None when it is not (or no longer) a member."""


@dataclass(frozen=True, slots=True)
class ExecutorOptions:
    """Limits of each member's lane."""

    in_flight_max: int = 12
    """Operations on one member at the same time."""
    queue_length_max: int = 50_000
    """Operations that wait for one member; more are refused and tried again later."""
    deadline_s: float = 10.0
    """The longest one operation may be in flight; then it is cancelled and counts as unanswered."""
    unanswered_max: int = 3
    """Unanswered operations in a row that open the circuit."""
    pause_s_min: float = 1.0
    """Pause before the first sign of life is asked for; it doubles."""
    pause_s_max: float = 15.0
    slow_after_s: float = 0.7
    """A lane whose oldest operation is in flight for longer is not waited for."""


class _Entry:
    __slots__ = ("action", "future", "key", "owner", "started_s", "task")

    def __init__(self, key: MemberKey, action: Action, owner: Hashable, future: "asyncio.Future[Outcome]") -> None:
        self.key = key
        self.action = action
        self.owner = owner
        self.future = future
        self.started_s = 0.0
        self.task: asyncio.Task[Outcome] | None = None


class _Lane:
    """One member's queue and what is in flight there."""

    def __init__(self, cluster: str) -> None:
        self.cluster = cluster
        self.waiting: deque[_Entry] = deque()
        self.entries: dict[MemberKey, _Entry] = {}
        self.in_flight: dict[MemberKey, _Entry] = {}
        self.unanswered = 0
        self.prober: asyncio.Task[None] | None = None
        self.refused: set[Hashable] = set()
        self.results = {result: _operations.labels(cluster, result) for result in ("ok", "failed", "unanswered")}
        self.durations = _durations.labels(cluster)
        _queued.labels(cluster).set_function(lambda: len(self.waiting))
        _circuits.labels(cluster).set_function(lambda: self.is_open)

    @property
    def is_open(self) -> bool:
        """Whether nothing is sent to the member but the question whether it lives."""
        return self.prober is not None

    @property
    def oldest_start_s(self) -> float | None:
        """When the operation that is in flight longest was started."""
        # In flight keeps the order of starting.
        return next((entry.started_s for entry in self.in_flight.values()), None)


class Executor:
    """Runs actions per member. `on_recovered` is told the owner of everything that failed for want of an answer, once
    the member answers again.
    """

    def __init__(
        self,
        clients: Clients,
        *,
        clock: Clock,
        options: ExecutorOptions | None = None,
        on_recovered: Callable[[Hashable], None] = lambda _: None,
    ) -> None:
        self.on_recovered = on_recovered
        self._clients = clients
        self._clock = clock
        self._options = options or ExecutorOptions()
        self._lanes: dict[str, _Lane] = {}
        self._is_running = False
        self._busy = asyncio.Event()

    def is_under_way(self, key: MemberKey) -> bool:
        """Say whether an operation on this object waits or is in flight."""
        lane = self._lanes.get(key.cluster)
        return lane is not None and key in lane.entries

    def is_slow(self, cluster: str) -> bool:
        """Say whether waiting for this member is no use now: its circuit is open or its oldest operation hangs."""
        lane = self._lanes.get(cluster)
        if lane is None:
            return False
        oldest_s = lane.oldest_start_s
        return lane.is_open or (
            oldest_s is not None and self._clock.monotonic() - oldest_s > self._options.slow_after_s
        )

    def submit(self, key: MemberKey, action: Action, *, owner: Hashable) -> "asyncio.Future[Outcome]":
        """Queue an operation and return its outcome as a future; an operation under way on the object is returned
        instead, so that two never overlap.
        """
        lane = self._lanes.get(key.cluster)
        if lane is None:
            lane = self._lanes[key.cluster] = _Lane(key.cluster)
        if (present := lane.entries.get(key)) is not None:
            return present.future
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        if lane.is_open:
            lane.refused.add(owner)
            future.set_result(_unanswered("it has not answered lately"))
        elif len(lane.waiting) >= self._options.queue_length_max:
            future.set_result(_unanswered("too many operations wait for it"))
        else:
            entry = _Entry(key, action, owner, future)
            lane.entries[key] = entry
            # It counts as under way until its callbacks run, this one right before those that take the result down:
            # whoever looked in between would see neither the operation nor what it did.
            future.add_done_callback(partial(_leave, lane, entry))
            lane.waiting.append(entry)
            self._advance(lane)
        return future

    def forget_cluster(self, cluster: str) -> None:
        """Give up everything for a cluster that left, or whose client changed."""
        lane = self._lanes.pop(cluster, None)
        if lane is None:
            return
        for entry in list(lane.entries.values()):
            self._settle(lane, entry, _unanswered("its connection was replaced"))
            if entry.task is not None:
                entry.task.cancel()
        if lane.prober is not None:
            lane.prober.cancel()
        for owner in lane.refused:
            self.on_recovered(owner)

    async def run(self) -> None:
        """Serve until cancelled; what was submitted before has waited until now."""
        self._is_running = True
        try:
            for lane in self._lanes.values():
                self._advance(lane)
            await self._watch_deadlines()
        finally:
            self._is_running = False
            await self._stop()

    async def _stop(self) -> None:
        tasks: list[asyncio.Task[Any]] = []
        for lane in self._lanes.values():
            tasks += [entry.task for entry in lane.in_flight.values() if entry.task is not None]
            if lane.prober is not None:
                tasks.append(lane.prober)
            for entry in lane.entries.values():
                entry.future.cancel()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._lanes.clear()

    def _advance(self, lane: _Lane) -> None:
        """Start what may start."""
        while self._is_running and lane.waiting and len(lane.in_flight) < self._options.in_flight_max:
            entry = lane.waiting.popleft()
            if entry.future.done():
                continue
            client = self._clients(lane.cluster)
            if client is None:
                self._settle(lane, entry, Outcome(ClusterStatus.CLIENT_RETRIEVAL_FAILED, message="it is not a member"))
                continue
            entry.started_s = self._clock.monotonic()
            lane.in_flight[entry.key] = entry
            entry.task = asyncio.ensure_future(_call(entry.action, client))
            entry.task.add_done_callback(partial(self._finish, lane, entry))
            self._busy.set()

    def _finish(self, lane: _Lane, entry: _Entry, task: "asyncio.Task[Outcome]") -> None:
        """End what a task did, unless its deadline ended it before."""
        if task.cancelled():
            entry.future.cancel()
        elif (error := task.exception()) is not None:
            # Not judged here: the reconcile that waits for the future gets it, and its loop logs it.
            self._settle(lane, entry, error)
        else:
            self._settle(lane, entry, task.result())
        self._advance(lane)

    def _settle(self, lane: _Lane, entry: _Entry, result: Outcome | BaseException) -> None:
        """End an operation and draw the conclusions for the lane; the first end counts."""
        if lane.in_flight.pop(entry.key, None) is not None:
            lane.durations.observe(self._clock.monotonic() - entry.started_s)
        if entry.future.done():
            return
        if isinstance(result, BaseException):
            lane.results["failed"].inc()
            entry.future.set_exception(result)
            return
        lane.results["unanswered" if result.is_unanswered else "ok" if result.is_ok else "failed"].inc()
        entry.future.set_result(result)
        if not result.is_unanswered:
            lane.unanswered = 0
            return
        lane.unanswered += 1
        if lane.unanswered >= self._options.unanswered_max:
            self._open(lane)
        if lane.is_open:
            lane.refused.add(entry.owner)

    def _open(self, lane: _Lane) -> None:
        """Stop sending, refuse what waits, and ask for signs of life."""
        if lane.is_open or not self._is_running or self._lanes.get(lane.cluster) is not lane:
            return
        _log.info("member does not answer", cluster=lane.cluster, unanswered=lane.unanswered)
        lane.prober = asyncio.ensure_future(self._probe(lane))
        waiting, lane.waiting = lane.waiting, deque()
        for entry in waiting:
            self._settle(lane, entry, _unanswered("it has not answered lately"))

    async def _probe(self, lane: _Lane) -> None:
        """Ask for a sign of life in growing intervals until one comes, then close the circuit."""
        pause_s = self._options.pause_s_min
        while True:
            await self._clock.sleep(pause_s)
            pause_s = min(pause_s * 2, self._options.pause_s_max)
            client = self._clients(lane.cluster)
            if client is not None and await _is_alive(client, self._options.deadline_s):
                break
        lane.prober = None
        lane.unanswered = 0
        refused, lane.refused = lane.refused, set()
        _log.info("member answers again", cluster=lane.cluster, waiting=len(refused))
        for owner in refused:
            self.on_recovered(owner)

    async def _watch_deadlines(self) -> None:
        """Give up operations that take too long. One sleeper for all: a timer per operation would cost more."""
        deadline_s = self._options.deadline_s
        while True:
            now_s = self._clock.monotonic()
            starts = [start for lane in self._lanes.values() if (start := lane.oldest_start_s) is not None]
            if not starts:
                self._busy.clear()
                await self._busy.wait()
                continue
            if (left_s := min(starts) + deadline_s - now_s) > _ROUNDING_S:
                await self._clock.sleep(left_s)
                continue
            for lane in list(self._lanes.values()):
                self._expire(lane, now_s - deadline_s + _ROUNDING_S)

    def _expire(self, lane: _Lane, started_before_s: float) -> None:
        for entry in [entry for entry in lane.in_flight.values() if entry.started_s <= started_before_s]:
            self._settle(lane, entry, _unanswered(f"it did not answer within {self._options.deadline_s:g} s"))
            if entry.task is not None:
                entry.task.cancel()
        self._advance(lane)


def _leave(lane: _Lane, entry: _Entry, _: "asyncio.Future[Outcome]") -> None:
    if lane.entries.get(entry.key) is entry:
        del lane.entries[entry.key]


async def _call(action: Action, client: Client) -> Outcome:
    return await action(client)


async def _is_alive(client: Client, timeout_s: float) -> bool:
    """Say whether the member gives any answer at all, be it a refusal."""
    try:
        await client.raw("GET", "/version", timeout_s=timeout_s)
    except ApiError:
        return True
    except ClusterError:
        return False
    return True


def _unanswered(why: str) -> Outcome:
    return Outcome(ClusterStatus.UPDATE_TIMED_OUT, message=f"no answer from the cluster: {why}", is_unanswered=True)
