"""The store: revisioned byte values under sorted keys, and a watch of every change in commit order (D2, D3, D9).

It knows nothing of Kubernetes. `SQLStore` (SQLite, PostgreSQL) and `MemoryStore` implement it and pass the same
conformance suite (tests/conformance/store). Read `registry/` next for what the values mean.

A value is written once as `Body(head, tail)`; the stored bytes are `head + str(revision) + tail`, so that an object
can carry its own resourceVersion without being serialised again after the commit that decides it.
"""

from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol


class Body(NamedTuple):
    """A value to write: the bytes before and after the place where the revision's decimal digits go."""

    head: bytes
    tail: bytes


@dataclass(frozen=True, slots=True)
class Entry:
    """One key at one revision. `create_revision` is the revision at which this life of the key began."""

    key: str
    revision: int
    create_revision: int
    value: bytes


class EventType(StrEnum):
    """What happened to a key."""

    CREATED = "CREATED"
    UPDATED = "UPDATED"
    DELETED = "DELETED"


@dataclass(frozen=True, slots=True)
class Event:
    """One committed change.

    `value` of a DELETED event is the last state as the deleter wrote it; `previous` is the value that the change
    replaced (None for CREATED).
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

    `revision` is how far this watch has got: every change up to it has been yielded by this batch or an earlier one, so
    a watch that is resumed there misses nothing. That is the number for a bookmark (`Store.revision()` may already be
    ahead of what this watcher has seen).
    """

    __slots__ = ("revision",)

    def __init__(self, events: Iterable[Event] = (), revision: int = 0) -> None:
        super().__init__(events)
        self.revision = revision


class Nudge:
    """Makes a watch yield now, an empty batch when nothing has changed: for who waits for changes and for time at once.

    Calling it (with whatever a callback is given) is cheap; waiting for both with tasks would cost more than the event.
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
        """Serve until cancelled: the writer, the tail of other processes' writes, compaction by age and count."""
        ...

    async def ready(self) -> None:
        """Return once reads and writes are served; StoreUnavailable when the database cannot be opened."""
        ...

    async def create(self, key: str, body: Body) -> Entry:
        """Write a new key; KeyExists when it is there."""
        ...

    async def update(self, key: str, body: Body, expected_revision: int) -> Entry:
        """Replace the key's value when it still is at `expected_revision`; KeyNotFound, RevisionConflict."""
        ...

    async def delete(self, key: str, body: Body, expected_revision: int) -> Entry:
        """Remove the key when it still is at `expected_revision`; `body` becomes the value of the DELETED event."""
        ...

    async def get(self, key: str) -> Entry | None:
        """Return the newest committed state of the key."""
        ...

    async def list(self, prefix: str, *, limit: int = 0, from_key: str = "", revision: int = 0) -> Page:
        """Return the keys with `prefix` in order, from `from_key` on, at most `limit` (0: all), as of `revision`
        (0: newest); RevisionCompacted when that revision is not kept any more.
        """
        ...

    def watch(self, prefix: str, since: int, nudge: Nudge | None = None) -> AsyncIterator[EventBatch]:
        """Yield batches of all changes after revision `since` under `prefix`, each exactly once, in order.

        An empty batch is progress, or the answer to a nudge: nothing under `prefix` changed up to its `revision`.
        RevisionCompacted when `since` is older than what is kept or newer than the newest; StoreError when this watcher
        is too slow and its buffer overflows.
        """
        ...

    async def revision(self) -> int:
        """Return the newest committed revision (0: nothing was ever written)."""
        ...

    async def compact(self, revision: int) -> None:
        """Forget history up to and including `revision`; current values stay."""
        ...

    async def close(self) -> None:
        """Finish what was accepted and release the database."""
        ...
