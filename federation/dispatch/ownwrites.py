"""The newest known state of objects: the cache's, or what our own last write returned while the cache lags behind.

Without it a reconcile that runs before its last write came back through the watch would decide on an old state and
write the same again. Entries leave as soon as the cache has caught up. It is used by controllers for what they patch.
"""

from collections.abc import Hashable
from typing import Generic, TypeVar

from federation.api.resources import Object
from federation.dispatch.ledger import revision_of

K = TypeVar("K", bound=Hashable)


class OwnWrites(Generic[K]):
    """Results of own writes by key, until a cache has them."""

    def __init__(self) -> None:
        self._written: dict[K, Object] = {}

    def newest(self, key: K, cached: Object | None) -> Object | None:
        """Return the newer of the cached object and our own write."""
        written = self._written.get(key)
        if written is None:
            return cached
        if cached is None or revision_of(cached) >= revision_of(written):
            del self._written[key]
            return cached
        return written

    def note(self, key: K, written: Object) -> None:
        """Remember what a write returned."""
        self._written[key] = written

    def saw(self, key: K, cached: Object | None) -> None:
        """Drop what is remembered once the cache has caught up or the object is gone."""
        written = self._written.get(key)
        if written is not None and (cached is None or revision_of(cached) >= revision_of(written)):
            del self._written[key]

    def forget(self, key: K) -> None:
        """Drop what is remembered."""
        self._written.pop(key, None)
