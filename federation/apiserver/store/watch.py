"""Watchers, each with its own bounded buffer, and the broadcaster that feeds them.

The broadcaster finds the watchers of a change by the directories of its key ("/apps/", "/apps/deployments/", …) and
remembers them, so its cost is proportional to the number of matching watchers. A watcher that reads too slowly is
canceled (WatchCanceled); others are not affected. Everything runs on the event loop.
"""

import asyncio
from collections.abc import Iterable
from typing import Final, NamedTuple

from prometheus_client import Counter, Gauge

from federation.apimachinery.errors import WatchCanceled
from federation.apiserver.store.interface import Event, EventBatch, WakeSignal
from federation.apiserver.store.writes import Change

_watchers = Gauge("federation_store_watchers", "Open watches")
_events = Counter("federation_store_events_total", "Changes handed to watchers")
_overflows = Counter("federation_store_watcher_overflows_total", "Watches ended because they read too slowly")

_DIRECTORIES_MAX: Final = 4096
"""Directories whose watchers are remembered; a namespace has one for each kind."""


class Watcher:
    """One watch with its unread changes. `revision` is that of the last batch it returned."""

    __slots__ = ("_broadcaster", "_buffer", "_failure", "_waiter", "_wake_signal", "directory", "prefix", "revision")

    def __init__(
        self,
        broadcaster: "Broadcaster",
        prefix: str,
        revision: int,
        events: list[Event],
        wake_signal: WakeSignal | None,
    ) -> None:
        self.prefix = prefix
        self.directory = prefix[: prefix.rfind("/") + 1]
        self.revision = revision
        self._broadcaster = broadcaster
        self._buffer = events
        self._failure: WatchCanceled | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._wake_signal = wake_signal or WakeSignal()
        self._wake_signal.wake = self.wake

    async def next(self) -> EventBatch:
        """Return all buffered changes, or an empty batch as progress; WatchCanceled."""
        wake_signal = self._wake_signal
        while not (self._buffer or self._failure or wake_signal.is_set or self.revision < self._broadcaster.progress):
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        if self._failure is not None:
            raise self._failure
        wake_signal.is_set = False
        self.revision = self._broadcaster.revision
        batch = EventBatch(self._buffer, self.revision)
        self._buffer.clear()
        return batch

    def push(self, event: Event) -> None:
        """Buffer one change; cancel the watch when the buffer is full."""
        if self._failure is not None:
            return
        if len(self._buffer) >= self._broadcaster.events_max:
            _overflows.inc()
            self.fail(
                WatchCanceled(f"the watch of {self.prefix!r} is too slow: {len(self._buffer)} changes were waiting")
            )
            return
        self._buffer.append(event)

    def fail(self, error: WatchCanceled) -> None:
        """Cancel the watch with `error`."""
        self._failure = error
        self._buffer.clear()
        self.wake()

    def release(self) -> None:
        """End a circle of references, which would keep the buffered changes until the garbage collector runs."""
        self._wake_signal.wake = None
        self._buffer.clear()

    def wake(self) -> None:
        """Make `next` check its conditions again."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Broadcaster:
    """All watchers of one store, by directory. `revision` is the newest published one."""

    def __init__(self, events_max: int) -> None:
        self.events_max = events_max
        self.revision = 0
        self.progress = 0
        self._directories: dict[str, list[Watcher]] = {}
        self._by_directory: dict[str, _Watchers] = {}
        """For the directories of recent changes; empty after every change of the watchers."""

    def subscribe(
        self, prefix: str, revision: int, events: list[Event], wake_signal: WakeSignal | None = None
    ) -> Watcher:
        """Add a watcher that has received all changes up to `revision`; `events` are the matching ones since."""
        watcher = Watcher(self, prefix, revision, events, wake_signal)
        self._directories.setdefault(watcher.directory, []).append(watcher)
        self._by_directory.clear()
        _watchers.inc()
        return watcher

    def unsubscribe(self, watcher: Watcher) -> None:
        """Remove a watcher."""
        watcher.release()
        watchers = self._directories[watcher.directory]
        watchers.remove(watcher)
        self._by_directory.clear()
        if not watchers:
            del self._directories[watcher.directory]
        _watchers.dec()

    def publish(self, changes: Iterable[Change]) -> None:
        """Send each change to the matching watchers, and wake each of them once for the whole commit."""
        touched: dict[Watcher, None] = {}
        delivered = 0
        for change in changes:
            event = change.event
            self.revision = event.revision
            for watcher in self._watchers_of(event.key):
                watcher.push(event)
                touched[watcher] = None
                delivered += 1
        for watcher in touched:
            watcher.wake()
        _events.inc(delivered)

    def announce_progress(self) -> None:
        """Wake the watchers that have not reached the newest revision."""
        self.progress = self.revision
        for watcher in self._all():
            if watcher.revision < self.progress:
                watcher.wake()

    def fail_all(self, error: WatchCanceled) -> None:
        """Cancel every watch with `error`."""
        for watcher in self._all():
            watcher.fail(error)

    def _all(self) -> list[Watcher]:
        return [watcher for watchers in self._directories.values() for watcher in watchers]

    def _watchers_of(self, key: str) -> list[Watcher]:
        directory = key[: key.rfind("/") + 1]
        found = self._by_directory.get(directory)
        if found is None:
            if len(self._by_directory) >= _DIRECTORIES_MAX:
                self._by_directory.clear()
            found = self._by_directory[directory] = self._find(directory)
        if found.partial:
            return found.whole + [watcher for watcher in found.partial if key.startswith(watcher.prefix)]
        return found.whole

    def _find(self, directory: str) -> "_Watchers":
        above = [directory[: end + 1] for end, character in enumerate(directory) if character == "/"]
        watchers = [watcher for each in ("", *above) for watcher in self._directories.get(each, ())]
        whole = [watcher for watcher in watchers if watcher.prefix == watcher.directory]
        return _Watchers(whole, [watcher for watcher in watchers if watcher.prefix != watcher.directory])


class _Watchers(NamedTuple):
    """The watchers that may have to hear of a change in a directory."""

    whole: list[Watcher]
    """Those of everything in the directory."""
    partial: list[Watcher]
    """Those of the names that begin with a prefix."""
