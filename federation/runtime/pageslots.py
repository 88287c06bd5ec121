"""A limit on the pages of pods that are in memory at once, over all members.

A page is some megabytes of text until its pods are counted, which takes longer than to receive it. When a control plane
starts with 1,000 members that have many pods, a page of each would be a gigabyte. So a page is requested when it has a
slot, and keeps the slot until its pods are counted.

A member that does not answer must not hold the slots of others. It gives the slot back after `patience_s`, and from
then on its pages are requested without a slot, and get one when they are there, until it answers fast again.

Decision: docs/decisions/0080-pages-of-lists.md
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from federation.apimachinery.clock import Clock
from federation.client.client import ObjectPage
from federation.runtime.listpages import Fetch

_SLOTS = 8
_PATIENCE_S = 2.0


class PageSlots:
    """The slots of all members; each member has its own `PageSlot`."""

    def __init__(self, clock: Clock, *, slots: int = _SLOTS, patience_s: float = _PATIENCE_S) -> None:
        self.clock = clock
        self.free = asyncio.Semaphore(slots)
        self.patience_s = patience_s


class PageSlot:
    """Fetches the pages of one member, one at a time."""

    def __init__(self, slots: PageSlots) -> None:
        self._slots = slots
        self._is_slow = False

    @contextlib.asynccontextmanager
    async def hold(self, fetch: Fetch) -> AsyncIterator[ObjectPage]:
        """Fetch a page and yield it; it has a slot until the block ends."""
        slots = self._slots
        request: asyncio.Future[ObjectPage] | None = None
        try:
            if not self._is_slow:
                async with slots.free:
                    request = asyncio.ensure_future(fetch())
                    if await self._answers(request):
                        yield await request
                        return
            began_s = slots.clock.monotonic()
            page = await (request or fetch())
            self._is_slow = request is not None or slots.clock.monotonic() - began_s > slots.patience_s
            async with slots.free:
                yield page
        finally:
            if request is not None:
                request.cancel()
            # A failed request refers to this frame: without the cycle, what its error holds is freed at once.
            del request

    async def _answers(self, request: "asyncio.Future[ObjectPage]") -> bool:
        """Wait for the answer; return False, and remember that the member is slow, when patience ends first."""
        patience = asyncio.ensure_future(self._slots.clock.sleep(self._slots.patience_s))
        try:
            await asyncio.wait((request, patience), return_when=asyncio.FIRST_COMPLETED)
        finally:
            patience.cancel()
        self._is_slow = not request.done()
        return request.done()
