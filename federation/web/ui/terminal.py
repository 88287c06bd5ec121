"""A terminal in a container: the WebSocket of a page, joined to `pods/exec` of the API with the rights of the user.

The request goes through the server's own app as every request of a page (`userapi.py`), so host and member authorize
it, and it is audited. The page speaks Kubernetes' channel protocol itself; nothing is parsed here but the first byte of
each message. A session ends when nobody types, after its longest time, when the token is refused, and soon after the
user may no longer open one, here or in the cluster.

Decision: docs/decisions/0148-a-terminal-is-a-request-of-the-user.md
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import orjson

from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import ApiError, TooManyRequests
from federation.apiserver.http.websockets import ClientSocket
from federation.web.ui.userapi import UserAPI

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
_STDIN, _ERROR, _RESIZE, _CLOSE = 0, 3, 4, 255
_FROM_PAGE = frozenset({_STDIN, _RESIZE, _CLOSE})
_NORMAL, _POLICY, _TOO_BIG = 1000, 1008, 1009


@dataclass(frozen=True, slots=True)
class TerminalOptions:
    """Limits of terminals in pages."""

    per_user_max: int = 10
    """Open terminals of one user, in this process."""
    idle_s_max: float = 15 * 60.0
    """A terminal ends after this time without input from the user, even if its program still writes."""
    length_s_max: float = 8 * 3600.0
    """A terminal ends after this time; a working day."""
    check_s: float = 10.0
    """Time between two questions whether the user may still have it."""
    message_bytes_max: int = 64 * 1024
    """The largest message of a page; what is pasted is sent in smaller ones."""


class TerminalSocket:
    """The page's side, as `pods/exec` sees it: it passes on what a page may send, and knows when somebody typed."""

    def __init__(self, page: ClientSocket, clock: Clock, bytes_max: int) -> None:
        self._page = page
        self._clock = clock
        self._bytes_max = bytes_max
        self.subprotocols: Sequence[str] = [name for name in page.subprotocols if name in PROTOCOLS]
        self.is_accepted = False
        self.typed_s = clock.monotonic()

    async def accept(self, subprotocol: str) -> None:
        """Answer the page's handshake."""
        self.is_accepted = True
        await self._page.accept(subprotocol)

    def carry_body(self) -> None:
        """Do nothing: only commands are opened here."""

    async def receive(self) -> str | bytes | None:
        """Return the next message of the page; None at its end, or when it sends what no page of ours does."""
        message = await self._page.receive()
        if message is None:
            return None
        if not isinstance(message, bytes) or not message or message[0] not in _FROM_PAGE:
            await self._page.close(_POLICY)
            return None
        if len(message) > self._bytes_max:
            await self._page.close(_TOO_BIG)
            return None
        if message[0] == _STDIN:
            self.typed_s = self._clock.monotonic()
        return message

    async def send(self, message: str | bytes) -> None:
        """Pass a message on to the page."""
        await self._page.send(message)

    async def close(self, code: int) -> None:
        """Close the page's connection."""
        await self._page.close(code)

    async def end(self, reason: str) -> None:
        """Tell the page why there is no terminal, or no longer one: a browser shows nothing of a refused handshake."""
        if not self.is_accepted:
            await self.accept(self.subprotocols[0])
        await self._page.send(bytes([_ERROR]) + orjson.dumps({"status": "Failure", "message": reason}))
        await self._page.close(_NORMAL)


@dataclass(frozen=True, slots=True)
class PreparedTerminal:
    """A request for `pods/exec`, and a function that returns why the user may not have it any more, "" if he may."""

    path: str
    query: Sequence[tuple[str, str]]
    why_not: Callable[[], Awaitable[str]]


class Terminals:
    """The open terminals of one process."""

    def __init__(self, clock: Clock, options: TerminalOptions | None = None) -> None:
        self._clock = clock
        self._options = options or TerminalOptions()
        self._open: Counter[str] = Counter()

    async def run(
        self, api: UserAPI, user: str, page: ClientSocket, prepare: Callable[[], Awaitable[PreparedTerminal]]
    ) -> None:
        """Serve the terminal of a page until one side ends; an ApiError of `prepare` is shown there."""
        socket = TerminalSocket(page, self._clock, self._options.message_bytes_max)
        try:
            with self._counted(user):
                await self._run(api, socket, await prepare())
        except ApiError as error:
            await socket.end(error.message)

    async def _run(self, api: UserAPI, socket: TerminalSocket, prepared: PreparedTerminal) -> None:
        serving = asyncio.ensure_future(api.connect(prepared.path, prepared.query, socket))
        limit = asyncio.ensure_future(self._until_over(socket, prepared.why_not))
        try:
            await asyncio.wait((serving, limit), return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                if refusal := serving.result():
                    await socket.end(refusal)
                return
        finally:
            for task in (serving, limit):
                task.cancel()
            await asyncio.gather(serving, limit, return_exceptions=True)
        await socket.end(limit.result())

    @contextmanager
    def _counted(self, user: str) -> Iterator[None]:
        most = self._options.per_user_max
        if self._open[user] >= most:
            raise TooManyRequests(f"{most} terminals of yours are open; close one")
        self._open[user] += 1
        try:
            yield
        finally:
            self._open[user] -= 1
            if not self._open[user]:
                del self._open[user]

    async def _until_over(self, socket: TerminalSocket, why_not: Callable[[], Awaitable[str]]) -> str:
        """Return why the terminal must end, when it must."""
        options, began_s = self._options, self._clock.monotonic()
        while True:
            await self._clock.sleep(options.check_s)
            now_s = self._clock.monotonic()
            if now_s - socket.typed_s >= options.idle_s_max:
                return f"nobody typed for {options.idle_s_max / 60:g} minutes"
            if now_s - began_s >= options.length_s_max:
                return f"a terminal ends after {options.length_s_max / 3600:g} hours; open another one"
            if reason := await why_not():
                return reason
