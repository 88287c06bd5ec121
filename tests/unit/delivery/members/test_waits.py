"""A reconcile waits for the results of fast members: until they are recorded, not only until they are there."""

import asyncio
from typing import Any

from federation.apimachinery.clock import ManualClock
from federation.delivery.members.memberoperations import wait_for_results
from federation.delivery.members.propagation import StartedOperation


def an_operation(cluster: str) -> StartedOperation:
    """Return an operation whose result is recorded by a callback of its future."""
    started = StartedOperation(cluster, asyncio.get_running_loop().create_future())

    def record(_: Any) -> None:
        started.is_recorded = True

    started.future.add_done_callback(record)
    return started


async def test_a_result_that_has_just_come_is_recorded_before_the_wait_ends() -> None:
    started: Any = an_operation("east")
    started.future.set_result(None)
    assert not started.is_recorded
    await wait_for_results(ManualClock(), [started], lambda _: False, 5.0)
    assert started.is_recorded


async def test_nobody_waits_for_a_slow_member() -> None:
    fast, slow = an_operation("east"), an_operation("west")
    waiting = asyncio.ensure_future(wait_for_results(ManualClock(), [fast, slow], lambda name: name == "west", 5.0))
    await asyncio.sleep(0)
    assert not waiting.done()
    fast.future.set_result(None)  # type: ignore[arg-type]  # the outcome does not matter here
    await waiting
    assert not slow.future.done()
