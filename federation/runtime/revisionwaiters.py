"""Callers that wait until a cache has reached a revision, which the informer of the cache wakes.

It lives as long as its informer.
"""

import asyncio
import heapq
import itertools

from federation.apimachinery.clock import Clock


class RevisionWaiters:
    """The callers that wait, by revision."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiters: list[tuple[int, int, asyncio.Future[bool]]] = []
        self._sequence = itertools.count()

    async def wait(self, revision: int, timeout_s: float) -> bool:
        """Wait until the revision is reached and return True, or False after `timeout_s`."""
        waiter: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiters, (revision, next(self._sequence), waiter))
        deadline = asyncio.ensure_future(self._clock.sleep(timeout_s))
        try:
            await asyncio.wait((waiter, deadline), return_when=asyncio.FIRST_COMPLETED)
            return waiter.done()
        finally:
            deadline.cancel()
            waiter.cancel()

    def __bool__(self) -> bool:
        return bool(self._waiters)

    def reach(self, revision: int) -> None:
        """Wake the callers that wait for this revision or an earlier one."""
        while self._waiters and self._waiters[0][0] <= revision:
            waiter = heapq.heappop(self._waiters)[2]
            if not waiter.done():
                waiter.set_result(True)
