"""The newest state of every key and the most recent changes, in memory.

It serves reads, precondition checks and most watches. It is loaded from the database at start and then changed only by
`apply`, in commit order and without gaps. A list at an older revision is the newest state with the later changes
undone. No I/O, no event loop. Read `watchcache.py` next.
"""

import heapq
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from sortedcontainers import SortedDict

from federation.apimachinery.errors import Bug
from federation.apiserver.store.interface import Entry, Event, Page
from federation.apiserver.store.writes import Change

Undo = Mapping[str, Entry | None]
"""Earlier states of changed keys: an entry, or None for a key that did not exist."""


def prefix_end(prefix: str) -> str:
    """Return the smallest string that is greater than every string with `prefix`; "" when there is none."""
    trimmed = prefix.rstrip("\U0010ffff")
    return trimmed[:-1] + chr(ord(trimmed[-1]) + 1) if trimmed else ""


class Cache:
    """Current entries in key order, and a ring of changes bounded by count and by bytes of values."""

    def __init__(self, changes_max: int, bytes_max: int) -> None:
        self.revision = 0
        self.compacted = 0
        self._entries: SortedDict[str, Entry] = SortedDict()
        self.damaged: dict[str, Entry] = {}
        """Current entries without a usable value, kept out of `get`, lists and counts."""
        self._recent: deque[Change] = deque()
        self._recent_bytes = 0
        self._changes_max = changes_max
        self._bytes_max = bytes_max

    def load(self, entries: Iterable[Entry], revision: int, compacted: int, damaged: Iterable[Entry] = ()) -> None:
        """Load a snapshot: all entries at `revision`, of a history since `compacted`."""
        self._entries = SortedDict((entry.key, entry) for entry in entries)
        self.damaged = {entry.key: entry for entry in damaged}
        self._recent.clear()
        self._recent_bytes = 0
        self.revision = revision
        self.compacted = compacted

    def get(self, key: str) -> Entry | None:
        """Return the newest state of the key. Safe from any thread: one lookup in a dict."""
        entry: Entry | None = self._entries.get(key)
        return entry

    def current(self, key: str) -> Entry | None:
        """Return what a write to the key replaces: its newest state or its damaged entry."""
        entry: Entry | None = self._entries.get(key)
        return entry if entry is not None or not self.damaged else self.damaged.get(key)

    @property
    def recent_after(self) -> int:
        """The revision after which all changes are in memory."""
        return self.revision - len(self._recent)

    def apply(self, changes: Iterable[Change]) -> None:
        """Apply committed changes; each must have the next revision."""
        entries = self._entries
        for change in changes:
            event = change.event
            if event.revision != self.revision + 1:
                raise Bug(f"change {event.revision} does not follow revision {self.revision}")
            self.revision = event.revision
            current = change.current
            if self.damaged:
                self.damaged.pop(event.key, None)
            if current is None:
                entries.pop(event.key, None)
            else:
                entries[event.key] = current
            self._recent.append(change)
            self._recent_bytes += len(event.value)
        while len(self._recent) > self._changes_max or (self._recent_bytes > self._bytes_max and self._recent):
            self._recent_bytes -= len(self._recent.popleft().event.value)

    def compact(self, revision: int) -> None:
        """Record `revision` as compacted and drop the changes up to it from memory."""
        self.compacted = max(self.compacted, revision)
        while self._recent and self._recent[0].event.revision <= revision:
            self._recent_bytes -= len(self._recent.popleft().event.value)

    def changes_since(self, revision: int) -> Iterator[Change]:
        """Return the changes after `revision`, which must not be before `recent_after`."""
        return islice(self._recent, revision - self.recent_after, None)

    def events_since(self, revision: int, prefix: str) -> list[Event]:
        """Return the events after `revision` under `prefix`; `revision` must not be before `recent_after`."""
        return [c.event for c in self.changes_since(revision) if c.event.key.startswith(prefix)]

    def undo_since(self, revision: int, prefix: str) -> dict[str, Entry | None]:
        """Return the state at `revision` of every key under `prefix` that changed after it."""
        undo: dict[str, Entry | None] = {}
        for change in self.changes_since(revision):
            if change.event.key.startswith(prefix):
                previous = change.previous
                # Lists omitted a damaged entry before its deletion too.
                undo.setdefault(change.event.key, previous if previous is not None and previous.value else None)
        return undo

    def page(self, prefix: str, *, limit: int, from_key: str, revision: int, undo: Undo) -> Page:
        """Return a page of the newest state with the entries of `undo` in place of the current ones."""
        start, end = max(prefix, from_key), prefix_end(prefix)
        keys: Iterator[str] = self._entries.irange(start, end or None, inclusive=(True, False))
        older: list[str] = []
        if undo:
            older = sorted(k for k, entry in undo.items() if entry is not None and start <= k and (not end or k < end))
            keys = heapq.merge((key for key in keys if key not in undo), older)
        entries = self._entries
        if not limit:
            return Page([undo[k] or entries[k] if k in undo else entries[k] for k in keys], revision)
        chosen = list(islice(keys, limit + 1))
        found = [undo[k] or entries[k] if k in undo else entries[k] for k in chosen[:limit]]
        if len(chosen) <= limit:
            return Page(found, revision)
        total = self._count(start, end) - sum(1 for k in undo if k in entries and start <= k and (not end or k < end))
        return Page(found, revision, chosen[limit], total + len(older) - limit)

    def _count(self, start: str, end: str) -> int:
        last: int = self._entries.bisect_left(end) if end else len(self._entries)
        first: int = self._entries.bisect_left(start)
        return last - first

    def __len__(self) -> int:
        return len(self._entries)
