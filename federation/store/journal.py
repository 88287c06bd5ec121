"""The journal of decisions: what was decided for an object, when, with which outcome, and the whole explanation.

`fedctl why` asks it. Decisions are buffered and written a few times a second; they explain, nothing depends on them,
so a crash may lose the last half second, and a full buffer drops its oldest. It forgets by age, by rows per object
and by rows altogether. `SQLJournal` keeps them beside the store, in the same database; `MemoryJournal` forgets with
the process.
"""

import asyncio
from collections import Counter as Tally
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

from prometheus_client import Counter
from sqlalchemy import ColumnElement, Connection, delete, func, insert, select

from federation.base.clock import Clock, SystemClock
from federation.store.database import Database
from federation.store.options import JournalOptions
from federation.store.schema import decision

_written = Counter("federation_store_decisions_total", "Decisions written to the journal")
_dropped = Counter("federation_store_decisions_dropped_total", "Decisions that a full buffer dropped")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """One decision about one object; `explanation` is a JSON object."""

    at: datetime
    group: str
    kind: str
    namespace: str
    name: str
    outcome: str
    duration_ms: float
    explanation: bytes

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """The object that was decided about."""
        return self.group, self.kind, self.namespace, self.name


class Journal(Protocol):
    """Where decisions are told and asked for."""

    async def append(self, record: DecisionRecord) -> None:
        """Take a decision; never waits for a database and never fails."""
        ...

    async def query(
        self,
        *,
        kind: str,
        namespace: str,
        name: str,
        group: str | None = None,
        before: datetime | None = None,
        limit: int = 1,
    ) -> list[DecisionRecord]:
        """Return an object's decisions, newest first; `group` None means any group, `before` is exclusive."""
        ...


class MemoryJournal:
    """`Journal` in memory, bounded by rows per object and altogether."""

    def __init__(self, options: JournalOptions | None = None) -> None:
        self._options = options or JournalOptions()
        self._records: deque[DecisionRecord] = deque(maxlen=self._options.rows_max)

    async def append(self, record: DecisionRecord) -> None:
        self._records.append(record)

    async def query(
        self,
        *,
        kind: str,
        namespace: str,
        name: str,
        group: str | None = None,
        before: datetime | None = None,
        limit: int = 1,
    ) -> list[DecisionRecord]:
        found = [
            record
            for record in self._records
            if (record.kind, record.namespace, record.name) == (kind, namespace, name)
            and (group is None or record.group == group)
        ]
        kept = found[-self._options.rows_per_object_max :]
        newest = [record for record in reversed(kept) if before is None or record.at < before]
        return newest[:limit]


class SQLJournal:
    """`Journal` in the store's database: `SQLJournal(store.database)`. `run` writes what `append` has buffered."""

    def __init__(
        self, database: Database, options: JournalOptions | None = None, *, clock: Clock | None = None
    ) -> None:
        self._database = database
        self._options = options or JournalOptions()
        self._clock = clock or SystemClock()
        self._pending: deque[DecisionRecord] = deque()
        self._since_trimmed: Tally[tuple[str, str, str, str]] = Tally()
        self._writing = asyncio.Lock()

    async def append(self, record: DecisionRecord) -> None:
        if len(self._pending) >= self._options.pending_max:
            self._pending.popleft()
            _dropped.inc()
        self._pending.append(record)

    async def query(
        self,
        *,
        kind: str,
        namespace: str,
        name: str,
        group: str | None = None,
        before: datetime | None = None,
        limit: int = 1,
    ) -> list[DecisionRecord]:
        await self.flush()
        wanted = [decision.c.kind == kind, decision.c.namespace == namespace, decision.c.name == name]
        if group is not None:
            wanted.append(decision.c.api_group == group)
        if before is not None:
            wanted.append(decision.c.at_us < _to_us(before))
        return await self._database.read(lambda connection: _select(connection, wanted, limit))

    async def run(self) -> None:
        """Write buffered decisions every `flush_interval_s` and forget old ones, until cancelled."""
        prune_at_s = self._clock.monotonic()
        try:
            while True:
                await self.flush()
                if self._clock.monotonic() >= prune_at_s:
                    await self.prune()
                    prune_at_s = self._clock.monotonic() + self._options.prune_interval_s
                await self._clock.sleep(self._options.flush_interval_s)
        finally:
            await self.flush()

    async def flush(self) -> None:
        """Write everything that is buffered."""
        async with self._writing:
            while self._pending:
                size = min(len(self._pending), self._options.rows_per_transaction_max)
                await self._write([self._pending.popleft() for _ in range(size)])

    async def prune(self) -> None:
        """Forget what is older than `age_days_max`, and the oldest beyond `rows_max`."""
        oldest = _to_us(self._clock.now() - timedelta(days=self._options.age_days_max))
        rows_max = self._options.rows_max
        await self._database.write(lambda connection: _delete_before(connection, oldest, rows_max), is_durable=False)

    async def _write(self, batch: Sequence[DecisionRecord]) -> None:
        try:
            await self._database.write(lambda connection: _insert(connection, batch), is_durable=False)
        except BaseException:
            self._pending.extendleft(reversed(batch))
            raise
        _written.inc(len(batch))
        self._since_trimmed.update(record.identity for record in batch)
        await self._trim_objects()

    async def _trim_objects(self) -> None:
        # An object is looked at after some new decisions only: the limit is exceeded by at most that many.
        slack = max(1, self._options.rows_per_object_max // 4)
        full = [identity for identity, added in self._since_trimmed.items() if added >= slack]
        if full:
            rows_max = self._options.rows_per_object_max
            await self._database.write(lambda connection: _trim(connection, full, rows_max), is_durable=False)
            for identity in full:
                del self._since_trimmed[identity]


def _to_us(at: datetime) -> int:
    return (at - _EPOCH) // _MICROSECOND


def _insert(connection: Connection, records: Sequence[DecisionRecord]) -> None:
    rows = [
        {
            "at_us": _to_us(record.at),
            "api_group": record.group,
            "kind": record.kind,
            "namespace": record.namespace,
            "name": record.name,
            "outcome": record.outcome,
            "duration_ms": record.duration_ms,
            "explanation": record.explanation,
        }
        for record in records
    ]
    connection.execute(insert(decision), rows)


def _select(connection: Connection, wanted: Sequence[ColumnElement[bool]], limit: int) -> list[DecisionRecord]:
    query = select(decision).where(*wanted).order_by(decision.c.id.desc()).limit(limit)
    return [
        DecisionRecord(
            _EPOCH + row.at_us * _MICROSECOND,
            row.api_group,
            row.kind,
            row.namespace,
            row.name,
            row.outcome,
            row.duration_ms,
            row.explanation,
        )
        for row in connection.execute(query)
    ]


def _delete_before(connection: Connection, oldest_us: int, rows_max: int) -> None:
    connection.execute(delete(decision).where(decision.c.at_us < oldest_us))
    newest = connection.execute(select(func.max(decision.c.id))).scalar()
    if newest is not None:
        # Numbers are given in sequence, so counting back from the newest keeps at most `rows_max` rows.
        connection.execute(delete(decision).where(decision.c.id <= newest - rows_max))


def _trim(connection: Connection, identities: Sequence[tuple[str, str, str, str]], rows_max: int) -> None:
    for group, kind, namespace, name in identities:
        of_object = (
            (decision.c.kind == kind)
            & (decision.c.namespace == namespace)
            & (decision.c.name == name)
            & (decision.c.api_group == group)
        )
        oldest_kept = (
            select(decision.c.id).where(of_object).order_by(decision.c.id.desc()).offset(rows_max - 1).limit(1)
        )
        connection.execute(delete(decision).where(of_object, decision.c.id < oldest_kept.scalar_subquery()))
