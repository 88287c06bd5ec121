"""Lock files: one process at a time uses a resource. The file holds the process id of its owner, for messages.

The kernel releases a lock when its process ends, even after kill -9, so a file that was left behind does no harm.
"""

import contextlib
import fcntl
import os
from pathlib import Path


def try_lock(path: Path) -> int | None:
    """Create and lock the file; return a descriptor that holds the lock until it is closed, None if it is taken.

    OSError when the file cannot be created.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    os.ftruncate(descriptor, 0)
    with contextlib.suppress(OSError):  # a full disk; the number is for messages only
        os.write(descriptor, f"{os.getpid()}\n".encode())
    return descriptor


def read_owner(path: Path) -> str:
    """Return the process id of the owner of a lock file, "unknown" when it is not in the file."""
    return path.read_bytes()[:32].decode(errors="replace").strip() or "unknown"
