"""Fences: writes that happen only while a certain value is stored, in the transaction of the write itself.

A process that led the controllers, was paused and wakes up still believes that it leads. Its writes carry a fence: the
key of the Lease and the text by which the Lease names the process. The writer plans them against the state on which the
transaction is based, so that none is committed after another process took the Lease.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple


class Fence(NamedTuple):
    """Holds while the value of `key` contains `text`."""

    key: str
    text: bytes

    def holds(self, value: bytes | None) -> bool:
        """Return whether the key's value allows the write; None for a key that does not exist."""
        return value is not None and self.text in value


current_fence: ContextVar[Fence | None] = ContextVar("current_fence", default=None)
"""The fence of the writes that this context makes."""


@contextmanager
def fenced(fence: Fence | None) -> Iterator[None]:
    """Make the writes of a block carry the fence."""
    token = current_fence.set(fence)
    try:
        yield
    finally:
        current_fence.reset(token)
