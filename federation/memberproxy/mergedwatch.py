"""Watches of one kind on the host and in members at once: each change is passed on as it arrives, and nothing is kept.

A watch begins with the resourceVersion of a list (`mergedtokens.py`), or with the existing objects without one. It
follows the clusters of its namespace, and new ones as the federation places something there. Events have the
resourceVersion of their member, from which no merged watch can begin: a client that tries gets 410 and lists again. A
member whose connection breaks is watched again from its last event. A full queue stops the readers of all members, so a
slow client costs a few events of memory.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Final

import orjson

from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import (
    ApiError,
    ClusterError,
    Expired,
    TooManyRequests,
    cause,
    invalid,
)
from federation.apimachinery.resources import Object, Resource
from federation.apiserver.auth.identity import User
from federation.apiserver.http.readers import WatchBatch
from federation.apiserver.semantics.kinds.kinds import KindInfo
from federation.apiserver.verbs.requestoptions import ListOptions
from federation.client.client import WatchEventType
from federation.client.pool import ClusterPool
from federation.memberproxy import memberreads, mergedtokens
from federation.memberproxy.memberreads import Selection
from federation.memberproxy.mergednames import to_member_fields, to_merged
from federation.memberproxy.mergedtokens import HOST
from federation.memberproxy.placedclusters import Visibility

OwnWatch = Callable[[KindInfo, str, ListOptions], AsyncGenerator[WatchBatch, None]]
_QUEUE_MAX: Final = 16
_PAGE_MAX: Final = 100
"""Objects of one page when a watch begins with the existing ones."""
_RETRY_S_MIN: Final = 0.5
_RETRY_S_MAX: Final = 15.0
_LIST_S_MAX: Final = 30.0
_PAGE_BYTES_MAX: Final = 16 * 1024 * 1024


def to_bytes(resource: Resource, cluster: str, obj: Object) -> bytes:
    """Return a member's object as the host shows it."""
    head = {"apiVersion": resource.api_version, "kind": resource.kind}
    return orjson.dumps({**head, **to_merged(cluster, obj), **head})


class MergedWatches:
    """The open watches of one kind, within limits."""

    def __init__(
        self, pool: ClusterPool, visibility: Visibility, clock: Clock, *, watches_max: int, user_watches_max: int
    ) -> None:
        self._pool = pool
        self._visibility = visibility
        self._clock = clock
        self._watches_max = watches_max
        self._user_watches_max = user_watches_max
        self._open: Counter[str] = Counter()

    async def watch(
        self,
        user: User,
        resource: Resource,
        info: KindInfo,
        namespace: str,
        options: ListOptions,
        own: OwnWatch | None,
    ) -> AsyncGenerator[WatchBatch, None]:
        """Yield batches of changes until the timeout of the options; `own` watches the host's objects."""
        if options.send_initial_events is not None:
            text = "Forbidden: members have no common history; list first, then watch"
            raise invalid("ListOptions", "meta.k8s.io", "", [cause("FieldValueForbidden", text, "sendInitialEvents")])
        given = options.resource_version
        revisions = mergedtokens.decode_revisions(given) if given not in ("", "0") else {}
        with self._counted(user):
            watch = _Watch(self._pool, self._visibility, self._clock, user, resource, namespace, options)
            running = asyncio.create_task(watch.run(revisions, info, own), name="merged-watch")
            try:
                while (batch := await watch.queue.get()) is not None:
                    yield batch
                await running
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)

    @contextlib.contextmanager
    def _counted(self, user: User) -> Iterator[None]:
        mine = f'watches of user "{user.name}"'
        held = [
            (self._open.total(), self._watches_max, "watches"),
            (self._open[user.name], self._user_watches_max, mine),
        ]
        for count, limit, title in held:
            if count >= limit:
                raise TooManyRequests(
                    f"{limit} {title} of objects of members are open, try again later", details={"retryAfterSeconds": 1}
                )
        self._open[user.name] += 1
        try:
            yield
        finally:
            self._open[user.name] -= 1
            if not self._open[user.name]:
                del self._open[user.name]


@dataclass(slots=True)
class _Watch:
    """One watch. `run` fills the queue; None is its end."""

    pool: ClusterPool
    visibility: Visibility
    clock: Clock
    user: User
    resource: Resource
    namespace: str
    options: ListOptions
    queue: asyncio.Queue[WatchBatch | None] = field(default_factory=lambda: asyncio.Queue(_QUEUE_MAX))

    async def run(self, revisions: Mapping[str, str], info: KindInfo, own: OwnWatch | None) -> None:
        """Follow the host and every cluster until the timeout; Expired when the client must list again."""
        failure: ApiError | None = None
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.options.timeout_s or None):
                    await self._follow_all(revisions, info, own)
        except* ApiError as group:
            failure = _first(group)
        await self.queue.put(None)
        if failure is not None:
            raise failure

    async def _follow_all(self, revisions: Mapping[str, str], info: KindInfo, own: OwnWatch | None) -> None:
        changed = asyncio.Event()
        followed: set[str] = set()
        with self.visibility.listening(changed.set):
            async with asyncio.TaskGroup() as group:
                if own is not None:
                    group.create_task(self._follow_host(own, info, revisions.get(HOST, "")))
                while True:
                    changed.clear()
                    for cluster in self.visibility.clusters(self.namespace):
                        if cluster not in followed:
                            followed.add(cluster)
                            group.create_task(self._follow(cluster, revisions.get(cluster, "")))
                    await changed.wait()

    async def _follow_host(self, own: OwnWatch, info: KindInfo, revision: str) -> None:
        options = replace(self.options, resource_version=revision, allow_watch_bookmarks=False)
        async with aclosing(own(info, self.namespace, options)) as batches:
            async for batch in batches:
                await self.queue.put(batch)

    async def _follow(self, cluster: str, revision: str) -> None:
        """Pass a cluster's events on; connect again when the connection ends, later and later without success."""
        fields = to_member_fields(cluster, self.options.field_selector)
        if fields is None:
            return
        selection = Selection(self.resource, self.namespace, self.options.label_selector, fields)
        retry_s = _RETRY_S_MIN
        while True:
            try:
                revision = revision or await self._list(cluster, selection)
                async with aclosing(memberreads.watch(self.pool, cluster, self.user, selection, revision)) as events:
                    async for event in events:
                        retry_s = _RETRY_S_MIN
                        if event.type is not WatchEventType.BOOKMARK:
                            await self._pass_on(cluster, selection, event.type.value, event.object)
                        revision = memberreads.revision_of(event.object) or revision
            except Expired:
                raise
            except (ApiError, ClusterError, TimeoutError):
                if cluster not in self.pool.clusters:
                    raise Expired(f"too old resource version: cluster {cluster} has left: list again") from None
            await self.clock.sleep(retry_s)
            retry_s = min(retry_s * 2, _RETRY_S_MAX)

    async def _list(self, cluster: str, selection: Selection) -> str:
        """Pass the existing objects on as added and return their revision."""
        token, revision = "", ""
        while True:
            async with asyncio.timeout(_LIST_S_MAX):
                page = await memberreads.list_page(
                    self.pool,
                    cluster,
                    self.user,
                    selection,
                    limit=_PAGE_MAX,
                    token=token,
                    bytes_max=_PAGE_BYTES_MAX,
                )
            for item in page.items:
                await self._pass_on(cluster, selection, "ADDED", item)
            revision = revision or page.revision
            if not (token := page.token):
                return revision

    async def _pass_on(self, cluster: str, selection: Selection, type_: str, obj: Object) -> None:
        if selection.accepts(obj) and self.visibility.is_visible(cluster, obj["metadata"].get("namespace", "")):
            await self.queue.put([(type_, to_bytes(self.resource, cluster, obj))])


def _first(group: BaseExceptionGroup[ApiError]) -> ApiError:
    error = group.exceptions[0]
    return _first(error) if isinstance(error, BaseExceptionGroup) else error
