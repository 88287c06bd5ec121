"""Requests in flight per user."""

import asyncio

import pytest

from federation.base.errors import TooManyRequests
from federation.server.limits import Limiter, LimitOptions


async def test_requests_beyond_the_limit_wait_in_turn() -> None:
    limiter = Limiter(LimitOptions(reads_max=2))
    order: list[int] = []

    async def request(number: int) -> None:
        await limiter.enter("a", is_write=False)
        order.append(number)

    await request(0)
    await request(1)
    waiting = [asyncio.create_task(request(number)) for number in (2, 3)]
    await asyncio.sleep(0)
    assert order == [0, 1]
    limiter.leave("a", is_write=False)
    await waiting[0]
    assert order == [0, 1, 2]
    limiter.leave("a", is_write=False)
    await waiting[1]
    for _ in range(2):
        limiter.leave("a", is_write=False)
    assert not limiter._classes


async def test_users_and_classes_do_not_disturb_each_other() -> None:
    limiter = Limiter(LimitOptions(reads_max=1, writes_max=1, wait_s_max=0))
    await limiter.enter("a", is_write=False)
    await limiter.enter("a", is_write=True)
    await limiter.enter("b", is_write=False)
    with pytest.raises(TooManyRequests):
        await limiter.enter("a", is_write=False)


async def test_too_many_waiting_get_a_429_with_a_time_to_come_back() -> None:
    limiter = Limiter(LimitOptions(reads_max=1, waiting_max=0))
    await limiter.enter("a", is_write=False)
    with pytest.raises(TooManyRequests) as caught:
        await limiter.enter("a", is_write=False)
    assert caught.value.details == {"retryAfterSeconds": 1}


async def test_who_gives_up_waiting_leaves_no_trace() -> None:
    limiter = Limiter(LimitOptions(reads_max=1))
    await limiter.enter("a", is_write=False)
    first = asyncio.create_task(limiter.enter("a", is_write=False))
    second = asyncio.create_task(limiter.enter("a", is_write=False))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    limiter.leave("a", is_write=False)
    await second
    limiter.leave("a", is_write=False)
    assert not limiter._classes


async def test_a_place_given_to_someone_who_just_left_goes_to_the_next() -> None:
    limiter = Limiter(LimitOptions(reads_max=1))
    await limiter.enter("a", is_write=False)
    first = asyncio.create_task(limiter.enter("a", is_write=False))
    second = asyncio.create_task(limiter.enter("a", is_write=False))
    await asyncio.sleep(0)
    limiter.leave("a", is_write=False)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    await asyncio.wait_for(second, 1)


def test_watches_are_counted_over_all_users() -> None:
    limiter = Limiter(LimitOptions(watches_max=1))
    limiter.open_watch()
    with pytest.raises(TooManyRequests):
        limiter.open_watch()
    limiter.close_watch()
    limiter.open_watch()
    assert limiter.watches == 1
