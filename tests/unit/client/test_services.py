"""Calls to services that fail: one deadline for all attempts, a budget for repeats, a circuit, and recovery."""

import asyncio
from collections.abc import Mapping
from typing import Any

from federation.base.clock import ManualClock
from federation.client.breaker import BreakerOptions
from federation.client.connection import Connection
from federation.client.outcalls import Answer
from federation.client.services import Call, ServiceOptions, Services

OK = Answer(200, b"ok")
REFUSED = Answer(0, error="refused")
WHERE = Connection("http://p/")


class Poster:
    """Answers from a script, then with the last answer again; takes `delay_s` for each."""

    def __init__(self, clock: ManualClock, *script: Answer, delay_s: float = 0.0) -> None:
        self.clock = clock
        self.script = list(script)
        self.delay_s = delay_s
        self.timeouts_s: list[float] = []

    async def post(
        self, connection: Connection, body: bytes, headers: Mapping[str, str], *, timeout_s: float
    ) -> Answer:
        self.timeouts_s.append(timeout_s)
        if self.delay_s:
            await self.clock.sleep(min(self.delay_s, timeout_s))
            if self.delay_s >= timeout_s:
                return Answer(0, error=f"no answer within {timeout_s:g} s")
        return self.script.pop(0) if len(self.script) > 1 else self.script[0]


def a_call(*, timeout_s: float = 5.0, retries_max: int = 0) -> Call:
    return Call(WHERE, b"", {}, timeout_s, retries_max)


async def ask(clock: ManualClock, services: Services, *calls: Call) -> list[Answer]:
    asking = asyncio.create_task(services.exchange("p", calls or [a_call()]))
    while not asking.done():
        await clock.advance(0.05)
    return asking.result()


def services_of(clock: ManualClock, poster: Poster, **options: Any) -> Services:
    breaker = BreakerOptions(failures_max=3, pause_s_min=1.0, pause_s_max=4.0)
    return Services(poster, clock=clock, options=ServiceOptions(breaker=breaker, **options), jitter=lambda: 1.0)


async def test_a_call_without_an_answer_is_repeated_within_its_deadline() -> None:
    clock = ManualClock()
    poster = Poster(clock, REFUSED, Answer(503), OK)
    assert await ask(clock, services_of(clock, poster), a_call(retries_max=2)) == [OK]
    assert len(poster.timeouts_s) == 3
    assert poster.timeouts_s[0] == 5.0
    assert poster.timeouts_s[2] <= 4.7


async def test_a_call_that_waits_for_its_turn_has_its_whole_deadline_then() -> None:
    clock = ManualClock()
    poster = Poster(clock, OK, delay_s=2.0)
    services = services_of(clock, poster, calls_in_flight_max=2)
    assert await ask(clock, services, *[a_call(timeout_s=3.0)] * 6) == [OK] * 6
    assert poster.timeouts_s == [3.0] * 6
    assert 6.0 <= clock.monotonic() < 6.5


async def test_once_a_call_has_failed_those_that_have_not_begun_are_not_made() -> None:
    clock = ManualClock()
    poster = Poster(clock, OK, REFUSED)
    services = services_of(clock, poster, calls_in_flight_max=1)
    assert await ask(clock, services, *[a_call()] * 9) == [OK, *[REFUSED] * 8]
    assert len(poster.timeouts_s) == 2
    wrong = Poster(clock, Answer(400))
    await ask(clock, services_of(clock, wrong, calls_in_flight_max=1), *[a_call()] * 9)
    assert len(wrong.timeouts_s) == 9, "it answers; what, is for whoever asked"


async def test_an_answer_that_does_not_please_is_not_repeated() -> None:
    clock = ManualClock()
    poster = Poster(clock, Answer(400, b"no"))
    services = services_of(clock, poster)
    assert await ask(clock, services, a_call(retries_max=2)) == [Answer(400, b"no")]
    assert len(poster.timeouts_s) == 1
    assert services.probe_in_s("p") is None


async def test_all_attempts_together_have_one_deadline_and_the_same_text() -> None:
    clock = ManualClock()
    poster = Poster(clock, REFUSED, delay_s=2.0)
    (answer,) = await ask(clock, services_of(clock, poster), a_call(timeout_s=3.0, retries_max=5))
    assert answer.error == "no answer within 3 s"
    assert 3.0 <= clock.monotonic() < 3.2
    assert len(poster.timeouts_s) == 2


async def test_repeats_have_a_budget() -> None:
    clock = ManualClock()
    poster = Poster(clock, REFUSED)
    services = services_of(clock, poster, retry_tokens_max=4.0)
    for _ in range(40):
        await ask(clock, services, a_call(retries_max=2))
        await clock.advance(10)
    assert len(poster.timeouts_s) <= 40 + 4 + 4  # calls, what was saved up, what they earned


async def test_a_dead_service_is_left_alone_and_the_failure_reads_the_same() -> None:
    clock = ManualClock()
    poster = Poster(clock, REFUSED)
    services = services_of(clock, poster)
    answers = [await ask(clock, services) for _ in range(10)]
    assert answers == [[REFUSED]] * 10
    assert len(poster.timeouts_s) == 3
    wait_s = services.probe_in_s("p")
    assert wait_s is not None
    assert 0 < wait_s <= 1.0
    await clock.advance(1.0)
    assert services.probe_in_s("p") == 0.0
    await asyncio.gather(*(ask(clock, services) for _ in range(5)))
    assert len(poster.timeouts_s) == 4  # one probe, not five


async def test_a_probe_that_is_answered_closes_the_circuit_and_is_told_once() -> None:
    clock = ManualClock()
    poster = Poster(clock, REFUSED)
    services, told = services_of(clock, poster), []
    services.on_recovered(told.append)
    for _ in range(3):
        await ask(clock, services)
    poster.script = [OK]
    await clock.advance(1.0)
    assert await ask(clock, services) == [OK]
    assert await ask(clock, services) == [OK]
    assert told == ["p"]
    assert services.probe_in_s("p") is None


async def test_one_call_without_an_answer_fails_the_exchange_and_a_probe_may_have_many_calls() -> None:
    clock = ManualClock()
    poster = Poster(clock, OK, REFUSED, OK)
    services = services_of(clock, poster)
    assert await ask(clock, services, a_call(), a_call(), a_call()) == [OK, REFUSED, REFUSED]
    assert services.probe_in_s("p") == 0.0
    poster.script = [REFUSED]
    for _ in range(3):
        await ask(clock, services)
    poster.script = [OK]
    await clock.advance(1.0)
    assert await ask(clock, services, a_call(), a_call()) == [OK, OK]


async def test_callers_that_give_up_find_a_silent_service_out() -> None:
    clock = ManualClock()
    poster = Poster(clock, REFUSED, delay_s=100.0)
    services = services_of(clock, poster)
    for _ in range(3):
        asking = asyncio.create_task(services.exchange("p", [a_call(timeout_s=60.0)]))
        await clock.advance(30.0)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
    assert await ask(clock, services) == [Answer(0, error="no answer before the caller gave up")]
    assert len(poster.timeouts_s) == 3


async def test_a_service_that_is_configured_anew_is_asked_at_once() -> None:
    clock = ManualClock()
    poster = Poster(clock, REFUSED)
    services = services_of(clock, poster)
    for _ in range(3):
        await ask(clock, services)
    poster.script = [OK]
    services.forget("p")
    services.forget("never heard of")
    assert await ask(clock, services) == [OK]
