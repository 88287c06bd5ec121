"""Whose replay is computed next: one at a time, one for each tenant, so that none keeps the others waiting.

A tenant is a Project, or a namespace outside of one. A second replay of a tenant is refused until the first has ended.
Those of others wait in the order in which they came, for a limited time: a replay takes a minute at most.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from federation.apimachinery.errors import TooManyRequests

_WAIT_S_MAX = 120.0
_TENANTS_MAX = 8
"""Replays that are computed or wait."""


class ReplayTurns:
    """The replays that are computed or wait."""

    def __init__(self, wait_s_max: float = _WAIT_S_MAX) -> None:
        self._wait_s_max = wait_s_max
        self._computing = asyncio.Lock()
        self._tenants: set[str] = set()

    @asynccontextmanager
    async def turn(self, tenant: str) -> AsyncIterator[None]:
        """Wait for the tenant's turn, and hold it for the block; TooManyRequests if there is none in time."""
        if tenant in self._tenants:
            raise TooManyRequests("another replay is being computed or waits; try again in a minute")
        if len(self._tenants) >= _TENANTS_MAX:
            raise TooManyRequests(f"{_TENANTS_MAX} replays are being computed or wait; try again in a minute")
        self._tenants.add(tenant)
        try:
            try:
                async with asyncio.timeout(self._wait_s_max):
                    await self._computing.acquire()
            except TimeoutError as error:
                raise TooManyRequests("the replays of others take too long; try again in a minute") from error
            try:
                yield
            finally:
                self._computing.release()
        finally:
            self._tenants.remove(tenant)
