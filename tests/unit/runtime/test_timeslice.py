"""The share of the event loop that the workers of one controller have."""

import asyncio
import gc
import weakref

from federation.apimachinery.clock import ManualClock
from federation.runtime.controller import Controller, ControllerOptions, Result
from federation.runtime.replay import replay
from federation.runtime.timeslice import TimeSlice, list_slice, replay_slice


async def test_all_workers_together_stop_after_the_keys_of_one_iteration(clock: ManualClock) -> None:
    done: list[int] = []

    async def reconcile(key: int) -> Result:
        done.append(key)
        return Result()

    options = ControllerOptions(slice_keys_max=5)
    controller: Controller[int] = Controller("sliced", reconcile, workers=50, clock=clock, options=options)
    for key in range(40):
        controller.enqueue(key)
    running = asyncio.ensure_future(controller.run())
    most = before = 0
    while len(done) < 40:
        await asyncio.sleep(0)
        most, before = max(most, len(done) - before), len(done)
    running.cancel()
    assert most <= 10  # the end of one iteration and the start of the next
    assert sorted(done) == list(range(40))


async def test_a_change_during_a_replay_comes_before_the_replayed_objects(clock: ManualClock) -> None:
    done: list[str] = []
    controller: Controller[str]

    async def reconcile(key: str) -> Result:
        done.append(key)
        if key == "old-0":
            controller.enqueue("new")
        return Result()

    options = ControllerOptions(slice_keys_max=1)
    controller = Controller("replayed", reconcile, workers=8, clock=clock, options=options)
    with replay():
        for number in range(20):
            controller.enqueue(f"old-{number}")
    running = asyncio.ensure_future(controller.run())
    await controller.wait_idle()
    running.cancel()
    assert done.index("new") == 1
    assert len(done) == 21


async def test_a_task_that_a_handler_starts_in_a_replay_does_not_replay(clock: ManualClock) -> None:
    done: list[str] = []

    async def reconcile(key: str) -> Result:
        done.append(key)
        return Result()

    controller: Controller[str] = Controller("started", reconcile, workers=1, clock=clock)

    async def follow() -> None:
        controller.enqueue("change")

    with replay():
        controller.enqueue("existing")
        following = asyncio.ensure_future(follow())
    await following
    running = asyncio.ensure_future(controller.run())
    await controller.wait_idle()
    running.cancel()
    assert done == ["change", "existing"]


async def test_a_worker_wakes_for_a_key_that_arrives_after_others_waited_for_time(clock: ManualClock) -> None:
    done: list[int] = []

    async def reconcile(key: int) -> Result:
        done.append(key)
        return Result()

    options = ControllerOptions(slice_keys_max=1)
    controller: Controller[int] = Controller("late", reconcile, workers=100, clock=clock, options=options)
    running = asyncio.ensure_future(controller.run())
    await asyncio.sleep(0)
    for key in range(100):
        controller.enqueue(key)
    await controller.wait_idle()
    controller.enqueue(100)
    await controller.wait_idle()
    running.cancel()
    assert sorted(done) == list(range(101))


async def test_tasks_that_wait_for_a_turn_share_one_iteration_and_each_gets_its_turns(clock: ManualClock) -> None:
    time_slice = TimeSlice(1.0, 5)
    turns: list[int] = []

    async def list_all(number: int) -> None:
        for _ in range(3):
            await time_slice.turn(clock)
            turns.append(number)

    listing = asyncio.gather(*map(list_all, range(20)))
    most = before = 0
    while len(turns) < 60:
        await asyncio.sleep(0)
        most, before = max(most, len(turns) - before), len(turns)
    await listing
    assert most <= 10  # the end of one iteration and the start of the next
    assert sorted(turns) == sorted([*range(20)] * 3)


def test_a_loop_that_has_ended_is_freed_with_all_that_slept_and_waited_in_it() -> None:
    async def leave_tasks() -> weakref.ref[asyncio.AbstractEventLoop]:
        clock = ManualClock()
        sleeping = asyncio.ensure_future(clock.sleep(60))
        for time_slice in (replay_slice(), list_slice()):
            while time_slice.take(clock.monotonic()):
                pass
        waiting = [asyncio.ensure_future(list_slice().turn(clock)) for _ in range(100)]
        await asyncio.sleep(0)
        assert not sleeping.done()
        assert not all(task.done() for task in waiting)
        return weakref.ref(asyncio.get_running_loop())

    loop = asyncio.run(leave_tasks())
    gc.collect()
    assert loop() is None
