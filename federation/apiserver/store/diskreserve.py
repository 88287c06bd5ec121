"""Disk space that is kept for the time when the disk is full: deletions and compaction need some to free more.

A file of `bytes_reserved` beside the database. SQLite's first error of a full disk releases it; until it can be
allocated again only deletions are accepted (`quota.py`). Blocks for about a millisecond.
"""

import contextlib
import os
from pathlib import Path


class DiskReserve:
    """One reserve file."""

    def __init__(self, path: Path, bytes_reserved: int) -> None:
        self._path = path
        self._bytes = bytes_reserved

    def allocate(self) -> bool:
        """Return whether the space is reserved."""
        try:
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            return False
        try:
            os.posix_fallocate(descriptor, 0, self._bytes)
        except OSError:
            self.release()
            return False
        finally:
            os.close(descriptor)
        return True

    def release(self) -> None:
        """Return the space to the file system."""
        with contextlib.suppress(OSError):
            self._path.unlink()

    def is_disk_full(self) -> bool:
        """Return whether the reserve, or what is left of it, is all that the disk has."""
        try:
            disk = os.statvfs(self._path.parent)
        except OSError:
            return False
        return disk.f_bavail * disk.f_frsize < self._bytes
