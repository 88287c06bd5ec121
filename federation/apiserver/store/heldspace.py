"""Disk space that SQLite's files own before they need it, so that another program cannot take it on a full disk.

A file that is released when the disk is full does not help: who fills the disk takes that space first. So the blocks
belong to the files that need them. The log (WAL) is never shorter than `log_bytes`; SQLite writes it from its start
after each checkpoint. Blocks behind the end of the database file are allocated before a transaction may use them, so
that a checkpoint always finds room for what was committed. A file system that cannot allocate in advance is checked for
free space instead. All calls are short and synchronous. Read `sqliteroom.py` next.
"""

import contextlib
import ctypes
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PAGE_BYTES = 4_096
LOG_FRAME_BYTES = PAGE_BYTES + 24
LOG_HEAD_BYTES = 32
# A disk with less is short: a checkpoint then excludes commits, so that what it releases is held again before them. No
# program takes more than that in the moment between both.
_AMPLE_BYTES = 1 << 30
_FULL_BYTES = 1 << 20
_KEEP_SIZE = 1
_ZEROS = bytes(1 << 20)


class HeldSpace:
    """The space that one database file and its log own."""

    def __init__(self, path: Path, log_path: Path, log_bytes: int) -> None:
        self._path = path
        self._log_path = log_path
        self._kept_path = log_path.with_name(log_path.name + ".kept")
        self.log_bytes = log_bytes
        self.pages = 0
        """The database file can have so many pages without more space on the disk."""

    def hold(self, pages: int, *, is_again: bool = False) -> bool:
        """Return whether the file can grow to `pages` pages.

        `is_again` holds those behind the end of the file, too, which a checkpoint has released.
        """
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            end = max(os.fstat(descriptor).st_size, 0 if is_again else self.pages * PAGE_BYTES)
            missing = pages * PAGE_BYTES - end
            if missing > 0 and not _allocate(descriptor, end, missing):
                return False
        finally:
            os.close(descriptor)
        self.pages = pages
        return True

    def hold_log(self) -> bool:
        """Return whether the log has its space; create it if it is missing."""
        try:
            descriptor = os.open(self._log_path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            return False
        try:
            if os.fstat(descriptor).st_size < self.log_bytes:
                # Zeros behind the last frame end the log for SQLite, as an old frame does.
                os.posix_fallocate(descriptor, 0, self.log_bytes)
        except OSError:
            return False
        finally:
            os.close(descriptor)
        return True

    def erase_log(self, frames: int) -> None:
        """Overwrite everything behind the first `frames` frames, without releasing its space."""
        with contextlib.suppress(FileNotFoundError):
            descriptor = os.open(self._log_path, os.O_RDWR | os.O_CLOEXEC)
            try:
                _overwrite(descriptor, LOG_HEAD_BYTES + frames * LOG_FRAME_BYTES if frames else 0)
            finally:
                os.close(descriptor)

    @contextlib.contextmanager
    def keeping_log(self) -> Iterator[None]:
        """Within the block SQLite may remove the log; afterwards there is an empty one with the same space."""
        self.recover_log()
        with contextlib.suppress(OSError):
            os.link(self._log_path, self._kept_path)
        try:
            yield
        finally:
            self.recover_log()

    def recover_log(self) -> None:
        """Take the space of a log that SQLite has removed, and forget that of one that it uses. Without connections."""
        with contextlib.suppress(FileNotFoundError):
            if self._log_path.exists():
                self._kept_path.unlink()
                return
            descriptor = os.open(self._kept_path, os.O_RDWR | os.O_CLOEXEC)
            try:
                _overwrite(descriptor, 0)
                os.fsync(descriptor)  # before it has the name: what it had is in the database file already
            finally:
                os.close(descriptor)
            self._kept_path.rename(self._log_path)

    def is_full(self) -> bool:
        """Return whether the disk has too little for the files that a start creates."""
        try:
            return _free_bytes(self._path.parent) < _FULL_BYTES
        except OSError:
            return False

    def is_short(self) -> bool:
        """Return whether other programs may soon have all that the disk has left."""
        try:
            return _free_bytes(self._path.parent) < _AMPLE_BYTES
        except OSError:
            return True


def _overwrite(descriptor: int, at: int) -> None:
    end = os.fstat(descriptor).st_size
    while at < end:
        try:
            at = os.lseek(descriptor, at, os.SEEK_DATA)  # what was never written stays allocated only
        except OSError as error:
            if error.errno == errno.ENXIO:
                return
            raise
        until = os.lseek(descriptor, at, os.SEEK_HOLE)
        while at < until:
            at += os.pwrite(descriptor, _ZEROS[: until - at], at)


def _allocate(descriptor: int, start: int, count: int) -> bool:
    allocate = _fallocate()
    if allocate is not None and allocate(descriptor, _KEEP_SIZE, start, count) == 0:
        return True
    if allocate is None or ctypes.get_errno() in {errno.EOPNOTSUPP, errno.ENOSYS}:
        return _free_bytes(descriptor) >= count
    return False


def _fallocate() -> Any:
    """Return Linux's function, None elsewhere. Python's own makes the file longer, which SQLite must do itself."""
    function = getattr(ctypes.CDLL(None, use_errno=True), "fallocate64", None)
    if function is not None:
        function.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
    return function


def _free_bytes(place: Path | int) -> int:
    disk = os.statvfs(place)
    return disk.f_bavail * disk.f_frsize
