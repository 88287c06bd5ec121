"""A helper process that waits for the disk, so that neither the event loop nor the interpreter lock does.

It is asked with one byte on a socket, makes the newest content of one file durable (fdatasync) and answers with one
byte, 0 or the error number. A thread would need the interpreter lock to say that it is done, and a busy event loop
hardly ever leaves it that lock. The helper holds no state, some 8 MB, and ends with the socket, also when this
process is killed.
"""

import asyncio
import os
import socket
import subprocess
import sys
from collections import deque
from pathlib import Path

from federation.base.errors import StoreUnavailable

# By path, so that a file that was replaced is never missed; one fdatasync answers all who asked before it.
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
        break  # nobody waits any more
"""

_PATIENCE_S = 1.0


class Syncer:
    """Makes one file durable on request; start it on the running event loop, and stop it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._socket: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._asked: deque[asyncio.Future[int]] = deque()

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
        """Return when what is in the file now is durable; StoreUnavailable when the disk refuses."""
        if self._socket is None:
            self.start()
        assert self._socket is not None
        answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        try:
            self._socket.send(b"?")
        except OSError as error:
            self.stop()
            raise StoreUnavailable(f"the helper that syncs {self._path} has ended: {error}") from error
        # Answers come in the order of the questions; the place of a caller that was cancelled stays taken.
        self._asked.append(answer)
        code = await answer
        if code < 0:
            raise StoreUnavailable(f"the helper that syncs {self._path} has ended")
        if code:
            raise StoreUnavailable(f"{self._path} cannot be made durable: {os.strerror(code)}; check the disk")

    def stop(self) -> None:
        """End the helper; the next `sync` starts another."""
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket.fileno())
            self._socket.close()
            self._socket = None
        if self._process is not None:
            try:
                self._process.wait(_PATIENCE_S)
            except subprocess.TimeoutExpired:  # the disk hangs, and with it the helper
                self._process.kill()
            self._process = None
        while self._asked:
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
        answer = self._asked.popleft()
        if not answer.done():
            answer.set_result(code)
