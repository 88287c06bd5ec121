"""How long the requests of one owner hold the event loop. Nobody else is served while a request computes.

Only what a request computes at a stretch beyond `free_s` counts, so ordinary requests pay nothing; what threads compute
for it counts in full, and so do the forms of events that a watch asks for. Who has used up his burst is served one
request at a time, and rests after each, until his share of the time covers what he used. Requests that began earlier
rest where they wait for their client: nothing is held there that others need, or slow clients could hold it. An owner
is what connections count against: a user, or all ServiceAccounts of a namespace. The system has no limit.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import Counter

from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import TooManyRequests
from federation.apimachinery.usedtime import Stretch, paid_by
from federation.apiserver.http.connectionshares import SYSTEM

_rested = Counter(
    "federation_server_requests_rested_total",
    "Requests that waited because their user had held the event loop for long",
)


@dataclass(frozen=True, slots=True)
class LoopTimeOptions:
    """The share of an owner."""

    free_s: float = 0.01
    """The time that a request may compute at a stretch without being counted."""
    burst_s: float = 2.0
    """The time that an owner may use beyond his share before he has to rest."""
    percent: int = 20
    """Share of the time of the event loop."""
    waiting_max: int = 16
    """Requests of one owner that wait."""
    rest_s_max: float = 10.0
    """Requests of owners that would have to rest for longer are refused."""


@dataclass(frozen=True, slots=True)
class Used:
    """The time that an owner used beyond his share, in seconds, at `at_s`. It shrinks by his share of what passes."""

    seconds: float
    at_s: float

    def left(self, now_s: float, share: float) -> float:
        """Return what is left of it now."""
        return max(0.0, self.seconds - (now_s - self.at_s) * share)


@dataclass(slots=True)
class _Account:
    used: Used
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: int = 0


class LoopTime:
    """Accounts of those who used more than ordinary requests do; others have none."""

    def __init__(self, options: LoopTimeOptions, clock: Clock) -> None:
        self.options = options
        self._share = options.percent / 100
        self.clock = clock
        self._accounts: dict[str, _Account] = {}

    async def serve(self, owner: str, serve: Callable[[], Awaitable[None]]) -> None:
        """Await `serve()` when its owner may use the loop; TooManyRequests when he has to rest for long."""
        payer = _Payer(self, owner)
        account = self._accounts.get(owner)
        if account is None or (self.rest_s(owner) <= 0 and not account.waiting):
            await self._measured(payer, serve)
            return
        if (rest_s := self.rest_s(owner)) > self.options.rest_s_max:
            raise _refusal(rest_s)
        with self._waiting(account):
            async with account.turn:
                while (rest_s := self.rest_s(owner)) > 0:
                    await self.clock.sleep(rest_s)
                await self._measured(payer, serve)

    async def stream(self, owner: str, serve: Callable[[], Awaitable[None]]) -> None:
        """Await `serve()`, which lasts, when its owner may use the loop. It charges what is worth it by itself."""
        payer = _Payer(self, owner)
        await payer.rest()
        with paid_by(payer):
            await serve()

    async def page(self, serve: Callable[[], Awaitable[None]]) -> None:
        """Await `serve()`, and charge what it computes to the owner whom it names by `own_page`."""
        page = _Page(self)
        token = _page.set(page)
        try:
            await self._measured(page, serve)
        finally:
            _page.reset(token)

    async def own_page(self, owner: str) -> None:
        """Charge the present page to this owner, when he may use the loop."""
        if (page := _page.get()) is not None:
            page.belongs_to(owner)
            await page.rest()

    def rest_s(self, owner: str) -> float:
        """Return how long the owner has to rest from now on, in whole milliseconds."""
        account = self._accounts.get(owner)
        if account is None:
            return 0.0
        left_s = account.used.left(self.clock.monotonic(), self._share)
        return round((left_s - self.options.burst_s) / self._share, 3)

    async def rest(self, owner: str) -> None:
        """Wait until the owner may go on. Those who wait go on one after the other, as each sees what the last used."""
        while (rest_s := self.rest_s(owner)) > 0:
            if rest_s > self.options.rest_s_max:
                raise _refusal(rest_s)
            await self.clock.sleep(rest_s)

    def charge(self, owner: str, seconds: float) -> None:
        """Count time that the owner used."""
        now_s = self.clock.monotonic()
        account = self._accounts.get(owner)
        if account is None:
            self._forget_settled(now_s)
            account = self._accounts[owner] = _Account(Used(0.0, now_s))
        account.used = Used(account.used.left(now_s, self._share) + seconds, now_s)

    async def _measured(self, payer: "_Payer | _Page", serve: Callable[[], Awaitable[None]]) -> None:
        with paid_by(payer):
            await _Measured(serve(), self.options.free_s, self.clock.monotonic, payer.charge)

    @contextmanager
    def _waiting(self, account: _Account) -> Iterator[None]:
        if account.waiting >= self.options.waiting_max:
            raise _refusal(1.0)
        _rested.inc()
        account.waiting += 1
        try:
            yield
        finally:
            account.waiting -= 1

    def _forget_settled(self, now_s: float) -> None:
        for owner, account in list(self._accounts.items()):
            if not account.waiting and not account.used.left(now_s, self._share):
                del self._accounts[owner]


def _refusal(rest_s: float) -> TooManyRequests:
    return TooManyRequests(
        "your requests took the server long to compute: send smaller objects, or fewer requests at a time",
        details={"retryAfterSeconds": math.ceil(max(rest_s, 1.0))},
    )


class _Payer:
    """The account of a request's owner."""

    __slots__ = ("_loop_time", "_owner")

    def __init__(self, loop_time: LoopTime, owner: str) -> None:
        self._loop_time = loop_time
        self._owner = owner

    def charge(self, seconds: float) -> None:
        if self._owner != SYSTEM:
            self._loop_time.charge(self._owner, seconds)

    async def rest(self) -> None:
        if self._owner != SYSTEM:
            await self._loop_time.rest(self._owner)


class _Page:
    """The time that a page used. Its owner is known when the page has read its session."""

    def __init__(self, loop_time: LoopTime) -> None:
        self._loop_time = loop_time
        self._payer: _Payer | None = None
        self._used_s = 0.0

    def belongs_to(self, owner: str) -> None:
        """Charge this owner from now on, and for what was used before."""
        if self._payer is None:
            self._payer = _Payer(self._loop_time, owner)
            if self._used_s:
                self._payer.charge(self._used_s)

    def charge(self, seconds: float) -> None:
        if self._payer is None:
            self._used_s += seconds
        else:
            self._payer.charge(seconds)

    async def rest(self) -> None:
        if self._payer is not None:
            await self._payer.rest()


_page: ContextVar[_Page | None] = ContextVar("page", default=None)


class _Measured(Generator[Any, Any, None]):
    """Awaits something and charges what each of its steps takes beyond `free_s`. It is its own iterator of steps."""

    __slots__ = ("_charge", "_free_s", "_now_s", "_steps")

    def __init__(
        self, awaited: Awaitable[None], free_s: float, now_s: Callable[[], float], charge: Callable[[float], None]
    ) -> None:
        self._steps: Any = awaited.__await__()
        self._free_s = free_s
        self._now_s = now_s
        self._charge = charge

    def __await__(self) -> "_Measured":
        return self

    def __next__(self) -> Any:
        return self._measure(self._steps.__next__)

    def send(self, value: Any) -> Any:
        """Go on with the value of what was awaited."""
        return self._measure(self._steps.send, value)

    def throw(self, *error: Any) -> Any:
        """Raise an error where the awaited waits, as a cancellation does."""
        return self._measure(self._steps.throw, *error)

    def _measure(self, step: Callable[..., Any], *arguments: Any) -> Any:
        stretch = Stretch(self._now_s)
        try:
            return step(*arguments)
        finally:
            took_s = stretch.end()
            if took_s > self._free_s:
                self._charge(took_s - self._free_s)
