"""How many requests of one client run at once: the others wait in turn, and too many waiting get a 429.

Reads and writes of a user are counted apart, so that a flood of lists does not keep its author from writing. Watches
are counted but never wait. Lives as long as the app; an idle user takes no memory.
"""

import asyncio
import contextlib
from collections import deque
from dataclasses import dataclass, field

from federation.base.errors import TooManyRequests


@dataclass(frozen=True, slots=True)
class LimitOptions:
    """Per user and class."""

    reads_max: int = 400
    """Requests in flight, as kube-apiserver's --max-requests-inflight."""
    writes_max: int = 200
    waiting_max: int = 4096
    wait_s_max: float = 30.0
    watches_max: int = 10_000
    """Of all users together."""


@dataclass(slots=True)
class _Class:
    running: int = 0
    waiting: "deque[asyncio.Future[None]]" = field(default_factory=deque)


class Limiter:
    """Counts requests in flight per (user, class)."""

    def __init__(self, options: LimitOptions) -> None:
        self._options = options
        self._classes: dict[tuple[str, bool], _Class] = {}
        self._watches = 0

    @property
    def watches(self) -> int:
        """Watches open now."""
        return self._watches

    async def enter(self, user: str, *, is_write: bool) -> None:
        """Take a place, in turn; TooManyRequests when too many wait already or the wait is too long."""
        key = (user, is_write)
        held = self._classes.get(key)
        if held is None:
            held = self._classes[key] = _Class()
        if held.running < (self._options.writes_max if is_write else self._options.reads_max):
            held.running += 1
            return
        if len(held.waiting) >= self._options.waiting_max:
            raise _too_many()
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        held.waiting.append(turn)
        try:
            async with asyncio.timeout(self._options.wait_s_max):
                await turn
        except (TimeoutError, asyncio.CancelledError) as error:
            if turn.done() and not turn.cancelled():
                # The place was handed over at the same moment: pass it on.
                self.leave(user, is_write=is_write)
            else:
                with contextlib.suppress(ValueError):
                    held.waiting.remove(turn)
            if isinstance(error, TimeoutError):
                raise _too_many() from error
            raise

    def leave(self, user: str, *, is_write: bool) -> None:
        """Give the place to the next who waits."""
        key = (user, is_write)
        held = self._classes[key]
        while held.waiting:
            turn = held.waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        held.running -= 1
        if not held.running:
            del self._classes[key]

    def open_watch(self) -> None:
        """Count a watch; TooManyRequests beyond the limit."""
        if self._watches >= self._options.watches_max:
            raise _too_many()
        self._watches += 1

    def close_watch(self) -> None:
        """A watch has ended."""
        self._watches -= 1


def _too_many() -> TooManyRequests:
    return TooManyRequests("Too many requests, please try again later.", details={"retryAfterSeconds": 1})
