"""Work at the start on a host that is still preparing the storage of a definition."""

import asyncio

import pytest

from federation.apimachinery.clock import ManualClock
from federation.apimachinery.errors import TooManyRequests
from federation.hosting.installation import while_preparing


async def finished(clock: ManualClock, working: "asyncio.Task[None]") -> None:
    async with asyncio.timeout(60):
        while not working.done():
            await clock.advance(1)
        await working


async def test_work_is_repeated_until_the_host_has_prepared_its_storage() -> None:
    clock, answers = ManualClock(), [TooManyRequests("storage is (re)initializing"), None]

    async def work() -> None:
        if (answer := answers.pop(0)) is not None:
            raise answer

    await finished(clock, asyncio.create_task(while_preparing(clock, work)))
    assert not answers


async def test_a_host_that_never_has_it_ends_the_start() -> None:
    clock = ManualClock()

    async def work() -> None:
        raise TooManyRequests("storage is (re)initializing")

    with pytest.raises(TooManyRequests):
        await finished(clock, asyncio.create_task(while_preparing(clock, work)))
    assert clock.monotonic() > 30
