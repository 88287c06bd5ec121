"""The time that many tasks together may use of each iteration of the event loop.

The workers of one controller share a slice. If each had its own, hundreds of workers with a backlog would block the
loop for seconds: watches and probes of members would time out, and members that answer would be published as
unreachable. A worker without time waits here before it takes a key, so that the next key taken is the most urgent one
at that moment. All lists of members share a slice, too. Read `controller.py` and `informer.py` next.

Decision: docs/decisions/0077-lists-of-members-share-time.md
"""

import asyncio
import contextlib
import weakref
from collections import deque
from collections.abc import AsyncIterator, Iterator, Sequence

from federation.apimachinery.clock import Clock
from federation.apimachinery.resources import Object

_REPLAY_S = 0.002
_REPLAY_KEYS_MAX = 64
_LISTS_S = 0.01
_LISTS_BESIDE_HOST_S = 0.001
"""The time of members' lists while one of the host is under way, which new objects wait for."""
_LISTS_MAX = 64
_PART = 10
"""Objects of a member's list to apply before the informer asks for time again: about a millisecond."""
_PART_UNLIMITED = 100
_RELEASED = 16
"""Tasks that are woken in one iteration: enough to use the time although each soon waits for a response."""


_Slices = weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, "TimeSlice"]
"""A slice must refer neither to its event loop nor to a clock, whose sleepers do: that would keep the loop forever."""
_replays: _Slices = weakref.WeakKeyDictionary()
_lists: _Slices = weakref.WeakKeyDictionary()
_host_lists: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, int] = weakref.WeakKeyDictionary()
"""The number of the host's lists that are under way."""


def replay_slice() -> "TimeSlice":
    """Return the time for keys of a replay: one slice for all controllers of the running event loop.

    After a start, lists and the objects that users change share the loop with the check of everything that exists.
    """
    return _replays.setdefault(asyncio.get_running_loop(), TimeSlice(_REPLAY_S, _REPLAY_KEYS_MAX))


def list_slice() -> "TimeSlice":
    """Return the time for objects of members' lists: one slice for all informers of the running event loop.

    After a start, the lists of all members arrive at once. Without a common limit every step of a new object, an
    iteration of the loop, would wait for a part of each list. The lists of the host have no limit, because new objects
    wait for them, and beside them the members' lists get a tenth of their time.
    """
    return _lists.setdefault(asyncio.get_running_loop(), TimeSlice(_LISTS_S, _LISTS_MAX))


@contextlib.contextmanager
def host_list() -> Iterator[None]:
    """Leave members' lists little time within the block, in which a list of the host is under way."""
    loop, lists = asyncio.get_running_loop(), list_slice()
    _host_lists[loop] = _host_lists.get(loop, 0) + 1
    lists.limit_s = _LISTS_BESIDE_HOST_S
    try:
        yield
    finally:
        _host_lists[loop] -= 1
        if not _host_lists[loop]:
            lists.limit_s = _LISTS_S


async def in_turns(objects: Sequence[Object], clock: Clock, *, is_limited: bool) -> AsyncIterator[Sequence[Object]]:
    """Yield the parts of a page of a list, each when there is time for it; other tasks run in between."""
    size = _PART if is_limited else _PART_UNLIMITED
    for start in range(0, len(objects), size):
        await (list_slice().turn(clock) if is_limited else asyncio.sleep(0))
        yield objects[start : start + size]


class TimeSlice:
    """A limit in seconds, and in keys: the clock of a simulation stands still during an iteration."""

    def __init__(self, limit_s: float, keys_max: int) -> None:
        self.limit_s = limit_s
        """Of the next iteration; it may be changed."""
        self._keys_max = keys_max
        self._end_s = 0.0
        self._keys = 0
        self._is_open = False
        self._is_renewal_due = False
        self._waiters: deque[asyncio.Future[None]] = deque()

    def take(self, now_s: float) -> bool:
        """Return True if the caller may process one more key, or one more part of a list, in this iteration.

        `now_s` is the `monotonic` time of a clock, the same one in each call.
        """
        if not self._is_open:
            self._is_open, self._end_s, self._keys = True, now_s + self.limit_s, 0
            self._renew_soon()
        elif self._keys >= self._keys_max or now_s >= self._end_s:
            return False
        self._keys += 1
        return True

    async def wait(self) -> None:
        """Wait for a later iteration; there may be no time left then, either."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter in self._waiters:
                self._waiters.remove(waiter)
            raise

    async def turn(self, clock: Clock) -> None:
        """Return when there is time; the caller may use it until it awaits, and asks again soon."""
        while not self.take(clock.monotonic()):
            await self.wait()

    def _renew_soon(self) -> None:
        if not self._is_renewal_due:
            self._is_renewal_due = True
            asyncio.get_running_loop().call_soon(self._renew)

    def _renew(self) -> None:
        self._is_open = self._is_renewal_due = False
        for _ in range(min(_RELEASED, len(self._waiters))):
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
        if self._waiters:
            self._renew_soon()
