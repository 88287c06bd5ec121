"""How many requests run at once: each priority level has seats of its own, and users of one level share them fairly.

Without a free seat a request waits. Flows (a user's reads, a user's writes) take turns, and no flow may hold more than
a part of its level's seats, so neither a flood of one user nor of lists keeps others, or writes, waiting for long. Too
many waiting, or too long a wait, is a 429. Watches run for hours: they are counted apart and never wait. Lives as long
as the app; idle flows take no memory. Which level a request belongs to is in `priority.py`.
"""

import asyncio
import contextlib
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from prometheus_client import Counter, Gauge

from federation.base.errors import TooManyRequests
from federation.server.identity import Attributes, User
from federation.server.priority import Level, to_level

_running = Gauge("federation_server_requests_running", "Requests in flight, watches left out", ["level"])
_waiting = Gauge("federation_server_requests_waiting", "Requests that wait for a seat", ["level"])
_rejected = Counter("federation_server_requests_rejected_total", "Requests answered with 429", ["level"])
for _level in Level:
    _rejected.labels(_level.title)
_READ_VERBS = frozenset({"get", "list"})


@dataclass(frozen=True, slots=True)
class LimitOptions:
    """Of one server."""

    requests_max: int = 600
    """Requests in flight on all levels together; as kube-apiserver's 400 reads and 200 writes."""
    flow_percent_max: int = 40
    """How much of its level's seats one user's reads, or writes, may hold."""
    flow_waiting_max: int = 1024
    """How many requests of one user's reads, or writes, may wait."""
    level_waiting_max: int = 4096
    wait_s_max: float = 30.0
    watches_max: int = 10_000
    """Of all users together."""
    user_watches_max: int = 5_000
    """Of one user, unless exempt."""


class Flow(NamedTuple):
    """What takes turns: a user's reads, or a user's writes."""

    level: Level
    user: str
    is_write: bool


@dataclass(slots=True)
class _Seats:
    """One level's seats and queues. `queues` holds only flows that wait, next one first."""

    seats: int
    flow_seats: int
    running: int = 0
    waiting: int = 0
    flows: dict[Flow, int] = field(default_factory=dict)
    queues: "OrderedDict[Flow, deque[asyncio.Future[None]]]" = field(default_factory=OrderedDict)

    def has_room(self, flow: Flow) -> bool:
        return self.running < self.seats and self.flows.get(flow, 0) < self.flow_seats

    def take(self, flow: Flow) -> None:
        self.running += 1
        self.flows[flow] = self.flows.get(flow, 0) + 1

    def give_back(self, flow: Flow) -> None:
        self.running -= 1
        held = self.flows[flow] - 1
        if held:
            self.flows[flow] = held
        else:
            del self.flows[flow]

    def next_flow(self) -> Flow | None:
        """Return whose turn it is; flows that hold all they may are passed over (few can, each holds a large part)."""
        return next((flow for flow in self.queues if self.has_room(flow)), None)


class Limiter:
    """Gives out seats."""

    def __init__(self, options: LimitOptions) -> None:
        self._options = options
        total = sum(level.share for level in Level)
        self._levels: dict[Level, _Seats] = {}
        for level in Level:
            if level is Level.EXEMPT:
                continue
            seats = -(-options.requests_max * level.share // total)
            held = self._levels[level] = _Seats(seats, max(1, seats * options.flow_percent_max // 100))
            # Read when somebody looks at the metrics, so that requests pay nothing for them.
            _running.labels(level.title).set_function(partial(getattr, held, "running"))
            _waiting.labels(level.title).set_function(partial(getattr, held, "waiting"))
        self._watches: dict[str, int] = {}
        self.watches = 0
        """Watches open now."""

    async def enter(self, user: User, attributes: Attributes) -> Flow | None:
        """Take a seat, in turn; None for who needs none. TooManyRequests when too many wait, or one waited too long."""
        level = to_level(user, attributes)
        if level is Level.EXEMPT:
            return None
        flow = Flow(level, user.name, attributes.verb not in _READ_VERBS)
        held = self._levels[level]
        if flow not in held.queues and held.has_room(flow):
            held.take(flow)
            return flow
        await self._wait(flow, held)
        return flow

    def leave(self, flow: Flow | None) -> None:
        """Give a seat back, to the next who waits."""
        if flow is None:
            return
        held = self._levels[flow.level]
        held.give_back(flow)
        while held.queues and (following := held.next_flow()) is not None:
            turn = held.queues[following].popleft()
            held.waiting -= 1
            if held.queues[following]:
                held.queues.move_to_end(following)
            else:
                del held.queues[following]
            if not turn.done():
                held.take(following)
                turn.set_result(None)

    async def _wait(self, flow: Flow, held: _Seats) -> None:
        queue = held.queues.get(flow)
        if held.waiting >= self._options.level_waiting_max or len(queue or ()) >= self._options.flow_waiting_max:
            raise _too_many(flow.level)
        if queue is None:
            queue = held.queues[flow] = deque()
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(turn)
        held.waiting += 1
        try:
            async with asyncio.timeout(self._options.wait_s_max):
                await turn
        except (TimeoutError, asyncio.CancelledError) as error:
            if turn.done() and not turn.cancelled():
                self.leave(flow)  # the seat was handed over at the same moment: pass it on
            else:
                self._give_up(flow, held, turn)
            if isinstance(error, TimeoutError):
                raise _too_many(flow.level) from error
            raise

    def _give_up(self, flow: Flow, held: _Seats, turn: "asyncio.Future[None]") -> None:
        queue = held.queues.get(flow, deque())
        with contextlib.suppress(ValueError):
            queue.remove(turn)
            held.waiting -= 1
            if not queue:
                del held.queues[flow]

    def open_watch(self, user: User, attributes: Attributes) -> None:
        """Count a watch; TooManyRequests beyond the limits."""
        level = to_level(user, attributes)
        own = self._watches.get(user.name, 0)
        is_one_too_many = level is not Level.EXEMPT and own >= self._options.user_watches_max
        if is_one_too_many or self.watches >= self._options.watches_max:
            raise _too_many(level)
        self.watches += 1
        self._watches[user.name] = own + 1

    def close_watch(self, user: User) -> None:
        """A watch has ended."""
        self.watches -= 1
        own = self._watches[user.name] - 1
        if own:
            self._watches[user.name] = own
        else:
            del self._watches[user.name]


def _too_many(level: Level) -> TooManyRequests:
    _rejected.labels(level.title).inc()
    return TooManyRequests("Too many requests, please try again later.", details={"retryAfterSeconds": 1})
