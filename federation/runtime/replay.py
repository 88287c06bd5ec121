"""The lower priority of keys that are enqueued while an informer replays existing objects.

After a start, every object is replayed to every handler, and most of them need nothing. What users change meanwhile is
queued before them. Informers and other sources of events mark the replay; `controller.py` adds the priority.
"""

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar

_REPLAYED = 1 << 40
"""More than the distance of any two priorities."""

_offset: ContextVar[int] = ContextVar("priority_offset", default=0)


@contextlib.contextmanager
def replay() -> Iterator[None]:
    """Queue the keys that handlers enqueue within the block behind all others. The block must not await."""
    token = _offset.set(_REPLAYED)
    try:
        yield
    finally:
        _offset.reset(token)


def priority_offset() -> int:
    """Return the number to add to priorities now, 0 outside of a replay."""
    return _offset.get()
