"""A cache of one collection: list in pages, watch from that revision, list again when the watch expires.

While the server does not answer, the cache keeps its objects: only a watch event or a complete list removes one.
After a failure, a watch goes on only in a history that the server proves to have (`lineage.py`); otherwise it lists.
Handlers (`handlers.py`) get `(old, new)` and must be cheap: they enqueue keys. Cached objects are read-only. An
informer lives as long as the collection has users; `informers.py` shares the host's informers, `members.py` those of
the members.
"""

import asyncio
import contextlib
import random
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial

import structlog

from federation.apimachinery.clock import Clock, SystemClock
from federation.apimachinery.errors import (
    ApiError,
    ClusterError,
    ClusterLimitExceeded,
    ClusterUnreachable,
    RequestTimeout,
)
from federation.apimachinery.objectshape import is_storable, to_revision
from federation.apimachinery.resources import Object, Resource
from federation.client.client import Client, ObjectPage, Objects, WatchBatch, WatchEventType
from federation.runtime.admittance import Admittance, CacheBudget, Transform, bookmark_revision, is_within, needs_list
from federation.runtime.handlers import Handler, Handlers
from federation.runtime.indexer import Cache, CacheKey, cache_key
from federation.runtime.informercounts import InformerCounts
from federation.runtime.lineage import Lineage
from federation.runtime.listpages import opened, read_pages
from federation.runtime.replay import replay
from federation.runtime.revisionwaiters import RevisionWaiters
from federation.runtime.serverstate import ServerState
from federation.runtime.timeslice import host_list, in_turns
from federation.runtime.workqueue import Jitter

_log = structlog.get_logger(__name__)

_HEALTHY_S = 1.0
"""A watch that lasted this long is no failure, even without events."""
_SLICE = 100
"""Events to apply before the event loop runs other tasks."""


@dataclass(frozen=True, slots=True)
class InformerOptions:
    """Limits of one informer."""

    page_size: int = 500
    """Objects per list request."""
    list_pages_max: int = 0
    """Pages of one list; 0 for no limit, as for the host."""
    list_objects_max: int = 0
    """Objects of one list, and in the cache; 0 for no limit, as for the host."""
    backoff_s_min: float = 0.1
    """The first pause after a failed list or watch; it doubles with each further failure."""
    backoff_s_max: float = 30.0
    watch_timeout_s: int = 0
    """Ask the server to end each watch after this many seconds; 0 leaves it to the client."""


class Informer:
    """The cache of one resource, optionally of one namespace or label selector, with handlers and indexes."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        transform: Transform | None = None,
        clock: Clock | None = None,
        cluster: str = "",
        options: InformerOptions | None = None,
        jitter: Jitter = random.random,
        budget: CacheBudget | None = None,
        parsed_max: int = 0,
        skips: Callable[[bytes], bool] | None = None,
        lineage: Lineage | None = None,
    ) -> None:
        """`skips` as in `Client.watch`: the revision stays that of the last event read. `lineage` is the client's."""
        self.resource = resource
        self.namespace = namespace
        self.label_selector = label_selector
        self.field_selector = field_selector
        self.cluster = cluster
        self.has_synced = False
        """Whether the first complete list arrived. It stays True: while the server is unreachable, the cache is old."""
        self.is_connected = False
        """Whether the last list or watch is healthy, so that the cache is current."""
        self.is_comparing = False
        """Whether handlers are called for objects that a list lacks: nobody saw how they left."""
        self.server = ServerState()
        self._client = client
        self._clock = clock or SystemClock()
        self._options = options or InformerOptions()
        self._jitter = jitter
        self._skips = skips
        self.cache = Cache(parsed_max)  # only the informer changes it
        self._admittance = Admittance(
            cluster,
            resource,
            transform,
            budget,
            pages_max=self._options.list_pages_max,
            objects_max=self._options.list_objects_max,
        )
        self._revision = ""
        self._track = (lineage or Lineage()).track(
            client, resource, self.cache, self._admittance.shrink, lambda: self._revision
        )
        self._must_list, self._must_prove = True, False
        self._synced = asyncio.Event()
        self._progress = 0
        self._epoch = 0
        self._waiters = RevisionWaiters(self._clock)
        self._pause: asyncio.Future[None] | None = None
        self._watching: asyncio.Future[None] | None = None
        self._counts = InformerCounts(cluster, resource, self.cache)
        self._handlers = Handlers(self.cache, self._clock, partial(self._counts.note_failed_handler, self._admittance))

    @property
    def limit_exceeded(self) -> str:
        """The limit that the last list or watch exceeded, as a message; "" after a complete list."""
        return self._admittance.exceeded

    @property
    def has_malformed(self) -> bool:
        """Whether the server sends items that are not Kubernetes objects, which are not in the cache."""
        return self._admittance.has_malformed

    def release(self) -> None:
        """Return the memory of the cache to the budget. Call it when the informer has stopped."""
        self._admittance.forget_all()
        self._track.end()

    # -- reading

    def get(self, namespace: str, name: str) -> Object | None:
        """Return the cached object, read-only; `namespace` is "" for cluster-scoped ones."""
        return self.cache.get(namespace, name)

    def list(self, namespace: str = "") -> list[Object]:
        """Return the cached objects of the namespace, or all of them."""
        return self.cache.list(namespace)

    def __len__(self) -> int:
        return len(self.cache)

    def add_index(self, name: str, values: Callable[[Object], Iterable[str]]) -> None:
        """Keep an index by the values that the function gives for an object; it is filled from the cache at once."""
        self.cache.add_index(name, values)

    def by_index(self, name: str, value: str) -> Objects:
        """Return the objects that have `value` in the index."""
        return self.cache.by_index(name, value)

    @property
    def resource_version(self) -> str:
        """The revision that the cache has reached, "" before the first list."""
        return self._revision

    def has_seen(self, resource_version: str) -> bool:
        """Return whether the cache has reached the revision that a write of this collection returned."""
        return to_revision(self._revision) >= to_revision(resource_version)

    async def wait_for(self, resource_version: str, timeout_s: float = 5.0) -> bool:
        """Wait until the cache has reached the revision and return True, or False after `timeout_s`.

        A controller that must see its own write before it decides again calls this with the resourceVersion that the
        write returned.
        """
        return self.has_seen(resource_version) or await self._waiters.wait(to_revision(resource_version), timeout_s)

    async def wait_synced(self) -> None:
        """Return once the first complete list is in the cache."""
        await self._synced.wait()

    def add_handler(self, handler: Handler, *, is_replayed: bool = True, is_late: bool = False) -> Callable[[], None]:
        """Call the handler for every change from now on, and now for every cached object as an add.

        A late handler gets these objects, and those of the first list, afterwards. Returns a function that removes it.
        """
        return self._handlers.add(handler, is_replayed=is_replayed, is_late=is_late)

    # -- following

    def invalidate(self) -> None:
        """List again at once: the server behind the client may be another one."""
        self._must_list = True
        self._epoch += 1
        if self._watching is not None:
            self._watching.cancel()
        self.retry()

    def retry(self) -> None:
        """End the pause after a failure, if there is one: the server answers again."""
        if self._pause is not None:
            self._pause.cancel()

    async def run(self) -> None:
        """Follow the collection until cancelled; failures are retried after a pause that doubles."""
        try:
            async with asyncio.TaskGroup() as group:
                self._handlers.run_in(group)
                await self._follow_forever()
        finally:
            self._handlers.run_in(None)

    async def _follow_forever(self) -> None:
        pause_s = self._options.backoff_s_min
        while True:
            progress, started_s = self._progress, self._clock.monotonic()
            failure = await self._follow()
            # Malformed answers count as progress too. Only a lost connection is retried without back-off.
            is_usable = not isinstance(failure, ClusterError) or isinstance(
                failure, ClusterUnreachable | RequestTimeout
            )
            if is_usable and (self._progress != progress or self._clock.monotonic() - started_s >= _HEALTHY_S):
                pause_s = self._options.backoff_s_min
                if failure is None:
                    continue
            # A server that ends every watch at once counts as failing, so that there is no loop without a pause.
            self._must_prove = True
            self._track.doubt()
            await self._wait(pause_s * (0.5 + 0.5 * self._jitter()))
            pause_s = min(pause_s * 2, self._options.backoff_s_max)

    async def _wait(self, pause_s: float) -> None:
        self._pause = asyncio.ensure_future(self._clock.sleep(pause_s))
        try:
            await asyncio.wait((self._pause,))
        finally:
            self._pause.cancel()
            self._pause = None

    async def _follow(self) -> Exception | None:
        """List if necessary, and watch until the watch ends; return the failure, None for a regular end."""
        try:
            if self._must_prove:  # also before a list, which can show another history than the other caches followed
                self._must_list = not await self._has_our_history() or self._must_list
            self._must_prove = False
            if self._must_list:
                await self._list_all()
            await self._watch()
        except (ApiError, ClusterError) as failure:
            self.is_connected = False
            self.server.record_failure(failure)
            if isinstance(failure, ClusterLimitExceeded):
                self._must_list = True
                self._admittance.record(failure)
            elif needs_list(failure):
                self._must_list = True
            else:
                self._counts.failures.inc()
                _log.debug(
                    "informer lost its server",
                    cluster=self.cluster,
                    resource=self.resource.group_resource,
                    error=str(failure),
                )
            return failure
        return None

    async def _has_our_history(self) -> bool:
        """Return whether a watch may go on, from the revision that is set: the server was away, perhaps restored."""
        if revision := await self._track.resume():
            self._revision = revision
        return bool(revision)

    async def _list_all(self) -> None:
        """Bring the cache to the state of one complete list, page by page; deletions wait for the last page."""
        seen: set[CacheKey] = set()
        self._must_list, epoch = True, self._epoch
        self._admittance.begin_list()
        with contextlib.nullcontext() if self.cluster else host_list():
            is_complete, revision = await self._take_pages(seen)
        # A malformed item can be any object of the cache, so nothing is known to be deleted.
        absent = [key for key in self.cache.keys() if key not in seen] if is_complete else []  # noqa: SIM118  # no mapping
        self.is_comparing = True
        for key in absent:
            self._drop(key, None)
        self.is_comparing = False
        self._end_list(revision, epoch)

    async def _take_pages(self, seen: set[CacheKey]) -> tuple[bool, str]:
        """Store all pages of a list; return whether every item was an object, and the revision of the list."""
        is_complete, revision = True, ""
        async with self._pages() as pages:
            async for page, is_first in pages:
                if is_first:
                    seen.clear()
                    self._track.restart()
                    revision = page.resource_version
                self._admittance.check_objects(len(seen) + len(page.items))
                async for part in in_turns(page.items, self._clock, is_limited=bool(self.cluster)):
                    with contextlib.nullcontext() if self.has_synced else replay():
                        is_complete &= self._take_listed(part, seen)
        return is_complete, revision

    def _take_listed(self, objects: Sequence[Object], seen: set[CacheKey]) -> bool:
        are_admissible = True
        for obj in objects:
            if not self._is_admissible(obj):
                are_admissible = False
                continue
            seen.add(key := cache_key(obj))
            self._take(obj, key, self.cache.get(*key), is_listed=True)
        return are_admissible

    def _end_list(self, revision: str, epoch: int) -> None:
        self._must_list = epoch != self._epoch  # True if `invalidate` was called during the list
        self._counts.lists.inc()
        self._admittance.exceeded = ""
        self.is_connected = True
        self.server.record_answer()
        self._reach(revision)
        self.has_synced = True
        self._synced.set()
        self._handlers.open()

    def _pages(self) -> AbstractAsyncContextManager[AsyncGenerator[tuple[ObjectPage, bool]]]:
        """Return the pages of a list, each with True if it is the first one."""
        return contextlib.aclosing(
            read_pages(self._open_page, page_size=self._options.page_size, check_pages=self._admittance.check_pages)
        )

    def _open_page(self, limit: int, token: str) -> AbstractAsyncContextManager[ObjectPage]:
        return opened(partial(self._fetch, limit, token))

    async def _fetch(self, limit: int, token: str) -> ObjectPage:
        return await self._client.page(
            self.resource,
            self.namespace,
            label_selector=self.label_selector,
            field_selector=self.field_selector,
            limit=limit,
            continue_token=token,
        )

    async def _watch(self) -> None:
        """Apply changes until the server ends the watch or `invalidate` cancels it."""
        self._watching = asyncio.ensure_future(self._apply_changes())
        try:
            await asyncio.wait((self._watching,))
            if not self._watching.cancelled():
                self._watching.result()
        finally:
            self._watching.cancel()
            self._watching = None

    async def _apply_changes(self) -> None:
        batches = self._client.watch(
            self.resource,
            self.namespace,
            resource_version=self._revision,
            label_selector=self.label_selector,
            field_selector=self.field_selector,
            timeout_s=self._options.watch_timeout_s,
            skips=self._skips,
        )
        try:
            async for batch in batches:
                self.is_connected = True
                self.server.record_answer()
                for start in range(0, len(batch), _SLICE):
                    if start:
                        await asyncio.sleep(0)
                    self._apply(batch[start : start + _SLICE])
        finally:
            if isinstance(batches, AsyncGenerator):
                await batches.aclose()

    def _apply(self, batch: WatchBatch) -> None:
        bookmark, changes = WatchEventType.BOOKMARK, 0
        for type_, obj in batch:
            if type_ is not bookmark:
                changes += 1
                if not self._is_admissible(obj):
                    continue
                revision = obj["metadata"]["resourceVersion"]
                self._progress += 1
                self._apply_change(type_, obj)
            elif (revision := bookmark_revision(obj)) == "":
                self._admittance.reject(obj)
                continue
            self._revision = revision
        if changes:
            self._counts.events.inc(changes)
        if batch:
            self._reach(self._revision)

    def _apply_change(self, type_: WatchEventType, obj: Object) -> None:
        key = cache_key(obj)
        known, revision = self.cache.get(*key), to_revision(obj["metadata"]["resourceVersion"])
        age = revision - to_revision(known["metadata"]["resourceVersion"]) if known is not None else 1
        if type_ is WatchEventType.DELETED:
            # The last state may carry the revision of the deletion or, from old servers, that of the object.
            if known is not None and age >= 0:
                self._drop(key, obj)
            self._track.removed(key, obj["metadata"]["resourceVersion"])
        elif age > 0:
            if known is None:
                self._admittance.check_objects(len(self.cache) + 1)
            self._take(obj, key, known)

    def _is_admissible(self, obj: Object) -> bool:
        """Return whether a handler may get the object. A member can send anything; the host checks what it stores.

        An object that is nested too deeply is empty.
        """
        if (obj and not self.cluster) or (is_storable(obj) and is_within(obj, self.resource, self.namespace)):
            return True
        self._admittance.reject(obj)
        return False

    def _take(self, obj: Object, key: CacheKey, known: Object | None, *, is_listed: bool = False) -> None:
        """Store a state from the server and call the handlers, unless it is the `known` one."""
        # A list can come from a server that was restored and counts again: then one revision has two states.
        revision = obj["metadata"]["resourceVersion"]
        self._track.saw(key, revision)
        is_same = known is not None and known["metadata"]["resourceVersion"] == revision
        if is_same and not is_listed:
            return
        admitted = self._admittance.admit(key, obj)
        if admitted is None or (is_same and admitted[0] == known):
            return
        kept, text = admitted
        self.cache.put(key, kept, text, is_listed=is_listed)
        self._handlers.call(known, kept)

    def _drop(self, key: CacheKey, last: Object | None) -> None:
        known = self.cache.get(*key)
        last = self._admittance.shrink(last) if last is not None else None
        self._admittance.forget(key)
        self.cache.remove(key)
        self._handlers.call(last or known, None)

    def _reach(self, revision: str) -> None:
        self._revision = revision
        if self._waiters:
            self._waiters.reach(to_revision(revision))
