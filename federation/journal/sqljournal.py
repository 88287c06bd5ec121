"""The decision journal in the store's database: `SQLJournal(store.database)`.

Decisions are buffered and written a few times a second: a crash may lose the last half second, and a full buffer drops
its oldest decisions. Pruning proceeds in small steps, so that no statement blocks for long: by records per object after
some new ones, by total, and by age through a window that advances at every check. `decisions.py` defines a journal.

Explanations are large, and SQLite keeps them beside the other columns. Queries and checks therefore read the index
`ix_decision_filters`, which has every column that they compare, and fetch only the rows that they return. That index is
in the order of the answers, so a query stops as soon as it has enough.
"""

import asyncio
from collections import Counter as Tally
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from prometheus_client import Counter
from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    Connection,
    Float,
    Index,
    Integer,
    LargeBinary,
    Row,
    Select,
    Table,
    Text,
    delete,
    func,
    insert,
    or_,
    select,
    tuple_,
    update,
)
from sqlalchemy import Identity as IdentityColumn

from federation.apimachinery.clock import Clock, SystemClock
from federation.apiserver.store.database import Database
from federation.apiserver.store.encryption import ValueCipher
from federation.apiserver.store.reencryption import EncryptedColumn, reencrypt
from federation.apiserver.store.schema import RowNumber, metadata
from federation.journal.decisions import (
    ENCRYPTION_PREFIX,
    DecisionFilter,
    DecisionRecord,
    Identity,
    JournalOptions,
)
from federation.journal.inputlog import SQLInputLog
from federation.scheduling.replay.logentries import Chunk, compress
from federation.scheduling.replay.recorder import Draft, InputRecorder

_written = Counter("federation_store_decisions_total", "Decisions written to the journal")
_dropped = Counter("federation_store_decisions_dropped_total", "Decisions that a full buffer dropped")

_BYTES_UNKNOWN = 4_096
"""Assumed size of an explanation that an earlier version wrote."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

decision = Table(
    "decision",
    metadata,
    Column("id", RowNumber, IdentityColumn(always=False), primary_key=True),
    Column("at_us", BigInteger, nullable=False),
    Column("api_group", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("namespace", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("duration_ms", Float, nullable=False),
    Column("explanation", LargeBinary, nullable=False),
    Column("repeats", Integer, nullable=False, server_default="0"),
    Column("last_at_us", BigInteger, nullable=True),
    # NULL in rows of versions before schema 5.
    Column("explanation_bytes", Integer, nullable=True),
    # The name first: without it, a query reads the other index.
    Index(None, "name", "namespace", "kind", "id"),
    Index(
        "ix_decision_filters", "id", "api_group", "kind", "namespace", "name", "outcome", "at_us", "explanation_bytes"
    ),
)
_newer = decision.alias("newer")
_number = decision.c.id + 0
"""The id in comparisons. With the column itself, SQLite would read the table in the order of its row numbers."""


class SQLJournal:
    """`Journal` in SQL. `run` writes the buffered decisions and repeats."""

    def __init__(
        self,
        database: Database,
        options: JournalOptions | None = None,
        *,
        clock: Clock | None = None,
        cipher: ValueCipher | None = None,
    ) -> None:
        self._database = database
        self._cipher = cipher or ValueCipher()
        self._options = options or JournalOptions()
        self._clock = clock or SystemClock()
        self._pending: deque[DecisionRecord] = deque()
        self._repeats: dict[tuple[Identity, datetime], tuple[int, datetime]] = {}
        self._added_since_prune: Tally[Identity] = Tally()
        self._age_cursor = 0
        self._flush_lock = asyncio.Lock()
        self.inputs = InputRecorder(is_on=self._options.inputs_bytes_max > 0)
        self._input_log = SQLInputLog(database, self._cipher)
        self._draft: Draft | None = None
        self._chunk: Chunk | None = None
        """Both taken from the recorder and not written yet."""
        self._inputs_due_s = 0.0

    async def append(self, record: DecisionRecord) -> None:
        if len(self._pending) >= self._options.pending_max:
            self._pending.popleft()
            _dropped.inc()
        self._pending.append(record)

    async def record_repeat(self, identity: Identity, first_at: datetime, at: datetime) -> None:
        known = self._repeats.get((identity, first_at))
        if known is None and len(self._repeats) >= self._options.pending_max:
            _dropped.inc()
            return
        self._repeats[identity, first_at] = (1 if known is None else known[0] + 1, at)

    async def query(
        self, selection: DecisionFilter, *, limit: int = 1, below: int | None = None
    ) -> list[DecisionRecord]:
        # A reader sees every decision that was recorded before its query.
        await self.flush()
        conditions = _to_conditions(selection)
        if below is not None:
            conditions.append(_number < below)
        found = select(decision.c.id).where(*conditions).order_by(decision.c.id.desc()).limit(limit)
        return await self._database.read(lambda connection: _fetch(connection, self._cipher, found))

    async def read_inputs(self, since_us: int, after: tuple[int, int], bytes_max: int) -> list[Chunk]:
        if after == (0, 0):
            self._inputs_due_s = 0.0
            await self.flush()
        return await self._input_log.read(since_us, after, bytes_max)

    async def run(self) -> None:
        """Write buffered decisions every `flush_interval_s` and prune old ones, until cancelled."""
        prune_at_s = self._clock.monotonic()
        try:
            while True:
                await self.flush()
                while self.inputs.is_behind:  # one decision at a time, between other work
                    self.inputs.encode()
                    await asyncio.sleep(0)
                if self._clock.monotonic() >= prune_at_s:
                    await self.prune()
                    prune_at_s = self._clock.monotonic() + self._options.prune_interval_s
                await self._clock.sleep(self._options.flush_interval_s)
        finally:
            self._inputs_due_s = 0.0
            await self.flush()

    async def reencrypt(self) -> None:
        """Encrypt the stored explanations with the first key, after a rotation, and return."""
        column = EncryptedColumn(decision, decision.c.id, decision.c.explanation, _name_of)
        await reencrypt(self._database, self._cipher, column, self._clock)
        await reencrypt(self._database, self._cipher, self._input_log.encrypted_column(), self._clock)

    async def flush(self) -> None:
        """Write all buffered decisions and repeats; on a full disk they stay in the buffer."""
        if self._database.is_full:
            return
        async with self._flush_lock:
            while self._pending:
                size = min(len(self._pending), self._options.rows_per_transaction_max)
                await self._write([self._pending.popleft() for _ in range(size)])
            if self._repeats:
                await self._write_repeats()
            if self._clock.monotonic() >= self._inputs_due_s:
                self._inputs_due_s = self._clock.monotonic() + self._options.inputs_interval_s
                await self._write_inputs()

    async def prune(self) -> None:
        """Delete the oldest beyond `rows_max` and `bytes_max`, and aged decisions except each object's newest."""
        options, cursor = self._options, self._age_cursor
        excess = await self._database.read(lambda connection: _beyond(connection, options.rows_max, options.bytes_max))
        await self._delete(excess)
        oldest = _to_us(self._clock.now() - timedelta(days=options.age_days_max))
        await self._input_log.prune(oldest, options.inputs_bytes_max)
        aged, self._age_cursor = await self._database.read(
            lambda connection: _aged(connection, oldest, cursor, options.rows_per_prune_max)
        )
        await self._delete(aged)

    async def _delete(self, numbers: Sequence[int]) -> None:
        # In the writer's transactions, which run on the event loop with SQLite: a few rows at a time.
        size = self._options.rows_per_transaction_max
        for start in range(0, len(numbers), size):
            await self._database.write(
                partial(_remove, numbers=numbers[start : start + size]), is_durable=False, frees_space=True
            )
            await asyncio.sleep(0)

    async def _write(self, batch: Sequence[DecisionRecord]) -> None:
        try:
            await self._database.write(lambda connection: _insert(connection, self._cipher, batch), is_durable=False)
        except BaseException:
            # Put the batch back in order: a failed or cancelled write loses nothing.
            self._pending.extendleft(reversed(batch))
            raise
        _written.inc(len(batch))
        self._added_since_prune.update(record.identity for record in batch)
        await self._prune_objects({record.identity for record in batch})

    async def _write_inputs(self) -> None:
        # Draft and chunk are kept until the chunk is written: a failed or cancelled write loses nothing.
        while True:
            if self._chunk is None:
                self._draft = self._draft or self.inputs.draft()
                if self._draft is None:
                    return
                content = await asyncio.to_thread(compress, self._draft.lines)  # zlib lets other threads run
                self._chunk, self._draft = self.inputs.packed(self._draft, content), None
            await self._input_log.append(self._chunk)
            self._chunk = None

    async def _write_repeats(self) -> None:
        repeats, self._repeats = self._repeats, {}
        try:
            await self._database.write(lambda connection: _update_repeats(connection, repeats), is_durable=False)
        except BaseException:
            # Merge with the repeats that arrived during the write.
            for key, (count, at) in self._repeats.items():
                repeats[key] = (count + repeats.get(key, (0, at))[0], at)
            self._repeats = repeats
            raise

    async def _prune_objects(self, changed: Iterable[Identity]) -> None:
        # One DELETE per object and flush would cost more than the write. An object is pruned after `slack` new
        # decisions, and exceeds its limit by at most that many.
        slack = max(1, self._options.rows_per_object_max // 4)
        full = [identity for identity in changed if self._added_since_prune[identity] >= slack]
        if full:
            rows_max = self._options.rows_per_object_max
            await self._database.write(
                lambda connection: _prune_by_object(connection, full, rows_max), is_durable=False, frees_space=True
            )
            for identity in full:
                del self._added_since_prune[identity]
        # Counts are kept for no more objects than the journal can have. One that is lost delays a check of its object.
        if len(self._added_since_prune) > self._options.rows_max:
            self._added_since_prune.clear()


def _name_of(row: Row[Any]) -> str:
    return _to_name(row.api_group, row.kind, row.namespace, row.name, row.at_us)


def _to_name(group: str, kind: str, namespace: str, name: str, at_us: int) -> str:
    """Return the name under which an explanation is encrypted: its object and time."""
    return f"{ENCRYPTION_PREFIX}{group}/{kind}/{namespace}/{name}/{at_us}"


def _to_us(at: datetime) -> int:
    return (at - _EPOCH) // _MICROSECOND


def _from_us(at_us: int) -> datetime:
    return _EPOCH + at_us * _MICROSECOND


def _is_of(identity: Identity) -> ColumnElement[bool]:
    group, kind, namespace, name = identity
    return (
        (decision.c.kind == kind)
        & (decision.c.namespace == namespace)
        & (decision.c.name == name)
        & (decision.c.api_group == group)
    )


def _to_conditions(selection: DecisionFilter) -> list[ColumnElement[bool]]:
    columns = (
        (decision.c.kind, selection.kind),
        (decision.c.namespace, selection.namespace),
        (decision.c.name, selection.name),
        (decision.c.api_group, selection.group),
        (decision.c.outcome, selection.outcome),
    )
    conditions: list[ColumnElement[bool]] = [column == value for column, value in columns if value is not None]
    if selection.kinds is not None:
        named = tuple_(decision.c.api_group, decision.c.kind)
        everywhere = sorted((group, kind) for group, kind, namespace in selection.kinds if not namespace)
        there = sorted(each for each in selection.kinds if each[2])
        conditions.append(or_(named.in_(everywhere), tuple_(*named.clauses, decision.c.namespace).in_(there)))
    if selection.since is not None:
        conditions.append(decision.c.at_us >= _to_us(selection.since))
    if selection.until is not None:
        conditions.append(decision.c.at_us <= _to_us(selection.until))
    return conditions


def _insert(connection: Connection, cipher: ValueCipher, records: Sequence[DecisionRecord]) -> None:
    rows = []
    for record in records:
        explanation = cipher.encrypt(_to_name(*record.identity, _to_us(record.at)), record.explanation)
        row = {
            "at_us": _to_us(record.at),
            "api_group": record.group,
            "kind": record.kind,
            "namespace": record.namespace,
            "name": record.name,
            "outcome": record.outcome,
            "duration_ms": record.duration_ms,
            "explanation": explanation,
            "explanation_bytes": len(explanation),
        }
        rows.append(row)
    connection.execute(insert(decision), rows)


def _update_repeats(connection: Connection, repeats: Mapping[tuple[Identity, datetime], tuple[int, datetime]]) -> None:
    for (identity, first_at), (count, at) in repeats.items():
        changed = {"repeats": decision.c.repeats + count, "last_at_us": _to_us(at)}
        connection.execute(
            update(decision).where(_is_of(identity), decision.c.at_us == _to_us(first_at)).values(changed)
        )


def _fetch(connection: Connection, cipher: ValueCipher, found: Select[tuple[int]]) -> list[DecisionRecord]:
    """Return the records of the ids that the query finds, newest first."""
    query = select(decision).where(decision.c.id.in_(found.scalar_subquery())).order_by(decision.c.id.desc())
    return [
        DecisionRecord(
            _from_us(row.at_us),
            row.api_group,
            row.kind,
            row.namespace,
            row.name,
            row.outcome,
            row.duration_ms,
            cipher.decrypt(_name_of(row), row.explanation),
            row.repeats,
            None if row.last_at_us is None else _from_us(row.last_at_us),
            row.id,
        )
        for row in connection.execute(query)
    ]


def _beyond(connection: Connection, rows_max: int, bytes_max: int) -> list[int]:
    """Return the ids of the oldest records, without which the journal keeps its limits."""
    size = func.coalesce(decision.c.explanation_bytes, _BYTES_UNKNOWN)
    rows, total = connection.execute(select(func.count(), func.coalesce(func.sum(size), 0))).one()
    found: list[int] = []
    if rows > rows_max or total > bytes_max:
        oldest = connection.execute(select(decision.c.id, size).order_by(decision.c.id))
        for number, length in oldest:
            if rows <= rows_max and total <= bytes_max:
                break
            found.append(number)
            rows, total = rows - 1, total - length
        oldest.close()
    return found


def _aged(connection: Connection, oldest_us: int, cursor: int, rows_max: int) -> tuple[list[int], int]:
    """Examine up to `rows_max` aged records after `cursor`.

    Return the ids of those that a newer record of the same object supersedes, and the next cursor, 0 to start over.
    """
    aged = select(decision.c.id).where(_number > cursor, decision.c.at_us < oldest_us)
    examined = list(connection.execute(aged.order_by(decision.c.id).limit(rows_max)).scalars())
    if not examined:
        return [], 0
    # The newest record of an object stays, whatever its age.
    is_superseded = (
        select(_newer.c.id)
        .where(
            _newer.c.kind == decision.c.kind,
            _newer.c.namespace == decision.c.namespace,
            _newer.c.name == decision.c.name,
            _newer.c.api_group == decision.c.api_group,
            _newer.c.id > decision.c.id,
        )
        .exists()
    )
    superseded = list(connection.execute(aged.where(_number <= examined[-1], is_superseded)).scalars())
    return superseded, examined[-1] if len(examined) == rows_max else 0


def _remove(connection: Connection, numbers: Sequence[int]) -> None:
    connection.execute(delete(decision).where(decision.c.id.in_(numbers)))


def _prune_by_object(connection: Connection, identities: Sequence[Identity], rows_max: int) -> None:
    for identity in identities:
        oldest_kept = (
            select(decision.c.id).where(_is_of(identity)).order_by(decision.c.id.desc()).offset(rows_max - 1).limit(1)
        )
        connection.execute(delete(decision).where(_is_of(identity), decision.c.id < oldest_kept.scalar_subquery()))
