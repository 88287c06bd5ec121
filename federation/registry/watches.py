"""WATCH: the store's changes of one collection as Kubernetes events, bytes untouched, in commit order.

A selector turns changes into enters (ADDED) and leaves (DELETED with the last state that matched, at the revision of
the change). Bookmarks tell an idle watcher how far it has come; they name only revisions whose changes were delivered.
Ends by time or by the caller; a start that is not kept any more raises Expired. One generator per request.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import orjson

from federation.base.errors import BadRequest, Expired, RevisionCompacted, ServiceUnavailable, StoreError
from federation.registry import encoding
from federation.registry.access import Access
from federation.registry.filters import Filter
from federation.registry.kinds import KindInfo
from federation.registry.options import ListOptions
from federation.registry.reads import parse_resource_version
from federation.store.interface import Event, EventBatch, EventType, Nudge

WatchBatch = list[tuple[str, bytes]]

_TYPES = {EventType.CREATED: "ADDED", EventType.UPDATED: "MODIFIED", EventType.DELETED: "DELETED"}
_INITIAL_EVENTS_END = {"annotations": {"k8s.io/initial-events-end": "true"}}


class Watcher:
    """Watches for one registry."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def watch(self, info: KindInfo, namespace: str, options: ListOptions) -> AsyncIterator[WatchBatch]:
        """Yield batches of (type, object bytes) until the timeout; Expired when the start is too old."""
        wanted = Filter(info, options.label_selector, options.field_selector, self._access.label_cache)
        _check(options)
        prefix = info.collection(namespace or wanted.namespace)
        since = parse_resource_version(options.resource_version)
        stream = _Stream(self._access, info, wanted, options)
        if options.send_initial_events is False and since == 0:
            since = await self._access.store.revision()
        elif options.send_initial_events or since == 0:
            since, initial = await self._initial(info, prefix, wanted)
            if options.send_initial_events and options.allow_watch_bookmarks:
                initial.append(("BOOKMARK", _bookmark(info, since, initial_events_end=True)))
            if initial:
                yield initial
            del initial  # a watch lives for hours and must not hold on to old bytes
        try:
            async for batch in stream.follow(prefix, since):
                yield batch
        except RevisionCompacted as error:
            newest = await self._access.store.revision()
            raise Expired(f"too old resource version: {since} ({newest})") from error
        except StoreError as error:
            raise ServiceUnavailable(f"the store does not answer: {error}") from error

    async def _initial(self, info: KindInfo, prefix: str, wanted: Filter) -> tuple[int, WatchBatch]:
        page = await self._access.store.list(prefix)
        values = await self._access.present(info, [entry.value for entry in page.entries])
        found = [
            ("ADDED", value)
            for entry, value in zip(page.entries, values, strict=True)
            if wanted.matches(entry.key, entry.revision, value)
        ]
        return page.revision, found


class _Stream:
    """The live part of one watch: store batches, a ticker for bookmarks, an optional deadline."""

    def __init__(self, access: Access, info: KindInfo, wanted: Filter, options: ListOptions) -> None:
        self._access = access
        self._info = info
        self._wanted = wanted
        self._has_bookmarks = options.allow_watch_bookmarks
        self._bookmark_s = access.options.bookmark_interval_s
        self._timeout_s = options.timeout_s
        self._reached = 0

    async def follow(self, prefix: str, since: int) -> AsyncIterator[WatchBatch]:
        nudge = Nudge()
        deadline = self._timer(self._timeout_s, nudge) if self._timeout_s else None
        ticker = self._timer(self._bookmark_s, nudge) if self._has_bookmarks else None
        changes = self._access.store.watch(prefix, since, nudge)
        self._reached = told = since
        try:
            async for batch in changes:
                if events := await self._translate(batch):
                    yield events
                if deadline is not None and deadline.done():
                    return
                if ticker is not None and ticker.done():
                    ticker = self._timer(self._bookmark_s, nudge)
                    if self._reached > told:
                        told = self._reached
                        yield [("BOOKMARK", _bookmark(self._info, told))]
        except RevisionCompacted:
            raise
        except StoreError:
            # Too slow a reader, or the store is closing: the client resumes from the last event that it saw.
            return
        finally:
            for task in (ticker, deadline):
                if task is not None:
                    task.cancel()
            await changes.aclose()  # type: ignore[attr-defined]  # every store's watch is an async generator

    def _timer(self, delay_s: float, nudge: Nudge) -> "asyncio.Future[None]":
        timer = asyncio.ensure_future(self._access.clock.sleep(delay_s))
        timer.add_done_callback(nudge)
        return timer

    async def _translate(self, batch: EventBatch) -> WatchBatch:
        present, info = self._access.present, self._info
        values = await present(info, [event.value for event in batch])
        self._reached = max(self._reached, batch.revision)
        if self._wanted.matches_all:
            return [(_TYPES[event.type], value) for event, value in zip(batch, values, strict=True)]
        befores = iter(await present(info, [event.previous for event in batch if event.previous is not None]))
        return [
            translated
            for event, value in zip(batch, values, strict=True)
            if (translated := self._select(event, value, None if event.previous is None else next(befores)))
        ]

    def _select(self, event: Event, value: bytes, previous: bytes | None) -> tuple[str, bytes] | None:
        """Translate one change, from `previous` to `value`, for a watcher that sees part of the collection."""
        wanted = self._wanted
        is_in = event.type is not EventType.DELETED and wanted.matches(event.key, event.revision, value)
        if previous is None:
            return ("ADDED", value) if is_in else None
        before = int(encoding.position(previous).resource_version)
        was_in = wanted.matches(event.key, before, previous)
        if is_in:
            return ("MODIFIED" if was_in else "ADDED", value)
        if not was_in:
            return None
        if event.type is EventType.DELETED:
            return ("DELETED", value)
        return ("DELETED", encoding.with_revision(previous, event.revision))


def _check(options: ListOptions) -> None:
    if options.send_initial_events is not None and options.resource_version_match != "NotOlderThan":
        raise BadRequest(
            "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        )
    if options.resource_version_match and options.send_initial_events is None:
        raise BadRequest(
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is"
            " provided"
        )


def _bookmark(info: KindInfo, revision: int, *, initial_events_end: bool = False) -> bytes:
    metadata: dict[str, Any] = {"resourceVersion": str(revision), "creationTimestamp": None}
    if initial_events_end:
        metadata |= _INITIAL_EVENTS_END
    return orjson.dumps({"kind": info.resource.kind, "apiVersion": info.resource.api_version, "metadata": metadata})
