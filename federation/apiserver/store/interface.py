"""The store: revisioned byte values under sorted keys, and a watch of every change in commit order, like etcd.

It knows nothing of Kubernetes. `SQLStore` (SQLite, PostgreSQL) and `MemoryStore` implement it and pass the same
conformance suite (tests/conformance/store). Read `verbs/` next for the meaning of the values.

A value is written as `Body(head, tail)` and stored as `head + str(revision) + tail`. So an object contains its own
resourceVersion, which only the commit decides, without being serialized again.
"""

from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol


class Body(NamedTuple):
    """A value to write: the bytes before and after the revision's decimal digits."""

    head: bytes
    tail: bytes


@dataclass(frozen=True, slots=True)
class Entry:
    """One key at one revision. `create_revision` is the revision of the key's creation.

    A value always contains its revision; only the entry of a damaged row has an empty one.
    """

    key: str
    revision: int
    create_revision: int
    value: bytes


class EventType(StrEnum):
    """The kind of a change."""

    CREATED = "CREATED"
    UPDATED = "UPDATED"
    DELETED = "DELETED"


@dataclass(frozen=True, slots=True)
class Event:
    """One committed change.

    The `value` of a DELETED event is the final state from the delete call; `previous` is the replaced value (None for
    CREATED).
    """

    revision: int
    key: str
    type: EventType
    value: bytes
    previous: bytes | None


@dataclass(frozen=True, slots=True)
class Page:
    """Part of a list at one revision. `next_key` is "" on the last page; `remaining` counts the keys after it."""

    entries: list[Entry]
    revision: int
    next_key: str = ""
    remaining: int = 0


class EventBatch(list[Event]):
    """Changes in commit order.

    Every change up to `revision` is in this batch or an earlier one, so a watch that resumes there misses nothing.
    Bookmarks carry it; `Store.revision()` may be newer than the last delivered change.
    """

    __slots__ = ("revision",)

    def __init__(self, events: Iterable[Event] = (), revision: int = 0) -> None:
        super().__init__(events)
        self.revision = revision


class WakeSignal:
    """Makes a watch yield at once, with an empty batch if nothing changed. It is a callback for timers.

    Waiting for a watch and a timer with two tasks would cost more than delivering an event.
    """

    __slots__ = ("is_set", "wake")

    def __init__(self) -> None:
        self.is_set = False
        self.wake: Callable[[], None] | None = None

    def __call__(self, *_: object) -> None:
        self.is_set = True
        if self.wake is not None:
            self.wake()


class Store(Protocol):
    """Revisions are gap-free, one per change, and ordered by commit; a write returns only after it is durable."""

    async def run(self) -> None:
        """Run compaction, progress notifications and the tail of other processes' writes until cancelled."""
        ...

    async def ready(self) -> None:
        """Return when reads and writes work; StoreUnavailable when the database cannot be opened."""
        ...

    async def create(self, key: str, body: Body) -> Entry:
        """Write a new key; KeyExists, StoreFull."""
        ...

    async def update(self, key: str, body: Body, expected_revision: int, *, frees_space: bool = False) -> Entry:
        """Replace the key's value if it is still at `expected_revision`; KeyNotFound, RevisionConflict, StoreFull.

        `frees_space` marks a step towards a deletion, which the space quota allows.
        """
        ...

    async def delete(self, key: str, body: Body, expected_revision: int) -> Entry:
        """Remove the key if it is still at `expected_revision`; `body` becomes the value of the DELETED event."""
        ...

    async def get(self, key: str) -> Entry | None:
        """Return the newest committed state of the key; ValueDamaged when the disk has damaged it.

        Lists omit such a key. It can be deleted at the revision of the error, and created again after that.
        """
        ...

    async def list(self, prefix: str, *, limit: int = 0, from_key: str = "", revision: int = 0) -> Page:
        """Return at most `limit` (0: all) keys with `prefix`, in order, starting at `from_key`, as of `revision`
        (0: newest); RevisionCompacted.
        """
        ...

    def watch(self, prefix: str, since: int, wake_signal: WakeSignal | None = None) -> AsyncGenerator[EventBatch, None]:
        """Yield batches of all changes after revision `since` under `prefix`, each exactly once, in order.

        An empty batch is progress, or the response to a wake signal: nothing under `prefix` changed up to its revision.
        RevisionCompacted when `since` is compacted or newer than the newest revision; WatchCanceled when this watcher's
        buffer overflows.
        """
        ...

    async def revision(self) -> int:
        """Return the newest committed revision (0: empty store)."""
        ...

    async def check_writable(self) -> None:
        """Commit a write that changes nothing; StoreUnavailable says why writes fail. A result is reused shortly."""
        ...

    def warnings(self) -> Sequence[str]:
        """Return the conditions that need an administrator, one line each; reads and writes work."""
        ...

    async def compact(self, revision: int) -> None:
        """Discard the history up to and including `revision`; current values stay."""
        ...

    async def close(self) -> None:
        """Commit accepted writes and release the database."""
        ...
