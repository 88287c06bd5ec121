"""A member that is no Kubernetes: a TCP server that answers each request with raw bytes."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field


@dataclass
class HostileMember:
    """A TCP server that answers each request with raw bytes."""

    port: int = 0
    answer: Callable[[bytes], Iterator[bytes]] = field(default=lambda _: iter(()))
    received: list[bytes] = field(default_factory=list)
    sent_bytes: int = 0
    open: int = 0

    def serve(self, connection: socket.socket) -> None:
        self.open += 1
        try:
            self._serve(connection)
        finally:
            self.open -= 1

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), closing(connection):
            head = b""
            while b"\r\n\r\n" not in head:
                if not (data := connection.recv(65536)):
                    return
                head += data
            self.received.append(head)
            for piece in self.answer(head):
                connection.sendall(piece)
                self.sent_bytes += len(piece)

    def says(self, status: str, body: bytes = b"", *headers: str) -> None:
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers, "", ""]
        self.answer = lambda _: iter(["\r\n".join(lines).encode() + body])

    def last(self) -> dict[str, list[str]]:
        """Return the headers of the newest request, names in lower case."""
        found: dict[str, list[str]] = {}
        for line in self.received[-1].split(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")[1:]:
            name, _, value = line.partition(":")
            found.setdefault(name.lower(), []).append(value.strip())
        return found


@contextmanager
def hostile_member() -> Iterator[HostileMember]:
    member = HostileMember()
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        member.port = listener.getsockname()[1]

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:  # closed: the block has ended
                    return
                threading.Thread(target=member.serve, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield member
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
