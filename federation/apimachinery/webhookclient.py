"""HTTP calls to webhooks and other services that administrators configure: one deadline, a bounded response.

It does not retry, follow redirects, cache, keep cookies or use the proxy of the environment. Connections are reused per
address and TLS identity. `stream` forwards requests and responses of any length piece by piece.
`client/retryingwebhookclient.py` adds retries and circuit breakers; `webhooks.py` adds the review protocol of
Kubernetes' webhooks.
"""

import asyncio
import errno
import os
import socket
import ssl
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import NamedTuple

import aiohttp
from yarl import URL

from federation.apimachinery.connection import Connection
from federation.apimachinery.errors import ConfigurationError, ServiceUnavailable
from federation.apimachinery.publicaddresses import Network, is_listed, is_public

_CONTEXTS_MAX = 64
_CONNECT_S_MAX = 5.0
"""Time to connect for `stream`, TLS included."""
_AUTOMATIC_HEADERS = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")


@dataclass(frozen=True, slots=True)
class WebhookClientOptions:
    """Limits of a webhook client."""

    calls_per_host_max: int = 32
    """Concurrent calls to one server; 0 for no limit."""
    response_bytes_max: int = 1 << 20
    is_public_only: bool = False
    """Whether it connects to global unicast addresses and `allowed_networks` only: for addresses that users of a
    namespace choose. Services elsewhere may trust every client that reaches them."""
    allowed_networks: tuple[Network, ...] = ()


class WebhookResponse(NamedTuple):
    """HTTP status and body, or status 0 and the reason why there is no response."""

    status: int
    body: bytes = b""
    error: str = ""
    is_timeout: bool = False
    is_listed: bool = False
    """Whether all addresses that were connected to are in `allowed_networks`."""

    @property
    def is_outage(self) -> bool:
        """Whether the service itself failed; any other response is the service's own decision."""
        return self.status in (0, HTTPStatus.TOO_MANY_REQUESTS) or self.status >= HTTPStatus.INTERNAL_SERVER_ERROR


class StreamedResponse(NamedTuple):
    """The head of a response, and its body in pieces as they arrive, in the content encoding of the server."""

    status: int
    headers: Sequence[tuple[bytes, bytes]]
    body: AsyncIterator[bytes]


class WebhookClient:
    """An HTTP client whose calls return failures instead of raising them. Connections open at the first call."""

    def __init__(self, options: WebhookClientOptions | None = None) -> None:
        self._options = options or WebhookClientOptions()
        self._session: aiohttp.ClientSession | None = None
        self._addresses: ContextVar[list[str] | None] = ContextVar("addresses", default=None)
        """The addresses that the call of the present task connects to."""
        self._contexts: OrderedDict[Connection, ssl.SSLContext | None] = OrderedDict()

    async def post(
        self, connection: Connection, body: bytes, headers: Mapping[str, str], *, timeout_s: float
    ) -> WebhookResponse:
        """POST to `connection.server`, a complete URL; raises only when cancelled."""
        return await self._call("POST", connection, body, headers, timeout_s)

    async def get(self, connection: Connection, headers: Mapping[str, str], *, timeout_s: float) -> WebhookResponse:
        """GET `connection.server`, a complete URL; raises only when cancelled."""
        return await self._call("GET", connection, None, headers, timeout_s)

    async def _call(
        self, method: str, connection: Connection, body: bytes | None, headers: Mapping[str, str], timeout_s: float
    ) -> WebhookResponse:
        reached: list[str] = []
        token = self._addresses.set(reached)
        try:
            response = await self._exchange(method, connection, body, headers, timeout_s)
        finally:
            self._addresses.reset(token)
        # A connection that is used again was checked, but its address is not known here.
        networks = self._options.allowed_networks
        return response._replace(is_listed=bool(reached) and all(is_listed(each, networks) for each in reached))

    async def _exchange(
        self, method: str, connection: Connection, body: bytes | None, headers: Mapping[str, str], timeout_s: float
    ) -> WebhookResponse:
        try:
            context = self._context(connection)
            async with (
                asyncio.timeout(timeout_s),
                self._opened().request(
                    method,
                    connection.server,
                    data=body,
                    headers=headers,
                    ssl=True if context is None else context,
                    server_hostname=connection.tls_server_name or None,
                    allow_redirects=False,
                ) as response,
            ):
                self._record_peer(response)
                received = bytearray()
                async for chunk in response.content.iter_any():
                    received += chunk
                    if len(received) > self._options.response_bytes_max:
                        drop_unread(response)
                        return WebhookResponse(
                            0, error=f"the answer is larger than {self._options.response_bytes_max} bytes"
                        )
                return WebhookResponse(response.status, bytes(received))
        except TimeoutError:
            return WebhookResponse(0, error=f"no answer within {timeout_s:g} s", is_timeout=True)
        except aiohttp.ClientConnectorError as problem:
            return WebhookResponse(0, error=_connection_error(problem))
        except (aiohttp.ClientError, ConfigurationError, ValueError, OSError) as problem:
            return WebhookResponse(0, error=str(problem) or type(problem).__name__)

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        connection: Connection,
        headers: Sequence[tuple[str, str]],
        body: AsyncIterator[bytes] | None = None,
    ) -> AsyncIterator[StreamedResponse]:
        """Send a request to `connection.server`, a complete and encoded URL, and yield the response as it arrives.

        No headers are added but those of the transfer. The caller limits the time. ServiceUnavailable says why there
        is no response, also when it breaks off while the body is read.
        """
        try:
            context = self._context(connection)
            async with self._opened().request(
                method,
                URL(connection.server, encoded=True),
                data=body,
                headers=headers,
                skip_auto_headers=_AUTOMATIC_HEADERS,
                ssl=True if context is None else context,
                server_hostname=connection.tls_server_name or None,
                allow_redirects=False,
                auto_decompress=False,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S_MAX),
            ) as response:
                try:
                    yield StreamedResponse(response.status, response.raw_headers, response.content.iter_any())
                finally:
                    drop_unread(response)
        except aiohttp.ClientConnectorError as problem:
            raise ServiceUnavailable(_connection_error(problem)) from problem
        except (aiohttp.ClientError, ConfigurationError, ValueError, OSError) as problem:
            raise ServiceUnavailable(str(problem) or type(problem).__name__) from problem

    async def close(self) -> None:
        """Close all connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(
                limit=0,
                limit_per_host=self._options.calls_per_host_max,
                socket_factory=self._open_public_socket if self._options.is_public_only else None,
            )
            timeout = aiohttp.ClientTimeout(total=None)
            cookies = aiohttp.DummyCookieJar()  # one user's cookies must not travel with the calls of another
            self._session = aiohttp.ClientSession(connector=connector, timeout=timeout, cookie_jar=cookies)
        return self._session

    def _open_public_socket(self, info: aiohttp.AddrInfoType) -> socket.socket:
        """Return a socket for an address; PermissionError for one that is not allowed.

        It sees every address that is connected to, so a name that resolves to another address later is no way in.
        """
        family, type_, protocol, _, address = info
        host = str(address[0])
        if not is_public(host) and not is_listed(host, self._options.allowed_networks):
            raise PermissionError(errno.EACCES, "only global unicast addresses are allowed")
        if (reached := self._addresses.get()) is not None:
            reached.append(host)
        return socket.socket(family=family, type=type_, proto=protocol)

    def _record_peer(self, response: aiohttp.ClientResponse) -> None:
        """Record the address of the connection that a response came from; it may have been opened for another call."""
        connection, reached = response.connection, self._addresses.get()
        if connection is None or connection.transport is None or reached is None:
            return
        if peer := connection.transport.get_extra_info("peername"):
            reached.append(str(peer[0]))

    def _context(self, connection: Connection) -> ssl.SSLContext | None:
        """Return the TLS context; equal credentials share one, because aiohttp pools connections by context."""
        if not connection.server.startswith("https://"):
            return None
        identity = replace(connection, server="https://", tls_server_name="")
        if identity not in self._contexts:
            if len(self._contexts) >= _CONTEXTS_MAX:
                self._contexts.popitem(last=False)
            self._contexts[identity] = identity.to_tls()
        return self._contexts[identity]


def is_public_host(url: str, networks: Sequence[Network] = ()) -> bool:
    """Return False if the host of a URL is an address that `is_public_only` excludes, or no host at all.

    Names are not resolved; the client checks their addresses when it connects.
    """
    try:
        host = URL(url).host or ""
    except ValueError:
        return False
    try:
        return is_public(host) or is_listed(host, networks)
    except ValueError:
        return bool(host) and host != "localhost" and not host.endswith(".localhost")


def drop_unread(response: aiohttp.ClientResponse) -> None:
    """Abort the connection of a response that was not read to its end.

    Closing it properly would receive and discard the rest for as long as the other side sends.
    """
    connection = response.connection
    if connection is not None and connection.transport is not None and not response.content.is_eof():
        connection.transport.abort()


def _connection_error(problem: aiohttp.ClientConnectorError) -> str:
    """Return the system's reason for a failed connection: "cannot connect to db:80: Connection refused"."""
    code = problem.os_error.errno
    if isinstance(problem, aiohttp.ClientSSLError) or code is None or code <= 0:
        return str(problem)
    return f"cannot connect to {problem.host}:{problem.port}: {os.strerror(code)}"
