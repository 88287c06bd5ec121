"""The state directory: one process at a time, written by a version we understand, private to its user.

`StateDirectory.open` makes it, locks it while the process lives (the kernel frees the lock also after kill -9), checks
the format version, and refuses with one line that names the path and the remedy.
"""

import fcntl
import json
import os
from pathlib import Path
from typing import Self

from federation import __version__
from federation.base.errors import ConfigurationError

FORMAT = 1
"""Raised when the layout of the directory changes in a way that an older version must not touch."""


class StateDirectory:
    """An opened and locked state directory."""

    def __init__(self, path: Path, lock_fd: int) -> None:
        self.path = path
        self._lock_fd = lock_fd

    @classmethod
    def open(cls, path: Path) -> Self:
        """Make, lock and check the directory; ConfigurationError when it cannot be ours."""
        path = path.expanduser().absolute()
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock_fd = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ConfigurationError(f"--dir {path}: cannot be written ({error.strerror}); name another") from error
        try:
            fcntl.flock(lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.pread(lock_fd, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(lock_fd)
            raise ConfigurationError(
                f"--dir {path}: another fedctl (pid {holder}) is running on it; stop that one or name another directory"
            ) from error
        os.ftruncate(lock_fd, 0)
        os.pwrite(lock_fd, f"{os.getpid()}\n".encode(), 0)
        directory = cls(path, lock_fd)
        try:
            directory._check_version()
        except BaseException:
            directory.close()
            raise
        return directory

    def _check_version(self) -> None:
        file = self.path / "version.json"
        try:
            written = json.loads(file.read_text())
            found = int(written["format"])
        except FileNotFoundError:
            self._write_version(file)
            return
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigurationError(f"{file}: does not parse; restore it or name another --dir") from error
        if found > FORMAT:
            raise ConfigurationError(
                f"--dir {self.path}: was written by a newer version ({written.get('writtenBy', '?')}, format {found};"
                f" this is {__version__}, format {FORMAT}); upgrade fedctl or name another directory"
            )
        self._write_version(file)

    def _write_version(self, file: Path) -> None:
        temporary = file.with_suffix(".tmp")
        try:
            temporary.write_text(json.dumps({"format": FORMAT, "writtenBy": __version__}) + "\n")
            temporary.replace(file)
        except OSError as error:
            raise ConfigurationError(
                f"--dir {self.path}: cannot be written ({error.strerror}); name another"
            ) from error

    def close(self) -> None:
        """Release the lock."""
        os.close(self._lock_fd)
