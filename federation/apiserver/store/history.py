"""Queries of the log: the state at start, changes older than the memory, other processes' changes.

Each function runs within `Database.read` or `write`, on one snapshot. The snapshot includes the compacted revision,
which advances before rows are purged, so it shows whether rows may be missing. Every value is compared with its
checksum: a damaged current row becomes an entry without a value; a damaged change counts as compacted, so that clients
list again. Read `schema.py` for the tables.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from sqlalchemy import Connection, Row, Select, and_, bindparam, func, literal_column, select, true, type_coerce
from sqlalchemy.types import NullType

from federation.apimachinery.errors import RevisionCompacted, StoreUnavailable
from federation.apiserver.store.checksums import is_intact, repaired_key
from federation.apiserver.store.database import Database
from federation.apiserver.store.encryption import ValueCipher
from federation.apiserver.store.interface import Entry, Event, EventType
from federation.apiserver.store.options import StoreOptions
from federation.apiserver.store.schema import CODES, TYPES, log, state
from federation.apiserver.store.statements import Statement
from federation.apiserver.store.writes import Record

_KEYS_PER_QUERY = 500
_ROWS_PER_PART = 1_000
_STATE_DAMAGED = "the table store_state of the database is damaged; restore a backup"
_replaced = log.alias("replaced")
# Without conversion, which fails for a damaged row whose value is no longer a BLOB.
_raw_value = type_coerce(log.c.value, NullType()).label("value")
_LOCK = Statement(
    select(state.c.revision, state.c.compacted, state.c.purged)
    .where(state.c.id == literal_column("1"))
    .with_for_update()
)
_newer_rows = (
    select(log)
    .where(log.c.revision > bindparam("since"))
    .order_by(log.c.revision)
    .limit(bindparam("limit"))
    .offset(literal_column("0"))  # SQLite's dialect adds a parameter otherwise
    .subquery("newer")
)
# One statement sees one snapshot, in any isolation level: without newer changes its one row has NULLs instead.
_TAIL = Statement(
    select(state.c.revision.label("newest"), state.c.compacted, state.c.purged, _newer_rows)
    .select_from(state.outerjoin(_newer_rows, true()))
    .where(state.c.id == literal_column("1"))
    .order_by(_newer_rows.c.revision)
)


class Snapshot(NamedTuple):
    """Everything at one revision."""

    entries: list[Entry]
    revision: int
    compacted: int
    damaged: list[Entry]


class Tail(NamedTuple):
    """The changes after some revision, and the newest revision of the store."""

    records: list[Record]
    revision: int
    compacted: int


def read_state(connection: Connection, *, is_locking: bool = False) -> tuple[int, int, int]:
    """Return (revision, compacted, purged); `is_locking` blocks other commits until this transaction ends.

    StoreUnavailable when the row is damaged.
    """
    query = select(state.c.revision, state.c.compacted, state.c.purged).where(state.c.id == 1)
    row = connection.execute(query.with_for_update() if is_locking else query).one_or_none()
    return _checked(row)


def _checked(row: Sequence[Any] | None) -> tuple[int, int, int]:
    if row is None or not all(isinstance(number, int) for number in row[:3]):
        raise StoreUnavailable(_STATE_DAMAGED)
    revision, compacted, purged = row[:3]
    if not 0 <= purged <= compacted <= revision:
        raise StoreUnavailable(_STATE_DAMAGED)
    return revision, compacted, purged


def lock_state(connection: Connection) -> int:
    """Block other commits until this transaction ends, and return the revision of the last one."""
    return _checked(_LOCK.execute(connection, [{}]).one_or_none())[0]


def read_snapshot(connection: Connection, cipher: ValueCipher) -> Snapshot:
    """Return every current entry."""
    revision, compacted, _ = read_state(connection)
    newest = _read_newest(connection)
    if newest and max(at for at, _, _ in newest.values()) > revision:
        raise StoreUnavailable(_STATE_DAMAGED)
    keys = {at: (key, created) for key, (at, created, is_deleted) in newest.items() if not is_deleted}
    entries, damaged, repaired = [], [], []
    for chunk in _chunks(sorted(keys)):
        rows = select(log.c.revision, log.c.checksum, _raw_value).where(log.c.revision.in_(chunk))
        for at, checksum, value in connection.execute(rows).all():
            key, created = keys[at]
            if is_intact(key, value, checksum):
                entries.append(Entry(key, at, created, cipher.decrypt(key, value)))
            elif (whole := repaired_key(key, value, checksum)) is not None:
                repaired.append(Entry(whole, at, created, cipher.decrypt(whole, value)))
            else:
                damaged.append(Entry(str(key), at, created, b""))
    if repaired:
        # The log may have older and newer changes of the same key.
        repaired = [entry for entry in repaired if entry.key not in newest or newest[entry.key][0] < entry.revision]
        replaced = {entry.key for entry in repaired}
        entries = [*(entry for entry in entries if entry.key not in replaced), *repaired]
    return Snapshot(entries, revision, compacted, damaged)


def _read_newest(connection: Connection) -> dict[str, tuple[int, int, bool]]:
    """Return by key the revision of the newest change, the revision of the creation, and whether it is a deletion."""
    deleted = CODES[EventType.DELETED]
    columns = select(log.c.revision, log.c.key, log.c.type, log.c.create_revision).order_by(log.c.revision)
    # Many rows at a time, which takes half as long as one by one.
    parts = connection.execute(columns).partitions(_ROWS_PER_PART)
    return {key: (revision, created, type_ == deleted) for part in parts for revision, key, type_, created in part}


def read_tail(connection: Connection, cipher: ValueCipher, since: int, limit: int) -> Tail:
    """Return the oldest `limit` changes after `since`, by one statement; RevisionCompacted."""
    rows = _TAIL.execute(connection, [{"since": since, "limit": limit}]).all()
    revision, compacted, _ = _checked(rows[0] if rows else None)
    if since < compacted:
        raise RevisionCompacted(f"revision {since} is compacted; the oldest kept is {compacted}")
    records = []
    for row in rows if revision > since else ():
        _check_intact(row.key, row.revision, row.value, row.checksum)
        value = cipher.decrypt(row.key, row.value)
        records.append(Record(TYPES[row.type], Entry(row.key, row.revision, row.create_revision, value)))
    return Tail(records, revision, compacted)


class SQLHistory:
    """`History` (`watchcache.py`) on the log."""

    def __init__(self, database: Database, options: StoreOptions, cipher: ValueCipher) -> None:
        self._database = database
        self._cipher = cipher
        self._limit = options.replay_events_max

    async def events(self, prefix: str, since: int, until: int) -> tuple[list[Event], int]:
        """Return at most `replay_events_max` events after `since`, and the revision up to which they are complete."""
        limit, cipher = self._limit, self._cipher
        return await self._database.read(
            lambda connection: _read_events(connection, cipher, prefix, since, until, limit)
        )

    async def undo(self, prefix: str, since: int, until: int) -> dict[str, Entry | None]:
        """Return the state at `since` of each key that changed in (since, until]."""
        cipher = self._cipher
        return await self._database.read(lambda connection: _read_undo(connection, cipher, prefix, since, until))


def _read_events(
    connection: Connection, cipher: ValueCipher, prefix: str, since: int, until: int, limit: int
) -> tuple[list[Event], int]:
    _check_not_compacted(connection, since)
    query = _with_replaced(
        log.c.revision,
        log.c.key,
        log.c.type,
        log.c.value,
        log.c.checksum,
        _replaced.c.value.label("previous"),
        _replaced.c.checksum.label("previous_checksum"),
    )
    found = connection.execute(_within(query, prefix, since, until).order_by(log.c.revision).limit(limit))
    events = [_event_of(row, cipher) for row in found]
    return events, events[-1].revision if len(events) == limit else until


def _event_of(row: Row[Any], cipher: ValueCipher) -> Event:
    _check_intact(row.key, row.revision, row.value, row.checksum)
    kind, previous = TYPES[row.type], row.previous
    if previous is not None and not is_intact(row.key, previous, row.previous_checksum):
        if kind is not EventType.DELETED:
            raise RevisionCompacted(f"the change before revision {row.revision} is damaged")
        previous = None  # a deleted damaged object, which no list contained
    if previous is not None:
        previous = cipher.decrypt(row.key, previous)
    return Event(row.revision, row.key, kind, cipher.decrypt(row.key, row.value), previous)


def _read_undo(
    connection: Connection, cipher: ValueCipher, prefix: str, since: int, until: int
) -> dict[str, Entry | None]:
    _check_not_compacted(connection, since)
    first = _within(select(func.min(log.c.revision)), prefix, since, until).group_by(log.c.key)
    query = _with_replaced(
        log.c.key,
        log.c.type,
        _replaced.c.revision,
        _replaced.c.create_revision,
        _replaced.c.value,
        _replaced.c.checksum,
    ).where(log.c.revision.in_(first))
    return {row.key: _entry_of(row, cipher) for row in connection.execute(query)}


def _entry_of(row: Row[Any], cipher: ValueCipher) -> Entry | None:
    if row.type == CODES[EventType.CREATED]:
        return None
    _check_intact(row.key, row.revision, row.value, row.checksum)
    return Entry(row.key, row.revision, row.create_revision, cipher.decrypt(row.key, row.value))


def _with_replaced(*columns: Any) -> Select[Any]:
    joined = log.outerjoin(_replaced, _replaced.c.revision == log.c.previous_revision)
    return select(*columns).select_from(joined)


def _within(query: Select[Any], prefix: str, since: int, until: int) -> Select[Any]:
    # Not LIKE, whose case and wildcards differ between databases; not a range, whose order depends on the collation.
    is_under = func.substr(log.c.key, 1, len(prefix)) == prefix
    return query.where(and_(log.c.revision > since, log.c.revision <= until, is_under))


def _check_intact(key: str, revision: int, value: bytes, stored: int | None) -> None:
    if not is_intact(key, value, stored):
        raise RevisionCompacted(f"the change of revision {revision} is damaged")


def _check_not_compacted(connection: Connection, since: int) -> None:
    _, compacted, _ = read_state(connection)
    if since < compacted:
        raise RevisionCompacted(f"revision {since} is compacted; the oldest kept is {compacted}")


def _chunks(revisions: Iterable[int]) -> Iterator[Sequence[int]]:
    remaining = iter(revisions)
    while chunk := list(islice(remaining, _KEYS_PER_QUERY)):
        yield chunk
