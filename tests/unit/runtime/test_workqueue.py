"""The queue's three promises, its priorities and its delays."""

import asyncio

import pytest

from federation.apimachinery.clock import ManualClock
from federation.runtime.workqueue import QueueOptions, WorkQueue


def a_queue(clock: ManualClock, **options: float) -> WorkQueue[str]:
    return WorkQueue("test", clock=clock, options=QueueOptions(**options), jitter=lambda: 1.0)


async def drain(queue: WorkQueue[str]) -> list[str]:
    found = []
    while len(queue):
        key = await queue.get()
        queue.done(key)
        found.append(key)
    return found


async def test_a_key_is_queued_once(clock) -> None:
    queue = a_queue(clock)
    for key in ("a", "b", "a"):
        queue.add(key)
    assert await drain(queue) == ["a", "b"]


async def test_a_key_that_is_added_while_it_runs_runs_again_afterwards(clock) -> None:
    queue = a_queue(clock)
    queue.add("a")
    key = await queue.get()
    queue.add("a")
    queue.add("a")
    assert len(queue) == 0
    queue.done(key)
    assert await drain(queue) == ["a"]


async def test_a_claimed_key_is_processed_by_its_claimant_alone(clock) -> None:
    queue = a_queue(clock)
    queue.add("waits")
    assert not queue.claim("waits")
    assert queue.claim("a")
    assert not queue.claim("a")
    queue.add("a")
    assert await drain(queue) == ["waits"]
    queue.done("a")
    assert await drain(queue) == ["a"]


async def test_a_lower_number_is_processed_first(clock) -> None:
    queue = a_queue(clock)
    queue.add("late", priority=5)
    queue.add("early")
    queue.add("urgent", priority=-1)
    assert await drain(queue) == ["urgent", "early", "late"]


async def test_a_more_urgent_add_moves_a_waiting_key_forward_and_a_less_urgent_one_changes_nothing(clock) -> None:
    queue = a_queue(clock)
    queue.add("a", priority=5)
    queue.add("b", priority=1)
    queue.add("a", priority=0)
    queue.add("a", priority=9)
    assert await drain(queue) == ["a", "b"]
    queue.add("a", priority=5)
    assert await drain(queue) == ["a"]


async def test_low_priority_is_not_starved(clock) -> None:
    queue = a_queue(clock, fair_every=4)
    queue.add("patient", priority=10)
    await clock.advance(1)
    order = []
    for number in range(20):
        queue.add(f"urgent-{number}")
        key = await queue.get()
        queue.done(key)
        order.append(key)
    assert order.index("patient") == 3


async def test_getters_get_one_key_each_in_turn(clock) -> None:
    queue = a_queue(clock)
    first, second = asyncio.ensure_future(queue.get()), asyncio.ensure_future(queue.get())
    await asyncio.sleep(0)
    queue.add("a")
    queue.add("b")
    assert [await first, await second] == ["a", "b"]


async def test_a_cancelled_getter_loses_no_key(clock) -> None:
    queue = a_queue(clock)
    first, second = asyncio.ensure_future(queue.get()), asyncio.ensure_future(queue.get())
    await asyncio.sleep(0)
    queue.add("a")
    first.cancel()
    assert await asyncio.wait_for(second, 60) == "a"
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_a_delayed_key_comes_at_its_earliest_deadline_and_once(clock, start, settle) -> None:
    queue = a_queue(clock)
    start(queue.run())
    await settle()
    queue.add_after("a", 10)
    await settle()
    queue.add_after("b", 2)
    queue.add_after("a", 5)
    queue.add_after("a", 30)
    assert queue.delayed == 2
    await clock.advance(1.9)
    assert len(queue) == 0
    await clock.advance(0.2)
    assert await drain(queue) == ["b"]
    await clock.advance(3)
    assert await drain(queue) == ["a"]
    await clock.advance(60)
    assert len(queue) == 0


async def test_a_postponed_key_comes_at_its_latest_deadline_and_once(clock, start, settle) -> None:
    queue = a_queue(clock)
    start(queue.run())
    await settle()
    queue.add_after("a", 1)
    queue.add_after("b", 2)
    queue.add_after("a", 5, postpones=True)
    assert queue.delayed == 2
    await clock.advance(4.9)
    assert await drain(queue) == ["b"]
    queue.add_after("a", 3, postpones=True)
    queue.add_after("a", 1, postpones=True)
    await clock.advance(1.1)
    assert await drain(queue) == ["a"]
    await clock.advance(60)
    assert len(queue) == 0
    assert queue.delayed == 0


async def test_a_key_that_is_handed_out_loses_its_deadline_where_delays_end_and_keeps_a_later_one(
    clock, start, settle
) -> None:
    queue: WorkQueue[str] = WorkQueue(clock=clock, ends_delays=True)
    start(queue.run())
    await settle()
    queue.add_after("a", 2)
    queue.add("a")
    assert await queue.get() == "a"
    assert queue.delayed == 0
    queue.add_after("a", 5)  # During its processing: by an event, or by the result.
    queue.done("a")
    await clock.advance(2.1)
    assert len(queue) == 0
    await clock.advance(3)
    assert await drain(queue) == ["a"]


async def test_a_key_without_delay_is_queued_at_once(clock) -> None:
    queue = a_queue(clock)
    queue.add_after("a", 0)
    assert await drain(queue) == ["a"]


async def test_back_off_doubles_to_its_limit_and_restarts_after_success(clock) -> None:
    queue = a_queue(clock)
    delays = [queue.add_rate_limited("a") for _ in range(20)]
    assert delays[:4] == pytest.approx([0.005, 0.01, 0.02, 0.04])
    assert delays[-1] == 60.0
    assert queue.failures("a") == 20
    queue.forget("a")
    assert queue.add_rate_limited("a") == pytest.approx(0.005)


async def test_back_off_can_be_bounded_from_both_sides(clock) -> None:
    queue = a_queue(clock)
    for _ in range(30):
        queue.add_rate_limited("a")
    assert queue.add_rate_limited("a", delay_s_max=1.0) == 1.0
    queue.forget("a")
    assert queue.add_rate_limited("a", delay_s_min=7.0) == 7.0


async def test_jitter_shortens_by_a_fifth_at_most(clock) -> None:
    queue = WorkQueue[str]("test", clock=clock, options=QueueOptions(backoff_s_min=1.0), jitter=lambda: 0.0)
    assert queue.add_rate_limited("a") == pytest.approx(0.8)


async def test_a_full_queue_refuses_keys_and_sets_overflowed(clock) -> None:
    queue = a_queue(clock, depth_max=2)
    for key in ("a", "b", "c", "a"):
        queue.add(key)
    assert queue.overflowed
    assert await drain(queue) == ["a", "b"]


async def test_a_queue_is_idle_without_queued_and_running_keys(clock) -> None:
    queue = a_queue(clock)
    await queue.wait_idle()
    queue.add("a")
    waiting = asyncio.ensure_future(queue.wait_idle())
    key = await queue.get()
    queue.add(key)
    queue.done(key)
    await asyncio.sleep(0)
    assert not waiting.done()
    queue.done(await queue.get())
    await asyncio.wait_for(waiting, 60)


async def test_the_fair_get_returns_the_first_arrival_even_for_equal_times(clock) -> None:
    queue = a_queue(clock, fair_every=1)
    for key, priority in (("low", 9), ("high", -9), ("middle", 0)):
        queue.add(key, priority=priority)
    queue.add("low", priority=-20)
    assert await drain(queue) == ["low", "high", "middle"]


async def test_unused_priorities_are_removed(clock) -> None:
    queue = a_queue(clock)
    for number in range(1000):
        queue.add("a", priority=-number)
        queue.add("b", priority=number)
    assert await drain(queue) == ["a", "b"]
    assert not queue._levels
    assert queue._order == []
