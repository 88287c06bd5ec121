"""Answers that are still arriving, and open WebSocket connections, without their transport in the interface."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

from federation.client.body import Body
from federation.client.wire import Incoming

if TYPE_CHECKING:
    import aiohttp


class Stream:
    """A response whose body is still arriving."""

    def __init__(self, server: str, incoming: Incoming, timeout_s: float, bytes_max: int) -> None:
        self.status = incoming.head.status
        self._server = server
        self._incoming = incoming
        self._timeout_s = timeout_s
        self._bytes_max = bytes_max

    async def read(self) -> bytes:
        """Return the whole body."""
        head = self._incoming.head
        body = Body(self._server, head.encoding, head.length, self._bytes_max)
        async with asyncio.timeout(self._timeout_s):
            while data := await self._incoming.read():
                body.feed(data)
        return body.finish()

    async def chunks(self, idle_timeout_s: float) -> AsyncIterator[bytes]:
        """Yield bytes as they arrive, until the end or until none arrived for `idle_timeout_s`."""
        while chunk := await self._incoming.read(idle_timeout_s):
            yield chunk


class MemberSocket:
    """An open WebSocket connection to the server."""

    def __init__(self, socket: "aiohttp.ClientWebSocketResponse") -> None:
        self._socket = socket
        self.subprotocol = socket.protocol or ""

    async def receive(self) -> str | bytes | None:
        """Return the next message, None at the end of the connection."""
        message = await self._socket.receive()
        data = message.data  # at the end of the connection None, a code or an error
        return data if isinstance(data, str | bytes) else None

    async def send(self, message: str | bytes) -> None:
        """Send a message; wait while the server does not read."""
        if isinstance(message, str):
            await self._socket.send_str(message)
        else:
            await self._socket.send_bytes(message)

    async def close(self, code: int) -> None:
        """Close the connection."""
        await self._socket.close(code=code)


async def until_idle(
    body: AsyncIterator[bytes], limit_s: float, failure: Callable[[], Exception] | None = None
) -> AsyncIterator[bytes]:
    """Yield the pieces of a body until none arrived for `limit_s`; then end, or raise the `failure` if there is one."""
    while True:
        deadline = asyncio.timeout(limit_s)
        try:
            async with deadline:
                piece = await anext(body)
        except StopAsyncIteration:
            return
        except TimeoutError:
            if not deadline.expired():
                raise
            if failure is not None:
                raise failure() from None
            return
        yield piece
