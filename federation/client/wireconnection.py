"""One HTTP/1.1 connection to a server that is not trusted: bytes in, the parts of one response at a time out.

llhttp (by httptools) parses. It refuses bare line feeds, several or conflicting lengths and malformed chunks. This
module adds what a client must decide: limits of heads, interim responses, bodies that end with the connection, and
whether the connection may be used again. It never guesses: a connection whose state is in doubt is closed.

`wire.py` opens, lends and closes connections. A response goes to a `Sink`.
"""

import asyncio
import select
import ssl
from typing import NamedTuple, Protocol, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from federation.apimachinery.errors import ClusterError, FederationError

HEAD_BYTES_MAX = 64 * 1024
"""The longest head of a response, with interim responses before it and trailers after it."""
HEADERS_MAX = 256
_VERSIONS = ("1.1", "1.0")
_PEEK_AFTER_S = 0.05
"""A connection that was idle for longer is checked for an end that the event loop has not seen yet."""


class WireBroken(FederationError):
    """The connection ended, or the server broke the protocol, before the response was complete."""


class Head(NamedTuple):
    """The parts of a response's head that are read."""

    status: int
    length: int | None
    """The declared length of the body; None for one that is chunked or ends with the connection."""
    encoding: str
    date: str


class Sink(Protocol):
    """Receives one response. `begin` and `feed` may raise a ClusterError, which ends the connection."""

    def begin(self, head: Head) -> None:
        """The head is complete."""
        ...

    def feed(self, data: bytes) -> None:
        """The next bytes of the body."""
        ...

    def end(self) -> None:
        """The response is complete. Nothing is called after it."""
        ...

    def fail(self, problem: Exception) -> None:
        """The response will not be completed: WireBroken or a ClusterError. Nothing is called after it."""
        ...


class WireConnection(asyncio.Protocol):
    """A connection that carries one exchange after the other."""

    # Of the present response.
    _is_bodiless: bool
    _is_interim: bool
    _has_head: bool
    _is_chunked: bool
    _ends_with_connection: bool
    _length: int | None
    _encoding: str
    _date: str
    _headers: int
    _headers_bytes: int
    _silent_bytes: int
    _has_progressed: bool

    def __init__(self) -> None:
        self._parser = HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._sink: Sink | None = None
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.has_answered = False
        """Whether a byte of the present response has arrived."""
        self.is_reusable = False
        """Whether the last response is complete and the next request may follow."""
        self.idle_since_s = 0.0
        self._is_aborted = False
        self._reset(is_bodiless=False)

    def send(self, request: bytes, sink: Sink, *, is_bodiless: bool = False) -> None:
        """Send a request whose response goes to the sink; `is_bodiless` for HEAD."""
        transport = self._transport
        self._reset(is_bodiless=is_bodiless)
        if transport is None or transport.is_closing() or self._is_aborted:
            sink.fail(WireBroken("the connection was closed without an answer"))
            return
        self._sink = sink
        transport.write(request)

    def is_alive(self, now_s: float) -> bool:
        """Return False for an idle connection that has ended, or on which bytes arrived without a request.

        A busy event loop may not have read the end that the kernel knows about. Only a request that the server never
        received may be sent again whatever it does, so such a connection must not be used for it.
        """
        transport = self._transport
        if transport is None or transport.is_closing() or self._is_aborted:
            return False
        if now_s - self.idle_since_s < _PEEK_AFTER_S:
            return True
        found = transport.get_extra_info("socket")
        if found is None or found.fileno() < 0:
            return False
        poll = select.poll()
        poll.register(found.fileno(), select.POLLIN)
        return not poll.poll(0)

    @property
    def tls(self) -> ssl.SSLObject | None:
        """The TLS of the connection, None without one."""
        found: ssl.SSLObject | None = None
        if self._transport is not None:
            found = self._transport.get_extra_info("ssl_object")
        return found

    def pause(self) -> None:
        """Stop reading: the sink is full."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume(self) -> None:
        """Go on reading."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def close(self) -> None:
        """Close the connection; TLS is shut down. A response that is not complete fails."""
        if self._transport is not None:
            self._transport.close()

    def leave(self) -> None:
        """End the present response, which has no reader any more: properly, unless the server goes on sending."""
        self._sink, self.is_reusable = None, False
        self.close()

    def abort(self) -> None:
        """Close the connection at once: closing it properly would receive the rest for as long as the server sends."""
        self.is_reusable = False
        transport = self._transport
        if transport is not None and not self._is_aborted:
            self._is_aborted = True
            # Later, because this may be called by a read of TLS, which goes on with the transport.
            asyncio.get_running_loop().call_soon(transport.abort)

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Parse; what arrives without a request, or after a response, ends the connection."""
        if self._sink is None or self._is_aborted:
            self.abort()
            return
        self.has_answered, self._has_progressed = True, False
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade:
            self._fail(_broken("the server switched protocols"))
        except HttpParserError as problem:
            refusal = problem.__context__  # of a callback
            self._fail(refusal if isinstance(refusal, ClusterError | WireBroken) else _broken("invalid HTTP"))
        else:
            self._silent_bytes = 0 if self._has_progressed else self._silent_bytes + len(data)
            if self._silent_bytes > HEAD_BYTES_MAX:
                self._fail(_head_too_long())

    def eof_received(self) -> None:
        """End the response if only the end of the connection ends it; the event loop closes the connection."""
        self._end_of_connection(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """End or fail the present response."""
        self._end_of_connection(exc)
        self._transport = None
        if not self.closed.done():
            self.closed.set_result(None)

    # What the parser calls.

    def on_message_begin(self) -> None:
        """Refuse a second response to one request."""
        if self._sink is None:
            raise _broken("a response that nobody asked for")

    def on_header(self, name: bytes, value: bytes) -> None:
        """Read one header, or one trailer."""
        self._headers += 1
        self._headers_bytes += len(name) + len(value)
        if self._headers > HEADERS_MAX or self._headers_bytes > HEAD_BYTES_MAX:
            raise _head_too_long()
        if self._has_head:
            return  # trailers say nothing that is read
        match name.lower():
            case b"content-length":
                self._length = int(value)
            case b"transfer-encoding":
                if value.strip().lower() != b"chunked":
                    raise _broken("a transfer encoding other than chunked")
                self._is_chunked = True
            case b"content-encoding":
                self._encoding = value.decode("latin-1")
            case b"date":
                self._date = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        """Begin the response, unless it is an interim one."""
        if self._parser.get_http_version() not in _VERSIONS:
            raise _broken("another version of HTTP")
        status = self._parser.get_status_code()
        if status < 200:
            self._is_interim = True
            return
        self._has_head = self._has_progressed = True
        sink = self._sink
        if sink is None:
            raise _broken("a response that nobody asked for")
        has_no_body = self._is_bodiless or status in (204, 304)
        self._ends_with_connection = not has_no_body and self._length is None and not self._is_chunked
        sink.begin(Head(status, 0 if has_no_body else self._length, self._encoding, self._date))
        if self._is_bodiless:
            self._complete(is_reusable=False)  # the parser does not know that no body follows

    def on_body(self, data: bytes) -> None:
        """Hand on bytes of the body."""
        if self._sink is None:
            raise _broken("a body that nobody asked for")
        self._has_progressed = True
        self._sink.feed(data)

    def on_message_complete(self) -> None:
        """Complete the response; after an interim one the next follows."""
        if self._is_interim:
            self._is_interim = False
            self._length, self._is_chunked, self._encoding, self._date = None, False, "", ""
            return
        self._complete(is_reusable=self._parser.should_keep_alive())

    def _reset(self, *, is_bodiless: bool) -> None:
        self._is_bodiless = is_bodiless
        self._is_interim = self._has_head = self._is_chunked = self._ends_with_connection = False
        self.has_answered = self.is_reusable = False
        self._length = None
        self._encoding = self._date = ""
        self._headers = self._headers_bytes = 0
        # Bytes in a row without an end of a head, a byte of a body or an end of a response: the parser collects a
        # header until its end, and skips extensions of chunks, however long they are.
        self._silent_bytes = 0
        self._has_progressed = False

    def _complete(self, *, is_reusable: bool) -> None:
        sink, self._sink = self._sink, None
        if sink is None:
            return
        self._has_progressed = True
        # A server may answer before it has read the request. What is still unsent would then precede the next one.
        transport = self._transport
        self.is_reusable = is_reusable and transport is not None and not transport.get_write_buffer_size()
        sink.end()

    def _end_of_connection(self, exc: Exception | None) -> None:
        self.is_reusable = False
        if self._sink is None:
            return
        if exc is None and self._has_head and self._ends_with_connection:
            self._complete(is_reusable=False)
        else:
            is_begun = self.has_answered
            broken = (
                _broken("it ended early") if is_begun else WireBroken("the connection was closed without an answer")
            )
            broken.__cause__ = exc  # an alert of TLS, such as one about our client certificate
            self._fail(broken)

    def _fail(self, problem: Exception) -> None:
        sink, self._sink = self._sink, None
        self.abort()
        if sink is not None:
            sink.fail(problem)


def _broken(reason: str) -> WireBroken:
    return WireBroken(f"the connection broke ({reason})")


def _head_too_long() -> WireBroken:
    return _broken(f"a head longer than {HEAD_BYTES_MAX} bytes or {HEADERS_MAX} headers")
