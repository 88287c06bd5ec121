from collections.abc import AsyncIterator

import pytest
from tests.unit.controllers.hosting import Host, a_host


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    async with a_host() as running:
        yield running
