"""Silence counts only while an answer could have arrived."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from tests.support.faults import SkewedClock

from federation.apimachinery.clock import ManualClock
from federation.apimachinery.listening import AWAY_S, Looks, Patience, Presence, Silence, Wait

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_silence_counts_from_look_to_look_and_at_most_a_step() -> None:
    silence = Silence()
    assert silence.look(10.0, 2.0) == 0.0, "nothing is known about the time before the first look"
    assert silence.look(11.0, 2.0) == 1.0
    assert silence.look(100.0, 2.0) == 3.0, "nobody looked meanwhile"
    silence.end(101.0)
    assert silence.look(102.0, 2.0) == 1.0, "the answer was the last look"


def _at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def test_a_stored_wait_leaves_out_the_time_while_it_is_stopped() -> None:
    wait = Wait(NOW).at(_at(10), counts=True)
    assert wait == Wait(NOW), "nothing to write while it counts"
    stopped = wait.at(_at(20), counts=False)
    assert stopped == stopped.at(_at(90), counts=False) == Wait(NOW, _at(20))
    assert stopped.at(_at(100), counts=True) == Wait(_at(80))
    assert stopped.at(_at(15), counts=True) == Wait(NOW), "a clock that was set back adds nothing"


def test_a_stored_wait_has_half_of_its_limit_left_after_a_time_that_was_not_measured() -> None:
    assert Wait(NOW).with_half_left(60, _at(500)) == Wait(_at(470))
    assert Wait(NOW).with_half_left(60, _at(20)) == Wait(NOW)


def test_the_time_of_a_command_counts_from_look_to_look() -> None:
    clock = ManualClock()
    patience = Patience(clock, 30)
    for _ in range(29):
        clock.skip(1)
        assert not patience.is_over()
    clock.skip(1)
    assert patience.is_over()
    stopped = Patience(clock, 30)
    clock.skip(3600)
    assert not stopped.is_over(), "the command was stopped for an hour, and looks once more"
    assert Patience(clock, 0).is_over()


async def test_a_look_knows_whether_the_process_was_away_since_the_one_before() -> None:
    clock = ManualClock()
    presence, task = await _present(clock)
    looks: Looks[str] = Looks(presence)
    assert looks.was_away("a"), "nothing is known about the time before the first look"
    assert not looks.was_away("a")
    await clock.advance(60)
    clock.skip(AWAY_S + 2)
    assert looks.was_away("a")
    assert not looks.was_away("a")
    looks.forget("a")
    assert looks.was_away("a")
    task.cancel()


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


async def test_a_wait_in_memory_stands_still_while_the_process_is_away() -> None:
    clock = ManualClock()
    presence, task = await _present(clock)
    await clock.advance(10.5)
    before_s = presence.present_s
    assert before_s == pytest.approx(clock.monotonic())
    clock.skip(30.0)
    assert presence.present_s == pytest.approx(before_s + 1, abs=0.5), (
        "other tasks may run before the one that measures"
    )
    await clock.advance(0.1)
    assert presence.present_s == pytest.approx(before_s + 1, abs=0.6)
    await clock.advance(100)
    assert presence.present_s == pytest.approx(before_s + 101, abs=0.6)
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
