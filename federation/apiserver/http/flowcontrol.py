"""API Priority and Fairness: how many requests execute at once, and which queued request executes next.

Each priority level has its own seats. Without a free seat a request queues. A flow is one user's reads or one user's
writes; flows of a level are served round-robin, and no flow holds more than a part of its level's seats. So neither a
flood of one user nor a flood of lists delays other users, or writes, for long. A full queue or a long wait is a 429.
Watches run for hours: they are counted apart and never queue. `prioritylevels.py` classifies requests.
"""

import asyncio
import contextlib
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from prometheus_client import Counter, Gauge

from federation.apimachinery.errors import TooManyRequests
from federation.apiserver.auth.identity import Attributes, User
from federation.apiserver.http.prioritylevels import PriorityLevel, classify

_running = Gauge("federation_server_requests_running", "Requests in flight, watches left out", ["level"])
_waiting = Gauge("federation_server_requests_waiting", "Requests that wait for a seat", ["level"])
_rejected = Counter("federation_server_requests_rejected_total", "Requests answered with 429", ["level"])
for _level in PriorityLevel:
    _rejected.labels(_level.title)
_READ_VERBS = frozenset({"get", "list"})


@dataclass(frozen=True, slots=True)
class FlowControlOptions:
    """Limits of one server."""

    requests_max: int = 600
    """Seats of all levels together; as kube-apiserver's 400 reads and 200 writes."""
    flow_percent_max: int = 40
    """Percentage of its level's seats that one flow may hold."""
    flow_waiting_max: int = 1024
    """Queued requests of one flow."""
    level_waiting_max: int = 4096
    """Queued requests of one level."""
    wait_s_max: float = 30.0
    """How long a request may queue."""
    watches_max: int = 10_000
    """Watches of all users together."""
    user_watches_max: int = 5_000
    """Watches of one user that is not exempt."""
    system_namespaces: tuple[str, ...] = ("kube-system",)
    """Service accounts in these namespaces are controllers, not workloads."""


class Flow(NamedTuple):
    """A user's reads, or a user's writes."""

    level: PriorityLevel
    user: str
    is_write: bool


@dataclass(slots=True)
class _LevelState:
    """One level's seats and queues. `queues` holds only flows with queued requests, the next one to serve first."""

    seats: int
    flow_seats: int
    executing: int = 0
    queued: int = 0
    flows: dict[Flow, int] = field(default_factory=dict)
    """Seats held by each flow."""
    queues: "OrderedDict[Flow, deque[asyncio.Future[None]]]" = field(default_factory=OrderedDict)

    def has_free_seat(self, flow: Flow) -> bool:
        return self.executing < self.seats and self.flows.get(flow, 0) < self.flow_seats

    def take_seat(self, flow: Flow) -> None:
        self.executing += 1
        self.flows[flow] = self.flows.get(flow, 0) + 1

    def free_seat(self, flow: Flow) -> None:
        self.executing -= 1
        held = self.flows[flow] - 1
        if held:
            self.flows[flow] = held
        else:
            del self.flows[flow]

    def next_flow(self) -> Flow | None:
        """Return the flow to serve next. Flows at their limit are skipped; few can be, because the limit is large."""
        return next((flow for flow in self.queues if self.has_free_seat(flow)), None)


class FlowControl:
    """Grants seats to requests. It lives as long as the app; idle flows take no memory."""

    def __init__(self, options: FlowControlOptions) -> None:
        self._options = options
        total = sum(level.share for level in PriorityLevel)
        self._levels: dict[PriorityLevel, _LevelState] = {}
        for level in PriorityLevel:
            if level is PriorityLevel.EXEMPT:
                continue
            seats = -(-options.requests_max * level.share // total)
            state = self._levels[level] = _LevelState(seats, max(1, seats * options.flow_percent_max // 100))
            # Gauges read the state when they are scraped, so requests pay nothing for them.
            _running.labels(level.title).set_function(partial(getattr, state, "executing"))
            _waiting.labels(level.title).set_function(partial(getattr, state, "queued"))
        self._user_watches: dict[str, int] = {}
        self.watches = 0
        """Open watches."""

    async def acquire(self, user: User, attributes: Attributes) -> Flow | None:
        """Take a seat, after queueing for one if necessary; TooManyRequests when the queue is full or too slow.

        Return the flow for `release`, None for an exempt request.
        """
        level = classify(user, attributes, self._options.system_namespaces)
        if level is PriorityLevel.EXEMPT:
            return None
        flow = Flow(level, user.name, attributes.verb not in _READ_VERBS)
        state = self._levels[level]
        # A flow with queued requests must queue, or new requests would overtake older ones.
        if flow not in state.queues and state.has_free_seat(flow):
            state.take_seat(flow)
            return flow
        await self._queue(flow, state)
        return flow

    def release(self, flow: Flow | None) -> None:
        """Free a seat and grant it to the next queued request."""
        if flow is None:
            return
        state = self._levels[flow.level]
        state.free_seat(flow)
        while state.queues and (next_flow := state.next_flow()) is not None:
            granted = state.queues[next_flow].popleft()
            state.queued -= 1
            if state.queues[next_flow]:
                # Round-robin: the flow moves behind the other flows.
                state.queues.move_to_end(next_flow)
            else:
                del state.queues[next_flow]
            # A future that is done was cancelled and is about to leave the queue: serve the next one.
            if not granted.done():
                state.take_seat(next_flow)
                granted.set_result(None)

    async def _queue(self, flow: Flow, state: _LevelState) -> None:
        """Wait until `release` grants a seat."""
        queue = state.queues.get(flow)
        if state.queued >= self._options.level_waiting_max or len(queue or ()) >= self._options.flow_waiting_max:
            raise _too_many_requests(flow.level)
        if queue is None:
            queue = state.queues[flow] = deque()
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(granted)
        state.queued += 1
        try:
            async with asyncio.timeout(self._options.wait_s_max):
                await granted
        except (TimeoutError, asyncio.CancelledError) as error:
            if granted.done() and not granted.cancelled():
                self.release(flow)  # the seat was granted in the same loop iteration: pass it on
            else:
                _dequeue(flow, state, granted)
            if isinstance(error, TimeoutError):
                raise _too_many_requests(flow.level) from error
            raise

    def open_watch(self, user: User, attributes: Attributes) -> None:
        """Count a watch; TooManyRequests beyond the limits."""
        level = classify(user, attributes, self._options.system_namespaces)
        own = self._user_watches.get(user.name, 0)
        exceeds_own_limit = level is not PriorityLevel.EXEMPT and own >= self._options.user_watches_max
        if exceeds_own_limit or self.watches >= self._options.watches_max:
            raise _too_many_requests(level)
        self.watches += 1
        self._user_watches[user.name] = own + 1

    def close_watch(self, user: User) -> None:
        """Uncount a watch that has ended."""
        self.watches -= 1
        own = self._user_watches[user.name] - 1
        if own:
            self._user_watches[user.name] = own
        else:
            del self._user_watches[user.name]


def _dequeue(flow: Flow, state: _LevelState, granted: "asyncio.Future[None]") -> None:
    queue = state.queues.get(flow, deque())
    with contextlib.suppress(ValueError):  # `release` may have removed the cancelled request already
        queue.remove(granted)
        state.queued -= 1
        if not queue:
            del state.queues[flow]


def _too_many_requests(level: PriorityLevel) -> TooManyRequests:
    _rejected.labels(level.title).inc()
    return TooManyRequests("Too many requests, please try again later.", details={"retryAfterSeconds": 1})
