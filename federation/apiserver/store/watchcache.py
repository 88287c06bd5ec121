"""The watch cache of a store: newest state, lists at a revision, and watches, like kube-apiserver's.

`publish` adds committed changes in order and skips known ones, because the results of this process's commits and the
tail of the shared log overlap. Changes older than the memory come from a `History`. Runs on the event loop without I/O
of its own. Read `writer.py` and `history.py` next.
"""

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

from prometheus_client import Gauge

from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import RevisionCompacted, ValueDamaged, WatchCanceled
from federation.apiserver.store.cache import Cache
from federation.apiserver.store.interface import Entry, Event, EventBatch, EventType, Page, WakeSignal
from federation.apiserver.store.options import StoreOptions
from federation.apiserver.store.watch import Broadcaster
from federation.apiserver.store.writes import Change, Record

_damaged = Gauge("federation_store_damaged_entries", "Current objects whose stored row does not match its checksum")


class History(Protocol):
    """Changes that are no longer in memory."""

    async def events(self, prefix: str, since: int, until: int) -> tuple[list[Event], int]:
        """Return events in (since, until] and the revision up to which they are complete; RevisionCompacted."""
        ...

    async def undo(self, prefix: str, since: int, until: int) -> dict[str, Entry | None]:
        """Return the state at `since` of each key that changed in (since, until]; RevisionCompacted."""
        ...


class WatchCache:
    """The cached state and the watchers of one store in this process."""

    def __init__(self, options: StoreOptions, changes_max: int, bytes_max: int) -> None:
        self.cache = Cache(changes_max, bytes_max)
        self.broadcaster = Broadcaster(options.watcher_events_max)

    def load(self, entries: Sequence[Entry], revision: int, compacted: int, damaged: Sequence[Entry] = ()) -> None:
        """Load a snapshot of the database."""
        _damaged.inc(len(damaged) - len(self.cache.damaged))
        self.cache.load(entries, revision, compacted, damaged)
        self.broadcaster.revision = revision

    def get(self, key: str) -> Entry | None:
        """Return the newest state of the key; ValueDamaged."""
        entry = self.cache.get(key)
        if entry is None and (damaged := self.cache.damaged.get(key)) is not None:
            raise ValueDamaged(key, damaged.revision)
        return entry

    def warnings(self) -> Sequence[str]:
        """Count the damaged keys. Everybody may read warnings, so only the log has the keys' last parts."""
        keys = self.cache.damaged
        if not keys:
            return []
        kinds = sorted({"/".join(key.split("/")[1:3]) for key in keys})
        return [f"{len(keys)} damaged objects in {', '.join(kinds)}; the log names them; restore or delete them"]

    def publish(self, changes: Sequence[Change]) -> None:
        """Apply committed changes that are not known yet and send them to watchers."""
        known = self.cache.revision
        if changes and changes[0].event.revision <= known:
            changes = [change for change in changes if change.event.revision > known]
        if changes:
            before = len(self.cache.damaged)
            self.cache.apply(changes)
            if before:
                _damaged.inc(len(self.cache.damaged) - before)
            self.broadcaster.publish(changes)

    def publish_records(self, records: Sequence[Record]) -> None:
        """Publish changes read from the log; the cache adds the states that they replaced."""
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
        self.check_not_compacted(revision)
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
        self, prefix: str, since: int, history: History | None, wake_signal: WakeSignal | None = None
    ) -> AsyncGenerator[EventBatch, None]:
        """Yield the changes after `since`: from the history, then from memory, then new ones."""
        self.check_not_compacted(since)
        delivered = since
        while since < self.cache.recent_after and history is not None:
            events, since = await history.events(prefix, since, self.cache.recent_after)
            if events:
                yield EventBatch(events, since)
                delivered = since
        # No await between reading the memory and subscribing: no change can be published in between.
        self.check_not_compacted(since)
        watcher = self.broadcaster.subscribe(prefix, delivered, self.cache.events_since(since, prefix), wake_signal)
        try:
            while True:
                yield await watcher.next()
        finally:
            self.broadcaster.unsubscribe(watcher)

    def check_not_compacted(self, revision: int) -> None:
        """Raise RevisionCompacted for a revision before the compacted one or after the newest."""
        if revision < self.cache.compacted:
            raise RevisionCompacted(f"revision {revision} is compacted; the oldest kept is {self.cache.compacted}")
        if revision > self.cache.revision:
            raise RevisionCompacted(f"revision {revision} is newer than the newest, {self.cache.revision}")

    async def announce_progress(self, clock: Clock, interval_s: float) -> None:
        """Send idle watchers an empty batch every `interval_s`, until cancelled."""
        while True:
            await clock.sleep(interval_s)
            self.broadcaster.announce_progress()

    def fail_watches(self, error: WatchCanceled) -> None:
        """End every watch with `error`."""
        self.broadcaster.fail_all(error)
