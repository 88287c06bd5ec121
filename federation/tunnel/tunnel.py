"""One tunnel: byte streams over a carrier of messages, such as a WebSocket. Host and agent run the same class.

The host calls `open` and gets a socket; the agent gets `connect`, which it calls for each stream. The loop that reads
the carrier never waits for a stream: what a stream has not delivered yet is bounded by its window (`flow.py`). When
the carrier ends, every stream ends, and a client sees a broken connection. A tunnel does not reconnect: `tunnels.py`
holds the current one of each cluster.
"""

import asyncio
import contextlib
import socket
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from federation.apimachinery.errors import ClusterUnreachable, FederationError, Obstacle
from federation.tunnel.flow import Flow
from federation.tunnel.frames import DATA_BYTES_MAX, Frame, FrameType, TunnelError, credit, credit_of, decode, encode


class CarrierClosed(ClusterUnreachable):
    """The connection below a tunnel has ended."""


class Carrier(Protocol):
    """A connection that carries messages in order."""

    async def send(self, message: bytes) -> None:
        """Send one message; it waits while the other side does not read. CarrierClosed."""
        ...

    async def receive(self) -> bytes:
        """Return the next message; CarrierClosed at the end."""
        ...


@dataclass(frozen=True, slots=True)
class TunnelOptions:
    """Limits of one tunnel. Window and frames are the same on both sides."""

    streams_max: int = 512
    """Concurrent streams: the requests and watches of one cluster."""
    window_bytes: int = 256 * 1024
    """Bytes of one stream and direction that are sent and not read yet."""
    connect_timeout_s: float = 10.0
    """How long the agent's connection to its API server may take."""
    idle_s_max: float = 3600.0
    """A stream without a byte for this long is closed; watches send bookmarks about once a minute."""


Connect = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


class _Stream:
    """The received bytes of one stream that are not delivered yet."""

    def __init__(self, number: int, window: int) -> None:
        self.number = number
        self.flow = Flow(window)
        self.arrived: deque[bytes] = deque()
        self.is_ended = False
        """The other side sends nothing more."""
        self.changed = asyncio.Event()
        self.sendable = asyncio.Event()
        self.sendable.set()
        self.used_s = asyncio.get_running_loop().time()


class Tunnel:
    """One side of a tunnel. `run` works until the carrier ends or `close` is called."""

    def __init__(self, carrier: Carrier, options: TunnelOptions | None = None, connect: Connect | None = None) -> None:
        self._carrier = carrier
        self._options = options or TunnelOptions()
        self._connect = connect
        self._streams: dict[int, _Stream] = {}
        self._newest = 0
        self._group: asyncio.TaskGroup | None = None
        self._closing = asyncio.Event()

    @property
    def stream_count(self) -> int:
        """The number of open streams."""
        return len(self._streams)

    async def run(self, on_ready: Callable[[], None] = lambda: None) -> None:
        """Carry streams; returns after `close`. CarrierClosed when the connection ends, TunnelError for its misuse.

        `on_ready` is called when streams can be opened.
        """
        reading = asyncio.ensure_future(self._read())
        closing = asyncio.ensure_future(self._closing.wait())
        try:
            async with asyncio.TaskGroup() as self._group:
                on_ready()
                await asyncio.wait((reading, closing), return_when=asyncio.FIRST_COMPLETED)
                self._closing.set()  # the group would wait for a stream that begins now
                raise _Ended  # ends the streams, too
        except* _Ended:
            pass
        finally:
            self._group = None
            self._closing.set()
            for task in (reading, closing):
                task.cancel()
            await asyncio.wait((reading, closing))
        if not reading.cancelled() and (failure := reading.exception()) is not None:
            raise failure

    def close(self) -> None:
        """End the tunnel and all its streams."""
        self._closing.set()

    async def open(self) -> socket.socket:
        """Return a connected socket of a new stream; the caller closes it. ClusterUnreachable."""
        if self._group is None or self._closing.is_set():
            raise ClusterUnreachable("the tunnel has ended")
        if len(self._streams) >= self._options.streams_max:
            text = f"the tunnel carries {self._options.streams_max} streams, which is its limit"
            raise ClusterUnreachable(text, Obstacle.OURS)
        self._newest = self._newest % 0xFFFFFFFF + 1
        stream = self._streams[self._newest] = _Stream(self._newest, self._options.window_bytes)
        ours, theirs = socket.socketpair()
        end: socket.socket | asyncio.StreamWriter = theirs
        try:
            reader, end = await asyncio.open_unix_connection(sock=theirs)
            await self._carrier.send(encode(Frame(FrameType.OPEN, stream.number)))
        except BaseException:
            del self._streams[stream.number]
            ours.close()
            end.close()
            raise
        self._start(stream, reader, end)
        return ours

    async def _read(self) -> None:
        while True:
            frame = decode(await self._carrier.receive())
            if frame.type is FrameType.OPEN:
                self._accept(frame.stream)
            elif (stream := self._streams.get(frame.stream)) is not None:
                self._handle(stream, frame)
            # A stream that ended here may have frames on their way; they are bounded by its window.

    def _handle(self, stream: _Stream, frame: Frame) -> None:
        stream.used_s = asyncio.get_running_loop().time()
        if frame.type is FrameType.DATA:
            stream.flow.receive(len(frame.payload))
            stream.arrived.append(frame.payload)
            stream.changed.set()
        elif frame.type is FrameType.CREDIT:
            stream.flow.permit(credit_of(frame))
            stream.sendable.set()
        else:
            stream.is_ended = True
            stream.changed.set()

    def _accept(self, number: int) -> None:
        if self._connect is None:
            raise TunnelError("the agent opened a stream; only the host may")
        # A stream that the host has closed can still be delivering here, so there may be more than the host knows.
        if number in self._streams or len(self._streams) >= 2 * self._options.streams_max:
            raise TunnelError(f"stream {number} is open already, or {len(self._streams)} streams are")
        stream = self._streams[number] = _Stream(number, self._options.window_bytes)
        assert self._group is not None, "frames are read while the tunnel runs"
        self._group.create_task(self._connect_and_serve(stream, self._connect), name="tunnel-stream")

    async def _connect_and_serve(self, stream: _Stream, connect: Connect) -> None:
        try:
            async with asyncio.timeout(self._options.connect_timeout_s):
                reader, writer = await connect()
        except (OSError, TimeoutError):
            await self._end(stream)  # the host's client sees a connection that is closed without an answer
            return
        await self._serve(stream, reader, writer)

    def _start(self, stream: _Stream, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._group is None or self._closing.is_set():
            writer.close()
            self._streams.pop(stream.number, None)
            return
        task = self._group.create_task(self._serve(stream, reader, writer), name="tunnel-stream")
        # Also of a task that is cancelled before it begins. uvloop closes the descriptor of a transport that is garbage
        # twice, and the second time it can be that of another connection.
        task.add_done_callback(lambda _: writer.close())

    async def _serve(self, stream: _Stream, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Copy in both directions until one side ends; what arrived before is still delivered."""
        sending = asyncio.ensure_future(self._send(stream, reader))
        delivering = asyncio.ensure_future(self._deliver(stream, writer))
        try:
            await asyncio.wait((sending, delivering), return_when=asyncio.FIRST_COMPLETED)
        finally:
            writer.close()  # it sends what is buffered; first, because what follows can be cancelled
            for task in (sending, delivering):
                task.cancel()
            results = await asyncio.gather(sending, delivering, return_exceptions=True)
            await self._end(stream)
        for result in results:
            if isinstance(result, Exception) and not isinstance(result, CarrierClosed):
                raise result

    async def _end(self, stream: _Stream) -> None:
        self._streams.pop(stream.number, None)
        if not stream.is_ended and not self._closing.is_set():
            with contextlib.suppress(CarrierClosed):
                await self._carrier.send(encode(Frame(FrameType.CLOSE, stream.number)))

    async def _send(self, stream: _Stream, reader: asyncio.StreamReader) -> None:
        while True:
            await stream.sendable.wait()
            data = await self._read_some(stream, reader, min(stream.flow.sendable, DATA_BYTES_MAX))
            if not data:
                return
            stream.flow.send(len(data))
            if not stream.flow.sendable:
                stream.sendable.clear()
            await self._carrier.send(encode(Frame(FrameType.DATA, stream.number, data)))

    async def _read_some(self, stream: _Stream, reader: asyncio.StreamReader, count: int) -> bytes:
        """Return the next bytes of a socket; b"" at its end, and after a long time without bytes in any direction."""
        loop = asyncio.get_running_loop()
        while (left_s := stream.used_s + self._options.idle_s_max - loop.time()) > 0:
            deadline = asyncio.timeout(left_s)
            try:
                async with deadline:
                    data = await reader.read(count)
            except TimeoutError:
                if deadline.expired():
                    continue
                return b""
            except OSError:
                return b""
            stream.used_s = loop.time()
            return data
        return b""

    async def _deliver(self, stream: _Stream, writer: asyncio.StreamWriter) -> None:
        while True:
            await stream.changed.wait()
            stream.changed.clear()
            while stream.arrived:
                data = stream.arrived.popleft()
                try:
                    writer.write(data)
                    await writer.drain()
                except OSError:
                    return
                if given := stream.flow.process(len(data)):
                    await self._carrier.send(encode(credit(stream.number, given)))
            if stream.is_ended:
                return


class _Ended(FederationError):
    """Ends the task group of a tunnel."""
