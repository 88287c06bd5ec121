"""A WebSocket to a path of an API server, as the carrier of an agent's tunnel (docs/pull-mode.md).

It answers pings and sends its own, so that both sides notice within seconds that a connection is dead.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from yarl import URL

from federation.apimachinery.connection import Connection
from federation.apimachinery.errors import ClusterError, ClusterUnreachable
from federation.tunnel.frames import FRAME_BYTES_MAX
from federation.tunnel.tunnel import CarrierClosed

HEARTBEAT_S = 15.0
"""A ping is sent after this long without a message, and its answer is awaited half as long."""
_CONNECT_TIMEOUT_S = 15.0


class WebSocketCarrier:
    """The messages of one WebSocket."""

    def __init__(self, socket: "aiohttp.ClientWebSocketResponse[bool]") -> None:
        self._socket = socket

    async def send(self, message: bytes) -> None:
        """Send one message."""
        try:
            await self._socket.send_bytes(message)
        except (aiohttp.ClientError, OSError) as error:
            raise CarrierClosed("the host has disconnected") from error

    async def receive(self) -> bytes:
        """Return the next message."""
        message = await self._socket.receive()
        if message.type is not aiohttp.WSMsgType.BINARY:
            raise CarrierClosed("the host has disconnected")
        return bytes(message.data)


@asynccontextmanager
async def connect_websocket(connection: Connection, path: str) -> AsyncIterator[WebSocketCarrier]:
    """Connect, and close the WebSocket afterwards; ClusterUnreachable, or ClusterError with the refusal's code."""
    tls = connection.to_tls()
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_TIMEOUT_S)
    async with aiohttp.ClientSession(timeout=timeout, cookie_jar=aiohttp.DummyCookieJar()) as session:
        try:
            socket = await session.ws_connect(
                URL(connection.server.rstrip("/") + path, encoded=True),
                ssl=tls or True,
                server_hostname=connection.tls_server_name or None,
                proxy=connection.proxy_url or None,
                heartbeat=HEARTBEAT_S,
                max_msg_size=FRAME_BYTES_MAX,
                autoclose=True,
            )
        except aiohttp.WSServerHandshakeError as error:
            raise RefusedError(f"{connection.server} refused the connection ({error.status})", error.status) from error
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            reason = str(error) or type(error).__name__
            raise ClusterUnreachable(f"{connection.server}: {reason}") from error
        async with socket:
            yield WebSocketCarrier(socket)


class RefusedError(ClusterError):
    """The server answered the handshake, but not with a WebSocket."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status
