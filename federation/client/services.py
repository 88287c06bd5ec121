"""Calls to services that may be down: repeated within one deadline, and left alone for a while after several failures.

A service is a name that calls are made for. An exchange is all that is asked of it at once; it fails when any of its
calls had no answer, 429 or a 5xx. After some failures in a row the circuit opens: exchanges end at once, with the
failure that opened it, until a probe is answered (`breaker.py`). Repeats come out of a budget that calls earn, so that
a service which fails for everybody is not asked several times as often as one that works. Listeners hear when a
service answers again.
"""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from prometheus_client import Counter, Gauge, Histogram

from federation.base.clock import Clock
from federation.base.metrics import LATENCY_BUCKETS_S
from federation.client.breaker import Breaker, BreakerOptions, Circuit
from federation.client.connection import Connection
from federation.client.outcalls import Answer

_attempts = Counter("federation_client_service_attempts_total", "Calls to services by status", ["service", "code"])
_durations = Histogram(
    "federation_client_service_exchange_seconds",
    "Time of one exchange, repeats included",
    ["service"],
    buckets=LATENCY_BUCKETS_S,
)
_circuit = Gauge("federation_client_service_circuit_open", "1 while the circuit is not closed", ["service"])


class Poster(Protocol):
    """Whoever can POST; `Outcalls` over the network."""

    async def post(
        self, connection: Connection, body: bytes, headers: Mapping[str, str], *, timeout_s: float
    ) -> Answer:
        """Return the answer, or why there is none; never raises."""
        ...


class Call(NamedTuple):
    """One POST to `connection.server`, a whole URL, with a deadline for all attempts at it."""

    connection: Connection
    body: bytes
    headers: Mapping[str, str]
    timeout_s: float
    retries_max: int = 0


@dataclass(frozen=True, slots=True)
class ServiceOptions:
    """Limits per service."""

    breaker: BreakerOptions = field(default_factory=lambda: BreakerOptions(pause_s_max=15.0))
    calls_in_flight_max: int = 32
    """Of one service at the same time; a call's deadline begins when it is its turn."""
    retry_pause_s: float = 0.1
    """Before the first repeat; each later one waits twice as long."""
    retry_tokens_max: float = 10.0
    """Repeats that may be saved up."""
    retry_tokens_earned: float = 0.1
    """What each call adds: one repeat per ten calls in the long run."""


class _Service:
    """What is known of one service."""

    def __init__(self, breaker: Breaker, tokens: float, calls_in_flight_max: int) -> None:
        self.breaker = breaker
        self.tokens = tokens
        self.turns = asyncio.Semaphore(calls_in_flight_max)
        self.failure: Answer | None = None


class Services:
    """Makes exchanges, and knows which services fail."""

    def __init__(
        self,
        poster: Poster,
        *,
        clock: Clock,
        options: ServiceOptions | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._poster = poster
        self._clock = clock
        self._options = options or ServiceOptions()
        self._jitter = jitter
        self._services: dict[str, _Service] = {}
        self._recovered: list[Callable[[str], None]] = []

    def on_recovered(self, listener: Callable[[str], None]) -> None:
        """Call the listener with the service's name when it answers after it had failed."""
        self._recovered.append(listener)

    def probe_in_s(self, name: str) -> float | None:
        """Return in how many seconds a failing service may be asked again; None when its last exchange went well."""
        service = self._services.get(name)
        return None if service is None or service.failure is None else service.breaker.retry_in_s

    def forget(self, name: str) -> None:
        """Think well of the service again: it was configured anew, or is gone."""
        if self._services.pop(name, None) is not None:
            _circuit.labels(name).set(0)

    async def exchange(self, name: str, calls: Sequence[Call]) -> list[Answer]:
        """Make the calls, many at the same time, and return the answers in the same order; raises only when cancelled.

        Once one has failed, those that have not begun share its answer: the exchange has failed with it.
        """
        service = self._of(name)
        if service.breaker.wait_s() > 0 and service.failure is not None:
            return [service.failure] * len(calls)
        started_s = self._clock.monotonic()
        try:
            failed: list[Answer] = []
            answers = await asyncio.gather(*(self._in_turn(name, service, call, failed) for call in calls))
        except asyncio.CancelledError:
            # Whoever asked has run out of time: as good as no answer, or a slow service would never be found out.
            service.failure = service.failure or Answer(0, error="no answer before the caller gave up")
            service.breaker.fail()
            raise
        _durations.labels(name).observe(self._clock.monotonic() - started_s)
        failure = next((answer for answer in answers if answer.is_outage), None)
        had_failed, service.failure = service.failure is not None, failure
        if failure is not None:
            service.breaker.fail()
        else:
            service.breaker.succeed()
        _circuit.labels(name).set(service.breaker.state is not Circuit.CLOSED)
        if failure is None and had_failed:
            for listener in self._recovered:
                listener(name)
        return answers

    def _of(self, name: str) -> _Service:
        service = self._services.get(name)
        if service is None:
            breaker = Breaker(self._clock, self._options.breaker, self._jitter)
            options = self._options
            service = self._services[name] = _Service(breaker, options.retry_tokens_max, options.calls_in_flight_max)
        return service

    async def _in_turn(self, name: str, service: _Service, call: Call, failed: list[Answer]) -> Answer:
        async with service.turns:
            if failed:
                return failed[0]
            answer = await self._call(name, service, call)
            if answer.is_outage:
                failed.append(answer)
            return answer

    async def _call(self, name: str, service: _Service, call: Call) -> Answer:
        deadline_s = self._clock.monotonic() + call.timeout_s
        service.tokens = min(service.tokens + self._options.retry_tokens_earned, self._options.retry_tokens_max)
        pause_s = self._options.retry_pause_s
        for attempt in range(call.retries_max + 1):
            left_s = deadline_s - self._clock.monotonic()
            answer = await self._poster.post(call.connection, call.body, call.headers, timeout_s=left_s)
            _attempts.labels(name, str(answer.status)).inc()
            left_s = deadline_s - self._clock.monotonic()
            wait_s = pause_s * (0.5 + 0.5 * self._jitter())
            if not answer.is_outage or attempt == call.retries_max or wait_s >= left_s or service.tokens < 1:
                break
            service.tokens -= 1
            await self._clock.sleep(wait_s)
            pause_s *= 2
        if answer.status == 0 and left_s <= 0:
            return Answer(0, error=f"no answer within {call.timeout_s:g} s")
        return answer
