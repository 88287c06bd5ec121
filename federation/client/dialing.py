"""New connections to a server: directly, through an HTTP proxy or through the tunnel of a cluster's agent, with TLS.

The addresses of a name are tried as RFC 8305 says, so that a dead IPv6 address does not cost the time of a request.
The caller limits the time.
"""

import asyncio
import re
import socket
import ssl
from base64 import b64encode
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

from aiohappyeyeballs import start_connection
from yarl import URL

from federation.apimachinery.connection import Connection
from federation.apimachinery.errors import ClusterUnreachable, ConfigurationError, FederationError, Obstacle
from federation.apimachinery.oserrors import describe_os_error
from federation.apimachinery.resumption import ResumingContext
from federation.client.obstacles import obstacle_of

_NEXT_ADDRESS_S = 0.25
"""When the next address of a name is tried, too: RFC 8305's recommendation."""
_CLOSE_S = 1.0
"""How long a server may take for its part of the end of TLS."""
_PROXY_HEAD_BYTES_MAX = 16 * 1024
"""The longest answer of a proxy to CONNECT."""
_ESTABLISHED = re.compile(rb"HTTP/1\.[01] 2\d\d[ \r]")
_REFUSED_BY_PROXY = re.compile(rb"HTTP/1\.[01] 4\d\d[ \r]")

Dial = Callable[[str], Awaitable[socket.socket]]
"""Returns a socket to the API server of a cluster, through the tunnel of its agent; ClusterUnreachable."""

_Protocol = TypeVar("_Protocol", bound=asyncio.Protocol)


class ConnectFailed(FederationError):
    """There is no connection. The message gives the reason."""

    def __init__(self, message: str, obstacle: Obstacle = Obstacle.NO_ANSWER) -> None:
        super().__init__(message)
        self.obstacle = obstacle


class Dialer:
    """Opens connections to one server with one TLS identity; ConfigurationError for addresses without sense."""

    def __init__(self, connection: Connection, tls: ssl.SSLContext | None, dial: Dial | None = None) -> None:
        self._dial = dial
        self._tls = tls
        self._tunnel = connection.tunnel
        self._server = _address(connection.server, "server")
        self._proxy = _address(connection.proxy_url, "proxy-url") if connection.proxy_url else None
        self._tls_name = connection.tls_server_name or self._server.raw_host or ""

    @property
    def target_prefix(self) -> str:
        """The text before the path of a request: a proxy needs the whole address, unless TLS hides the request."""
        base = self._server.raw_path.rstrip("/")
        return f"http://{self._host}{base}" if self._is_seen_by_proxy else base

    @property
    def headers(self) -> dict[str, str]:
        """Headers that follow from the addresses."""
        found = {"Host": self._host}
        if self._server.user is not None:
            found["Authorization"] = to_basic(self._server.user, self._server.password or "")
        if self._is_seen_by_proxy and self._proxy is not None and self._proxy.user is not None:
            found["Proxy-Authorization"] = to_basic(self._proxy.user, self._proxy.password or "")
        return found

    async def open(self, factory: Callable[[], _Protocol]) -> _Protocol:
        """Return the protocol of a new connection; ConnectFailed, SSLCertVerificationError or ClusterUnreachable."""
        try:
            return await self._open(factory)
        except BaseException as problem:
            if isinstance(self._tls, ResumingContext):
                self._tls.forget(self._tls_name)
            if isinstance(problem, OSError) and not isinstance(problem, ssl.SSLCertVerificationError):
                raise ConnectFailed(describe_os_error(problem), obstacle_of(problem)) from problem
            raise

    def remember(self, connection: ssl.SSLObject) -> None:
        """Resume the TLS session of this connection in later ones."""
        if isinstance(self._tls, ResumingContext):
            self._tls.remember(connection)

    async def _open(self, factory: Callable[[], _Protocol]) -> _Protocol:
        loop = asyncio.get_running_loop()
        if self._tunnel:
            # Not `create_connection`: a tunnel's end is a Unix socket.
            return await _connect(
                loop.create_unix_connection, factory, await self.open_tunnel(), self._tls, self._tls_name
            )
        if self._proxy is not None:
            return await self._open_through(self._proxy, factory)
        to_server = await _open_socket(self._server)
        return await _connect(loop.create_connection, factory, to_server, self._tls, self._tls_name)

    async def open_tunnel(self) -> socket.socket:
        """Return a socket to the server through the tunnel of its cluster's agent."""
        if self._dial is None:
            raise ClusterUnreachable(
                f"cluster {self._tunnel} is reached through its agent, which this process does not serve"
            )
        return await self._dial(self._tunnel)

    @property
    def _host(self) -> str:
        return self._server.host_port_subcomponent or ""

    @property
    def _is_seen_by_proxy(self) -> bool:
        return self._proxy is not None and self._tls is None

    async def _open_through(self, proxy: URL, factory: Callable[[], _Protocol]) -> _Protocol:
        loop = asyncio.get_running_loop()
        proxy_tls = ssl.create_default_context() if proxy.scheme == "https" else None
        try:
            to_proxy = await _open_socket(proxy)
        except OSError as problem:
            found = obstacle_of(problem)
            obstacle = Obstacle.PROXY_AWAY if found is Obstacle.NO_ANSWER else found
            text = f"the proxy {_authority(proxy)} does not answer: {describe_os_error(problem)}"
            raise ConnectFailed(text, obstacle) from problem
        if self._tls is None:
            return await _connect(loop.create_connection, factory, to_proxy, proxy_tls, proxy.raw_host or "")
        tunnel = await _connect(loop.create_connection, _ProxyTunnel, to_proxy, proxy_tls, proxy.raw_host or "")
        try:
            await tunnel.establish(_authority(self._server), proxy)
            protocol = factory()
            transport = await loop.start_tls(
                tunnel.transport,
                protocol,
                self._tls,
                server_hostname=self._tls_name,
                ssl_shutdown_timeout=_CLOSE_S,
            )
            if transport is None:
                raise ConnectFailed("the proxy closed the connection")
        except BaseException:
            tunnel.transport.abort()
            raise
        protocol.connection_made(transport)
        return protocol


class _ProxyTunnel(asyncio.Protocol):
    """Asks a proxy for a tunnel to a server."""

    def __init__(self) -> None:
        self._received = b""
        self._answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def establish(self, authority: str, proxy: URL) -> None:
        """Return when the proxy has connected to HOST:PORT; ConnectFailed."""
        lines = [f"CONNECT {authority} HTTP/1.1", f"Host: {authority}"]
        if proxy.user is not None:
            lines.append(f"Proxy-Authorization: {to_basic(proxy.user, proxy.password or '')}")
        self.transport.write("\r\n".join([*lines, "", ""]).encode("ascii"))
        head = await self._answer
        if not _ESTABLISHED.match(head):
            status = head[:40].split(b"\r")[0].decode("ascii", "replace")
            is_refusal = _REFUSED_BY_PROXY.match(head) is not None
            obstacle = Obstacle.PROXY_REFUSED if is_refusal else Obstacle.NO_ANSWER
            raise ConnectFailed(f"the proxy answers {status!r} to CONNECT", obstacle)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, rest = self._received.partition(b"\r\n\r\n")
        if len(head) > _PROXY_HEAD_BYTES_MAX or rest:
            self._fail("the proxy answers CONNECT with more than a head")
        elif end and not self._answer.done():
            self._answer.set_result(head)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  # asyncio's signature
        self._fail("the proxy closed the connection")

    def _fail(self, reason: str) -> None:
        if not self._answer.done():
            self._answer.set_exception(ConnectFailed(reason))


def to_basic(user: str, password: str) -> str:
    """Return the value of a header for a user and a password."""
    return "Basic " + b64encode(f"{user}:{password}".encode()).decode()


async def _connect(
    create: Callable[..., Any],
    factory: Callable[[], _Protocol],
    to: socket.socket,
    tls: ssl.SSLContext | None,
    name: str,
) -> _Protocol:
    arguments: dict[str, Any] = {}
    if tls is not None:
        arguments = {"ssl": tls, "server_hostname": name, "ssl_shutdown_timeout": _CLOSE_S}
    _, protocol = await create(factory, sock=to, **arguments)
    return cast("_Protocol", protocol)


async def _open_socket(to: URL) -> socket.socket:
    host, port = to.raw_host or "", to.port or 0
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:  # a name
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return await start_connection(found, happy_eyeballs_delay=_NEXT_ADDRESS_S, interleave=1)


def _address(text: str, field: str) -> URL:
    try:
        found = URL(text, encoded=True)
        if found.scheme in ("http", "https") and found.raw_host and found.port:
            return found
    except ValueError:
        pass
    raise ConfigurationError(f"{field}: needs an address as https://HOST:PORT")


def _authority(url: URL) -> str:
    host = url.raw_host or ""
    return f"[{host}]:{url.port}" if ":" in host else f"{host}:{url.port}"
