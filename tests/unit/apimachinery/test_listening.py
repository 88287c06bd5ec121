"""Silence counts only while an answer could have arrived."""

import asyncio

import pytest
from tests.support.faults import SkewedClock

from federation.apimachinery.clock import ManualClock
from federation.apimachinery.listening import Presence, Silence


def test_a_silence_counts_from_look_to_look_and_at_most_a_step() -> None:
    silence = Silence()
    assert silence.look(10.0, 2.0) == 0.0, "nothing is known about the time before the first look"
    assert silence.look(11.0, 2.0) == 1.0
    assert silence.look(100.0, 2.0) == 3.0, "nobody looked meanwhile"
    silence.end(101.0)
    assert silence.look(102.0, 2.0) == 1.0, "the answer was the last look"


async def _present(clock: ManualClock) -> tuple[Presence, "asyncio.Task[None]"]:
    presence = Presence(clock)
    task = asyncio.create_task(presence.run())
    await asyncio.sleep(0)
    return presence, task


async def test_a_process_that_runs_is_never_away() -> None:
    clock = ManualClock()
    presence, task = await _present(clock)
    await clock.advance(3600)
    assert presence.away_s == 0
    task.cancel()


async def test_a_process_that_stands_still_is_away_at_once_and_not_twice() -> None:
    clock = ManualClock()
    presence, task = await _present(clock)
    await clock.advance(10.5)
    clock.skip(30.0)
    assert presence.away_s == pytest.approx(29.5), "other tasks may run before the one that measures"
    await clock.advance(0.1)
    assert presence.away_s == pytest.approx(29.5)
    await clock.advance(100)
    assert presence.away_s == pytest.approx(29.5)
    task.cancel()


async def test_a_suspended_machine_is_away_although_its_monotonic_clock_stands_still() -> None:
    clock = ManualClock()
    skewed = SkewedClock(clock)
    presence = Presence(skewed)
    task = asyncio.create_task(presence.run())
    await clock.advance(5)
    skewed.offset_s = 3600.0
    await clock.advance(5)
    assert presence.away_s == pytest.approx(3600.0)
    task.cancel()


async def test_a_return_after_some_time_is_reported_and_visible_at_once() -> None:
    clock = ManualClock()
    presence, task = await _present(clock)
    returns: list[float] = []
    presence.on_return(lambda: returns.append(clock.monotonic()))
    await clock.advance(10.5)
    clock.skip(3.0)
    await clock.advance(5)
    assert (presence.back_at, returns) == (None, []), "a busy moment"
    clock.skip(30.0)
    assert presence.back_at == clock.now(), "other tasks may run before the one that measures"
    at = clock.now()
    await clock.advance(100)
    assert presence.back_at is not None
    assert (presence.back_at - at).total_seconds() < 1
    assert len(returns) == 1
    task.cancel()


async def test_a_process_that_does_not_measure_counts_as_present() -> None:
    clock = ManualClock()
    presence, task = await _present(clock)
    task.cancel()
    await asyncio.sleep(0)
    clock.skip(60)
    assert presence.away_s == 0
