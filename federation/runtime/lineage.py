"""Whether a server still has the history that our caches have followed, or was restored from a backup meanwhile.

A restore takes the revisions of a server back, and new writes get the numbers of those that were lost. A watch that
goes on from our revision then misses them without an error, and a cache shows what the server no longer has. So before
a watch goes on after a failure, the newest object that the caches of this server received is requested: if it is
unchanged, everything up to its revision is common history, and the watch goes on from there. Otherwise the cache lists.

A proof holds for all caches, because the next one to be listed has objects of the history that the server has now, and
they prove nothing about the others. So each cache remembers up to where it was proven, until it receives a change.

A `Lineage` belongs to one client, like its informers. One proof serves all of them until one fails again.

Decision: docs/decisions/0201-a-watch-goes-on-in-a-proven-history.md
"""

from collections.abc import Callable
from operator import attrgetter

from federation.apimachinery.errors import (
    ApiError,
    ClusterError,
    ClusterUnreachable,
    ServiceUnavailable,
    Timeout,
    TooManyRequests,
    Unauthorized,
)
from federation.apimachinery.objectshape import is_storable, revision_of, to_revision
from federation.apimachinery.resources import Object, Resource
from federation.client.client import Client
from federation.runtime.indexer import Cache, CacheKey

_REQUESTS_MAX = 3
"""Objects to request for one proof: the newest one may have changed while the server was away."""
_ROUNDS_MAX = 2
"""How often they are requested while the server does not answer for them, but for another kind."""

Shrink = Callable[[Object], Object | None]
"""Reduces an object to what a cache keeps; None for a malformed one."""
Position = Callable[[], str]
"""Returns the revision that a cache has reached."""


class Lineage:
    """The common history of a server and the caches of it."""

    def __init__(self) -> None:
        self._tracks: list[Track] = []
        self._doubts = 0
        """Failures of any cache."""
        self._proven_at = -1

    def track(self, client: Client, resource: Resource, cache: Cache, shrink: Shrink, position: Position) -> "Track":
        """Return the record of one more cache; `shrink` reduces objects as the cache does."""
        track = Track(self, client, resource, cache, shrink, position)
        self._tracks.append(track)
        return track

    def remove(self, track: "Track") -> None:
        """Forget a cache that has ended."""
        self._tracks.remove(track)

    def doubt(self) -> None:
        """Require a new proof before the next watch that goes on."""
        self._doubts += 1

    async def prove(self, asking: "Track") -> None:
        """Limit each cache to the revision up to which the server has our history. Raises as `find_listed`."""
        if self._proven_at == self._doubts:
            return
        doubts, positions = self._doubts, [(track, track.position()) for track in self._tracks]
        common = await self._find_common(asking)
        for track, position in positions:
            track.limit(position, common)
        self._proven_at = doubts

    async def _find_common(self, asking: "Track") -> int:
        """Return the revision up to which the server has our history, 0 without a proof."""
        for _ in range(_ROUNDS_MAX):
            is_answered = True
            for track in sorted(self._tracks, key=attrgetter("newest"), reverse=True)[:_REQUESTS_MAX]:
                try:
                    if track.newest and (common := await track.confirmed()):
                        return common
                except ClusterUnreachable:
                    raise
                except (ApiError, ClusterError):
                    if track is asking:
                        raise
                    # If the informer's own kind is not answered either, nothing is known, and this raises. Otherwise
                    # one kind is broken, which must not stop the others.
                    if is_answered:
                        await asking.look()
                    is_answered = False
            if is_answered:
                break
        return 0


class Track:
    """The newest object in one cache, and its last change."""

    def __init__(
        self, lineage: Lineage, client: Client, resource: Resource, cache: Cache, shrink: Shrink, position: Position
    ) -> None:
        self._lineage = lineage
        self._client = client
        self._resource = resource
        self._cache = cache
        self._shrink = shrink
        self.position = position
        self._key: CacheKey = ("", "")
        self.newest = 0
        """The revision of the newest object, 0 without one."""
        self._changed = 0
        self._limited_at, self._common = "", 0
        """The position of the cache when it was proven last, and up to where."""

    def end(self) -> None:
        """Use the cache no more."""
        self._lineage.remove(self)

    def doubt(self) -> None:
        """Record that the server was away, and may have been restored."""
        self._lineage.doubt()

    def restart(self) -> None:
        """Begin again with a list: the server may count from the start."""
        self._key, self.newest, self._changed = ("", ""), 0, 0
        self._limited_at = ""

    def saw(self, key: CacheKey, resource_version: str) -> None:
        """Record a state of an object that the cache has now."""
        revision = to_revision(resource_version)
        if revision >= self._changed:
            self._key, self.newest, self._changed = key, revision, revision

    def removed(self, key: CacheKey, resource_version: str) -> None:
        """Record the removal of an object. What is absent proves nothing, so other caches must have a newer object."""
        self._changed = max(self._changed, to_revision(resource_version))
        if key == self._key:
            self._key, self.newest = ("", ""), 0

    async def confirmed(self) -> int:
        """Return the revision of the newest object if the server has it unchanged, else 0. Raises as `find_listed`."""
        known = self._cache.get(*self._key)
        live = await find_listed(self._client, self._resource, *self._key)
        if known is None or live is None or revision_of(live) != revision_of(known):
            return 0
        # After a restore another write can have the same number, even one of this object.
        shrunk = self._shrink({**live, "metadata": {**live["metadata"]}})
        return revision_of(known) if shrunk is not None and _content(shrunk) == _content(known) else 0

    async def look(self) -> None:
        """Request any object of the kind, to learn whether the server answers. Raises as `find_listed`."""
        await find_listed(self._client, self._resource, *next(self._cache.keys(), ("", "none")))

    def limit(self, position: str, common: int) -> None:
        """Record that the history up to `common` is proven for a cache that had reached `position`."""
        is_still = position == self._limited_at
        self._limited_at, self._common = position, min(self._common, common) if is_still else common

    async def resume(self) -> str:
        """Return the revision from which a watch may go on, "" when the cache must list again.

        A change after the common history may be one that the server never had. Raises as `find_listed`.
        """
        await self._lineage.prove(self)
        position = self.position()
        if position != self._limited_at or not self._common or self._changed > self._common:
            return ""
        return str(self._common) if to_revision(position) > self._common else position


async def find_listed(client: Client, resource: Resource, namespace: str, name: str) -> Object | None:
    """Return the object as a list shows it, None without it: accounts in members may list nodes and pods, not get them.

    Whether it has the object stays unknown if it does not answer: ClusterError and the errors below.
    """
    try:
        found = (await client.list(resource, namespace, field_selector=f"metadata.name={name}", limit=1)).items
    except (ServiceUnavailable, Timeout, TooManyRequests, Unauthorized):
        raise
    except ApiError:
        return None
    return found[0] if found and is_storable(found[0]) else None


def _content(obj: Object) -> Object:
    """Return an object without its kind, which lists leave out."""
    return {field: value for field, value in obj.items() if field not in ("kind", "apiVersion")}
