"""The virtual clock wakes sleepers in order; times are formatted as in Kubernetes."""

import asyncio
from datetime import UTC, datetime, timedelta, timezone

import pytest

from federation.apimachinery.clock import ManualClock, SystemClock, from_rfc3339, lead_s, to_rfc3339, to_rfc3339_micro


async def test_sleepers_wake_at_their_own_deadlines_in_order() -> None:
    clock = ManualClock()
    woken: list[tuple[str, float]] = []

    async def sleeper(name: str, delay_s: float) -> None:
        await clock.sleep(delay_s)
        woken.append((name, clock.monotonic()))

    tasks = [asyncio.create_task(sleeper(name, s)) for name, s in (("late", 3.0), ("early", 1.0), ("never", 10.0))]
    await asyncio.sleep(0)
    await clock.advance(5.0)

    assert woken == [("early", 1.0), ("late", 3.0)]
    assert clock.monotonic() == 5.0
    tasks[-1].cancel()


async def test_a_sleeper_can_wake_twice_within_one_advance() -> None:
    clock = ManualClock()
    ticks: list[float] = []

    async def ticker() -> None:
        while True:
            await clock.sleep(1.0)
            ticks.append(clock.monotonic())

    task = asyncio.create_task(ticker())
    await asyncio.sleep(0)
    await clock.advance(3.5)
    task.cancel()

    assert ticks == [1.0, 2.0, 3.0]


async def test_a_skip_wakes_each_sleeper_once_at_the_next_advance() -> None:
    clock = ManualClock()
    ticks: list[float] = []

    async def ticker() -> None:
        while True:
            await clock.sleep(1.0)
            ticks.append(clock.monotonic())

    task = asyncio.create_task(ticker())
    await asyncio.sleep(0)
    clock.skip(100.0)
    await asyncio.sleep(0)
    assert not ticks
    await clock.advance(1.5)
    task.cancel()

    assert ticks == [100.0, 101.0]


async def test_a_cancelled_sleeper_is_no_deadline() -> None:
    clock = ManualClock()
    task = asyncio.create_task(clock.sleep(1.0))
    await asyncio.sleep(0)
    assert clock.next_deadline_s == 1.0
    task.cancel()
    await asyncio.sleep(0)
    assert clock.next_deadline_s is None


async def test_a_zero_delay_yields_to_the_loop_once() -> None:
    await ManualClock().sleep(0)


def test_wall_clock_and_monotonic_move_together() -> None:
    async def moved() -> None:
        clock = ManualClock(datetime(2026, 5, 1, tzinfo=UTC))
        await clock.advance(90)
        assert clock.now() == datetime(2026, 5, 1, 0, 1, 30, tzinfo=UTC)

    asyncio.run(moved())


def test_the_machines_clock_is_in_utc() -> None:
    assert SystemClock().now().utcoffset() == timedelta(0)


def test_times_are_written_as_kubernetes_does() -> None:
    moment = datetime(2026, 5, 1, 14, 3, 2, 120_000, tzinfo=timezone(timedelta(hours=2)))
    assert to_rfc3339(moment) == "2026-05-01T12:03:02Z"
    assert to_rfc3339_micro(moment) == "2026-05-01T12:03:02.120000Z"
    assert from_rfc3339("2026-05-01T12:03:02Z") == moment.replace(microsecond=0)
    assert from_rfc3339("2026-05-01T12:03:02.120000Z") == moment


@pytest.mark.parametrize("text", ["", "yesterday", "2026-05-01T12:03:02"])
def test_a_malformed_time_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        from_rfc3339(text)


@pytest.mark.parametrize(
    ("before_s", "there_s", "after_s", "lead"),
    [(0, 0, 0, 0), (10, 12, 15, 0), (100, 40, 102, 60), (100, 163, 103, -60), (100, 100, 160, 0)],
)
def test_a_clock_is_ahead_by_what_the_time_of_the_question_does_not_explain(before_s, there_s, after_s, lead) -> None:
    moments = [datetime.fromtimestamp(1_800_000_000 + each_s, UTC) for each_s in (before_s, there_s, after_s)]
    assert lead_s(*moments) == lead
