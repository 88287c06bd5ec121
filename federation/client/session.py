"""The HTTP session of one server: expiring credentials, deadlines and translated errors.

It owns headers and credentials and does not know Kubernetes' paths. Our own requests and watches use a `Wire`. Requests
of users are passed through and may be WebSockets; they use aiohttp (`delegated.py`). Both are made anew when a
credential plugin returns another client certificate. Deadlines use real time, as networks do.

Decision: docs/decisions/0103-a-wire-for-members.md
"""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from federation.apimachinery.clock import Clock, SystemClock
from federation.apimachinery.connection import Connection
from federation.apimachinery.errors import (
    ClusterError,
    ClusterUnreachable,
    ConfigurationError,
    Obstacle,
    RequestTimeout,
)
from federation.apimachinery.oserrors import describe_os_error
from federation.apimachinery.webhookclient import StreamedResponse
from federation.client.dialing import ConnectFailed, Dial, Dialer, to_basic
from federation.client.identity import is_checking
from federation.client.kubeconfig import fetch_credentials
from federation.client.obstacles import obstacle_of
from federation.client.streams import MemberSocket, Stream
from federation.client.wire import Wire
from federation.client.wireconnection import WireBroken

if TYPE_CHECKING:
    from federation.client.delegated import DelegatedRequests

_TOKEN_FILE_S = 60.0
"""How long a token from a file is used. Kubernetes replaces the file long before the token expires."""
_EARLY_S = 30.0
"""Credentials are renewed this long before they expire."""
_PLUGIN_S = 600.0
"""How long credentials of a plugin are used when it gives no expiry."""
_DATE_LENGTH_MAX = 64
_JSON = "application/json"
_BODILESS = frozenset({"GET", "HEAD"})
_TARGET = re.compile(r"[!-~]+")
_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f]*")
_FAILURES = (ConnectFailed, WireBroken, OSError, ValueError)


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


class Session:
    """One server and one identity. `dial` connects when the connection names a tunnel."""

    def __init__(
        self, connection: Connection, options: HTTPOptions, clock: Clock | None = None, dial: Dial | None = None
    ) -> None:
        self._dial = dial
        self._connection = connection
        self._options = options
        self._clock = clock or SystemClock()
        self._wire: Wire | None = None
        self._delegated: DelegatedRequests | None = None
        self._retired: list[Wire | DelegatedRequests] = []
        self._tls_for: Connection | None = None
        self._dialer: Dialer | None = None
        self._authorization = ""
        self._is_closed = False
        self._prefix = ""
        self._address_headers: dict[str, str] = {}
        self._head = self._impersonation = b""
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
                wire = await self._ready()
                data = self._to_request(
                    method, path, body, content_type, "gzip" if compressed else "identity", impersonate, accept
                )
                head, answer = await wire.request(method, data, self._base, self._options.response_bytes_max)
        except TimeoutError as problem:
            raise RequestTimeout(f"{self._base} did not answer {method} within {limit_s:g} s") from problem
        except _FAILURES as problem:
            raise self._unreachable(problem) from problem
        self._compare_clocks(head.date)
        return head.status, answer

    @asynccontextmanager
    async def stream(self, path: str) -> AsyncIterator[Stream]:
        """Send a GET with an endless response and yield the response; errors while reading are translated too."""
        limit_s, incoming = self._options.request_timeout_s, None
        try:
            async with asyncio.timeout(limit_s):
                wire = await self._ready()
                data = self._to_request("GET", path, None, "", "identity", "", "")
                incoming = await wire.open(data, self._options.read_buffer_bytes)
            yield Stream(self._base, incoming, limit_s, self._options.response_bytes_max)
        except TimeoutError as problem:
            raise RequestTimeout(f"{self._base} did not begin a watch within {limit_s:g} s") from problem
        except _FAILURES as problem:
            raise self._unreachable(problem) from problem
        finally:
            if incoming is not None:
                incoming.close()

    @asynccontextmanager
    async def exchange(
        self, method: str, target: str, headers: Sequence[tuple[str, str]], body: AsyncIterator[bytes] | None
    ) -> AsyncIterator[StreamedResponse]:
        """Send another's request with our credentials and yield the response as it arrives; the caller limits the time.

        `headers` name the user that we act for in `Impersonate-*`; `target` is an encoded path with its query.
        """
        async with (await self._ready_for_others()).exchange(method, target, headers, body) as response:
            yield response

    @asynccontextmanager
    async def websocket(
        self, target: str, headers: Sequence[tuple[str, str]], subprotocols: Sequence[str]
    ) -> AsyncIterator[MemberSocket]:
        """Open a WebSocket connection as `exchange` sends a request; ApiError when the server refuses it."""
        async with (await self._ready_for_others()).websocket(target, headers, subprotocols) as socket:
            yield socket

    async def close(self) -> None:
        """Close all connections."""
        self._is_closed = True
        self._retire()
        retired, self._retired = self._retired, []
        await asyncio.gather(*(each.close() for each in retired))

    def _retire(self) -> None:
        """Use wire and delegate for no new request; their watches continue until they end."""
        if self._wire is not None:
            self._wire.retire()
            self._retired.append(self._wire)
        if self._delegated is not None:
            self._retired.append(self._delegated)
        self._wire = self._delegated = None

    def _compare_clocks(self, date: str) -> None:
        """Read the server's time once per second, because parsing costs as much as a tenth of a request."""
        if date == self._date:
            return
        self._date = date
        if (sent := _to_time(date[:_DATE_LENGTH_MAX])) is not None:
            ahead_s = (sent - self._clock.now()).total_seconds()
            # The header has whole seconds: it may be up to one second old at the moment when it is sent.
            self.clock_skew_s = 0.0 if -1 <= ahead_s <= 0 else ahead_s + (1 if ahead_s < 0 else 0)

    async def _ready(self) -> Wire:
        if self._is_closed:
            raise self._closed()
        if self._expires_s is not None and self._clock.monotonic() >= self._expires_s:
            async with self._renewing:
                if self._expires_s is not None and self._clock.monotonic() >= self._expires_s:
                    await self._renew()
        if self._wire is None or self._is_closed:
            raise self._closed()
        return self._wire

    async def _ready_for_others(self) -> "DelegatedRequests":
        try:
            await self._ready()
        except _FAILURES as problem:
            raise self._unreachable(problem) from problem
        if self._delegated is not None:
            return self._delegated
        make = await asyncio.to_thread(_import_delegated)
        found, dialer, options = self._tls_for, self._dialer, self._options
        if self._is_closed or found is None or dialer is None:
            raise self._closed()
        if self._delegated is None:
            self._delegated = make(
                found, found.to_tls(), dialer, self._connected, options.keep_alive_s, options.read_buffer_bytes
            )
            self._delegated.authorization = self._authorization
        return self._delegated

    def _closed(self) -> ClusterUnreachable:
        return ClusterUnreachable(f"{self._base}: the client is closed", Obstacle.OURS)

    async def _renew(self) -> None:
        """Read or fetch credentials, and prepare connections for them if there are none."""
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
            if self._is_closed:
                return
            self._ensure_wire(found, token)
        except ConfigurationError as problem:
            raise ClusterError(f"{self._base}: {problem}") from problem
        except OSError as problem:
            raise ClusterError(f"{self._base}: token file {problem.filename}: {problem.strerror}") from problem
        self._expires_s = None if expires_s is None else self._clock.monotonic() + expires_s

    def _ensure_wire(self, found: Connection, token: str) -> None:
        last = self._tls_for
        if last is None or (last.client_cert_data, last.client_key_data) != (
            found.client_cert_data,
            found.client_key_data,
        ):
            tls = found.to_tls()
            self._dialer = dialer = Dialer(found, tls, self._dial)
            self._retire()
            self._wire = Wire(dialer, self._connected, self._options.keep_alive_s)
            self._prefix = dialer.target_prefix
            self._address_headers = dialer.headers
            self._tls_for = found
        ours = {**self._address_headers, "User-Agent": self._options.user_agent}
        if token:
            ours["Authorization"] = f"Bearer {token}"
        elif found.username:
            ours["Authorization"] = to_basic(found.username, found.password)
        self._head = b"".join(_to_line(name, value) for name, value in ours.items())
        groups = [("Impersonate-Group", group) for group in found.impersonate_groups]
        user = [("Impersonate-User", found.impersonate_user)] if found.impersonate_user else []
        self._impersonation = b"".join(_to_line(name, value) for name, value in (*user, *groups))
        self._authorization = ours.get("Authorization", "")
        if self._delegated is not None:
            self._delegated.authorization = self._authorization

    def _to_request(
        self,
        method: str,
        path: str,
        body: bytes | None,
        content_type: str,
        encoding: str,
        impersonate: str,
        accept: str,
    ) -> bytes:
        target = self._prefix + path
        if not _TARGET.fullmatch(target):
            raise ValueError("the path is not encoded")
        parts = [
            f"{method} {target} HTTP/1.1\r\nAccept: {accept or _JSON}\r\nAccept-Encoding: {encoding}\r\n".encode(
                "ascii"
            ),
            self._head,
            _to_line("Impersonate-User", impersonate) if impersonate else self._impersonation,
        ]
        if content_type:
            parts.append(b"Content-Type: %s\r\n" % content_type.encode("ascii"))
        if body is not None:
            parts.append(b"Content-Length: %d\r\n" % len(body))
        elif method not in _BODILESS:
            parts.append(b"Content-Length: 0\r\n")
        parts += (b"\r\n", body or b"")
        return b"".join(parts)

    async def _connected(self) -> None:
        if self.on_connected is not None and not is_checking.get():
            await self.on_connected()

    def _unreachable(self, problem: Exception) -> ClusterUnreachable:
        return ClusterUnreachable(f"{self._base}: {_describe(problem)}", obstacle_of(problem))


def _to_line(name: str, value: str) -> bytes:
    if not _VALUE.fullmatch(value):
        raise ConfigurationError(f"the value of header {name} has a control character: correct the credentials")
    return f"{name}: {value}\r\n".encode()


@lru_cache(maxsize=32)
def _to_time(date: str) -> datetime | None:
    """Return the time of a header; a thousand servers send the same text in the same second."""
    try:
        sent = parsedate_to_datetime(date)
    except (ValueError, TypeError):
        return None
    return sent if sent.tzinfo is not None else None


def _import_delegated() -> "type[DelegatedRequests]":
    """Import aiohttp, in a thread: it takes a tenth of the imports of a start, and many processes never need it."""
    from federation.client.delegated import DelegatedRequests  # noqa: PLC0415  # see above

    return DelegatedRequests


def _describe(problem: Exception) -> str:
    """Return the problem without the request, which can contain secrets."""
    if isinstance(problem, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({problem.verify_message or problem.reason})"
    if isinstance(problem, ConnectFailed):
        return f"no connection ({problem})"
    if isinstance(problem, WireBroken):
        return str(problem)
    if isinstance(problem, OSError):
        return f"the connection broke ({describe_os_error(problem)})"
    return f"the connection broke ({type(problem).__name__})"
