"""The programs behind the ports of simulated pods: each sends back what it receives. Pure.

An HTTP request gets a response with the pod, the port and the request line, because people try `curl` first.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from federation.simulator.spdyframes import PING, RST_STREAM, SYN_STREAM, FrameReader, FrameWriter

_HTTP: Final = (b"GET ", b"HEAD ", b"POST ", b"PUT ", b"PATCH ", b"DELETE ", b"OPTIONS ")
_HEAD_END: Final = b"\r\n\r\n"
_HEAD_BYTES_MAX: Final = 64 * 1024


@dataclass(slots=True)
class _Connection:
    """One forwarded connection: the stream of its data, and the bytes of an HTTP request that is not complete."""

    request: str
    port: str
    head: bytearray = field(default_factory=bytearray)
    is_http: bool | None = None


class ChannelEchoes:
    """The server's end of forwarded ports as channels of a WebSocket, as clients in Python forward them.

    Each port has a channel for data and one for errors, which begin with the port in two bytes.
    """

    def __init__(self, pod: str, ports: Sequence[int]) -> None:
        self._pod = pod
        self._connections = {2 * index: _Connection("", str(port)) for index, port in enumerate(ports)}

    def start(self) -> list[bytes]:
        """Return the first messages of all channels."""
        return [
            bytes([channel + offset]) + int(connection.port).to_bytes(2, "little")
            for channel, connection in self._connections.items()
            for offset in (0, 1)
        ]

    def feed(self, message: bytes) -> tuple[bytes, bool]:
        """Return what the program of a message's port sends, and whether that ends all: an HTTP response does."""
        connection = self._connections.get(message[0]) if message else None
        text = _respond(self._pod, connection, message[1:]) if connection is not None else b""
        return (message[:1] + text if text else b""), bool(text and connection is not None and connection.is_http)


class PortEchoes:
    """The server's end of one `port-forward`: bytes of SPDY/3.1 in, bytes out."""

    def __init__(self, pod: str) -> None:
        self._pod = pod
        self._reader, self._writer = FrameReader(), FrameWriter()
        self._connections: dict[int, _Connection] = {}
        self._error_streams: dict[str, int] = {}

    def feed(self, data: bytes) -> bytes:
        """Return what the programs send for these bytes; BadRequest when they are not SPDY."""
        out = bytearray()
        for frame in self._reader.feed(data):
            if frame.type == SYN_STREAM:
                out += self._writer.reply(frame.stream)
                request = frame.headers.get("requestid", "")
                if frame.headers.get("streamtype") == "data":
                    self._connections[frame.stream] = _Connection(request, frame.headers.get("port", ""))
                else:
                    self._error_streams[request] = frame.stream
            elif frame.type == PING:
                out += self._writer.pong(frame.stream)
            elif frame.type == RST_STREAM:
                self._connections.pop(frame.stream, None)
            elif frame.type == 0 and frame.stream in self._connections:
                out += self._answer(frame.stream, frame.data, is_last=frame.is_last)
        return bytes(out)

    def _answer(self, stream: int, data: bytes, *, is_last: bool) -> bytes:
        connection = self._connections[stream]
        text = _respond(self._pod, connection, data)
        # curl keeps its half open, so an HTTP response ends the connection.
        is_last = is_last or bool(text and connection.is_http)
        out = self._writer.data(stream, text, is_last=is_last)
        if is_last:
            del self._connections[stream]
            if (error_stream := self._error_streams.pop(connection.request, None)) is not None:
                out += self._writer.data(error_stream, b"", is_last=True)
        return out


def _respond(pod: str, connection: _Connection, data: bytes) -> bytes:
    """Return what the program sends for these bytes."""
    if connection.is_http is None and data:
        connection.is_http = data.startswith(_HTTP)
    if not connection.is_http:
        return data
    connection.head += data
    if _HEAD_END not in connection.head and len(connection.head) < _HEAD_BYTES_MAX:
        return b""
    line = bytes(connection.head).split(b"\r\n", 1)[0]
    body = f"pod {pod}, port {connection.port}\n".encode() + line + b"\n"
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + (b"" if line.startswith(b"HEAD ") else body)
