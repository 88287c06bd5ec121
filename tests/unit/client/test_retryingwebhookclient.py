"""Retries of webhook calls: one deadline for all attempts, a budget, a circuit breaker, recovery."""

import asyncio
from collections.abc import Mapping
from typing import Any

from federation.apimachinery.clock import ManualClock
from federation.apimachinery.connection import Connection
from federation.apimachinery.webhookclient import WebhookResponse
from federation.client.breaker import BreakerOptions
from federation.client.retryingwebhookclient import RetryingWebhookClient, RetryOptions, WebhookRequest

OK = WebhookResponse(200, b"ok")
REFUSED = WebhookResponse(0, error="refused")
WHERE = Connection("http://p/")


class ScriptedTransport:
    """Answers from a script, then with the last answer again; takes `delay_s` for each."""

    def __init__(self, clock: ManualClock, *script: WebhookResponse, delay_s: float = 0.0) -> None:
        self.clock = clock
        self.script = list(script)
        self.delay_s = delay_s
        self.timeouts_s: list[float] = []

    async def post(
        self, connection: Connection, body: bytes, headers: Mapping[str, str], *, timeout_s: float
    ) -> WebhookResponse:
        self.timeouts_s.append(timeout_s)
        if self.delay_s:
            await self.clock.sleep(min(self.delay_s, timeout_s))
            if self.delay_s >= timeout_s:
                return WebhookResponse(0, error=f"no answer within {timeout_s:g} s")
        return self.script.pop(0) if len(self.script) > 1 else self.script[0]


def a_call(*, timeout_s: float = 5.0, retries_max: int = 0) -> WebhookRequest:
    return WebhookRequest(WHERE, b"", {}, timeout_s, retries_max)


async def ask(clock: ManualClock, client: RetryingWebhookClient, *calls: WebhookRequest) -> list[WebhookResponse]:
    asking = asyncio.create_task(client.send_all("p", calls or [a_call()]))
    while not asking.done():
        await clock.advance(0.05)
    return asking.result()


def client_of(clock: ManualClock, transport: ScriptedTransport, **options: Any) -> RetryingWebhookClient:
    breaker = BreakerOptions(failures_max=3, pause_s_min=1.0, pause_s_max=4.0)
    return RetryingWebhookClient(
        transport, clock=clock, options=RetryOptions(breaker=breaker, **options), jitter=lambda: 1.0
    )


async def test_an_unanswered_request_is_retried_within_its_deadline() -> None:
    clock = ManualClock()
    transport = ScriptedTransport(clock, REFUSED, WebhookResponse(503), OK)
    assert await ask(clock, client_of(clock, transport), a_call(retries_max=2)) == [OK]
    assert len(transport.timeouts_s) == 3
    assert transport.timeouts_s[0] == 5.0
    assert transport.timeouts_s[2] <= 4.7


async def test_the_deadline_starts_when_the_request_gets_a_slot() -> None:
    clock = ManualClock()
    transport = ScriptedTransport(clock, OK, delay_s=2.0)
    client = client_of(clock, transport, calls_in_flight_max=2)
    assert await ask(clock, client, *[a_call(timeout_s=3.0)] * 6) == [OK] * 6
    assert transport.timeouts_s == [3.0] * 6
    assert 6.0 <= clock.monotonic() < 6.5


async def test_requests_that_have_not_started_fail_with_the_first_outage() -> None:
    clock = ManualClock()
    transport = ScriptedTransport(clock, OK, REFUSED)
    client = client_of(clock, transport, calls_in_flight_max=1)
    assert await ask(clock, client, *[a_call()] * 9) == [OK, *[REFUSED] * 8]
    assert len(transport.timeouts_s) == 2
    wrong = ScriptedTransport(clock, WebhookResponse(400))
    await ask(clock, client_of(clock, wrong, calls_in_flight_max=1), *[a_call()] * 9)
    assert len(wrong.timeouts_s) == 9, "a 4xx response is not an outage"


async def test_a_4xx_response_is_not_retried() -> None:
    clock = ManualClock()
    transport = ScriptedTransport(clock, WebhookResponse(400, b"no"))
    client = client_of(clock, transport)
    assert await ask(clock, client, a_call(retries_max=2)) == [WebhookResponse(400, b"no")]
    assert len(transport.timeouts_s) == 1
    assert client.retry_in_s("p") is None


async def test_all_attempts_share_one_deadline_and_one_error_text() -> None:
    clock = ManualClock()
    transport = ScriptedTransport(clock, REFUSED, delay_s=2.0)
    (answer,) = await ask(clock, client_of(clock, transport), a_call(timeout_s=3.0, retries_max=5))
    assert answer.error == "no answer within 3 s"
    assert 3.0 <= clock.monotonic() < 3.2
    assert len(transport.timeouts_s) == 2


async def test_retries_have_a_budget() -> None:
    clock = ManualClock()
    transport = ScriptedTransport(clock, REFUSED)
    client = client_of(clock, transport, retry_tokens_max=4.0)
    for _ in range(40):
        await ask(clock, client, a_call(retries_max=2))
        await clock.advance(10)
    assert len(transport.timeouts_s) <= 40 + 4 + 4  # calls, what was saved up, what they earned


async def test_an_open_circuit_returns_the_last_failure() -> None:
    clock = ManualClock()
    transport = ScriptedTransport(clock, REFUSED)
    client = client_of(clock, transport)
    answers = [await ask(clock, client) for _ in range(10)]
    assert answers == [[REFUSED]] * 10
    assert len(transport.timeouts_s) == 3
    wait_s = client.retry_in_s("p")
    assert wait_s is not None
    assert 0 < wait_s <= 1.0
    await clock.advance(1.0)
    assert client.retry_in_s("p") == 0.0
    await asyncio.gather(*(ask(clock, client) for _ in range(5)))
    assert len(transport.timeouts_s) == 4  # one probe, not five


async def test_a_successful_probe_closes_the_circuit_and_notifies_once() -> None:
    clock = ManualClock()
    transport = ScriptedTransport(clock, REFUSED)
    client, recovered = client_of(clock, transport), []
    client.on_recovered(recovered.append)
    for _ in range(3):
        await ask(clock, client)
    transport.script = [OK]
    await clock.advance(1.0)
    assert await ask(clock, client) == [OK]
    assert await ask(clock, client) == [OK]
    assert recovered == ["p"]
    assert client.retry_in_s("p") is None


async def test_one_outage_counts_as_a_failure_and_a_probe_can_have_many_requests() -> None:
    clock = ManualClock()
    transport = ScriptedTransport(clock, OK, REFUSED, OK)
    client = client_of(clock, transport)
    assert await ask(clock, client, a_call(), a_call(), a_call()) == [OK, REFUSED, REFUSED]
    assert client.retry_in_s("p") == 0.0
    transport.script = [REFUSED]
    for _ in range(3):
        await ask(clock, client)
    transport.script = [OK]
    await clock.advance(1.0)
    assert await ask(clock, client, a_call(), a_call()) == [OK, OK]


async def test_cancelled_callers_count_as_failures_of_a_silent_webhook() -> None:
    clock = ManualClock()
    transport = ScriptedTransport(clock, REFUSED, delay_s=100.0)
    client = client_of(clock, transport)
    for _ in range(3):
        asking = asyncio.create_task(client.send_all("p", [a_call(timeout_s=60.0)]))
        await clock.advance(30.0)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
    assert await ask(clock, client) == [WebhookResponse(0, error="no answer before the caller gave up")]
    assert len(transport.timeouts_s) == 3


async def test_a_reset_webhook_is_called_at_once() -> None:
    clock = ManualClock()
    transport = ScriptedTransport(clock, REFUSED)
    client = client_of(clock, transport)
    for _ in range(3):
        await ask(clock, client)
    transport.script = [OK]
    client.reset("p")
    client.reset("never heard of")
    assert await ask(clock, client) == [OK]
