"""A way to a PostgreSQL that answers late: a proxy of its unix socket, for tests.

All processes that use `url` have the same slow database. Nothing is lost or reordered: each piece of an answer is `delay_s` late.
"""

import contextlib
import socket
import tempfile
import threading
import time
from pathlib import Path
from typing import Self
from urllib.parse import parse_qs, urlsplit

_SOCKET = ".s.PGSQL.5432"


class SlowDatabase:
    """Forwards connections to the database at `url`."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._target = f"{parse_qs(parts.query)['host'][0]}/{_SOCKET}"
        # Short: the path of a unix socket has at most 107 characters.
        self._folder = tempfile.TemporaryDirectory(prefix="slowpg-", dir="/tmp")
        self.url = f"postgresql://postgres@{parts.path}?host={self._folder.name}"
        self.delay_s = 0.0
        self._listener = socket.socket(socket.AF_UNIX)
        self._live: set[socket.socket] = set()

    def __enter__(self) -> Self:
        self._listener.bind(str(Path(self._folder.name) / _SOCKET))
        self._listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # ends accept()
        self._listener.close()
        for each in list(self._live):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)  # the copying threads close it
        self._folder.cleanup()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:  # closed
                return
            server = socket.socket(socket.AF_UNIX)
            try:
                server.connect(self._target)
            except OSError:  # the database is down
                server.close()
                client.close()
                continue
            self._live |= {client, server}
            for source, target, is_answer in ((client, server, False), (server, client, True)):
                threading.Thread(target=self._copy, args=(source, target, is_answer), daemon=True).start()

    def _copy(self, source: socket.socket, target: socket.socket, is_answer: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if is_answer and self.delay_s:
                    time.sleep(self.delay_s)
                target.sendall(data)
        for each in (source, target):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        self._live.discard(source)
        source.close()
