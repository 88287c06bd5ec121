"""The read side that every store shares: newest state, lists at a revision, watches, in front of one `Cache`.

`publish` is the only way in: committed changes, from whichever source, in order; those already seen are skipped, so
that a commit's own result and the tail of other processes' writes may overlap. What is older than the memory keeps is
asked from a `History`. Runs on the event loop and does no I/O of its own. Read `writer.py` and `history.py` next.
"""

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

from federation.base.clock import Clock
from federation.base.errors import RevisionCompacted, StoreError
from federation.store.cache import Cache
from federation.store.interface import Entry, Event, EventBatch, EventType, Nudge, Page
from federation.store.options import StoreOptions
from federation.store.watch import WatcherHub
from federation.store.writes import Change, Record


class History(Protocol):
    """Changes that are no longer in memory."""

    async def events(self, prefix: str, since: int, until: int) -> tuple[list[Event], int]:
        """Return events in (since, until], and the revision up to which they are all; RevisionCompacted."""
        ...

    async def undo(self, prefix: str, since: int, until: int) -> dict[str, Entry | None]:
        """Return what each key changed in (since, until] was at `since`; RevisionCompacted."""
        ...


class View:
    """The state of one store as this process sees it."""

    def __init__(self, options: StoreOptions, changes_max: int, bytes_max: int) -> None:
        self.cache = Cache(changes_max, bytes_max)
        self.hub = WatcherHub(options.watcher_events_max)

    def load(self, entries: Sequence[Entry], revision: int, compacted: int) -> None:
        """Start from what the database holds."""
        self.cache.load(entries, revision, compacted)
        self.hub.revision = revision

    def publish(self, changes: Sequence[Change]) -> None:
        """Take committed changes and tell the watchers; changes that are known already are skipped."""
        known = self.cache.revision
        if changes and changes[0].event.revision <= known:
            changes = [change for change in changes if change.event.revision > known]
        if changes:
            self.cache.apply(changes)
            self.hub.publish(changes)

    def publish_records(self, records: Sequence[Record]) -> None:
        """Take changes that were read from the log; the states before them come from the cache."""
        pending: dict[str, Entry | None] = {}
        changes = []
        for kind, entry in records:
            if entry.revision > self.cache.revision:
                key = entry.key
                previous = pending[key] if key in pending else self.cache.get(key)
                event = Event(entry.revision, key, kind, entry.value, None if previous is None else previous.value)
                pending[key] = None if kind is EventType.DELETED else entry
                changes.append(Change(event, entry, previous))
        self.publish(changes)

    async def list(self, prefix: str, limit: int, from_key: str, revision: int, history: History | None) -> Page:
        """Return a page as of `revision` (0: newest)."""
        cache = self.cache
        if not revision or revision == cache.revision:
            return cache.page(prefix, limit=limit, from_key=from_key, revision=cache.revision, undo={})
        self.check_kept(revision)
        undo: dict[str, Entry | None] = {}
        since = revision
        while since < cache.recent_after and history is not None:
            until = cache.recent_after
            older = await history.undo(prefix, since, until)
            undo = older | undo
            since = until
        for key, entry in cache.undo_since(since, prefix).items():
            undo.setdefault(key, entry)
        return cache.page(prefix, limit=limit, from_key=from_key, revision=revision, undo=undo)

    async def watch(
        self, prefix: str, since: int, history: History | None, nudge: Nudge | None = None
    ) -> AsyncGenerator[EventBatch, None]:
        """Yield what happened after `since`: from the history, then from memory, then live."""
        self.check_kept(since)
        told = since
        while since < self.cache.recent_after and history is not None:
            events, since = await history.events(prefix, since, self.cache.recent_after)
            if events:
                yield EventBatch(events, since)
                told = since
        # No await between reading the memory and opening the watch: nothing can be published in between.
        self.check_kept(since)
        watcher = self.hub.open(prefix, told, self.cache.events_since(since, prefix), nudge)
        try:
            while True:
                yield await watcher.next()
        finally:
            self.hub.close(watcher)

    def check_kept(self, revision: int) -> None:
        """Raise RevisionCompacted when `revision` is not between what is compacted and the newest."""
        if revision < self.cache.compacted:
            raise RevisionCompacted(f"revision {revision} is compacted; the oldest kept is {self.cache.compacted}")
        if revision > self.cache.revision:
            raise RevisionCompacted(f"revision {revision} is newer than the newest, {self.cache.revision}")

    async def announce_progress(self, clock: Clock, interval_s: float) -> None:
        """Give idle watchers an empty batch every `interval_s`, until cancelled."""
        while True:
            await clock.sleep(interval_s)
            self.hub.announce_progress()

    def fail_watches(self, error: StoreError) -> None:
        """End every watch with `error`."""
        self.hub.fail_all(error)
