"""What a write does to a key: preconditions checked, revision spliced in, the change described.

Pure: the current state comes in through a lookup, revisions as numbers; the same rules serve `MemoryStore` and the SQL
writer, which therefore cannot differ. Several writes to one key in one batch act as if each had been committed alone.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from federation.base.errors import KeyExists, KeyNotFound, RevisionConflict, StoreError
from federation.store.interface import Body, Entry, Event, EventType

KEY_LENGTH_MAX = 2_048
VALUE_BYTES_MAX = 16 << 20


@dataclass(slots=True, eq=False)
class Write:
    """One write that waits for its commit; `kind` is the event that it becomes, `done` gets its entry or its error."""

    kind: EventType
    key: str
    body: Body
    expected_revision: int
    done: asyncio.Future[Entry]


class Change(NamedTuple):
    """One committed change with the states before and after it; `entry` is what the writer gets back."""

    event: Event
    entry: Entry
    previous: Entry | None

    @property
    def current(self) -> Entry | None:
        """The key's state after the change: None when it is gone."""
        return None if self.event.type is EventType.DELETED else self.entry


class Record(NamedTuple):
    """One committed change as the log tells it: without the state before it."""

    type: EventType
    entry: Entry


Outcome = Change | StoreError


def check_write(key: str, body: Body) -> None:
    """Raise StoreError for what a database could not hold, before it fails the writes that share its transaction.

    A key is empty, too long, or has a NUL or half a surrogate pair; or the value is too large.
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
    """Return what the write changes when it is committed as `revision`, or the error that its precondition gives."""
    if kind is EventType.CREATED:
        if current is not None:
            return KeyExists(f"{key} exists")
    elif current is None:
        return KeyNotFound(f"{key} does not exist")
    elif current.revision != expected_revision:
        return RevisionConflict(f"{key} is at revision {current.revision}, not at {expected_revision}")
    value = b"%b%d%b" % (body.head, revision, body.tail)
    entry = Entry(key, revision, revision if current is None else current.create_revision, value)
    event = Event(revision, key, kind, value, None if current is None else current.value)
    return Change(event, entry, current)


def plan_changes(writes: Iterable[Write], lookup: Callable[[str], Entry | None], revision: int) -> list[Outcome]:
    """Return each write's outcome, in order, when the newest revision before them is `revision`."""
    pending: dict[str, Entry | None] = {}
    outcomes: list[Outcome] = []
    for write in writes:
        key = write.key
        current = pending[key] if key in pending else lookup(key)
        outcome = plan_change(
            write.kind, key, write.body, write.expected_revision, current=current, revision=revision + 1
        )
        if isinstance(outcome, Change):
            revision += 1
            pending[key] = outcome.current
        outcomes.append(outcome)
    return outcomes
