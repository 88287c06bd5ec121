"""The log, read: the state at start, changes that left the memory, other processes' changes.

Each function runs within `Database.read` or `write`, on one snapshot. The compacted revision is read in the same
snapshot as the rows: it is raised before rows are purged, so rows can be missing only when it says so. Read
`schema.py` for the tables.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, Select, and_, func, select

from federation.base.errors import RevisionCompacted
from federation.store.database import Database
from federation.store.interface import Entry, Event, EventType
from federation.store.options import StoreOptions
from federation.store.schema import CODES, TYPES, log, state
from federation.store.writes import Record

_KEYS_PER_QUERY = 500
_replaced = log.alias("replaced")


class Snapshot(NamedTuple):
    """Everything at one revision."""

    entries: list[Entry]
    revision: int
    compacted: int


class Tail(NamedTuple):
    """The changes after some revision, and how far the store is."""

    records: list[Record]
    revision: int
    compacted: int


def read_state(connection: Connection, *, is_locking: bool = False) -> tuple[int, int, int]:
    """Return (revision, compacted, purged); with `is_locking` nobody else can commit until this transaction ends."""
    query = select(state.c.revision, state.c.compacted, state.c.purged).where(state.c.id == 1)
    row = connection.execute(query.with_for_update() if is_locking else query).one()
    return row.revision, row.compacted, row.purged


def read_snapshot(connection: Connection) -> Snapshot:
    """Return every current entry."""
    revision, compacted, _ = read_state(connection)
    newest: dict[str, tuple[int, int]] = {}
    columns = select(log.c.revision, log.c.key, log.c.type, log.c.create_revision).order_by(log.c.revision)
    for change in connection.execute(columns):
        if TYPES[change.type] is EventType.DELETED:
            newest.pop(change.key, None)
        else:
            newest[change.key] = (change.revision, change.create_revision)
    keys = {at: (key, created) for key, (at, created) in newest.items()}
    entries = []
    for chunk in _chunks(sorted(keys)):
        for row in connection.execute(select(log.c.revision, log.c.value).where(log.c.revision.in_(chunk))):
            key, created = keys[row.revision]
            entries.append(Entry(key, row.revision, created, row.value))
    return Snapshot(entries, revision, compacted)


def read_tail(connection: Connection, since: int, limit: int) -> Tail:
    """Return the oldest `limit` changes after `since`; RevisionCompacted when some of them are gone."""
    revision, compacted, _ = read_state(connection)
    if revision == since:
        return Tail([], revision, compacted)
    if since < compacted:
        raise RevisionCompacted(f"revision {since} is compacted; the oldest kept is {compacted}")
    query = select(log).where(log.c.revision > since).order_by(log.c.revision).limit(limit)
    records = [
        Record(TYPES[row.type], Entry(row.key, row.revision, row.create_revision, row.value))
        for row in connection.execute(query)
    ]
    return Tail(records, revision, compacted)


class SQLHistory:
    """`view.History` on the log."""

    def __init__(self, database: Database, options: StoreOptions) -> None:
        self._database = database
        self._limit = options.replay_events_max

    async def events(self, prefix: str, since: int, until: int) -> tuple[list[Event], int]:
        """Return at most `replay_events_max` events of (since, until] and how far they reach."""
        limit = self._limit
        return await self._database.read(lambda connection: _read_events(connection, prefix, since, until, limit))

    async def undo(self, prefix: str, since: int, until: int) -> dict[str, Entry | None]:
        """Return what each key changed in (since, until] was at `since`."""
        return await self._database.read(lambda connection: _read_undo(connection, prefix, since, until))


def _read_events(connection: Connection, prefix: str, since: int, until: int, limit: int) -> tuple[list[Event], int]:
    _check_kept(connection, since)
    query = _with_replaced(log.c.revision, log.c.key, log.c.type, log.c.value, _replaced.c.value.label("previous"))
    found = connection.execute(_within(query, prefix, since, until).order_by(log.c.revision).limit(limit))
    events = [Event(row.revision, row.key, TYPES[row.type], row.value, row.previous) for row in found]
    return events, events[-1].revision if len(events) == limit else until


def _read_undo(connection: Connection, prefix: str, since: int, until: int) -> dict[str, Entry | None]:
    _check_kept(connection, since)
    first = _within(select(func.min(log.c.revision)), prefix, since, until).group_by(log.c.key)
    query = _with_replaced(
        log.c.key, log.c.type, _replaced.c.revision, _replaced.c.create_revision, _replaced.c.value
    ).where(log.c.revision.in_(first))
    return {row.key: _entry_of(row) for row in connection.execute(query)}


def _entry_of(row: Row[Any]) -> Entry | None:
    if row.type == CODES[EventType.CREATED]:
        return None
    return Entry(row.key, row.revision, row.create_revision, row.value)


def _with_replaced(*columns: Any) -> Select[Any]:
    joined = log.outerjoin(_replaced, _replaced.c.revision == log.c.previous_revision)
    return select(*columns).select_from(joined)


def _within(query: Select[Any], prefix: str, since: int, until: int) -> Select[Any]:
    # Not LIKE, whose case and wildcards differ between databases; not a range, whose order depends on the collation.
    is_under = func.substr(log.c.key, 1, len(prefix)) == prefix
    return query.where(and_(log.c.revision > since, log.c.revision <= until, is_under))


def _check_kept(connection: Connection, since: int) -> None:
    _, compacted, _ = read_state(connection)
    if since < compacted:
        raise RevisionCompacted(f"revision {since} is compacted; the oldest kept is {compacted}")


def _chunks(revisions: Iterable[int]) -> Iterator[Sequence[int]]:
    remaining = iter(revisions)
    while chunk := list(islice(remaining, _KEYS_PER_QUERY)):
        yield chunk
