"""The newest known state of objects: the cache's, or what our own last write returned while the cache lags behind.

Without it a reconcile that runs before its last write came back through the watch would decide on an old state and
write the same again. Entries leave as soon as the cache has caught up; where the cache is of the same process it often
has the write before the writer is answered, and then there is none. It is used by controllers for what they patch.
"""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from federation.api.resources import Object
from federation.dispatch.ledger import revision_of

K = TypeVar("K", bound=Hashable)


class OwnWrites(Generic[K]):
    """Results of own writes by key, until the cache, which `cached` reads, has them."""

    def __init__(self, cached: Callable[[K], Object | None]) -> None:
        self._cached = cached
        self._written: dict[K, Object] = {}

    def __len__(self) -> int:
        """Return how many writes the cache does not have yet."""
        return len(self._written)

    def newest(self, key: K) -> Object | None:
        """Return the newer of the cached object and our own write; None when the object is gone."""
        cached, written = self._cached(key), self._written.get(key)
        if written is None:
            return cached
        if _has_caught_up(cached, written):
            del self._written[key]
            return cached
        return written

    def note(self, key: K, written: Object) -> None:
        """Remember what a write returned."""
        if not _has_caught_up(self._cached(key), written):
            self._written[key] = written

    def saw(self, key: K) -> None:
        """Drop what is remembered when the cache, which has changed, has caught up or the object is gone."""
        if key in self._written:
            self.newest(key)

    def forget(self, key: K) -> None:
        """Drop what is remembered."""
        self._written.pop(key, None)


def _has_caught_up(cached: Object | None, written: Object) -> bool:
    return cached is None or revision_of(cached) >= revision_of(written)
