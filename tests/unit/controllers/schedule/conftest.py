"""The schedule controller with three clusters named like their regions."""

from collections.abc import AsyncIterator

import pytest
from tests.support.schedule_harness import Harness, schedule_harness


@pytest.fixture
async def harness() -> AsyncIterator[Harness]:
    """A running schedule controller on a registry in memory."""
    async with schedule_harness() as harness:
        for name in ("east", "north", "west"):
            await harness.cluster(name, labels={"region": name})
        yield harness
