"""The lower priority of keys that are enqueued while an informer replays existing objects.

After a start, every object is replayed to every handler, and most of them need nothing. What users change meanwhile is
queued before them. Informers and other sources of events mark the replay; `controller.py` adds the priority.
"""

import contextlib
import threading
from collections.abc import Iterator

REPLAYED = 1 << 40
"""Priorities of replayed keys are greater: twice this is added to them, and others are much smaller."""


class _Replays(threading.local):
    """The nested replays of this thread. Not a context variable: a task that a handler starts would keep its value."""

    depth = 0


_replays = _Replays()


@contextlib.contextmanager
def replay() -> Iterator[None]:
    """Queue the keys that handlers enqueue within the block behind all others. The block must not await."""
    _replays.depth += 1
    try:
        yield
    finally:
        _replays.depth -= 1


def is_replayed(priority: int) -> bool:
    """Return whether a key with this priority was enqueued in a replay."""
    return priority >= REPLAYED


def is_replaying() -> bool:
    """Return whether a handler that is called now gets an object that existed before, not a new one."""
    return bool(_replays.depth)


def priority_offset() -> int:
    """Return the number to add to priorities now, 0 outside of a replay."""
    return 2 * REPLAYED if _replays.depth else 0
