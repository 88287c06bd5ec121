"""Requests of other users to one server, with aiohttp: of any length in both directions, and WebSockets.

`session.py` owns the credentials and our own requests. Sockets open at the first request, so most members have none of
these. This is the only module of the client that sees aiohttp's exceptions.

Decision: docs/decisions/0097-members-are-reached-through-aiohttp.md
"""

import asyncio
import socket
import ssl
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from federation.apimachinery.connection import Connection
from federation.apimachinery.controlcharacters import escape
from federation.apimachinery.errors import ClusterError, ClusterUnreachable, from_status
from federation.apimachinery.jsonobject import parse_object
from federation.apimachinery.oserrors import describe_os_error
from federation.apimachinery.webhookclient import StreamedResponse
from federation.client.dialing import Dialer
from federation.client.streams import MemberSocket

_MESSAGE_BYTES_MAX = 1024 * 1024
"""The largest WebSocket message; servers send 32 KiB in one."""
_HEARTBEAT_S = 30.0
"""A WebSocket server that does not answer a ping for half this time is gone."""
_CONNECT_S = 30.0
_REFUSAL_BYTES_MAX = 16 * 1024
"""The longest answer to a refused handshake that is read."""
_CLOSE_S = 1.0
"""How long the end of a connection may take when the client closes: the peer answers the TLS shutdown."""


class DelegatedRequests:
    """One server and one TLS identity. `check` is awaited after each new connection; an exception closes it.

    `refusal_s` is how long the answer to a refused WebSocket handshake may take.
    """

    def __init__(
        self,
        connection: Connection,
        tls: ssl.SSLContext | None,
        dialer: Dialer,
        check: Callable[[], Awaitable[None]],
        keep_alive_s: float,
        read_buffer_bytes: int,
        refusal_s: float = 5.0,
    ) -> None:
        self._refusal_s = refusal_s
        self._connection = connection
        self._tls = tls
        self._dialer = dialer
        self._check = check
        self._keep_alive_s = keep_alive_s
        self._read_buffer_bytes = read_buffer_bytes
        self._base = connection.server.rstrip("/")
        self._session: aiohttp.ClientSession | None = None
        self.authorization = ""
        """The value of the header Authorization, "" for none."""

    @asynccontextmanager
    async def exchange(
        self, method: str, target: str, headers: Sequence[tuple[str, str]], body: AsyncIterator[bytes] | None
    ) -> AsyncIterator[StreamedResponse]:
        """As `Session.exchange`."""
        try:
            async with self._opened().request(
                method, data=body, headers=self._with_ours(headers), allow_redirects=False, **self._address(target)
            ) as response:
                try:
                    yield StreamedResponse(response.status, response.raw_headers, response.content.iter_any())
                finally:
                    drop_unread(response)
        except (aiohttp.ClientError, OSError, ValueError) as problem:
            raise self._unreachable(problem) from problem

    @asynccontextmanager
    async def websocket(
        self, target: str, headers: Sequence[tuple[str, str]], subprotocols: Sequence[str]
    ) -> AsyncIterator[MemberSocket]:
        """As `Session.websocket`."""
        try:
            async with self._opened().ws_connect(
                headers=self._with_ours(headers),
                protocols=subprotocols,
                max_msg_size=_MESSAGE_BYTES_MAX,
                heartbeat=_HEARTBEAT_S,
                **self._address(target),
            ) as socket:
                yield MemberSocket(socket)
        except _HandshakeRefusedError as refusal:
            text = f"{self._base} answered the WebSocket handshake with {refusal.code}"
            raise from_status({"message": text, **refusal.status}, refusal.code) from None
        except aiohttp.WSServerHandshakeError as refusal:
            raise ClusterError(f"{self._base} answered the WebSocket handshake with {refusal.status}") from None
        except (aiohttp.ClientError, OSError, ValueError) as problem:
            raise self._unreachable(problem) from problem

    async def close(self) -> None:
        """Close all connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector: aiohttp.BaseConnector
            if self._connection.tunnel:
                connector = _TunnelConnector(
                    self._dialer.open_tunnel, self._tls, self._check, limit=0, keepalive_timeout=self._keep_alive_s
                )
            else:
                connector = _CheckedConnector(
                    self._check, limit=0, ssl=self._tls or True, keepalive_timeout=self._keep_alive_s
                )
            self._session = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S),
                skip_auto_headers=("User-Agent", "Content-Type"),
                read_bufsize=self._read_buffer_bytes,
                auto_decompress=False,
                middlewares=(self._refuse_handshake,),
            )
        return self._session

    async def _refuse_handshake(
        self, request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        """Raise if the answer to a WebSocket handshake is a redirect or an error.

        `ws_connect` would follow a redirect to any address, and it drops the words of an error.
        """
        response = await handler(request)
        if "Upgrade" in request.headers and 300 <= response.status < 400:
            response.close()
            raise aiohttp.ClientError("redirected")
        if "Upgrade" in request.headers and response.status >= 400:
            code, status = response.status, await _status_of(response, self._refusal_s)
            drop_unread(response)
            response.close()
            raise _HandshakeRefusedError(code, status)
        return response

    def _with_ours(self, headers: Sequence[tuple[str, str]]) -> CIMultiDict[str]:
        """Return our credentials and the given headers; none of ours may name another user to act for."""
        found = CIMultiDict({"Authorization": self.authorization} if self.authorization else {})
        found.extend(headers)
        return found

    def _address(self, target: str) -> dict[str, Any]:
        return {
            "url": URL(self._base + target, encoded=True),
            "server_hostname": self._connection.tls_server_name or None,
            "proxy": self._connection.proxy_url or None,
        }

    def _unreachable(self, problem: Exception) -> ClusterUnreachable:
        return ClusterUnreachable(f"{self._base}: {_describe(problem)}")


class _HandshakeRefusedError(aiohttp.ClientError):
    """A server refuses a WebSocket: the HTTP status code, and what of a Status it answers with."""

    def __init__(self, code: int, status: Mapping[str, Any]) -> None:
        super().__init__(f"refused with {code}")
        self.code, self.status = code, status


async def _status_of(response: aiohttp.ClientResponse, timeout_s: float) -> Mapping[str, Any]:
    """Return the Status in an answer, or its text as the message; {} for one that is long, late or empty."""
    try:
        async with asyncio.timeout(timeout_s):
            body = await response.content.read(_REFUSAL_BYTES_MAX)
            while not response.content.at_eof() and len(body) < _REFUSAL_BYTES_MAX:
                body += await response.content.read(_REFUSAL_BYTES_MAX - len(body))
    except (aiohttp.ClientError, OSError, TimeoutError):
        return {}
    if len(body) >= _REFUSAL_BYTES_MAX:
        return {}
    status = parse_object(body) or {"message": body.decode("utf-8", "replace").strip()}
    message = status.get("message")
    return {**status, "message": escape(message)} if isinstance(message, str) and message else {}


class _LastUsedFirst(aiohttp.BaseConnector):
    """Uses the connection again that was released last, so that those which only a burst needed expire.

    aiohttp takes the one that is idle for the longest time: one request in some seconds keeps all of them open.
    """

    def _release(self, key: Any, protocol: Any, *, should_close: bool = False) -> None:
        super()._release(key, protocol, should_close=should_close)
        idle = self._conns.get(key)
        if idle and idle[-1][0] is protocol:
            idle.rotate(1)


class _CheckedConnector(_LastUsedFirst, aiohttp.TCPConnector):
    """Awaits `check` after each new connection, and closes the connection if that raises."""

    def __init__(self, check: Callable[[], Awaitable[None]], **arguments: Any) -> None:
        super().__init__(**arguments)
        self._check = check
        self._protocols: weakref.WeakSet[Any] = weakref.WeakSet()

    async def _create_connection(self, *args: Any, **kwargs: Any) -> Any:
        protocol = await super()._create_connection(*args, **kwargs)
        self._protocols.add(protocol)
        # A hook of aiohttp's trace configuration would leak the connection when it raises.
        return await _checked(protocol, self._check)

    async def close(self, *, abort_ssl: bool = False) -> None:
        """Close all connections, and wait until they are closed.

        aiohttp does not wait for those that ended early, such as WebSockets and answers that were not read to their
        end. A short-lived process would then end in the middle of their TLS shutdown.
        """
        await super().close(abort_ssl=abort_ssl)
        if closing := [closed for protocol in self._protocols if (closed := protocol.closed) is not None]:
            await asyncio.wait(closing, timeout=_CLOSE_S)


class _TunnelConnector(_LastUsedFirst):
    """Connects through a tunnel; TLS is between us and the server behind it, and `check` as above."""

    def __init__(
        self,
        dial: Callable[[], Awaitable[socket.socket]],
        tls: ssl.SSLContext | None,
        check: Callable[[], Awaitable[None]],
        **arguments: Any,
    ) -> None:
        super().__init__(**arguments)
        self._dial, self._tls, self._check = dial, tls, check

    async def _create_connection(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ARG002  # aiohttp's signature
        request = args[0]
        host = (request.server_hostname or request.url.raw_host) if self._tls is not None else None
        _, protocol = await self._loop.create_unix_connection(
            self._factory, sock=await self._dial(), ssl=self._tls, server_hostname=host
        )
        return await _checked(protocol, self._check)


async def _checked(protocol: Any, check: Callable[[], Awaitable[None]]) -> Any:
    """Return the new connection after the check, closed if that raises."""
    try:
        await check()
    except BaseException:
        protocol.close()
        raise
    return protocol


def _describe(problem: Exception) -> str:
    """Return the problem without the request, which can contain secrets."""
    if isinstance(problem, aiohttp.ClientConnectorCertificateError):
        inner = problem.certificate_error
        return f"its certificate is not trusted ({getattr(inner, 'verify_message', '') or inner})"
    if isinstance(problem, aiohttp.ClientConnectorError):
        return f"no connection ({describe_os_error(problem.os_error)})"
    if isinstance(problem, aiohttp.ServerDisconnectedError):
        return "the connection was closed without an answer"
    if isinstance(problem, OSError):
        return f"the connection broke ({describe_os_error(problem)})"
    return f"the connection broke ({type(problem).__name__})"


def drop_unread(response: aiohttp.ClientResponse) -> None:
    """Abort the connection of a response that was not read to its end.

    Closing it properly would receive and discard the rest for as long as the other side sends.
    """
    connection = response.connection
    if connection is not None and connection.transport is not None and not response.content.is_eof():
        connection.transport.abort()
