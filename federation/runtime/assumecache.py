"""The newest known state of objects: the informer's, or the result of our own last write while the informer lags.

Without it, a reconcile that runs before the watch has delivered its last write would decide on an old state and repeat
the write. An assumed object is dropped as soon as the informer has caught up. In one process the informer often has the
write before its response; then nothing is kept. After client-go's AssumeCache.
"""

from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from federation.apimachinery.errors import NotFound
from federation.apimachinery.objectshape import revision_of
from federation.apimachinery.resources import Object

K = TypeVar("K", bound=Hashable)


class AssumeCache(Generic[K]):
    """Results of own writes by key, in front of the cache that `cached` reads."""

    def __init__(self, cached: Callable[[K], Object | None]) -> None:
        self._cached = cached
        self._assumed: dict[K, Object] = {}

    def __len__(self) -> int:
        """Return the number of assumed objects."""
        return len(self._assumed)

    def get(self, key: K) -> Object | None:
        """Return the newer of the cached and the assumed object; None when the object is gone."""
        cached, assumed = self._cached(key), self._assumed.get(key)
        if assumed is None:
            return cached
        if _has_caught_up(cached, assumed):
            del self._assumed[key]
            return cached
        return assumed

    async def assume_result(self, key: K, write: Awaitable[Object]) -> Object | None:
        """Await a write, assume its result and return it; None when the object is gone."""
        try:
            written = await write
        except NotFound:
            self._assumed.pop(key, None)
            return None
        self.assume(key, written)
        return written

    def assume(self, key: K, written: Object) -> None:
        """Use the result of a write until the cache has it.

        Responses of overlapping writes can arrive in another order than the writes; the newest result stays.
        """
        assumed = self._assumed.get(key)
        if assumed is not None and revision_of(assumed) > revision_of(written):
            return
        if not _has_caught_up(self._cached(key), written):
            self._assumed[key] = written

    def prune(self, key: K) -> None:
        """Drop the assumed object if the cache, which has just changed, has caught up."""
        if key in self._assumed:
            self.get(key)


def _has_caught_up(cached: Object | None, written: Object) -> bool:
    return cached is None or revision_of(cached) >= revision_of(written)
