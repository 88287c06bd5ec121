"""HTTP calls to webhooks and other services that administrators configure: one deadline, a bounded response.

It does not retry, follow redirects, cache, keep cookies or use the proxy of the environment: requests go to httpx's
transport, below what its clients remember. Connections are reused per server and TLS identity. `stream` forwards
requests and responses of any length piece by piece. `client/retryingwebhookclient.py` adds retries and circuit
breakers; `webhooks.py` adds the review protocol of Kubernetes' webhooks.

httpx is imported at the first call: that takes longer than most commands.

Decision: docs/decisions/0122-httpx-for-what-is-not-hot.md
"""

import asyncio
import ssl
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from federation.apimachinery.connection import Connection
from federation.apimachinery.errors import ServiceUnavailable
from federation.apimachinery.publicaddresses import Network, is_listed, is_public

if TYPE_CHECKING:
    import httpx

    from federation.apimachinery.webhooktransport import CheckedTransport

_CONTEXTS_MAX = 64
_CONNECT_S_MAX = 5.0
"""Time to connect for `stream`, TLS included."""
_PIECES_MAX = 1024
"""Chunks of an answer, however small: each costs 10 µs."""
_PIECE_BYTES = 1024
"""Bytes of an answer for each further chunk."""
_PIECES_AT_A_TIME = 256
_HEADERS = {"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": "federation"}
"""Of each call, unless it brings its own. Compressed answers could be much larger than what was received."""


@dataclass(frozen=True, slots=True)
class WebhookClientOptions:
    """Limits of a webhook client."""

    calls_per_host_max: int = 32
    """Concurrent calls to one server; 0 for no limit."""
    servers_max: int = 64
    """Servers to which connections are kept; one more closes those that were not called for the longest time."""
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

    def problem(self, answered: str, *, hidden: str) -> str:
        """Return why a call failed in words that scan no network: `hidden` if its network is not listed.

        `answered` says what is wrong with the answer, if there was one.
        """
        return (self.error or answered) if self.is_listed else hidden


class StreamedResponse(NamedTuple):
    """The head of a response, and its body in pieces as they arrive, in the content encoding of the server."""

    status: int
    headers: Sequence[tuple[bytes, bytes]]
    body: AsyncIterator[bytes]


@dataclass(slots=True)
class _Server:
    """The connections to one server with one TLS identity, and how many calls use them."""

    transport: "CheckedTransport"
    turn: AbstractAsyncContextManager[Any]
    """Entered by each call. httpcore's own limit loses a place for ever when a call that waits for one is cancelled."""
    calls: int = 0


class WebhookClient:
    """An HTTP client whose calls return failures instead of raising them. Connections open at the first call."""

    def __init__(self, options: WebhookClientOptions | None = None) -> None:
        self._options = options or WebhookClientOptions()
        self._servers: OrderedDict[Connection, _Server] = OrderedDict()
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
        try:
            async with asyncio.timeout(timeout_s):
                response = await self._exchange(method, connection, body, headers, reached)
        except TimeoutError:
            response = WebhookResponse(0, error=f"no answer within {timeout_s:g} s", is_timeout=True)
        except ServiceUnavailable as problem:
            response = WebhookResponse(0, error=problem.message)
        networks = self._options.allowed_networks
        return response._replace(is_listed=bool(reached) and all(is_listed(each, networks) for each in reached))

    async def _exchange(
        self,
        method: str,
        connection: Connection,
        body: bytes | None,
        headers: Mapping[str, str],
        reached: list[str],
    ) -> WebhookResponse:
        lower = {name.lower() for name in headers}
        sent = [*headers.items(), *(item for item in _HEADERS.items() if item[0].lower() not in lower)]
        async with self._opened(method, connection, sent, body, reached) as response:
            if response.headers.get("content-encoding", "identity") != "identity":
                return WebhookResponse(0, error="the answer is compressed, which was not asked for")
            received = bytearray()
            pieces = 0
            async for chunk in _pieces(response):
                pieces += 1
                received += chunk
                if pieces > _PIECES_MAX + len(received) // _PIECE_BYTES:
                    return WebhookResponse(0, error="the answer is in too many small chunks")
                if len(received) > self._options.response_bytes_max:
                    return WebhookResponse(
                        0, error=f"the answer is larger than {self._options.response_bytes_max} bytes"
                    )
            return WebhookResponse(response.status_code, bytes(received))

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        connection: Connection,
        headers: Sequence[tuple[str, str]],
        body: bytes | AsyncIterator[bytes] | None = None,
    ) -> AsyncIterator[StreamedResponse]:
        """Send a request to `connection.server`, a complete and encoded URL, and yield the response as it arrives.

        No headers are added but those of the transfer. The caller limits the time. ServiceUnavailable says why there
        is no response, also when it breaks off while the body is read.
        """
        async with self._opened(method, connection, headers, body, [], _CONNECT_S_MAX) as response:
            yield StreamedResponse(response.status_code, response.headers.raw, _pieces(response))

    async def close(self) -> None:
        """Close all connections."""
        servers, self._servers = self._servers, OrderedDict()
        for server in servers.values():
            await server.transport.aclose()

    @asynccontextmanager
    async def _opened(
        self,
        method: str,
        connection: Connection,
        headers: Sequence[tuple[str, str]],
        body: bytes | AsyncIterator[bytes] | None,
        reached: list[str],
        connect_s: float | None = None,
    ) -> AsyncGenerator["httpx.Response"]:
        """Send the request and yield the response whose body is to be read; ServiceUnavailable says what went wrong.

        `reached` gets the addresses that were connected to. A response that is not read to its end ends its connection.
        """
        from federation.apimachinery import webhooktransport  # noqa: PLC0415  # see the module's docstring

        with webhooktransport.described_problems(connection.server):
            request = webhooktransport.to_request(method, connection, headers, body, reached, connect_s)
            server = self._server(connection)
            server.calls += 1
            try:
                await self._close_surplus()
                async with server.turn:
                    response = await server.transport.handle_async_request(request)
                    try:
                        yield response
                    finally:
                        await response.aclose()
            finally:
                server.calls -= 1

    def _server(self, connection: Connection) -> _Server:
        from federation.apimachinery.webhooktransport import CheckedTransport  # noqa: PLC0415

        url = urlsplit(connection.server)
        identity = replace(connection, server=f"{url.scheme}://{url.netloc}".lower())
        server = self._servers.get(identity)
        if server is None:
            calls_max = self._options.calls_per_host_max
            turn = asyncio.Semaphore(calls_max) if calls_max else nullcontext()
            allowed = self._options.allowed_networks if self._options.is_public_only else None
            server = _Server(CheckedTransport(self._context(connection), allowed), turn)
            self._servers[identity] = server
        self._servers.move_to_end(identity)
        return server

    async def _close_surplus(self) -> None:
        """Close the connections to the server that was not called for the longest time, if there are many."""
        if len(self._servers) > self._options.servers_max:
            idle = next((key for key, each in self._servers.items() if not each.calls), None)
            if idle is not None:
                await self._servers.pop(idle).transport.aclose()

    def _context(self, connection: Connection) -> ssl.SSLContext | None:
        """Return the TLS context. Servers with equal credentials share one: the system's CAs take 70 ms to load."""
        if not connection.server.startswith("https://"):
            return None
        identity = replace(connection, server="https://", tls_server_name="")
        if identity not in self._contexts:
            if len(self._contexts) >= _CONTEXTS_MAX:
                self._contexts.popitem(last=False)
            self._contexts[identity] = identity.to_tls()
        return self._contexts[identity]


async def _pieces(response: "httpx.Response") -> AsyncIterator[bytes]:
    """Yield the body as it arrives, and let others run: thousands of chunks may arrive together."""
    pieces = 0
    async for piece in response.aiter_raw():
        pieces += 1
        if not pieces % _PIECES_AT_A_TIME:
            await asyncio.sleep(0)
        yield piece


def is_public_host(url: str, networks: Sequence[Network] = ()) -> bool:
    """Return False if the host of a URL is an address that `is_public_only` excludes, or no host at all.

    Names are not resolved; the client checks their addresses when it connects.
    """
    try:
        parsed = urlsplit(url)
        host, _ = parsed.hostname or "", parsed.port
    except ValueError:
        return False
    try:
        return is_public(host) or is_listed(host, networks)
    except ValueError:
        return bool(host) and host != "localhost" and not host.endswith(".localhost")
