"""How long the requests of one owner hold the event loop. Nobody else is served while a request computes.

Only what a request computes at a stretch beyond `free_s` counts, so ordinary requests pay nothing. Who has used up his
burst is served one request at a time, and rests after each, until his share of the time covers what he used. An owner
is what connections count against: a user, or all ServiceAccounts of a namespace. The system has no limit.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable, Generator
from dataclasses import dataclass, field
from typing import Any

from prometheus_client import Counter

from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import TooManyRequests

_rested = Counter(
    "federation_server_requests_rested_total",
    "Requests that waited because their user had held the event loop for long",
)


@dataclass(frozen=True, slots=True)
class LoopTimeOptions:
    """The share of an owner."""

    free_s: float = 0.01
    """What a request may compute at a stretch without being counted."""
    burst_s: float = 2.0
    """What an owner may use beyond his share before he has to rest."""
    percent: int = 20
    """Share of the time of the event loop."""
    waiting_max: int = 16
    """Requests of one owner that wait."""
    rest_s_max: float = 10.0
    """Who has to rest for longer is refused."""


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
        self._options = options
        self._share = options.percent / 100
        self._clock = clock
        self._accounts: dict[str, _Account] = {}

    async def serve(self, owner: str, serve: Callable[[], Awaitable[None]]) -> None:
        """Await `serve()` when its owner may use the loop; TooManyRequests when he has to rest for long."""
        account = self._accounts.get(owner)
        rest_s = 0.0 if account is None else self._rest_s(account)
        if account is None or (rest_s <= 0 and not account.waiting):
            await self._measured(owner, serve)
            return
        if account.waiting >= self._options.waiting_max or rest_s > self._options.rest_s_max:
            raise TooManyRequests(
                "your requests took the server long to compute: send smaller objects, or fewer requests at a time",
                details={"retryAfterSeconds": math.ceil(max(rest_s, 1.0))},
            )
        _rested.inc()
        account.waiting += 1
        try:
            async with account.turn:
                while (rest_s := self._rest_s(account)) > 0:
                    await self._clock.sleep(rest_s)
                await self._measured(owner, serve)
        finally:
            account.waiting -= 1

    def _rest_s(self, account: _Account) -> float:
        """Return how long the owner has to rest from now on, in whole milliseconds."""
        return round((account.used.left(self._clock.monotonic(), self._share) - self._options.burst_s) / self._share, 3)

    async def _measured(self, owner: str, serve: Callable[[], Awaitable[None]]) -> None:
        measured = _Measured(serve(), self._options.free_s, self._clock.monotonic)
        try:
            await measured
        finally:
            if measured.excess_s:
                self._charge(owner, measured.excess_s)

    def _charge(self, owner: str, seconds: float) -> None:
        now_s = self._clock.monotonic()
        account = self._accounts.get(owner)
        if account is None:
            self._forget_settled(now_s)
            account = self._accounts[owner] = _Account(Used(0.0, now_s))
        account.used = Used(account.used.left(now_s, self._share) + seconds, now_s)

    def _forget_settled(self, now_s: float) -> None:
        for owner, account in list(self._accounts.items()):
            if not account.waiting and not account.used.left(now_s, self._share):
                del self._accounts[owner]


class _Measured(Generator[Any, Any, None]):
    """Awaits something and adds up what each of its steps takes beyond `free_s`. It is its own iterator of steps."""

    __slots__ = ("_free_s", "_now_s", "_steps", "excess_s")

    def __init__(self, awaited: Awaitable[None], free_s: float, now_s: Callable[[], float]) -> None:
        self._steps: Any = awaited.__await__()
        self._free_s = free_s
        self._now_s = now_s
        self.excess_s = 0.0

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
        began_s = self._now_s()
        try:
            return step(*arguments)
        finally:
            took_s = self._now_s() - began_s
            if took_s > self._free_s:
                self.excess_s += took_s - self._free_s
