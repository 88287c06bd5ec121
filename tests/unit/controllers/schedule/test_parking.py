"""Objects whose plugin does not answer: who tries it, and who is woken when it is back."""

import asyncio
from collections.abc import AsyncIterator, Mapping

import pytest

from federation.base.clock import ManualClock
from federation.client.breaker import BreakerOptions
from federation.client.connection import Connection
from federation.client.outcalls import Answer
from federation.client.services import Call, ServiceOptions, Services
from federation.controllers.schedule.parking import Parking
from federation.runtime.controller import Key, Result

KEYS = [Key("default", name) for name in ("a", "b", "c")]
CALL = Call(Connection("http://p/"), b"", {}, 5.0)


class Line:
    """A line to a plugin that is up or down."""

    is_up = False

    async def post(
        self, connection: Connection, body: bytes, headers: Mapping[str, str], *, timeout_s: float
    ) -> Answer:
        return Answer(200) if self.is_up else Answer(0, error="down")


class Lot:
    """A parking with everything around it."""

    def __init__(self) -> None:
        self.clock, self.line = ManualClock(), Line()
        breaker = BreakerOptions(failures_max=1, pause_s_min=4.0, pause_s_max=4.0)
        options = ServiceOptions(breaker=breaker)
        self.services = Services(self.line, clock=self.clock, options=options, jitter=lambda: 1.0)
        self.woken: list[Key] = []
        self.parking = Parking(self.services, self.woken.append, clock=self.clock, plugin_retry_s=10.0)

    async def decide(self, key: Key) -> Result:
        """Do what the reconciler does about one object."""
        self.parking.leave(key)
        since_s = self.clock.monotonic()
        await self.services.exchange("p", [CALL])
        return self.parking.park(key, ["p"], since_s)


@pytest.fixture
async def lot() -> AsyncIterator[Lot]:
    lot = Lot()
    running = asyncio.create_task(lot.parking.run())
    yield lot
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_one_object_at_a_time_tries_and_each_time_another_one(lot: Lot) -> None:
    for key in KEYS:
        assert await lot.decide(key) == Result()
    await lot.clock.advance(3.0)
    assert lot.woken == []
    for key in (*KEYS, KEYS[0]):
        await lot.clock.advance(4.0)
        assert lot.woken[0] == key
        await lot.decide(key)
        lot.woken.clear()
    assert lot.services.probe_in_s("p") is not None


async def test_all_are_woken_by_the_first_answer(lot: Lot) -> None:
    for key in KEYS:
        await lot.decide(key)
    lot.line.is_up = True
    lot.parking.leave(KEYS[0])
    await lot.clock.advance(4.0)
    await lot.services.exchange("p", [CALL])
    assert lot.woken == KEYS[1:]


async def test_a_silent_plugin_may_answer_when_it_may_be_probed(lot: Lot) -> None:
    assert (lot.parking.is_silent("p"), lot.parking.may_answer("p")) == (False, True)
    await lot.decide(KEYS[0])
    assert (lot.parking.is_silent("p"), lot.parking.may_answer("p")) == (True, False)
    lot.parking.leave(KEYS[0])
    await lot.clock.advance(4.0)
    assert (lot.parking.is_silent("p"), lot.parking.may_answer("p")) == (True, True)
    alone = Parking(None, lot.woken.append, clock=lot.clock, plugin_retry_s=3.0)
    assert (alone.is_silent("p"), alone.may_answer("p")) == (False, False)


async def test_an_object_that_was_decided_without_two_plugins_is_woken_once_by_whichever_is_back_first(
    lot: Lot,
) -> None:
    for plugin in ("p", "q"):
        await lot.services.exchange(plugin, [CALL])
    assert lot.parking.park(KEYS[0], ["p", "q"], lot.clock.monotonic()) == Result()
    lot.line.is_up = True
    await lot.clock.advance(4.0)
    lot.woken.clear()
    await lot.services.exchange("q", [CALL])
    assert lot.woken == [KEYS[0]]
    await lot.services.exchange("p", [CALL])
    assert lot.woken == [KEYS[0]]


async def test_an_object_that_waits_no_longer_is_not_tried(lot: Lot) -> None:
    await lot.decide(KEYS[0])
    lot.parking.leave(KEYS[0])
    await lot.clock.advance(60.0)
    assert lot.woken == []


async def test_an_object_whose_plugin_came_back_meanwhile_is_tried_at_once(lot: Lot) -> None:
    since_s = lot.clock.monotonic()
    await lot.services.exchange("p", [CALL])
    lot.line.is_up = True
    await lot.clock.advance(5.0)
    await lot.services.exchange("p", [CALL])
    assert lot.parking.park(KEYS[0], ["p"], since_s) == Result(0.0)


async def test_an_object_about_which_nothing_usable_was_answered_is_tried_after_a_while(lot: Lot) -> None:
    lot.line.is_up = True
    assert await lot.decide(KEYS[0]) == Result(10.0)
    assert Parking(None, lot.woken.append, clock=lot.clock, plugin_retry_s=3.0).park(KEYS[0], ["p"], 0) == Result(3.0)
