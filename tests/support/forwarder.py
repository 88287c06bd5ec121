"""A TCP load balancer for tests: each connection goes to the next of several local ports that accepts one."""

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import cycle

_CONNECT_S = 5.0


@contextmanager
def forwarding(ports: Sequence[int]) -> Iterator[str]:
    """Forward connections to the ports of this machine during the block; yield the address as HOST:PORT."""
    order = cycle(range(len(ports)))
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:

        def accept() -> None:
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:  # closed: the block has ended
                    return
                first = next(order)
                _join(client, [*ports[first:], *ports[:first]])

        threading.Thread(target=accept, daemon=True).start()
        host, port = listener.getsockname()[:2]
        yield f"{host}:{port}"
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)  # ends accept()


def _join(client: socket.socket, ports: Sequence[int]) -> None:
    """Connect a client to the first port that accepts, or close its connection."""
    for port in ports:
        with suppress(OSError):
            server = socket.create_connection(("127.0.0.1", port), timeout=_CONNECT_S)
            server.settimeout(None)
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=_copy, args=(source, target), daemon=True).start()
            return
    client.close()


def _copy(source: socket.socket, target: socket.socket) -> None:
    """Copy bytes until one side ends, then end both."""
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    for each in (source, target):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
    source.close()


class DroppingForwarder:
    """Forwards connections to one port of this machine, and breaks all of them when a test says so."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._live: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def drop(self) -> None:
        """Break every connection, as a NAT that loses its state."""
        dropped, self._live = self._live, []
        for each in dropped:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)  # the copying threads close it

    def close(self) -> None:
        """Stop accepting, and break every connection."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.drop()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:  # closed
                return
            self._live.append(client)
            _join(client, [self._port])
