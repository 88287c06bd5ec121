"""WATCH: the store's changes of one collection as Kubernetes events, in commit order, without re-encoding objects.

An object that starts to match the selector is ADDED; one that stops to match is DELETED, with its last matching state
at the revision of the change. A bookmark carries a revision up to which every change was delivered. A watch ends at
its timeout or when the caller closes it; a compacted start raises Expired. One generator per request.
"""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import orjson

from federation.apimachinery.errors import Expired, RevisionCompacted, WatchCanceled
from federation.apiserver.semantics.encoding import encoding
from federation.apiserver.semantics.kinds.kinds import KindInfo
from federation.apiserver.store.interface import Event, EventBatch, EventType, WakeSignal
from federation.apiserver.verbs.context import VerbContext
from federation.apiserver.verbs.filters import Filter
from federation.apiserver.verbs.listoptions import validate_watch_options
from federation.apiserver.verbs.reads import parse_resource_version, too_large
from federation.apiserver.verbs.requestoptions import ListOptions

WatchBatch = list[tuple[str, bytes]]

_TYPES = {EventType.CREATED: "ADDED", EventType.UPDATED: "MODIFIED", EventType.DELETED: "DELETED"}
_INITIAL_EVENTS_END = {"annotations": {"k8s.io/initial-events-end": "true"}}


class Watcher:
    """Watches for one registry."""

    def __init__(self, context: VerbContext) -> None:
        self._context = context

    def watch(self, info: KindInfo, namespace: str, options: ListOptions) -> AsyncGenerator[WatchBatch, None]:
        """Yield batches of (type, object bytes) until the timeout; Invalid, BadRequest, Expired, all when iterated."""
        return _Watch(self._context, info, options).batches(namespace)


class _Watch:
    """One watch: the initial events, then store batches, with timers for bookmarks and the timeout."""

    def __init__(self, context: VerbContext, info: KindInfo, options: ListOptions) -> None:
        self._context = context
        self._info = info
        self._options = options
        self._reached = 0
        self._wanted: Filter

    async def batches(self, namespace: str) -> AsyncGenerator[WatchBatch, None]:
        options = self._options
        validate_watch_options(options)
        shown = options.shown() if options.shown is not None else None
        cache = self._context.label_cache
        self._wanted = Filter(self._info, options.label_selector, options.field_selector, cache, shown, options.hides)
        prefix = self._info.collection(namespace or self._wanted.namespace)
        since, initial = await self._start(prefix)
        if options.timeout_s < 0:
            return
        if initial:
            yield initial
        del initial  # a watch lives for hours and must not keep these bytes in memory
        # Timers interrupt the store's watch through `wake_signal`: waiting for several tasks would cost more per event.
        wake_signal = WakeSignal()
        bookmark_s = self._context.options.bookmark_interval_s
        deadline = self._timer(options.timeout_s, wake_signal) if options.timeout_s else None
        ticker = self._timer(bookmark_s, wake_signal) if options.allow_watch_bookmarks else None
        changes = self._context.store.watch(prefix, since, wake_signal)
        self._reached = bookmarked = since
        try:
            async for batch in changes:
                if events := await self._translate(batch):
                    yield events
                if deadline is not None and deadline.done():
                    return
                if ticker is not None and ticker.done():
                    ticker = self._timer(bookmark_s, wake_signal)
                    if self._reached > bookmarked:
                        bookmarked = self._reached
                        yield [("BOOKMARK", _bookmark(self._info, bookmarked))]
        except WatchCanceled:
            # The client reads too slowly, or the store closes. The client resumes from the last event that it received.
            return
        except RevisionCompacted as error:
            newest = await self._context.store.revision()
            raise Expired(f"too old resource version: {since} ({newest})") from error
        finally:
            for task in (ticker, deadline):
                if task is not None:
                    task.cancel()
            await changes.aclose()

    async def _start(self, prefix: str) -> tuple[int, WatchBatch]:
        """Return the revision after which changes are streamed, and the initial events."""
        options, context = self._options, self._context
        since = parse_resource_version(options.resource_version)
        if options.send_initial_events is False and since == 0:
            return await context.store.revision(), []
        if since and not options.send_initial_events:
            return since, []
        page = await context.store.list(prefix)
        if since > page.revision:
            raise too_large(since, page.revision)
        values = await context.list_from_storage(self._info, [entry.value for entry in page.entries])
        initial = [
            ("ADDED", value)
            for entry, value in zip(page.entries, values, strict=True)
            if self._wanted.matches(entry.key, entry.revision, value)
        ]
        if options.send_initial_events and options.allow_watch_bookmarks:
            initial.append(("BOOKMARK", _bookmark(self._info, page.revision, initial_events_end=True)))
        return page.revision, initial

    def _timer(self, delay_s: float, wake_signal: WakeSignal) -> "asyncio.Future[None]":
        timer = asyncio.ensure_future(self._context.clock.sleep(delay_s))
        timer.add_done_callback(wake_signal)
        return timer

    async def _translate(self, batch: EventBatch) -> WatchBatch:
        convert, info = self._context.list_from_storage, self._info
        values = await convert(info, [event.value for event in batch])
        self._reached = max(self._reached, batch.revision)
        if self._options.shown is not None and self._options.shown() != self._wanted.shown:
            raise Expired("what the user may see has changed: list again")
        if self._wanted.matches_all:
            return [(_TYPES[event.type], value) for event, value in zip(batch, values, strict=True)]
        previous_values = iter(await convert(info, [event.previous for event in batch if event.previous is not None]))
        return [
            translated
            for event, value in zip(batch, values, strict=True)
            if (translated := self._select(event, value, None if event.previous is None else next(previous_values)))
        ]

    def _select(self, event: Event, value: bytes, previous: bytes | None) -> tuple[str, bytes] | None:
        """Return the event for one change from `previous` to `value` under a selector, None when neither matches."""
        wanted = self._wanted
        is_in = event.type is not EventType.DELETED and wanted.matches(event.key, event.revision, value)
        if previous is None:
            return ("ADDED", value) if is_in else None
        before = int(encoding.read_revision_and_uid(previous).resource_version)
        was_in = wanted.matches(event.key, before, previous)
        if is_in:
            return ("MODIFIED" if was_in else "ADDED", value)
        if not was_in:
            return None
        if event.type is EventType.DELETED:
            return ("DELETED", value)
        return ("DELETED", encoding.replace_revision(previous, event.revision))


def _bookmark(info: KindInfo, revision: int, *, initial_events_end: bool = False) -> bytes:
    metadata: dict[str, Any] = {"resourceVersion": str(revision), "creationTimestamp": None}
    if initial_events_end:
        metadata |= _INITIAL_EVENTS_END
    return orjson.dumps({"kind": info.resource.kind, "apiVersion": info.resource.api_version, "metadata": metadata})
