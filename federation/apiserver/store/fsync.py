"""A helper process that runs fdatasync, so that the event loop does not wait for the disk.

Protocol: one byte on a socket requests an fdatasync of the file; the response is one byte, 0 or the error number. A
thread would starve: it needs the interpreter lock to report completion, and a busy event loop rarely releases it. The
helper has no state, takes some 8 MB, and exits when the socket closes, also when this process is killed.
"""

import asyncio
import errno
import os
import socket
import subprocess
import sys
from collections import deque
from pathlib import Path

from federation.apimachinery.errors import StoreUnavailable

# It opens the file by path for each request, so that a replaced WAL file is synced as well.
_PROGRAM = """
import os, sys
sync = getattr(os, "fdatasync", os.fsync)
while True:
    try:
        if not os.read(0, 1):
            break
    except OSError:
        break  # the parent is gone
    try:
        file = os.open(sys.argv[1], os.O_RDWR)
        try:
            sync(file)
        finally:
            os.close(file)
        answer = 0
    except OSError as error:
        answer = error.errno & 255 or 255
    try:
        os.write(1, bytes((answer,)))
    except OSError:
        break  # the parent is gone
"""

_EXIT_TIMEOUT_S = 1.0


class FsyncHelper:
    """Makes one file durable on request. Start it on the running event loop."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._waiting: deque[asyncio.Future[int]] = deque()

    def start(self) -> None:
        """Start the helper."""
        ours, theirs = socket.socketpair()
        with theirs:
            # A session of its own: Ctrl-C in a terminal must not end it before the last commit.
            self._process = subprocess.Popen(  # noqa: S603  # our own interpreter and program
                [sys.executable, "-I", "-S", "-c", _PROGRAM, str(self._path)],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                start_new_session=True,
            )
        ours.setblocking(False)
        self._socket = ours
        asyncio.get_running_loop().add_reader(ours.fileno(), self._receive)

    async def sync(self) -> None:
        """Return when the file's current content is durable; StoreUnavailable when the disk fails."""
        if self._socket is None:
            self.start()
        assert self._socket is not None
        answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        try:
            self._socket.send(b"?")
        except OSError as error:
            self.stop()
            raise StoreUnavailable(f"the helper that syncs {self._path} has ended: {error}") from error
        # Responses come in the order of requests, so the future of a cancelled caller stays in the queue.
        self._waiting.append(answer)
        code = await answer
        if code < 0:
            raise StoreUnavailable(f"the helper that syncs {self._path} has ended")
        if code == errno.ENOENT:
            raise StoreUnavailable(f"{self._path} was removed or moved while this process uses it; put it back")
        if code:
            raise StoreUnavailable(f"{self._path} cannot be made durable: {os.strerror(code)}; check the disk")

    def stop(self) -> None:
        """Stop the helper; the next `sync` starts another."""
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket.fileno())
            self._socket.close()
            self._socket = None
        if self._process is not None:
            try:
                self._process.wait(_EXIT_TIMEOUT_S)
            except subprocess.TimeoutExpired:  # the disk hangs, and with it the helper
                self._process.kill()
            self._process = None
        while self._waiting:
            self._resolve(-1)

    def _receive(self) -> None:
        assert self._socket is not None
        try:
            answer = self._socket.recv(1)
        except BlockingIOError:
            return
        except OSError:
            answer = b""
        if answer:
            self._resolve(answer[0])
        else:
            self.stop()

    def _resolve(self, code: int) -> None:
        answer = self._waiting.popleft()
        if not answer.done():
            answer.set_result(code)
