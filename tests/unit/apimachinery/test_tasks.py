"""Supervised loops restart after a failure and do not disturb each other."""

import asyncio
import itertools

from federation.apimachinery.clock import ManualClock
from federation.apimachinery.tasks import Supervisor


async def test_a_failed_loop_restarts_after_a_pause_that_doubles() -> None:
    clock, starts = ManualClock(), []

    async def breaks() -> None:
        starts.append(round(clock.monotonic(), 3))
        raise RuntimeError("broken")

    supervisor = Supervisor(clock)
    supervisor.add("breaks", breaks)
    running = asyncio.create_task(supervisor.run())
    await clock.advance(0)  # everything has begun
    await clock.advance(200.0)
    running.cancel()

    pauses = [round(after - before, 3) for before, after in itertools.pairwise(starts)]
    assert pauses[:9] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6]
    assert set(pauses[9:]) == {30.0}


async def test_a_broken_loop_does_not_disturb_another() -> None:
    clock, ticks = ManualClock(), []

    async def breaks() -> None:
        raise RuntimeError("broken")

    async def works() -> None:
        while True:
            await clock.sleep(1)
            ticks.append(clock.monotonic())

    supervisor = Supervisor(clock)
    supervisor.add("breaks", breaks)
    supervisor.add("works", works)
    running = asyncio.create_task(supervisor.run())
    await clock.advance(0)  # everything has begun
    await clock.advance(3)
    running.cancel()

    assert ticks == [1, 2, 3]


async def test_it_ends_when_all_loops_have_ended() -> None:
    ended = []

    async def ends() -> None:
        ended.append(True)

    supervisor = Supervisor(ManualClock())
    supervisor.add("one", ends)
    supervisor.add("two", ends)
    await supervisor.run()

    assert ended == [True, True]


async def test_cancelling_it_cancels_the_loops() -> None:
    ended = asyncio.Event()

    async def works() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    supervisor = Supervisor(ManualClock())
    supervisor.add("works", works)
    running = asyncio.create_task(supervisor.run())
    await asyncio.sleep(0)
    running.cancel()
    await asyncio.wait((running,))

    assert ended.is_set()
    assert running.cancelled()
