"""One HTTP/1.1 connection: uvicorn's protocol on httptools with limits on heads, idle time and stalled clients.

It parses the verified client certificate once, into `scope["state"]["peer"]`, and provides the extensions of
`asgi.py`. Only this module and `serving.py`, which creates the class for a listener's limits, know
uvicorn.

Decision: docs/decisions/0009-one-write-no-timer-no-task.md
"""

import asyncio
import socket
import struct
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, ClassVar

import uvicorn
from prometheus_client import Counter
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from federation.apimachinery.errors import FederationError
from federation.apiserver.auth.clientcertificates import Peer, to_peer
from federation.apiserver.auth.identity import User
from federation.apiserver.http.accepting import Admitted
from federation.apiserver.http.asgi import ABORT, WHOLE_RESPONSE, Header
from federation.apiserver.http.connectionshares import SEAT, Seat

_stalled = Counter(
    "federation_server_connections_stalled_total", "Connections dropped because the client stopped reading"
)
_BODY_BYTES_MIN = 64 * 1024
_CLOSE: Header = (b"connection", b"close")
_HEADERS_MAX = 1000
_PIPELINED_MAX = 64
"""Requests that a client may send before the first response."""
_BODY_DRAIN_S = 5.0
"""Time to receive the rest of a body whose request was answered early. Closing at once could reset the connection
before the client reads the response."""
_UNSENT_BYTES_MAX = 64 * 1024
"""Unsent bytes at which a response waits; under TLS, 512 KiB by default for each of thousands of connections."""
_ACKNOWLEDGED_AT = 120
"""Offset of `tcpi_bytes_acked` in Linux's `tcp_info`."""
_TOO_LARGE = "Request Header Fields Too Large"


class _Refused(FederationError):
    """Raised inside a parser callback: httptools reports a parser error, and uvicorn responds and closes."""


class Connection(HttpToolsProtocol, Admitted):
    """One connection: adds the peer to every request's state and limits size and duration of a request's head.

    A client that does not read its response is disconnected after `stall_s`, which frees the write buffer.

    Timers run only for slow clients (a head in several pieces, a possibly idle connection), and a whole response is one
    write: a GET costs a tenth less than with a timer and two writes per request.
    """

    head_bytes_max: ClassVar[int]
    head_s: ClassVar[float]
    keep_alive_s: ClassVar[float]
    stall_s: ClassVar[float]
    body_s: ClassVar[float]

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._seat: Seat = app_state[SEAT]
        self._served: RequestResponseCycle | None = None
        """The request that is served now, or was served last; `cycle` is the one that was received last."""
        self._is_in_head = False
        self._piece_bytes = 0
        self._head_bytes = 0
        """Bytes of an unfinished head after its first piece."""
        self._head_deadline: asyncio.TimerHandle | None = None
        self._idle_since_s = 0.0
        self._idle_check: asyncio.TimerHandle | None = None
        self._refusal = 0
        self._read_bytes = 0
        """The number of bytes that the client had read at the last check."""
        self._stall_check: asyncio.TimerHandle | None = None
        self._drain_deadline: asyncio.TimerHandle | None = None
        self._body_deadline: asyncio.TimerHandle | None = None
        self._body_bytes = 0
        """Bytes of the body since the deadline was set."""
        self._piece_bytes_max = 0
        """The largest piece so far: buffers of TLS keep its size."""
        self._framing_bytes = 0
        """Bytes after a head that are not body: chunk extensions and trailers."""

    @property
    def is_idle(self) -> bool:
        """Whether no request is in progress."""
        return self.cycle is None or self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        transport.set_write_buffer_limits(_UNSENT_BYTES_MAX)
        tls = transport.get_extra_info("ssl_object")
        peer: Peer | None = to_peer(tls.getpeercert(), tls.getpeercert(True)) if tls is not None else None
        self.app_state = {**self.app_state, "peer": peer}
        self._seat.close = transport.abort
        if peer is not None:
            self._seat.recognize(User(peer.user, peer.groups))
        self._head_deadline = self.loop.call_later(self.head_s, transport.close)
        self._idle_check = self.loop.call_later(self.keep_alive_s, self._close_when_idle)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timers()
        super().connection_lost(exc)
        if self._served is not None:
            # uvicorn tells only the newest request, which may wait behind this one.
            self._served.disconnected |= not self._served.response_complete
            self._served.message_event.set()
        for cycle in (self._served, *(waiting for waiting, _ in self.pipeline)):
            if cycle is not None:
                cycle.scope["extensions"].clear()
        self.pipeline.clear()
        self.cycle = self._served = None  # type: ignore[assignment]  # as before the first request
        self.abandon()

    def abandon(self) -> None:
        """Give up the seat and all references in a circle: garbage of a thousand connections would stop the process."""
        self._seat.leave()
        self.parser = None

    def _stop_timers(self) -> None:
        self._clear_head_deadline()
        for timer in (self._idle_check, self._stall_check, self._drain_deadline, self._body_deadline):
            if timer is not None:
                timer.cancel()

    def data_received(self, data: bytes) -> None:
        self._piece_bytes = len(data)
        if self._is_in_head:
            self._head_bytes += len(data)
        elif self.cycle is not None and self.cycle.more_body:
            self._framing_bytes += len(data)  # reset by `on_body` when the data holds body
        super().data_received(data)
        if not self._seat.owner:
            self._hold(len(data))
        if self._is_in_head and not self.transport.is_closing():
            if self._head_bytes > self.head_bytes_max or len(self.headers) > _HEADERS_MAX:
                self._refusal = 431
                self.send_400_response(_TOO_LARGE)
            elif self._head_deadline is None:
                self._head_deadline = self.loop.call_later(self.head_s, self.transport.close)
        elif self.cycle is not None and self.cycle.more_body and self._body_deadline is None:
            self._body_deadline = self.loop.call_later(self.body_s, self._close_slow_body)
        # httptools parses chunk extensions and trailers silently, so an endless one would never be refused.
        if self._framing_bytes > self.head_bytes_max + len(data):
            self.transport.abort()

    def _hold(self, size: int) -> None:
        """Count the memory of a connection without a user."""
        self._piece_bytes_max = max(self._piece_bytes_max, size)
        body_bytes = len(self.cycle.body) if self.cycle is not None else 0
        self._seat.hold(self._piece_bytes_max + body_bytes + (self._head_bytes if self._is_in_head else 0))

    def send_400_response(self, msg: str) -> None:
        """Respond to a request that cannot be parsed or exceeds the limits of its head, and close."""
        if self._refusal != 431:
            super().send_400_response(msg)
            return
        text = _TOO_LARGE.encode()
        head = STATUS_LINE[431] + b"content-type: text/plain; charset=utf-8\r\nconnection: close\r\n"
        self.transport.write(b"%bcontent-length: %d\r\n\r\n%b" % (head, len(text), text))
        self.transport.close()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._is_in_head = True
        self._head_bytes = 0

    def on_headers_complete(self) -> None:
        self._is_in_head = False
        self._clear_head_deadline()
        is_too_large = len(self.headers) > _HEADERS_MAX
        if self._head_bytes + self._piece_bytes > self.head_bytes_max:
            # The pieces may hold body too, so count the head exactly before refusing it.
            size = len(self.url) + sum(len(name) + len(value) for name, value in self.headers)
            is_too_large |= size > self.head_bytes_max
        if is_too_large:
            self._refusal = 431
            raise _Refused
        if len(self.pipeline) >= _PIPELINED_MAX:
            raise _Refused
        super().on_headers_complete()
        self.scope["extensions"] = {
            WHOLE_RESPONSE: partial(self._send_whole, self.cycle),  # type: ignore[dict-item]  # not a standard extension
            ABORT: self.transport.abort,  # type: ignore[dict-item]  # neither
        }

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._served = cycle
        super()._start_asgi_task(cycle, app)

    def on_body(self, body: bytes) -> None:
        self._framing_bytes = 0
        self._body_bytes += len(body)
        super().on_body(body)

    def _close_slow_body(self) -> None:
        """Close unless the client sends its body with some speed; on any route, and before it has logged in."""
        if self._body_bytes < _BODY_BYTES_MIN:
            self.transport.close()
            return
        self._body_bytes = 0
        self._body_deadline = self.loop.call_later(self.body_s, self._close_slow_body)

    def _unsupported_upgrade_warning(self) -> None:
        """Log nothing: clients could fill the log, and who tries SPDY gets an answer that says what works."""

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection and its seat over to uvicorn's WebSocket protocol, which these timers do not limit."""
        self._stop_timers()
        super().handle_websocket_upgrade()
        self.parser = self.scope = None  # type: ignore[assignment]  # both refer to this object

    def on_message_complete(self) -> None:
        super().on_message_complete()
        if self.parser.should_upgrade() and self._should_upgrade():
            return  # the request has no cycle: the WebSocket protocol serves it
        self.cycle.more_body = False
        self._framing_bytes = self._body_bytes = 0
        if self._body_deadline is not None:
            self._body_deadline.cancel()
            self._body_deadline = None
        if self._drain_deadline is not None:
            self._drain_deadline.cancel()
            self._drain_deadline = None

    def on_response_complete(self) -> None:
        # They refer to the cycle, which refers to them: garbage of each request.
        if self._served is not None:
            self._served.scope["extensions"].clear()
        # uvicorn would set a keep-alive timer after every response; `_close_when_idle` replaces it.
        if self.pipeline:
            super().on_response_complete()
            return
        self.server_state.total_requests += 1
        if not self.transport.is_closing():
            self.flow.resume_reading()
            self._idle_since_s = self.loop.time()
            if self.cycle.more_body:
                self._drain_deadline = self.loop.call_later(_BODY_DRAIN_S, self.transport.close)

    def pause_writing(self) -> None:
        super().pause_writing()
        if self._stall_check is None:
            self._read_bytes = self._count_read()
            self._stall_check = self.loop.call_later(self.stall_s, self._abort_when_stalled)
        self._seat.buffer(self.transport.get_write_buffer_size())

    def resume_writing(self) -> None:
        super().resume_writing()
        self._seat.buffer(0)
        if self._stall_check is not None:
            self._stall_check.cancel()
            self._stall_check = None

    def _abort_when_stalled(self) -> None:
        """Disconnect a client that has read nothing since the last check; a slow reader stays connected."""
        read_bytes = self._count_read()
        if read_bytes <= self._read_bytes:
            _stalled.inc()
            self.transport.abort()
            return
        self._read_bytes = read_bytes
        self._stall_check = self.loop.call_later(self.stall_s, self._abort_when_stalled)

    def _count_read(self) -> int:
        """Return a number that grows when the client reads: buffers below TLS hide slow reading from the transport."""
        connection = self.transport.get_extra_info("socket")
        with suppress(OSError, AttributeError, struct.error):
            state = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
            return int(struct.unpack_from("=Q", state, _ACKNOWLEDGED_AT)[0])
        return -self.transport.get_write_buffer_size()

    def _send_whole(self, cycle: RequestResponseCycle, status: int, headers: Sequence[Header], body: bytes) -> bool:
        """Send a response as `cycle.send` would, in one write; False when that is not possible."""
        if self.flow.write_paused or cycle.disconnected or cycle.response_started or cycle.scope["method"] == "HEAD":
            return False
        all_headers = [*cycle.default_headers, *headers]
        if not cycle.keep_alive:
            all_headers.append(_CLOSE)
        parts = [STATUS_LINE[status]]
        for name, value in all_headers:
            parts += (name, b": ", value, b"\r\n")
        head = b"".join(parts)
        if not head.count(b"\n") == head.count(b"\r") == len(all_headers) + 1:
            return False  # a header with a line break: `cycle.send` refuses it
        cycle.response_started = cycle.response_complete = True
        cycle.waiting_for_100_continue = False
        self.transport.write(head + b"\r\n" + body)
        # Wakes a handler that waits in `receive` for the end of the request.
        cycle.message_event.set()
        if not cycle.keep_alive:
            self.transport.close()
        cycle.on_response()
        return True

    def _close_when_idle(self) -> None:
        is_idle = self.cycle is not None and self.cycle.response_complete and not self._is_in_head
        left_s = self._idle_since_s + self.keep_alive_s - self.loop.time() if is_idle else self.keep_alive_s
        if left_s <= 0:
            self.transport.close()
        else:
            self._idle_check = self.loop.call_later(max(left_s, 0.1), self._close_when_idle)

    def _clear_head_deadline(self) -> None:
        if self._head_deadline is not None:
            self._head_deadline.cancel()
            self._head_deadline = None


def limited(
    *,
    head_bytes_max: int,
    head_s: float,
    body_s: float,
    keep_alive_s: float,
    stall_s: float,
) -> type[Connection]:
    """Return the connection class with these limits: bytes and seconds of a head, idle seconds, stalled seconds.

    A body must bring 64 KiB in each `body_s` seconds, or end.
    """
    limits = {"head_bytes_max": head_bytes_max, "head_s": head_s, "keep_alive_s": keep_alive_s, "stall_s": stall_s}
    return type("LimitedConnection", (Connection,), {**limits, "body_s": body_s})
