"""The HTTP session of one server: an aiohttp session, expiring credentials, deadlines and translated errors.

It owns sockets and headers and does not know Kubernetes' paths. It opens at the first request, and again when a
credential plugin returns another client certificate. Deadlines use real time, as networks do. This is the only module
of the client that sees aiohttp's exceptions.

Decision: docs/decisions/0097-members-are-reached-through-aiohttp.md
"""

import asyncio
import io
import socket
import ssl
import weakref
from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from federation.apimachinery.clock import Clock, SystemClock
from federation.apimachinery.connection import Connection
from federation.apimachinery.errors import (
    ClusterError,
    ClusterUnreachable,
    ConfigurationError,
    RequestTimeout,
    from_status,
)
from federation.apimachinery.webhookclient import StreamedResponse, drop_unread
from federation.client.body import read_body
from federation.client.identity import is_checking
from federation.client.kubeconfig import fetch_credentials
from federation.client.streams import MemberSocket, Stream

_TOKEN_FILE_S = 60.0
"""How long a token from a file is used. Kubernetes replaces the file long before the token expires."""
_EARLY_S = 30.0
"""Credentials are renewed this long before they expire."""
_LARGE_BYTES = 1024 * 1024
"""Bodies of this size and above are sent in chunks, so that they do not block the event loop."""
_MESSAGE_BYTES_MAX = 1024 * 1024
"""The largest WebSocket message; servers send 32 KiB in one."""
_HEARTBEAT_S = 30.0
"""A WebSocket server that does not answer a ping for half this time is gone."""
_CLOSE_S = 1.0
"""How long the end of a connection may take when the client closes: the peer answers the TLS shutdown."""
_PLUGIN_S = 600.0
"""How long credentials of a plugin are used when it gives no expiry."""


@dataclass(frozen=True, slots=True)
class HTTPOptions:
    """Limits of one client."""

    request_timeout_s: float = 30.0
    """From the call to the last byte of the answer, or to the start of a watch; includes the wait for a connection."""
    connections_max: int = 64
    """Concurrent requests; watches are not counted."""
    keep_alive_s: float = 90.0
    """How long an idle connection is kept: as in Go's clients, shorter than servers keep theirs."""
    watch_idle_timeout_s: float = 180.0
    """A watch ends after this long without a byte; servers send bookmarks about once a minute."""
    response_bytes_max: int = 32 * 1024 * 1024
    """The longest answer after decompression; a page of a list above it is requested again with fewer objects."""
    watch_line_bytes_max: int = 8 * 1024 * 1024
    """The longest event of a watch; servers store objects up to 1.5 MiB."""
    read_buffer_bytes: int = 256 * 1024
    """Bytes of an answer that are buffered for a slow reader."""
    user_agent: str = "federation"


Dial = Callable[[str], Awaitable[socket.socket]]
"""Returns a socket to the API server of a cluster, through the tunnel of its agent; ClusterUnreachable."""


class Session:
    """One server and one identity. `dial` connects when the connection names a tunnel."""

    def __init__(
        self, connection: Connection, options: HTTPOptions, clock: Clock | None = None, dial: Dial | None = None
    ) -> None:
        self._dial = dial
        self._connection = connection
        self._options = options
        self._clock = clock or SystemClock()
        self._session: aiohttp.ClientSession | None = None
        self._retired: list[aiohttp.ClientSession] = []
        self._tls_for: Connection | None = None
        self._is_closed = False
        self._headers: CIMultiDict[str] = CIMultiDict()
        self._expires_s: float | None = 0.0
        self._renewing = asyncio.Lock()
        self._slots = asyncio.Semaphore(options.connections_max)
        self._base = connection.server.rstrip("/")
        self._date = ""
        self.clock_skew_s: float | None = None
        """How far the server's clock is ahead of ours, to a second, by its last response; None before the first."""
        self.on_connected: Callable[[], Awaitable[None]] | None = None
        """Called after each new connection, before a request is sent on it; an exception fails the request."""

    async def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        content_type: str = "",
        timeout_s: float = 0.0,
        compressed: bool = False,
        impersonate: str = "",
        accept: str = "",
    ) -> tuple[int, bytes]:
        """Send a request and return status code and body; ClusterUnreachable, RequestTimeout. `path` is encoded."""
        limit_s = timeout_s or self._options.request_timeout_s
        try:
            async with asyncio.timeout(limit_s), nullcontext() if is_checking.get() else self._slots:
                session = await self._ready()
                headers = self._headers.copy()
                if content_type:
                    headers["Content-Type"] = content_type
                if accept:
                    headers["Accept"] = accept
                headers["Accept-Encoding"] = "gzip" if compressed else "identity"
                if impersonate:
                    headers["Impersonate-User"] = impersonate
                    headers.popall("Impersonate-Group", None)
                async with session.request(
                    method,
                    URL(self._base + path, encoded=True),
                    data=body if body is None or len(body) < _LARGE_BYTES else io.BytesIO(body),
                    headers=headers,
                    allow_redirects=False,
                    middlewares=(),  # the session's is for WebSocket handshakes, which follow redirects
                    server_hostname=self._connection.tls_server_name or None,
                    proxy=self._connection.proxy_url or None,
                ) as response:
                    self._compare_clocks(response.headers.get("Date", ""))
                    return response.status, await read_body(response, self._base, self._options.response_bytes_max)
        except TimeoutError as problem:
            raise RequestTimeout(f"{self._base} did not answer {method} within {limit_s:g} s") from problem
        except (aiohttp.ClientError, OSError, ValueError) as problem:
            raise self._unreachable(problem) from problem

    @asynccontextmanager
    async def stream(self, path: str) -> AsyncIterator[Stream]:
        """Send a GET with an endless response and yield the response; errors while reading are translated too."""
        limit_s = self._options.request_timeout_s
        response: aiohttp.ClientResponse | None = None
        try:
            async with asyncio.timeout(limit_s):
                session = await self._ready()
                response = await session.get(
                    URL(self._base + path, encoded=True),
                    headers=CIMultiDict(self._headers, **{"Accept-Encoding": "identity"}),
                    allow_redirects=False,
                    server_hostname=self._connection.tls_server_name or None,
                    proxy=self._connection.proxy_url or None,
                )
            yield Stream(self._base, response, limit_s, self._options.response_bytes_max)
        except TimeoutError as problem:
            raise RequestTimeout(f"{self._base} did not begin a watch within {limit_s:g} s") from problem
        except (aiohttp.ClientError, OSError, ValueError) as problem:
            raise self._unreachable(problem) from problem
        finally:
            if response is not None:
                response.close()

    @asynccontextmanager
    async def exchange(
        self, method: str, target: str, headers: Sequence[tuple[str, str]], body: AsyncIterator[bytes] | None
    ) -> AsyncIterator[StreamedResponse]:
        """Send another's request with our credentials and yield the response as it arrives; the caller limits the time.

        `headers` name the user that we act for in `Impersonate-*`; `target` is an encoded path with its query.
        """
        try:
            session = await self._ready()
            async with session.request(
                method, data=body, headers=self._delegated(headers), allow_redirects=False, **self._address(target)
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
        """Open a WebSocket connection as `exchange` sends a request; ApiError when the server refuses it."""
        try:
            session = await self._ready()
            async with session.ws_connect(
                headers=self._delegated(headers),
                protocols=subprotocols,
                max_msg_size=_MESSAGE_BYTES_MAX,
                heartbeat=_HEARTBEAT_S,
                **self._address(target),
            ) as socket:
                yield MemberSocket(socket)
        except aiohttp.WSServerHandshakeError as refusal:
            text = f"{self._base} answered the WebSocket handshake with {refusal.status}"
            if refusal.status < 400:
                raise ClusterError(text) from None
            raise from_status({"message": text}, refusal.status) from None
        except (aiohttp.ClientError, OSError, ValueError) as problem:
            raise self._unreachable(problem) from problem

    def _delegated(self, headers: Sequence[tuple[str, str]]) -> CIMultiDict[str]:
        """Return our credentials and the given headers; none of ours may name another user to act for."""
        ours = CIMultiDict((name, value) for name, value in self._headers.items() if name == "Authorization")
        ours.extend(headers)
        return ours

    def _address(self, target: str) -> dict[str, Any]:
        return {
            "url": URL(self._base + target, encoded=True),
            "server_hostname": self._connection.tls_server_name or None,
            "proxy": self._connection.proxy_url or None,
        }

    async def close(self) -> None:
        """Close all connections."""
        self._is_closed = True
        sessions = [*self._retired, *([self._session] if self._session is not None else [])]
        self._session, self._retired = None, []
        for session in sessions:
            await session.close()

    def _compare_clocks(self, date: str) -> None:
        """Read the server's time once per second, because parsing costs as much as a tenth of a request."""
        if date == self._date:
            return
        self._date = date
        with suppress(ValueError, TypeError):
            ahead_s = (parsedate_to_datetime(date) - self._clock.now()).total_seconds()
            # The header has whole seconds: it may be up to one second old at the moment when it is sent.
            self.clock_skew_s = 0.0 if -1 <= ahead_s <= 0 else ahead_s + (1 if ahead_s < 0 else 0)

    async def _ready(self) -> aiohttp.ClientSession:
        if self._is_closed:
            raise ClusterUnreachable(f"{self._base}: the client is closed")
        if self._expires_s is not None and self._clock.monotonic() >= self._expires_s:
            async with self._renewing:
                if self._expires_s is not None and self._clock.monotonic() >= self._expires_s:
                    await self._renew()
        if self._session is None:
            raise ClusterUnreachable(f"{self._base}: the client is closed")
        return self._session

    async def _renew(self) -> None:
        """Read or fetch credentials, and open a session for them if there is none."""
        try:
            credentials = await fetch_credentials(self._connection)
            found = credentials.connection
            token = found.token
            expires_s: float | None = None
            if found.token_file:
                token = (await asyncio.to_thread(Path(found.token_file).read_text, "utf-8")).strip()
                expires_s = _TOKEN_FILE_S
            elif self._connection.plugin is not None:
                end = credentials.expires
                left_s = (end - self._clock.now()).total_seconds() if end is not None else _PLUGIN_S
                expires_s = max(left_s - _EARLY_S, 1.0)
            self._ensure_session(found)
        except ConfigurationError as problem:
            raise ClusterError(f"{self._base}: {problem}") from problem
        except OSError as problem:
            raise ClusterError(f"{self._base}: token file {problem.filename}: {problem.strerror}") from problem
        self._headers = self._to_headers(found, token)
        self._expires_s = None if expires_s is None else self._clock.monotonic() + expires_s

    def _ensure_session(self, found: Connection) -> None:
        last = self._tls_for
        if last is not None and (last.client_cert_data, last.client_key_data) == (
            found.client_cert_data,
            found.client_key_data,
        ):
            return
        if self._session is not None:
            self._retired.append(self._session)  # its watches continue until they end
        tls, keep_alive_s = found.to_tls(), self._options.keep_alive_s
        connector: aiohttp.BaseConnector
        if found.tunnel:
            dial = partial(self._dial_tunnel, found.tunnel)
            connector = _TunnelConnector(dial, tls, self._connected, limit=0, keepalive_timeout=keep_alive_s)
        else:
            connector = _CheckedConnector(self._connected, limit=0, ssl=tls or True, keepalive_timeout=keep_alive_s)
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._options.request_timeout_s),
            skip_auto_headers=("User-Agent", "Content-Type"),
            read_bufsize=self._options.read_buffer_bytes,
            auto_decompress=False,  # aiohttp decompresses without a limit; `read_body` has one
            middlewares=(_refuse_redirected_handshake,),
        )
        self._tls_for = found

    async def _dial_tunnel(self, cluster: str) -> socket.socket:
        if self._dial is None:
            raise ClusterUnreachable(
                f"cluster {cluster} is reached through its agent, which this process does not serve"
            )
        return await self._dial(cluster)

    async def _connected(self) -> None:
        if self.on_connected is not None and not is_checking.get():
            await self.on_connected()

    def _to_headers(self, found: Connection, token: str) -> CIMultiDict[str]:
        headers = CIMultiDict({"Accept": "application/json", "User-Agent": self._options.user_agent})
        if token:
            headers["Authorization"] = f"Bearer {token}"
        elif found.username:
            pair = f"{found.username}:{found.password}".encode()
            headers["Authorization"] = "Basic " + b64encode(pair).decode()
        if found.impersonate_user:
            headers["Impersonate-User"] = found.impersonate_user
        for group in found.impersonate_groups:
            headers.add("Impersonate-Group", group)
        return headers

    def _unreachable(self, problem: Exception) -> ClusterUnreachable:
        return ClusterUnreachable(f"{self._base}: {_describe(problem)}")


async def _refuse_redirected_handshake(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    """Raise if the answer to a WebSocket handshake is a redirect: `ws_connect` would follow it, to any address."""
    response = await handler(request)
    if "Upgrade" in request.headers and 300 <= response.status < 400:
        response.close()
        raise aiohttp.ClientError("redirected")
    return response


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
        return f"no connection ({problem.os_error.strerror or problem.os_error})"
    if isinstance(problem, aiohttp.ServerDisconnectedError):
        return "the connection was closed without an answer"
    if isinstance(problem, OSError):
        return f"the connection broke ({problem.strerror or type(problem).__name__})"
    return f"the connection broke ({type(problem).__name__})"
