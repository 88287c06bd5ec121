"""Webhook calls with retries and a circuit breaker per webhook.

`send_all` sends all requests of one scheduling cycle to one webhook. It fails when any response is an outage (no
response, 429 or 5xx). After several failures in a row the circuit opens (`breaker.py`) and `send_all` returns the last
failure without a request, until a probe succeeds. Retries share one deadline per request and are paid from a budget
that requests earn, so that a failing webhook does not receive several times its usual load.
"""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from prometheus_client import Counter, Gauge, Histogram

from federation.apimachinery.clock import Clock
from federation.apimachinery.connection import Connection
from federation.apimachinery.metrics import LATENCY_BUCKETS_S
from federation.apimachinery.webhookclient import WebhookResponse
from federation.client.breaker import Breaker, BreakerOptions, Circuit

_attempts = Counter("federation_client_service_attempts_total", "Calls to services by status", ["service", "code"])
_durations = Histogram(
    "federation_client_service_exchange_seconds",
    "Time of one exchange, repeats included",
    ["service"],
    buckets=LATENCY_BUCKETS_S,
)
_circuit = Gauge("federation_client_service_circuit_open", "1 while the circuit is not closed", ["service"])


class WebhookTransport(Protocol):
    """The network: `WebhookClient`, or a double in tests."""

    async def post(
        self, connection: Connection, body: bytes, headers: Mapping[str, str], *, timeout_s: float
    ) -> WebhookResponse:
        """Return the response, or the reason why there is none; never raises."""
        ...


class WebhookRequest(NamedTuple):
    """One POST to `connection.server`, a complete URL. `timeout_s` covers all attempts."""

    connection: Connection
    body: bytes
    headers: Mapping[str, str]
    timeout_s: float
    retries_max: int = 0


@dataclass(frozen=True, slots=True)
class RetryOptions:
    """Limits per webhook."""

    breaker: BreakerOptions = field(default_factory=lambda: BreakerOptions(pause_s_max=15.0))
    calls_in_flight_max: int = 32
    """Concurrent requests to one webhook. The deadline of a request starts when it is sent."""
    retry_pause_s: float = 0.1
    """Pause before the first retry; it doubles."""
    retry_tokens_max: float = 10.0
    """Retries that can be saved up."""
    retry_tokens_earned: float = 0.1
    """Tokens that each request adds: one retry per ten requests in the long run."""


class _Webhook:
    """State of one webhook."""

    def __init__(self, breaker: Breaker, tokens: float, calls_in_flight_max: int) -> None:
        self.breaker = breaker
        self.tokens = tokens
        self.slots = asyncio.Semaphore(calls_in_flight_max)
        self.failure: WebhookResponse | None = None


class RetryingWebhookClient:
    """Sends webhook requests and keeps one circuit breaker per webhook name."""

    def __init__(
        self,
        transport: WebhookTransport,
        *,
        clock: Clock,
        options: RetryOptions | None = None,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._transport = transport
        self._clock = clock
        self._options = options or RetryOptions()
        self._jitter = jitter
        self._webhooks: dict[str, _Webhook] = {}
        self._recovered: list[Callable[[str], None]] = []

    def on_recovered(self, listener: Callable[[str], None]) -> None:
        """Call the listener with a webhook's name when the webhook succeeds after a failure."""
        self._recovered.append(listener)

    def retry_in_s(self, name: str) -> float | None:
        """Return the seconds until a failing webhook accepts requests again; None when its last call succeeded."""
        webhook = self._webhooks.get(name)
        return None if webhook is None or webhook.failure is None else webhook.breaker.retry_in_s

    def reset(self, name: str) -> None:
        """Discard the state of a webhook whose configuration changed or was deleted."""
        if self._webhooks.pop(name, None) is not None:
            _circuit.labels(name).set(0)

    async def send_all(self, name: str, requests: Sequence[WebhookRequest]) -> list[WebhookResponse]:
        """Send the requests concurrently and return the responses in the same order; raises only when cancelled.

        After the first outage, requests that have not started are not sent and return the same failure.
        """
        webhook = self._webhook(name)
        if not webhook.breaker.try_acquire() and webhook.failure is not None:
            return [webhook.failure] * len(requests)
        started_s = self._clock.monotonic()
        try:
            failed: list[WebhookResponse] = []
            responses = await asyncio.gather(
                *(self._send_in_slot(name, webhook, request, failed) for request in requests)
            )
        except asyncio.CancelledError:
            # The caller's deadline has passed. It counts as a failure; a webhook that is always too slow would
            # never open its circuit otherwise.
            webhook.failure = webhook.failure or WebhookResponse(0, error="no answer before the caller gave up")
            webhook.breaker.record_failure()
            raise
        _durations.labels(name).observe(self._clock.monotonic() - started_s)
        failure = next((response for response in responses if response.is_outage), None)
        had_failed, webhook.failure = webhook.failure is not None, failure
        if failure is not None:
            webhook.breaker.record_failure()
        else:
            webhook.breaker.record_success()
        _circuit.labels(name).set(webhook.breaker.state is not Circuit.CLOSED)
        if failure is None and had_failed:
            for listener in self._recovered:
                listener(name)
        return responses

    def _webhook(self, name: str) -> _Webhook:
        webhook = self._webhooks.get(name)
        if webhook is None:
            breaker = Breaker(self._clock, self._options.breaker, self._jitter)
            options = self._options
            webhook = self._webhooks[name] = _Webhook(breaker, options.retry_tokens_max, options.calls_in_flight_max)
        return webhook

    async def _send_in_slot(
        self, name: str, webhook: _Webhook, request: WebhookRequest, failed: list[WebhookResponse]
    ) -> WebhookResponse:
        async with webhook.slots:
            if failed:
                return failed[0]
            response = await self._send(name, webhook, request)
            if response.is_outage:
                failed.append(response)
            return response

    async def _send(self, name: str, webhook: _Webhook, request: WebhookRequest) -> WebhookResponse:
        deadline_s = self._clock.monotonic() + request.timeout_s
        webhook.tokens = min(webhook.tokens + self._options.retry_tokens_earned, self._options.retry_tokens_max)
        pause_s = self._options.retry_pause_s
        for attempt in range(request.retries_max + 1):
            left_s = deadline_s - self._clock.monotonic()
            response = await self._transport.post(request.connection, request.body, request.headers, timeout_s=left_s)
            _attempts.labels(name, str(response.status)).inc()
            left_s = deadline_s - self._clock.monotonic()
            wait_s = pause_s * (0.5 + 0.5 * self._jitter())
            if not response.is_outage or attempt == request.retries_max or wait_s >= left_s or webhook.tokens < 1:
                break
            webhook.tokens -= 1
            await self._clock.sleep(wait_s)
            pause_s *= 2
        if response.status == 0 and left_s <= 0:
            return WebhookResponse(0, error=f"no answer within {request.timeout_s:g} s")
        return response
