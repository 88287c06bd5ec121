"""SQLite's file: private, locked, whole, and still the one that was opened.

SQLite goes on with a file that was removed or replaced under it, and reads a damaged page as one with other rows.
What it acknowledged, or stored, would be missing without a word, and what is missing on the host is deleted in members.
`sqlite.py` asks here at its start and at each write.
"""

import os
import sqlite3
from pathlib import Path

from federation.apimachinery.errors import ConfigurationError, StoreUnavailable
from federation.apimachinery.lockfile import read_owner, try_lock

_DAMAGE_LENGTH_MAX = 200


class OpenFile:
    """The file that a process has open, by device and inode."""

    def __init__(self, path: Path, name: str) -> None:
        self._path, self._name = path, name
        self._identity = (0, 0)

    def remember(self) -> None:
        """Take the file at the path for the open one."""
        opened = self._path.stat()
        self._identity = (opened.st_dev, opened.st_ino)

    def check(self) -> None:
        """Raise StoreUnavailable if the path does not lead to the open file any more."""
        try:
            found = os.stat(self._path)  # noqa: PTH116  # twice per commit; pathlib takes twice as long
        except OSError as error:
            raise StoreUnavailable(
                f"{self._name} was removed or moved while this process uses it ({error.strerror}); put it back, or stop"
                " this process and restore a backup"
            ) from error
        if (found.st_dev, found.st_ino) != self._identity:
            raise StoreUnavailable(
                f"{self._name} was replaced while this process uses it; put the file back that it has opened, or"
                " restart this process with the new one"
            )


def check_pages(connection: sqlite3.Connection, name: str) -> None:
    """Raise ConfigurationError if pages of the database are damaged; 200 MB take 0.15 s of CPU."""
    try:
        (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
    except UnicodeDecodeError:
        found = "its schema is no text"  # the driver cannot decode the message about it
    if found != "ok":
        text = " ".join(str(found).split())[:_DAMAGE_LENGTH_MAX]
        raise ConfigurationError(f"{name} is damaged ({text}); restore a backup or move it away")


def create_private(path: Path, name: str) -> None:
    """Create the file if it is missing; ConfigurationError."""
    try:
        # Private, because Secrets are stored here. SQLite gives its side files the same mode.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise ConfigurationError(f"{name}: {error.strerror}; change its permissions or use another path") from error


def take_lock(path: Path, name: str) -> int:
    """Return the descriptor of the lock beside the database; ConfigurationError when another process has it."""
    lock_path = path.with_name(path.name + ".lock")
    try:
        lock = try_lock(lock_path)
    except OSError as error:
        raise ConfigurationError(
            f"{name}: cannot write {lock_path}: {error.strerror}; change its permissions or use another path"
        ) from error
    if lock is None:
        raise ConfigurationError(
            f"{name} is in use by process {read_owner(lock_path)}; stop that process or use another path"
        )
    return lock
