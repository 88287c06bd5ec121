"""The server of the fake kubelet: logs, exec and forwarded ports of pods without containers.

kube-apiserver connects to it as to any kubelet, over TLS, and upgrades connections to SPDY/3.1. The only program that
`exec` runs is `echo`. Forwarded ports answer as those of simulated pods.
"""

import socketserver
import ssl
import threading
from collections.abc import Callable
from typing import Self
from urllib.parse import parse_qs, urlsplit

from federation.apiserver.auth.pki import PKI
from federation.simulator.portechoes import PortEchoes
from federation.simulator.spdyframes import SYN_STREAM, Frame, FrameReader, FrameWriter

_UPGRADE = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: "
_SUCCESS = b'{"metadata":{},"status":"Success"}'


class Exec:
    """The kubelet's end of one `exec`: it answers when all streams are open."""

    def __init__(self, command: list[str], streams: int) -> None:
        self._output = (" ".join(command[1:]) + "\n").encode() if command[:1] == ["echo"] else b"no such program\n"
        self._count = streams
        self._streams: dict[str, int] = {}
        self._reader, self._writer = FrameReader(), FrameWriter()

    def feed(self, data: bytes) -> bytes:
        """Return what the kubelet sends for these bytes."""
        return b"".join(self._react(frame) for frame in self._reader.feed(data))

    def _react(self, frame: Frame) -> bytes:
        if frame.type != SYN_STREAM:
            return b""
        out = self._writer.reply(frame.stream)
        self._streams[frame.headers["streamtype"]] = frame.stream
        if len(self._streams) == self._count:
            out += self._writer.data(self._streams["stdout"], self._output, is_last=True)
            if "stderr" in self._streams:
                out += self._writer.data(self._streams["stderr"], b"", is_last=True)
            out += self._writer.data(self._streams["error"], _SUCCESS, is_last=True)
        return out


class _Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        line = self.rfile.readline().decode().split()
        while self.rfile.readline().strip():
            pass
        if len(line) < 2:
            return
        url = urlsplit(line[1])
        query = parse_qs(url.query)
        match url.path.strip("/").split("/"):
            case ["containerLogs", _namespace, pod, container]:
                body = f"{container} of {pod}: ready\n".encode()
                head = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n\r\n"
                self.wfile.write(head.encode() + body)
            case ["exec", _namespace, _pod, _container]:
                streams = 1 + sum(query.get(name) == ["1"] for name in ("input", "output", "error"))
                self._serve("v4.channel.k8s.io", Exec(query.get("command", []), streams).feed)
            case ["portForward", _namespace, pod]:
                self._serve("portforward.k8s.io", PortEchoes(pod).feed)
            case _:
                self.wfile.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")

    def _serve(self, protocol: str, feed: Callable[[bytes], bytes]) -> None:
        self.wfile.write(f"{_UPGRADE}{protocol}\r\n\r\n".encode())
        while data := self.rfile.read1(65536):
            self.wfile.write(feed(data))


class StreamServer:
    """Serves on a free port of 127.0.0.1 until closed."""

    def __init__(self, pki: PKI) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pki.serving.certificate, pki.serving.key)

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True

            def get_request(self):  # type: ignore[no-untyped-def]  # as socketserver has it
                connection, address = super().get_request()
                return context.wrap_socket(connection, server_side=True), address

            def handle_error(self, *_: object) -> None:
                """Ignore connections that break, as they do when kubectl ends."""

        self._server = Server(("127.0.0.1", 0), _Handler)
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, name="fake-kubelet-server", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
