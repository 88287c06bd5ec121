"""HTTPS for an ASGI app inside a running event loop: uvicorn with TLS, client certificates and limits.

It owns the listening socket and the TLS context, which is reloaded when the files change. `connection.py` handles one
connection. Authentication reads the client certificate; nothing here decides about permissions.

Decision: docs/decisions/0001-serving-module.md
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import structlog
import uvicorn
from prometheus_client import Counter

from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.filelimit import file_limit
from federation.apiserver.auth.pki import TLSFiles
from federation.apiserver.http.accepting import Admitted, Deadlines, accept
from federation.apiserver.http.asgi import ASGIApp
from federation.apiserver.http.connection import Connection, limited
from federation.apiserver.http.connectionshares import SEAT, ConnectionShares, Seat, ShareLimits
from federation.apiserver.http.unsentbytes import UnsentLimits
from federation.apiserver.http.websockets import with_websockets

_log = structlog.get_logger(__name__)
_refused = Counter(
    "federation_server_connections_refused_total",
    "Connections closed for others because there were too many, or held too much memory",
)
_TLS12_CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"
"""Forward secrecy and authenticated encryption only. TLS 1.3 has no other ciphers, and this does not change them."""
_FRAME_BYTES_MAX = 256 * 1024
"""Bytes of a message from a WebSocket client. kubectl sends 32 KiB of standard input in one."""


@dataclass(frozen=True, slots=True)
class ServingOptions:
    """Limits of the listener."""

    keep_alive_s: int = 120
    """Idle time of a connection; above the 90 s of Go clients, so that the client closes first."""
    request_head_s: float = 30.0
    """From the connection, or the first byte of a request, to its last header; against clients that send slowly."""
    request_body_s: float = 60.0
    """A body that brings less than 64 KiB in this time, and does not end, is given up."""
    request_head_bytes_max: int = 128 * 1024
    """Bytes of request line and headers together."""
    write_stall_s: float = 30.0
    """A client that reads nothing for this long while data waits for it is disconnected; watches too."""
    backlog: int = 4096
    connections_max: int = 8192
    """At most four fifths of the files that the process may open."""
    unknown_percent_max: int = 50
    """Percentage of connections whose user is unknown, because they have neither certificate nor token yet."""
    source_percent_max: int = 25
    """Percentage of such connections from one address."""
    known_percent_max: int = 40
    """Percentage of connections of known users; the rest is a reserve for administrators, agents and the system."""
    user_percent_max: int = 10
    """Percentage of connections of one user, or of all ServiceAccounts of one namespace."""
    held_bytes_max: int = 128 * 1024 * 1024
    """Memory of unfinished requests of unknown users."""
    user_unsent_bytes_max: int = 256 * 1024 * 1024
    """Memory of responses that the clients of one user, or of unknown users of one address, have not read."""
    unsent_bytes_max: int = 768 * 1024 * 1024
    """Memory of responses that clients have not read."""
    handshake_s: float = 10.0
    """From the connection to the end of the TLS handshake."""
    tls_shutdown_s: float = 5.0
    """How long a closed connection waits for the client's end of TLS."""
    graceful_stop_s: int = 5
    """Time for requests in flight at shutdown; watches end at once."""
    tls_reload_s: float = 60.0
    """Interval at which the certificate file is checked."""


class Listen(Protocol):
    """Serves an app until cancelled: `serve` on a port of its own, the simulator on a port that members share."""

    async def __call__(
        self,
        app: ASGIApp,
        *,
        host: str,
        port: int,
        tls: TLSFiles | None,
        on_started: Callable[[str, int], None] | None = None,
        on_stopping: Callable[[], None] | None = None,
    ) -> None:
        """As `serve`."""
        ...


async def serve(
    app: ASGIApp,
    *,
    host: str,
    port: int,
    tls: TLSFiles | None,
    on_started: Callable[[str, int], None] | None = None,
    on_stopping: Callable[[], None] | None = None,
    options: ServingOptions | None = None,
) -> None:
    """Serve until cancelled, then stop gracefully.

    `port` 0 takes a free port. `on_started(host, port)` is called once connections are accepted; `on_stopping` is
    called before requests in flight are awaited, and must end watches. `tls` None serves plain HTTP, for tests and
    proxies. ConfigurationError when the address cannot be bound or the TLS files cannot be used.
    """
    options = options or ServingOptions()
    context = None if tls is None else _to_context(tls)
    listener = _bind(host, port, options.backlog)
    config = uvicorn.Config(
        with_websockets(app),
        http=limited(
            head_bytes_max=options.request_head_bytes_max,
            head_s=options.request_head_s,
            body_s=options.request_body_s,
            keep_alive_s=options.keep_alive_s,
            stall_s=options.write_stall_s,
        ),
        interface="asgi3",
        ws=_websocket,  # type: ignore[arg-type]  # called as the class would be
        ws_max_size=_FRAME_BYTES_MAX,
        ws_per_message_deflate=False,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=options.backlog,
        timeout_keep_alive=options.keep_alive_s,
        timeout_graceful_shutdown=options.graceful_stop_s,
    )
    config.load()
    server = _Server(config, context, options)
    try:
        server.started = True
        async with asyncio.TaskGroup() as group:
            group.create_task(server.accept(listener), name="accept")
            if context is not None and tls is not None:
                group.create_task(_reload_on_change(context, tls, options.tls_reload_s), name="tls-reload")
            if on_started is not None:
                on_started(*listener.getsockname()[:2])
            await server.main_loop()
    finally:
        if on_stopping is not None:
            on_stopping()
        if server.started:
            # A second cancellation must not leave connections open.
            await asyncio.shield(server.shutdown(sockets=[listener]))
        listener.close()


def _websocket(**arguments: Any) -> asyncio.Protocol:
    """Return the protocol of a WebSocket connection; its import waits for the first one."""
    from federation.apiserver.http.websocketconnection import WebSocketConnection  # noqa: PLC0415  # it builds tables

    return WebSocketConnection(**arguments)


def _to_limits(options: ServingOptions) -> ShareLimits:
    total = min(options.connections_max, file_limit() * 4 // 5)
    return ShareLimits(
        total=total,
        unknown=total * options.unknown_percent_max // 100,
        source=total * options.source_percent_max // 100,
        known=total * options.known_percent_max // 100,
        owner=total * options.user_percent_max // 100,
        held_bytes=options.held_bytes_max,
        unsent=UnsentLimits(options.user_unsent_bytes_max, options.unsent_bytes_max),
    )


class _Server(uvicorn.Server):
    """A server without uvicorn's signal handlers and lifespan: its caller owns the event loop and stops it.

    It accepts connections itself, to count them and to limit their handshakes.
    """

    def __init__(self, config: uvicorn.Config, context: ssl.SSLContext | None, options: ServingOptions) -> None:
        super().__init__(config)
        self.lifespan = config.lifespan_class(config)
        self.servers = []
        self._context = context
        self._shares = ConnectionShares(_to_limits(options), _refused.inc)
        self._deadlines = Deadlines(options.handshake_s, options.tls_shutdown_s)

    async def accept(self, listener: socket.socket) -> None:
        """Accept connections until cancelled."""
        await accept(listener, self._context, self._deadlines, self._shares, self._connect)

    def _connect(self, seat: Seat) -> Admitted:
        make: Any = self.config.http_protocol_class
        protocol: Admitted = make(config=self.config, server_state=self.server_state, app_state={SEAT: seat})
        return protocol

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop without waiting for idle clients to acknowledge the end of TLS; some never do."""
        self._abort_connections(lambda connection: connection.is_idle)
        await super().shutdown(sockets)
        self._abort_connections(lambda _: True)
        await asyncio.sleep(0)

    def _abort_connections(self, matches: Callable[[Connection], bool]) -> None:
        for connection in list(self.server_state.connections):
            if isinstance(connection, Connection) and matches(connection):
                connection.transport.abort()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _bind(host: str, port: int, backlog: int) -> socket.socket:
    """Return a listening socket; ConfigurationError when the address is taken, foreign or forbidden."""
    if not 0 <= port <= 65535:
        raise ConfigurationError(f"cannot listen on {host}:{port}: a port is a number from 0 to 65535")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError) as error:
        raise ConfigurationError(f"cannot listen on {host}: not a host name or address of this machine") from error
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        listener.setblocking(False)
        listener.bind(address)
        listener.listen(backlog)
    except (OSError, OverflowError) as error:
        listener.close()
        detail = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ConfigurationError(f"cannot listen on {host}:{port}: {detail}; choose another with --port") from error
    return listener


def _to_context(tls: TLSFiles) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(_TLS12_CIPHERS)
    context.set_alpn_protocols(["http/1.1"])
    _load(context, tls)
    if tls.client_ca is not None:
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def _load(context: ssl.SSLContext, tls: TLSFiles) -> None:
    """Read certificate, key and client CA into the context; new connections use them at once."""
    try:
        # A half-written pair must not damage the context in use.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(tls.certificate, tls.key)
        context.load_cert_chain(tls.certificate, tls.key)
        if tls.client_ca is not None:
            context.load_verify_locations(tls.client_ca)
    except (OSError, ssl.SSLError) as error:
        raise ConfigurationError(f"cannot use TLS files {tls.certificate}, {tls.key}: {error}") from error


async def _reload_on_change(context: ssl.SSLContext, tls: TLSFiles, interval_s: float) -> None:
    """Load the certificate again when its file was replaced. A half-written pair is retried at the next check."""
    loaded = _mtime_ns(tls.certificate)
    while True:
        await asyncio.sleep(interval_s)
        if (now := _mtime_ns(tls.certificate)) != loaded:
            try:
                _load(context, tls)
            except ConfigurationError as error:
                _log.warning("the previous certificate stays in use", reason=str(error))
                continue
            loaded = now
            _log.info("serving certificate loaded again", file=str(tls.certificate))


def _mtime_ns(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
