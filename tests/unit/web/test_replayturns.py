"""One tenant's replays do not keep those of others waiting for ever."""

import asyncio

import pytest

from federation.apimachinery.errors import TooManyRequests
from federation.web.replayturns import ReplayTurns


async def hold(turns: ReplayTurns, tenant: str, ended: asyncio.Event, order: list[str]) -> None:
    async with turns.turn(tenant):
        order.append(tenant)
        await ended.wait()


async def refused(turns: ReplayTurns, tenant: str, text: str) -> None:
    with pytest.raises(TooManyRequests, match=text):
        async with turns.turn(tenant):
            pass


async def test_each_tenant_has_one_replay_and_they_come_in_turn() -> None:
    turns, ended, order = ReplayTurns(), asyncio.Event(), list[str]()
    async with asyncio.TaskGroup() as group:
        for tenant in ("a", "b", "c"):
            group.create_task(hold(turns, tenant, ended, order))
        await asyncio.sleep(0)
        for tenant in ("a", "b"):
            await refused(turns, tenant, "another replay is")
        assert order == ["a"]
        ended.set()
    assert order == ["a", "b", "c"]
    async with turns.turn("a"):
        pass


async def test_no_more_than_eight_tenants_wait() -> None:
    turns, ended, order = ReplayTurns(), asyncio.Event(), list[str]()
    async with asyncio.TaskGroup() as group:
        for number in range(8):
            group.create_task(hold(turns, str(number), ended, order))
        await asyncio.sleep(0)
        await refused(turns, "9", "8 replays are being computed or wait")
        ended.set()


async def test_a_turn_that_does_not_come_in_time_is_given_up() -> None:
    turns, ended, order = ReplayTurns(wait_s_max=0.01), asyncio.Event(), list[str]()
    async with asyncio.TaskGroup() as group:
        group.create_task(hold(turns, "a", ended, order))
        await asyncio.sleep(0)
        await refused(turns, "b", "take too long")
        await refused(turns, "b", "take too long")
        ended.set()
