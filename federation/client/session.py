"""The transport below `HTTPClient`: one aiohttp session, credentials that expire, deadlines, errors translated.

Owns sockets and headers and nothing of Kubernetes' paths. A session is made at the first request and again when a
credential plugin gives another client certificate. Deadlines are real time, because networks are.
"""

import asyncio
import io
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from federation.base.clock import Clock, SystemClock
from federation.base.errors import ClusterError, ClusterUnreachable, ConfigurationError, RequestTimeout
from federation.client.connection import Connection
from federation.client.kubeconfig import ask_plugin

_TOKEN_FILE_S = 60.0
"""How long a token that was read from a file is used; Kubernetes replaces them long before they end."""
_EARLY_S = 30.0
"""Credentials are renewed this long before their end."""
_LARGE_BYTES = 1024 * 1024
"""Bodies from this size on are sent in pieces, so that other tasks get a turn."""
_PLUGIN_S = 600.0
"""How long a plugin's credentials are used when it does not say."""


@dataclass(frozen=True, slots=True)
class HTTPOptions:
    """Limits of one client."""

    request_timeout_s: float = 30.0
    """From the call to the last byte of the answer, waiting for a connection included; for watches, to their start."""
    connections_max: int = 64
    """Requests in flight, watches not counted."""
    keep_alive_s: float = 90.0
    """How long an unused connection is kept: as Go's clients, below what servers keep."""
    watch_idle_timeout_s: float = 180.0
    """A watch without a byte for this long is ended; servers send bookmarks about once a minute."""
    watch_line_bytes_max: int = 64 * 1024 * 1024
    """The longest event of a watch."""
    read_buffer_bytes: int = 256 * 1024
    """Bytes of an answer that are buffered before the reader catches up."""
    user_agent: str = "federation"


class Stream:
    """An answer that is still coming."""

    def __init__(self, server: str, response: aiohttp.ClientResponse, timeout_s: float) -> None:
        self.status = response.status
        self._server = server
        self._response = response
        self._timeout_s = timeout_s

    async def read(self) -> bytes:
        """Return the whole body."""
        async with asyncio.timeout(self._timeout_s):
            return await self._response.read()

    async def chunks(self, idle_timeout_s: float) -> AsyncIterator[bytes]:
        """Yield bytes as they come until the end or until none came for `idle_timeout_s`."""
        loop = asyncio.get_running_loop()
        content = self._response.content
        while True:
            deadline = asyncio.timeout_at(loop.time() + idle_timeout_s)
            try:
                async with deadline:
                    chunk = await content.readany()
            except TimeoutError:
                if deadline.expired():
                    return
                raise
            if not chunk:
                return
            yield chunk


class Session:
    """One server, one identity."""

    def __init__(self, connection: Connection, options: HTTPOptions, clock: Clock | None = None) -> None:
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

    async def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        content_type: str = "",
        timeout_s: float = 0.0,
        compressed: bool = False,
    ) -> tuple[int, bytes]:
        """Send a request and return status code and body; ClusterUnreachable, RequestTimeout. `path` is encoded."""
        limit_s = timeout_s or self._options.request_timeout_s
        try:
            async with asyncio.timeout(limit_s), self._slots:
                session = await self._ready()
                headers = self._headers.copy()
                if content_type:
                    headers["Content-Type"] = content_type
                headers["Accept-Encoding"] = "gzip" if compressed else "identity"
                async with session.request(
                    method,
                    URL(self._base + path, encoded=True),
                    data=body if body is None or len(body) < _LARGE_BYTES else io.BytesIO(body),
                    headers=headers,
                    allow_redirects=False,
                    server_hostname=self._connection.tls_server_name or None,
                    proxy=self._connection.proxy_url or None,
                ) as response:
                    return response.status, await response.read()
        except TimeoutError as problem:
            raise RequestTimeout(f"{self._base} did not answer {method} within {limit_s:g} s") from problem
        except (aiohttp.ClientError, OSError, ValueError) as problem:
            raise self._unreachable(problem) from problem

    @asynccontextmanager
    async def stream(self, path: str) -> AsyncIterator[Stream]:
        """Send a GET whose answer has no end, and give it out; errors of reading are translated too."""
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
            yield Stream(self._base, response, limit_s)
        except TimeoutError as problem:
            raise RequestTimeout(f"{self._base} did not begin a watch within {limit_s:g} s") from problem
        except (aiohttp.ClientError, OSError, ValueError) as problem:
            raise self._unreachable(problem) from problem
        finally:
            if response is not None:
                response.close()

    async def close(self) -> None:
        """Close all connections."""
        self._is_closed = True
        sessions = [*self._retired, *([self._session] if self._session is not None else [])]
        self._session, self._retired = None, []
        for session in sessions:
            await session.close()

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
        """Read or ask for credentials as needed, and make the session when there is none for them."""
        try:
            credentials = await ask_plugin(self._connection)
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
            self._retired.append(self._session)  # its watches go on until they end
        tls: ssl.SSLContext | bool = found.to_tls() or True
        connector = aiohttp.TCPConnector(limit=0, ssl=tls, keepalive_timeout=self._options.keep_alive_s)
        self._session = aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._options.request_timeout_s),
            skip_auto_headers=("User-Agent", "Content-Type"),
            read_bufsize=self._options.read_buffer_bytes,
        )
        self._tls_for = found

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


def _describe(problem: Exception) -> str:
    """Say what went wrong without the request, which may hold secrets."""
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
