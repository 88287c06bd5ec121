"""Watchers: who wants to hear of which keys, each with its own bounded buffer.

A commit is published once; the hub finds the interested watchers by the folders of the changed key ("/apps/",
"/apps/deployments/", …), so that its cost follows the number of interested watchers and not of all. A watcher that
does not read is cut off alone (StoreError) and can start again. Everything here runs on the event loop.
"""

import asyncio
from collections.abc import Iterable

from prometheus_client import Counter, Gauge

from federation.base.errors import StoreError
from federation.store.interface import Event, EventBatch, Nudge
from federation.store.writes import Change

_watchers = Gauge("federation_store_watchers", "Open watches")
_events = Counter("federation_store_events_total", "Changes handed to watchers")
_overflows = Counter("federation_store_watcher_overflows_total", "Watches ended because they read too slowly")


class Watcher:
    """One watch: the changes it has not read yet. `revision` is how far its reader knows to have read."""

    __slots__ = ("_buffer", "_failure", "_hub", "_nudge", "_waiter", "folder", "prefix", "revision")

    def __init__(self, hub: "WatcherHub", prefix: str, revision: int, events: list[Event], nudge: Nudge | None) -> None:
        self.prefix = prefix
        self.folder = prefix[: prefix.rfind("/") + 1]
        self.revision = revision
        self._hub = hub
        self._buffer = events
        self._failure: StoreError | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._nudge = nudge or Nudge()
        self._nudge.wake = self.wake

    async def next(self) -> EventBatch:
        """Return all waiting changes, or an empty batch as progress; raises the error that ended the watch."""
        nudge = self._nudge
        while not (self._buffer or self._failure or nudge.is_set or self.revision < self._hub.progress):
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        if self._failure is not None:
            raise self._failure
        nudge.is_set = False
        self.revision = self._hub.revision
        batch = EventBatch(self._buffer, self.revision)
        self._buffer.clear()
        return batch

    def push(self, event: Event) -> None:
        """Buffer one change; past the limit the watch ends instead."""
        if self._failure is not None:
            return
        if len(self._buffer) >= self._hub.events_max:
            _overflows.inc()
            self.fail(StoreError(f"the watch of {self.prefix!r} is too slow: {len(self._buffer)} changes were waiting"))
            return
        self._buffer.append(event)

    def fail(self, error: StoreError) -> None:
        """End the watch with `error`."""
        self._failure = error
        self._buffer.clear()
        self.wake()

    def wake(self) -> None:
        """Let `next` look again."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class WatcherHub:
    """All open watches of one store, by folder. `revision` is the newest published one."""

    def __init__(self, events_max: int) -> None:
        self.events_max = events_max
        self.revision = 0
        self.progress = 0
        self._folders: dict[str, list[Watcher]] = {}

    def open(self, prefix: str, revision: int, events: list[Event], nudge: Nudge | None = None) -> Watcher:
        """Add a watch that was told everything up to `revision`; `events` are the matching ones since."""
        watcher = Watcher(self, prefix, revision, events, nudge)
        self._folders.setdefault(watcher.folder, []).append(watcher)
        _watchers.inc()
        return watcher

    def close(self, watcher: Watcher) -> None:
        """Remove a watch."""
        watchers = self._folders[watcher.folder]
        watchers.remove(watcher)
        if not watchers:
            del self._folders[watcher.folder]
        _watchers.dec()

    def publish(self, changes: Iterable[Change]) -> None:
        """Give each change to the watches it concerns and wake them, once for the whole commit."""
        touched: dict[Watcher, None] = {}
        delivered = 0
        for change in changes:
            event = change.event
            self.revision = event.revision
            for watcher in self._interested(event.key):
                watcher.push(event)
                touched[watcher] = None
                delivered += 1
        for watcher in touched:
            watcher.wake()
        _events.inc(delivered)

    def announce_progress(self) -> None:
        """Wake the watches that have heard nothing up to the newest revision."""
        self.progress = self.revision
        for watcher in self._all():
            if watcher.revision < self.progress:
                watcher.wake()

    def fail_all(self, error: StoreError) -> None:
        """End every watch with `error`."""
        for watcher in self._all():
            watcher.fail(error)

    def _all(self) -> list[Watcher]:
        return [watcher for watchers in self._folders.values() for watcher in watchers]

    def _interested(self, key: str) -> Iterable[Watcher]:
        folders = self._folders
        end = 0
        while True:
            for watcher in folders.get(key[:end], ()):
                if key.startswith(watcher.prefix):
                    yield watcher
            end = key.find("/", end) + 1
            if not end:
                return
