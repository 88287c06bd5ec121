"""How long one owner's requests may hold the event loop."""

import asyncio
import itertools
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.apimachinery.clock import ManualClock
from federation.apimachinery.errors import TooManyRequests
from federation.apimachinery.usedtime import charged, in_thread, rest
from federation.apiserver.http.looptime import LoopTime, LoopTimeOptions

OPTIONS = LoopTimeOptions(free_s=0.01, burst_s=2.0, percent=20, waiting_max=4, rest_s_max=10.0)
Serve = Callable[[], Coroutine[Any, Any, None]]


def computing(clock: ManualClock, *steps_s: float, done: list[float] | None = None) -> Serve:
    """Return a request that computes for these times, with a pause after each."""

    async def serve() -> None:
        for step_s in steps_s:
            clock.skip(step_s)
            await asyncio.sleep(0)
        if done is not None:
            done.append(clock.monotonic())

    return serve


async def test_ordinary_requests_never_wait() -> None:
    clock = ManualClock()
    loop_time = LoopTime(OPTIONS, clock)
    for _ in range(10_000):
        await loop_time.serve("user:a", computing(clock, 0.009, 0.009))
    assert not loop_time._accounts


async def test_beyond_the_burst_an_owner_rests_until_his_share_covers_what_he_used() -> None:
    clock = ManualClock()
    loop_time = LoopTime(OPTIONS, clock)
    await loop_time.serve("user:a", computing(clock, 3.01))
    done: list[float] = []
    waiting = asyncio.create_task(loop_time.serve("user:a", computing(clock, done=done)))
    await clock.advance(4.9)
    assert not done
    await loop_time.serve("user:b", computing(clock, 0.5))  # others go on
    await clock.advance(0.2)
    assert done
    await waiting


async def test_requests_of_a_resting_owner_run_one_at_a_time() -> None:
    clock = ManualClock()
    loop_time = LoopTime(OPTIONS, clock)
    await loop_time.serve("user:a", computing(clock, 2.11))
    done: list[float] = []
    tasks = [asyncio.create_task(loop_time.serve("user:a", computing(clock, 0.21, done=done))) for _ in range(4)]
    await clock.advance(0)
    with pytest.raises(TooManyRequests):
        await loop_time.serve("user:a", computing(clock))
    await clock.advance(5)
    assert len(done) == 4
    # Each used 0.2 s beyond the free time, which his share covers after a second.
    assert all(later - earlier >= 0.99 for earlier, later in itertools.pairwise(done)), done
    await asyncio.gather(*tasks)


async def test_who_has_to_rest_for_long_is_refused_with_the_time_when_to_retry() -> None:
    clock = ManualClock()
    loop_time = LoopTime(OPTIONS, clock)
    await loop_time.serve("user:a", computing(clock, 5.01))
    with pytest.raises(TooManyRequests) as refused:
        await loop_time.serve("user:a", computing(clock))
    assert refused.value.to_status()["details"]["retryAfterSeconds"] == 15
    clock.skip(15.1)
    await loop_time.serve("user:a", computing(clock))


async def test_a_cancelled_request_gives_its_turn_back() -> None:
    clock = ManualClock()
    loop_time = LoopTime(OPTIONS, clock)
    await loop_time.serve("user:a", computing(clock, 2.51))
    first, second = (asyncio.create_task(loop_time.serve("user:a", computing(clock))) for _ in range(2))
    await clock.advance(1)
    first.cancel()
    await clock.advance(2)
    assert first.cancelled()
    await asyncio.wait_for(second, 60)
    assert loop_time._accounts["user:a"].waiting == 0


async def test_what_is_awaited_and_raised_passes_through() -> None:
    clock = ManualClock()
    loop_time = LoopTime(OPTIONS, clock)

    async def fail() -> None:
        try:
            await asyncio.wait_for(asyncio.Event().wait(), 0)
        except TimeoutError:
            clock.skip(1.01)
            raise ValueError("passed on") from None

    with pytest.raises(ValueError, match="passed on"):
        await loop_time.serve("user:a", fail)
    assert loop_time._accounts["user:a"].used.seconds == pytest.approx(1)


async def test_what_a_page_computes_counts_for_its_owner_and_requests_in_it_only_once() -> None:
    clock = ManualClock()
    loop_time = LoopTime(OPTIONS, clock)

    async def page() -> None:
        clock.skip(1.01)
        await asyncio.sleep(0)
        await loop_time.own_page("user:a")
        clock.skip(0.51)
        await loop_time.serve("user:a", computing(clock, 0.31))

    await loop_time.page(page)
    regained_s = 0.2 * (0.51 + 0.31)
    assert loop_time._accounts["user:a"].used.seconds == pytest.approx(1.0 + 0.5 + 0.3 - regained_s)


async def test_requests_rest_where_they_wait_for_their_clients_if_others_used_up_the_time_meanwhile() -> None:
    clock, done = ManualClock(), list[float]()
    loop_time = LoopTime(OPTIONS, clock)

    async def serve() -> None:
        await asyncio.sleep(0)
        await rest()
        clock.skip(2.11)
        done.append(clock.monotonic())

    tasks = [asyncio.create_task(loop_time.serve("user:a", serve)) for _ in range(3)]
    await clock.advance(0)
    assert len(done) == 1
    await clock.advance(60)
    assert len(done) == 3
    # Each used 2.1 s, which the owner's share covers after ten.
    assert all(later - earlier > 2.1 + 0.1 for earlier, later in itertools.pairwise(done)), done
    await asyncio.gather(*tasks)


async def test_a_stream_charges_only_what_it_says_and_what_threads_compute() -> None:
    clock = ManualClock()
    loop_time = LoopTime(OPTIONS, clock)

    async def serve() -> None:
        clock.skip(3)
        with charged():
            sum(range(1000))
        assert await in_thread(lambda: sum(range(1000))) == 499500
        with pytest.raises(ValueError, match="wrong"):
            await in_thread(lambda: int("wrong"))

    await loop_time.stream("user:a", serve)
    assert 0 < loop_time._accounts["user:a"].used.seconds < 1
    await loop_time.stream("system:", serve)
    assert set(loop_time._accounts) == {"user:a"}


async def test_accounts_of_those_who_rested_are_forgotten() -> None:
    clock = ManualClock()
    loop_time = LoopTime(OPTIONS, clock)
    await loop_time.serve("user:a", computing(clock, 1.01))
    clock.skip(5.1)
    await loop_time.serve("user:b", computing(clock, 1.01))
    assert set(loop_time._accounts) == {"user:b"}


@given(st.lists(st.floats(0, 3), min_size=1, max_size=30))
def test_no_owner_uses_more_than_burst_and_share_and_one_request(steps_s: list[float]) -> None:
    async def history() -> None:
        clock = ManualClock()
        loop_time = LoopTime(LoopTimeOptions(free_s=0, rest_s_max=float("inf")), clock)
        used = 0.0
        for step_s in steps_s:
            serving = asyncio.create_task(loop_time.serve("user:a", computing(clock, step_s)))
            await clock.advance(0)
            while not serving.done():
                await clock.advance(0.5)
            used += step_s
            assert used <= 2.0 + 0.2 * clock.monotonic() + step_s + 1e-6

    asyncio.run(history())
