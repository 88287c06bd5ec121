"""The state directory: private to its user, used by one process at a time, never by a version that is too old for it.

`StateDirectory.open` creates it, locks it for the life of the process and checks the format version. Its errors name
the path and the remedy.
"""

import json
import os
from pathlib import Path
from typing import Self

from federation import __version__
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.lockfile import read_owner, try_lock

FORMAT = 1
"""Format version; incremented when an older version must no longer use the directory."""


class StateDirectory:
    """An opened and locked state directory."""

    def __init__(self, path: Path, lock_fd: int) -> None:
        self.path = path
        self._lock_fd = lock_fd

    @classmethod
    def open(cls, path: Path) -> Self:
        """Create, lock and check the directory; ConfigurationError when it cannot be used."""
        path = path.expanduser().absolute()
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            lock_fd = try_lock(path / "lock")
        except OSError as error:
            raise _not_writable(path, error) from error
        if lock_fd is None:
            owner = read_owner(path / "lock")
            raise ConfigurationError(
                f"--dir {path}: another fedctl (pid {owner}) uses it; stop that one or name another directory"
            )
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
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise ConfigurationError(f"{file}: does not parse; restore it or give another --dir") from error
        if found > FORMAT:
            raise ConfigurationError(
                f"--dir {self.path}: written by a newer version ({written.get('writtenBy', '?')}, format {found};"
                f" this is {__version__}, format {FORMAT}); upgrade fedctl or name another directory"
            )
        self._write_version(file)

    def _write_version(self, file: Path) -> None:
        temporary = file.with_suffix(".tmp")
        text = json.dumps({"format": FORMAT, "writtenBy": __version__}) + "\n"
        try:
            if file.exists() and file.read_text() == text:
                return  # a restart on a full disk writes nothing
            temporary.write_text(text)
            temporary.replace(file)
        except OSError as error:
            raise _not_writable(self.path, error) from error

    def close(self) -> None:
        """Release the lock."""
        os.close(self._lock_fd)


def _not_writable(path: Path, error: OSError) -> ConfigurationError:
    return ConfigurationError(f"--dir {path}: cannot be written ({error.strerror}); name another directory")
