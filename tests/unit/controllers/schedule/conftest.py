"""The schedule controller among three clusters that are named like their regions."""

from collections.abc import AsyncIterator

import pytest
from tests.support.schedule_world import World, schedule_world


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """The controller at work against a registry in memory."""
    async with schedule_world() as world:
        for name in ("east", "north", "west"):
            await world.cluster(name, labels={"region": name})
        yield world
