"""A process whose clock is wrong does not lead."""

import asyncio
from datetime import datetime, timedelta

import pytest

from federation.api import names
from federation.apimachinery.clock import ManualClock
from federation.apimachinery.resources import NAMESPACES
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.client.local import LocalClient
from federation.leadership import Leadership, clock_problem
from federation.runtime.leaderelection import LeaderOptions

YEAR_S = 365 * 86_400


@pytest.mark.parametrize("lead_s", [0.0, 5.0, -59.0, 60.0])
def test_small_differences_are_no_problem(lead_s) -> None:
    assert clock_problem(lead_s) == ""


@pytest.mark.parametrize(("lead_s", "text"), [(601, "601 s ahead of"), (-601, "601 s behind"), (YEAR_S, "ahead of")])
def test_a_problem_says_which_clock_is_where(lead_s, text) -> None:
    assert text in clock_problem(lead_s)


@pytest.mark.parametrize("offset_s", [-600, 600, -YEAR_S, YEAR_S, 0])
async def test_only_a_process_whose_clock_agrees_with_the_database_leads(offset_s) -> None:
    clock = ManualClock()
    registry = Registry(MemoryStore(clock=clock), clock=clock)
    await registry.start()
    led: list[float] = []

    async def database_now() -> datetime:
        return clock.now() - timedelta(seconds=offset_s)

    async def lead() -> None:
        led.append(clock.monotonic())
        await asyncio.Event().wait()

    client = LocalClient(registry)
    await client.create(NAMESPACES, {"metadata": {"name": names.SYSTEM_NAMESPACE}})
    leadership = Leadership(client, LeaderOptions(), clock, database_now)
    running = asyncio.ensure_future(leadership.run(lead))
    await clock.advance(60)
    assert bool(led) is (offset_s == 0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
