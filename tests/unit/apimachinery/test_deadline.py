"""`Deadline` behaves as `asyncio.timeout`."""

import asyncio

import pytest

from federation.apimachinery.deadline import Deadline


async def test_a_block_past_its_deadline_raises_timeout_error() -> None:
    with pytest.raises(TimeoutError), Deadline(0.001):
        await asyncio.Event().wait()
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_block_within_its_deadline_is_unaffected() -> None:
    with Deadline(60):
        await asyncio.sleep(0)
    with Deadline(0.001):
        pass  # nothing that could last
    await asyncio.sleep(0.005)


async def test_an_error_of_the_block_is_raised_unchanged() -> None:
    with pytest.raises(KeyError), Deadline(10):
        raise KeyError("a")


async def test_a_cancellation_from_outside_is_not_a_timeout() -> None:
    async def work() -> None:
        with Deadline(10):
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
