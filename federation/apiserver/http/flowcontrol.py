"""API Priority and Fairness: how many requests execute at once, and which queued request executes next.

Each priority level has its own seats. Without a free seat a request queues. A flow is the reads or the writes of one
user (or namespace: its FlowSchema says which); flows of a level are served round-robin, and no flow holds more than a
part of its level's seats. So neither a flood of one user nor a flood of lists delays other users, or writes, for long.
A full queue or a long wait is a 429; a level whose response is `Reject` has no queue. Watches run for hours: they are
counted apart and never queue. `prioritylevels.py` classifies requests.
"""

import asyncio
import contextlib
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from prometheus_client import Counter, Gauge

from federation.apimachinery.errors import TooManyRequests
from federation.apimachinery.resources import Object
from federation.apiserver.auth.identity import Attributes, User
from federation.apiserver.http.asgi import Header
from federation.apiserver.http.prioritylevels import Configuration, FlowSchema, PriorityLevel, to_configuration
from federation.apiserver.registry.suggestedflowcontrol import flow_control_specs
from federation.apiserver.verbs.requestoptions import SYSTEM_NAMESPACES

_running = Gauge("federation_server_requests_running", "Requests in flight, watches left out", ["level"])
_waiting = Gauge("federation_server_requests_waiting", "Requests that wait for a seat", ["level"])
_rejected = Counter("federation_server_requests_rejected_total", "Requests answered with 429", ["level"])
_nominal_seats = Gauge(
    "apiserver_flowcontrol_nominal_limit_seats", "Seats of a priority level, as in kube-apiserver", ["priority_level"]
)
_EXEMPT = "exempt"
_CLASSIFIED_MAX = 4096
"""Cached classifications. When there are more, the cache is cleared."""
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


class Flow(NamedTuple):
    """The reads or the writes that one FlowSchema does not distinguish."""

    level: str
    schema: str
    distinguisher: str
    """A user, a namespace, or ""."""
    is_write: bool


class Classified(NamedTuple):
    """The flow of a request, None when its level is exempt, and the response headers that name schema and level."""

    flow: Flow | None
    headers: Sequence[Header]


@dataclass(slots=True)
class _LevelState:
    """One level's seats and queues. `queues` holds only flows with queued requests, the next one to serve first."""

    seats: int = 0
    flow_seats: int = 0
    can_queue: bool = True
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
        self._levels: dict[str, _LevelState] = {}
        self._classified: dict[tuple[object, ...], Classified] = {}
        self._user_watches: dict[str, int] = {}
        self.watches = 0
        """Open watches."""
        suggested = flow_control_specs(SYSTEM_NAMESPACES)
        schemas, levels = (
            [{"metadata": {"name": name}, "spec": spec} for name, spec in suggested[kind].items()]
            for kind in ("FlowSchema", "PriorityLevelConfiguration")
        )
        self.configure(schemas, levels)

    def configure(self, schemas: Sequence[Object], levels: Sequence[Object]) -> None:
        """Divide the seats by these FlowSchemas and PriorityLevelConfigurations from now on.

        Until the stored ones are loaded, the suggested ones apply. Executing requests keep their seats; a level that is
        gone is forgotten when its last request is.
        """
        self._configuration: Configuration = to_configuration(schemas, levels)
        self._classified.clear()
        limited = [level for level in self._configuration.levels.values() if not level.is_exempt]
        total = sum(level.shares for level in limited) or 1
        for name in self._levels.keys() - {level.name for level in limited}:
            if not (self._levels[name].executing or self._levels[name].queued):
                self._forget(name)
        for level in limited:
            self._set_seats(level, -(-self._options.requests_max * level.shares // total))

    def _set_seats(self, level: PriorityLevel, seats: int) -> None:
        state = self._levels.get(level.name)
        if state is None:
            state = self._levels[level.name] = _LevelState()
            # Gauges read the state when they are scraped, so requests pay nothing for them.
            _running.labels(level.name).set_function(partial(getattr, state, "executing"))
            _waiting.labels(level.name).set_function(partial(getattr, state, "queued"))
            _rejected.labels(level.name)
        state.seats, state.can_queue = seats, level.queues
        # A flow of a level without a queue would be rejected at its limit while seats are free.
        state.flow_seats = max(1, seats * self._options.flow_percent_max // 100) if level.queues else seats
        _nominal_seats.labels(level.name).set(seats)
        _grant(state)

    def _forget(self, name: str) -> None:
        del self._levels[name]
        for gauge in (_running, _waiting, _nominal_seats):
            with contextlib.suppress(KeyError):  # another server of this process forgot the level first
                gauge.remove(name)

    def classify(self, user: User, attributes: Attributes) -> Classified:
        """Return the flow of a request."""
        verb = attributes.verb
        key = (
            *(user.name, user.groups, verb, attributes.group, attributes.resource),
            *(attributes.subresource, attributes.namespace, attributes.path),
        )
        classified = self._classified.get(key)
        if classified is None:
            if len(self._classified) >= _CLASSIFIED_MAX:
                self._classified.clear()
            schema = self._configuration.classify(user, attributes)
            flow = Flow(schema.level.name, schema.name, schema.flow_of(user, attributes), verb not in _READ_VERBS)
            classified = Classified(None if schema.level.is_exempt else flow, _headers(schema))
            self._classified[key] = classified
        return classified

    async def acquire(self, flow: Flow | None) -> None:
        """Take a seat, after queueing for one if necessary; TooManyRequests when the queue is full or too slow."""
        if flow is None:
            return
        state = self._levels[flow.level]
        # A flow with queued requests must queue, or new requests would overtake older ones.
        if flow not in state.queues and state.has_free_seat(flow):
            state.take_seat(flow)
        else:
            await self._queue(flow, state)

    def release(self, flow: Flow | None) -> None:
        """Free a seat and grant it to the next queued request."""
        if flow is None:
            return
        state = self._levels[flow.level]
        state.free_seat(flow)
        _grant(state)

    async def _queue(self, flow: Flow, state: _LevelState) -> None:
        """Wait until `release` grants a seat."""
        queue = state.queues.get(flow)
        options = self._options
        is_full = state.queued >= options.level_waiting_max or len(queue or ()) >= options.flow_waiting_max
        if is_full or not state.can_queue:
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

    def open_watch(self, user: User, flow: Flow | None) -> None:
        """Count a watch; TooManyRequests beyond the limits."""
        own = self._user_watches.get(user.name, 0)
        exceeds_own_limit = flow is not None and own >= self._options.user_watches_max
        if exceeds_own_limit or self.watches >= self._options.watches_max:
            raise _too_many_requests(_EXEMPT if flow is None else flow.level)
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


def _grant(state: _LevelState) -> None:
    """Give free seats to queued requests."""
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


def _headers(schema: FlowSchema) -> Sequence[Header]:
    """Return the headers that name the stored schema and level; none for the suggested ones before they are stored."""
    if not (schema.uid and schema.level.uid):
        return ()
    return (
        (b"x-kubernetes-pf-flowschema-uid", schema.uid.encode()),
        (b"x-kubernetes-pf-prioritylevel-uid", schema.level.uid.encode()),
    )


def _dequeue(flow: Flow, state: _LevelState, granted: "asyncio.Future[None]") -> None:
    queue = state.queues.get(flow, deque())
    with contextlib.suppress(ValueError):  # `release` may have removed the cancelled request already
        queue.remove(granted)
        state.queued -= 1
        if not queue:
            del state.queues[flow]


def _too_many_requests(level: str) -> TooManyRequests:
    _rejected.labels(level).inc()
    return TooManyRequests("Too many requests, please try again later.", details={"retryAfterSeconds": 1})
