"""The HTTP connections to one server with one TLS identity: lent for one exchange, and kept while they are idle.

A request takes the connection that was used last, so that those which only a burst needed expire. It is sent again,
once and on a new connection, if it is one that may happen twice and a connection from an earlier exchange ended before
the response began: servers close idle connections whenever they like. The caller limits the time and the number of
requests. A response that is not read to its end costs its connection.

`wireconnection.py` speaks HTTP; `dialing.py` connects.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable

from federation.apimachinery.errors import ClusterError
from federation.client.body import Body
from federation.client.dialing import Dialer
from federation.client.wireconnection import Head, Sink, WireBroken, WireConnection

_REPEATABLE = frozenset({"GET", "HEAD", "PUT", "DELETE"})
_CLOSE_S = 1.0
"""How long the end of all connections may take."""


class Wire:
    """Connections of one server. `check` is awaited after each new one; an exception closes it."""

    def __init__(self, dialer: Dialer, check: Callable[[], Awaitable[None]], keep_alive_s: float) -> None:
        self._dialer = dialer
        self._check = check
        self._keep_alive_s = keep_alive_s
        self._idle: list[WireConnection] = []
        """Those that were used last come last."""
        self._open: set[WireConnection] = set()
        self._expiry: asyncio.TimerHandle | None = None
        self._is_retired = self._is_closed = False

    async def request(self, method: str, data: bytes, server: str, bytes_max: int) -> tuple[Head, bytes]:
        """Send a whole request and return the response's head and decompressed body.

        WireBroken, what `Dialer.open` raises, or a ClusterError for a body that `Body` refuses.
        """
        connection = self._take()
        is_kept = connection is not None
        while True:
            if connection is None:
                connection = await self._connect()
            whole = _Whole(server, bytes_max)
            try:
                connection.send(data, whole, is_bodiless=method == "HEAD")
                answer = await whole.answer
            except WireBroken:
                connection.abort()
                if not is_kept or connection.has_answered or method not in _REPEATABLE:
                    raise
                connection, is_kept = None, False
                continue
            except BaseException:
                connection.abort()
                raise
            self._release(connection)
            return answer

    async def open(self, data: bytes, buffer_bytes: int) -> "Incoming":
        """Send a GET and return its response when the head has arrived, to be closed by the caller; errors as above."""
        connection = self._take() or await self._connect()
        incoming = Incoming(connection, buffer_bytes, self._release)
        try:
            connection.send(data, incoming)
            await incoming.begun
        except BaseException:
            connection.abort()
            raise
        return incoming

    def retire(self) -> None:
        """Use no connection for another request; those with an exchange close at its end."""
        self._is_retired = True
        while self._idle:
            self._idle.pop().close()

    async def close(self) -> None:
        """Close all connections, and wait until they are closed, so that a process does not end in a TLS shutdown."""
        self.retire()
        self._is_closed = True
        if self._expiry is not None:
            self._expiry.cancel()
        connections = list(self._open)
        for connection in connections:
            connection.close()
        if connections:
            await asyncio.wait([connection.closed for connection in connections], timeout=_CLOSE_S)
        for connection in connections:
            connection.abort()

    def _take(self) -> WireConnection | None:
        now_s = asyncio.get_running_loop().time()
        while self._idle:
            connection = self._idle.pop()
            if connection.is_alive(now_s):
                return connection
            connection.abort()
        return None

    async def _connect(self) -> WireConnection:
        connection = await self._dialer.open(WireConnection)
        if self._is_closed:
            connection.abort()
            raise WireBroken("the client is closed")
        self._open.add(connection)
        connection.closed.add_done_callback(lambda _: self._open.discard(connection))
        try:
            await self._check()
        except BaseException:
            connection.close()
            raise
        return connection

    def _release(self, connection: WireConnection) -> None:
        if connection.closed.done():
            return
        if not connection.is_reusable:
            connection.abort()
        elif self._is_retired:
            connection.close()
        else:
            loop = asyncio.get_running_loop()
            if not connection.idle_since_s and (tls := connection.tls) is not None:
                self._dialer.remember(tls)
            connection.idle_since_s = loop.time()
            self._idle.append(connection)
            if self._expiry is None:
                self._expiry = loop.call_later(self._keep_alive_s, self._expire)

    def _expire(self) -> None:
        """Close what was idle for too long; the one that was used first is the first in the list."""
        loop = asyncio.get_running_loop()
        self._expiry = None
        before_s = loop.time() - self._keep_alive_s
        expired = 0
        while expired < len(self._idle) and self._idle[expired].idle_since_s <= before_s:
            self._idle[expired].close()
            expired += 1
        del self._idle[:expired]
        if self._idle:
            self._expiry = loop.call_at(self._idle[0].idle_since_s + self._keep_alive_s, self._expire)


class _Whole(Sink):
    """A response that is wanted as a whole."""

    def __init__(self, server: str, bytes_max: int) -> None:
        self.answer: asyncio.Future[tuple[Head, bytes]] = asyncio.get_running_loop().create_future()
        self._server = server
        self._bytes_max = bytes_max

    def begin(self, head: Head) -> None:
        self._head = head
        self._body = Body(self._server, head.encoding, head.length, self._bytes_max)
        self.feed = self._body.feed  # type: ignore[method-assign]  # a call less for each piece

    def feed(self, data: bytes) -> None:
        self._body.feed(data)

    def end(self) -> None:
        if self.answer.done():  # cancelled
            return
        try:
            self.answer.set_result((self._head, self._body.finish()))
        except ClusterError as problem:
            self.answer.set_exception(problem)

    def fail(self, problem: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(problem)


class Incoming(Sink):
    """A response whose body is read while it arrives. The connection is not read while the reader is behind."""

    def __init__(
        self, connection: WireConnection, buffer_bytes: int, release: Callable[[WireConnection], None]
    ) -> None:
        loop = asyncio.get_running_loop()
        self.begun: asyncio.Future[None] = loop.create_future()
        self.head = Head(0, None, "", "")
        self._connection, self._release = connection, release
        self._buffer_bytes = buffer_bytes
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._is_paused = self._is_complete = False
        self._problem: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._alarm: asyncio.TimerHandle | None = None
        self._idle_at_s = 0.0
        self._is_idle = False

    async def read(self, idle_s: float = 0.0) -> bytes:
        """Return what has arrived, b"" at the end of the body; WireBroken. For one reader.

        With `idle_s` also b"" when nothing has arrived for so long.
        """
        while not self._pieces:
            if self._problem is not None:
                raise self._problem
            if self._is_complete or self._is_idle:
                return b""
            self._waiter = asyncio.get_running_loop().create_future()
            if idle_s:
                self._set_alarm(idle_s)
            try:
                await self._waiter
            finally:
                self._waiter = None
        pieces = b"".join(self._pieces) if len(self._pieces) > 1 else self._pieces[0]
        self._pieces.clear()
        self._size, self._is_idle = 0, False
        if self._is_paused:
            self._is_paused = False
            self._connection.resume()
        return pieces

    def close(self) -> None:
        """Give the connection back: it is closed unless the body has ended."""
        if self._alarm is not None:
            self._alarm.cancel()
        if self._is_complete or self._is_paused or self._problem is not None:
            self._release(self._connection)
        else:
            self._connection.leave()

    def begin(self, head: Head) -> None:
        self.head = head
        if not self.begun.done():
            self.begun.set_result(None)

    def feed(self, data: bytes) -> None:
        self._pieces.append(data)
        self._size += len(data)
        if self._size > self._buffer_bytes and not self._is_paused:
            self._is_paused = True
            self._connection.pause()
        self._wake()

    def end(self) -> None:
        self._is_complete = True
        self._wake()

    def fail(self, problem: Exception) -> None:
        self._problem = problem
        if not self.begun.done():
            self.begun.set_exception(problem)
        self._wake()

    def _set_alarm(self, idle_s: float) -> None:
        # A watch is read at every event. The timer that is set looks again, which costs less than one for each read.
        loop = asyncio.get_running_loop()
        self._idle_at_s = loop.time() + idle_s
        if self._alarm is None:
            self._alarm = loop.call_at(self._idle_at_s, self._check_idleness, loop)

    def _check_idleness(self, loop: asyncio.AbstractEventLoop) -> None:
        self._alarm = None
        if self._waiter is None:
            return  # The reader is busy, and its next read sets the alarm.
        if loop.time() < self._idle_at_s:
            self._alarm = loop.call_at(self._idle_at_s, self._check_idleness, loop)
            return
        self._is_idle = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
