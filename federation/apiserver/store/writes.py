"""The effect of a write on a key: check its precondition, insert the revision, describe the change. Pure.

`MemoryStore` and the SQL writer share these rules. Several writes to one key in one batch act as if each had been
committed alone.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from federation.apimachinery.errors import (
    KeyExists,
    KeyNotFound,
    RevisionConflict,
    StoreError,
    ValueDamaged,
    WriteFenced,
)
from federation.apiserver.store.fencing import Fence
from federation.apiserver.store.interface import Body, Entry, Event, EventType

KEY_LENGTH_MAX = 2_048
VALUE_BYTES_MAX = 16 << 20


@dataclass(slots=True, eq=False)
class Write:
    """One waiting write; `kind` is the type of its event, `done` gets its entry or error."""

    kind: EventType
    key: str
    body: Body
    expected_revision: int
    done: asyncio.Future[Entry]
    frees_space: bool = False
    """Whether the space quota allows it: a deletion or a step towards one."""
    fence: Fence | None = None
    """The state that must be stored for the write to happen."""


class Change(NamedTuple):
    """One committed change with the states before and after it; `entry` is the writer's result."""

    event: Event
    entry: Entry
    previous: Entry | None

    @property
    def current(self) -> Entry | None:
        """The key's state after the change, None after a deletion."""
        return None if self.event.type is EventType.DELETED else self.entry


class Record(NamedTuple):
    """One committed change as read from the log, without the state before it."""

    type: EventType
    entry: Entry


Outcome = Change | StoreError


def check_write(key: str, body: Body) -> None:
    """Raise StoreError for a key or value that a database cannot hold.

    Such a write would fail all writes that share its transaction. A key must not be empty, too long, or contain NUL or
    half a surrogate pair; a value must not be too large.
    """
    if not key or len(key) > KEY_LENGTH_MAX or "\0" in key or not _is_encodable(key):
        raise StoreError(
            f"{key[:80]!r} cannot be a key: 1 to {KEY_LENGTH_MAX} characters of UTF-8 without NUL are needed"
        )
    if len(body.head) + len(body.tail) > VALUE_BYTES_MAX:
        raise StoreError(f"{key}: the value is larger than {VALUE_BYTES_MAX} bytes")


def _is_encodable(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def plan_change(
    kind: EventType, key: str, body: Body, expected_revision: int, *, current: Entry | None, revision: int
) -> Outcome:
    """Return the change of a write that is committed as `revision`, or the error of its failed precondition."""
    if kind is EventType.CREATED:
        if current is not None:
            return KeyExists(f"{key} exists")
    elif current is None:
        return KeyNotFound(f"{key} does not exist")
    elif kind is EventType.UPDATED and not current.value:
        return ValueDamaged(key, current.revision)
    elif current.revision != expected_revision:
        return RevisionConflict(f"{key} is at revision {current.revision}, not at {expected_revision}")
    value = b"%b%d%b" % (body.head, revision, body.tail)
    entry = Entry(key, revision, revision if current is None else current.create_revision, value)
    event = Event(revision, key, kind, value, (current.value or None) if current is not None else None)
    return Change(event, entry, current)


def plan_changes(writes: Iterable[Write], lookup: Callable[[str], Entry | None], revision: int) -> list[Outcome]:
    """Return the outcome of each write, in order, starting after `revision`."""
    pending: dict[str, Entry | None] = {}
    outcomes: list[Outcome] = []

    def find(key: str) -> Entry | None:
        return pending[key] if key in pending else lookup(key)

    for write in writes:
        key = write.key
        if write.fence is not None and not _holds(write.fence, find(write.fence.key)):
            outcomes.append(WriteFenced(f"{key}: another process leads since, so that this write is refused"))
            continue
        current = find(key)
        outcome = plan_change(
            write.kind, key, write.body, write.expected_revision, current=current, revision=revision + 1
        )
        if isinstance(outcome, Change):
            revision += 1
            pending[key] = outcome.current
        outcomes.append(outcome)
    return outcomes


def _holds(fence: Fence, entry: Entry | None) -> bool:
    return fence.holds(entry.value if entry is not None else None)
