"""The lower priority of keys that are enqueued while an informer replays existing objects.

After a start, every object is replayed to every handler, and most of them need nothing. What users change meanwhile is
queued before them. Informers and other sources of events mark the replay; `controller.py` adds the priority.
"""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

REPLAYED = 1 << 40
"""Priorities of replayed keys are greater: twice this is added to them, and others are much smaller."""

_offset: ContextVar[int] = ContextVar("priority_offset", default=0)


@contextlib.contextmanager
def replay() -> Iterator[None]:
    """Queue the keys that handlers enqueue within the block behind all others. The block must not await."""
    token = _offset.set(2 * REPLAYED)
    try:
        yield
    finally:
        _offset.reset(token)


def is_replayed(priority: int) -> bool:
    """Return whether a key with this priority was enqueued in a replay."""
    return priority >= REPLAYED


def priority_offset() -> int:
    """Return the number to add to priorities now, 0 outside of a replay."""
    return _offset.get()
