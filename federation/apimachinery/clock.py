"""Time as an argument: the only module that reads the machine's clock.

Acting code takes a `Clock`, pure code takes `now`. `SystemClock` is real; `ManualClock` is virtual, for unit tests and
scenarios: it moves only by `advance` and wakes sleepers in the order of their deadlines.
"""

import asyncio
import heapq
import itertools
import time
from datetime import UTC, datetime
from typing import Any, Protocol

CLOCKS_DIFFER_S = 60.0
"""How far clocks of two machines may differ without being wrong."""


class Clock(Protocol):
    """Time for acting code."""

    def now(self) -> datetime:
        """Return the wall-clock time, timezone-aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never go backwards, from an arbitrary origin."""
        ...

    async def sleep(self, delay_s: float) -> None:
        """Return after `delay_s` seconds of this clock."""
        ...


class SystemClock:
    """The machine's clock."""

    monotonic = staticmethod(time.monotonic)

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def sleep(self, delay_s: float) -> None:
        await asyncio.sleep(delay_s)


_STEP_S = 0.1
"""The smallest step of `ManualClock.pass_time`."""


class ManualClock:
    """A clock that moves only by `advance`; sleepers wake in deadline order."""

    def __init__(self, start: datetime | None = None) -> None:
        self._origin = start or datetime(2026, 1, 1, tzinfo=UTC)
        self._elapsed_s = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = itertools.count()

    def now(self) -> datetime:
        return datetime.fromtimestamp(self._origin.timestamp() + self._elapsed_s, UTC)

    def monotonic(self) -> float:
        return self._elapsed_s

    async def sleep(self, delay_s: float) -> None:
        if delay_s <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._elapsed_s + delay_s, next(self._order), woken))
        await woken

    @property
    def next_deadline_s(self) -> float | None:
        """The `monotonic` time of the next wake-up, None without sleepers."""
        while self._sleepers and self._sleepers[0][2].done():
            heapq.heappop(self._sleepers)
        return self._sleepers[0][0] if self._sleepers else None

    async def advance(self, delay_s: float) -> None:
        """Move time forward by `delay_s`; each sleeper wakes at its deadline and runs before time moves on."""
        target = self._elapsed_s + delay_s
        while (deadline := self.next_deadline_s) is not None and deadline <= target:
            self._elapsed_s = max(self._elapsed_s, deadline)
            heapq.heappop(self._sleepers)[2].set_result(None)
            await _run_ready_tasks()
        self._elapsed_s = target
        await _run_ready_tasks()

    async def pass_time(self, delay_s: float) -> None:
        """Move time forward in small steps, because chains of tasks may need several; while nothing is due, in one."""
        until_s = self._elapsed_s + delay_s
        while (left_s := until_s - self._elapsed_s) > 1e-6:
            due_s = self.next_deadline_s
            idle_s = left_s if due_s is None else due_s - self._elapsed_s
            await self.advance(min(left_s, max(idle_s, _STEP_S)))

    def skip(self, delay_s: float) -> None:
        """Move time forward without waking anybody, as if the machine was suspended; the next `advance` wakes them."""
        self._elapsed_s += delay_s


async def _run_ready_tasks() -> None:
    # A woken task usually wakes others. Twenty rounds let such chains finish at the same virtual time.
    loop = asyncio.get_running_loop()
    for _ in range(20):
        await asyncio.sleep(0)
        if _is_idle(loop):
            return


def _is_idle(loop: asyncio.AbstractEventLoop) -> bool:
    """Return whether no task can go on before time does. False if unknown: threads and sockets can wake one, too."""
    ready = getattr(loop, "_ready", None)
    if ready is None or ready or getattr(loop, "_default_executor", None) is not None:
        return False
    return len(loop._selector.get_map()) == 1  # type: ignore[attr-defined]  # the loop's own pipe


def to_rfc3339(moment: datetime) -> str:
    """Return the text of a Kubernetes `Time`, in whole seconds and UTC: 2026-01-01T00:00:00Z."""
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='seconds')}Z"


def to_rfc3339_micro(moment: datetime) -> str:
    """Return the text of a Kubernetes `MicroTime`, as in Leases and Events."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def is_ahead(moment: datetime, now: datetime) -> bool:
    """Return whether a time that was stored as the past was written by a process whose clock was ahead.

    What counts from such a time would wait for as long as the clock was ahead: a year, if its year was wrong.
    """
    return (moment - now).total_seconds() > CLOCKS_DIFFER_S


def lead_s(before: datetime, there: datetime, after: datetime) -> float:
    """Return how far this clock is ahead of one that was read between `before` and `after`; 0 if they may agree."""
    if there < before:
        return (before - there).total_seconds()
    return min(0.0, (after - there).total_seconds())


def from_rfc3339(text: str) -> datetime:
    """Return the datetime of a Kubernetes `Time` or `MicroTime`; ValueError for any other text."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    return moment


def parse_rfc3339(value: Any) -> datetime | None:
    """Return a time that another server wrote; None when it is absent or malformed."""
    try:
        return from_rfc3339(value) if isinstance(value, str) else None
    except ValueError:
        return None
