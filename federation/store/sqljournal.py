"""The journal in the store's database: `SQLJournal(store.database)`.

Decisions are buffered and written a few times a second: a crash may lose the last half second, and a full buffer drops
its oldest. Forgetting is done in small steps, so that no statement keeps the event loop: by records per object after
some new ones, by age through a window of the oldest records that moves on at every look, by count altogether.
`journal.py` says what a journal is.
"""

import asyncio
from collections import Counter as Tally
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta

from prometheus_client import Counter
from sqlalchemy import ColumnElement, Connection, delete, func, insert, select, update

from federation.base.clock import Clock, SystemClock
from federation.store.database import Database
from federation.store.journal import DecisionFilter, DecisionRecord, Identity
from federation.store.options import JournalOptions
from federation.store.schema import decision

_written = Counter("federation_store_decisions_total", "Decisions written to the journal")
_dropped = Counter("federation_store_decisions_dropped_total", "Decisions that a full buffer dropped")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_newer = decision.alias("newer")


class SQLJournal:
    """`Journal` in SQL. `run` writes what `append` and `repeat` have buffered."""

    def __init__(
        self, database: Database, options: JournalOptions | None = None, *, clock: Clock | None = None
    ) -> None:
        self._database = database
        self._options = options or JournalOptions()
        self._clock = clock or SystemClock()
        self._pending: deque[DecisionRecord] = deque()
        self._repeats: dict[tuple[Identity, datetime], tuple[int, datetime]] = {}
        self._since_trimmed: Tally[Identity] = Tally()
        self._aged_to = 0
        self._writing = asyncio.Lock()

    async def append(self, record: DecisionRecord) -> None:
        if len(self._pending) >= self._options.pending_max:
            self._pending.popleft()
            _dropped.inc()
        self._pending.append(record)

    async def repeat(self, identity: Identity, first_at: datetime, at: datetime) -> None:
        known = self._repeats.get((identity, first_at))
        if known is None and len(self._repeats) >= self._options.pending_max:
            _dropped.inc()
            return
        self._repeats[identity, first_at] = (1 if known is None else known[0] + 1, at)

    async def query(self, wanted: DecisionFilter, *, limit: int = 1, below: int | None = None) -> list[DecisionRecord]:
        await self.flush()
        conditions = _to_conditions(wanted)
        if below is not None:
            conditions.append(decision.c.id < below)
        return await self._database.read(lambda connection: _select(connection, conditions, limit))

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
            if self._repeats:
                await self._count_up()

    async def prune(self) -> None:
        """Forget what is older than `age_days_max`, each object's newest excepted, and the oldest beyond `rows_max`."""
        oldest = _to_us(self._clock.now() - timedelta(days=self._options.age_days_max))
        options, start = self._options, self._aged_to

        def forget(connection: Connection) -> int:
            _delete_surplus(connection, options.rows_max)
            return _delete_aged(connection, oldest, start, options.rows_per_prune_max)

        self._aged_to = await self._database.write(forget, is_durable=False)

    async def _write(self, batch: Sequence[DecisionRecord]) -> None:
        try:
            await self._database.write(lambda connection: _insert(connection, batch), is_durable=False)
        except BaseException:
            self._pending.extendleft(reversed(batch))
            raise
        _written.inc(len(batch))
        self._since_trimmed.update(record.identity for record in batch)
        await self._trim_objects()

    async def _count_up(self) -> None:
        repeats, self._repeats = self._repeats, {}
        try:
            await self._database.write(lambda connection: _update(connection, repeats), is_durable=False)
        except BaseException:
            for key, (count, at) in self._repeats.items():
                repeats[key] = (count + repeats.get(key, (0, at))[0], at)
            self._repeats = repeats
            raise

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


def _from_us(at_us: int) -> datetime:
    return _EPOCH + at_us * _MICROSECOND


def _of(identity: Identity) -> ColumnElement[bool]:
    group, kind, namespace, name = identity
    return (
        (decision.c.kind == kind)
        & (decision.c.namespace == namespace)
        & (decision.c.name == name)
        & (decision.c.api_group == group)
    )


def _to_conditions(wanted: DecisionFilter) -> list[ColumnElement[bool]]:
    columns = (
        (decision.c.kind, wanted.kind),
        (decision.c.namespace, wanted.namespace),
        (decision.c.name, wanted.name),
        (decision.c.api_group, wanted.group),
        (decision.c.outcome, wanted.outcome),
    )
    conditions: list[ColumnElement[bool]] = [column == value for column, value in columns if value is not None]
    if wanted.since is not None:
        conditions.append(decision.c.at_us >= _to_us(wanted.since))
    if wanted.until is not None:
        conditions.append(decision.c.at_us <= _to_us(wanted.until))
    return conditions


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


def _update(connection: Connection, repeats: Mapping[tuple[Identity, datetime], tuple[int, datetime]]) -> None:
    for (identity, first_at), (count, at) in repeats.items():
        changed = {"repeats": decision.c.repeats + count, "last_at_us": _to_us(at)}
        connection.execute(update(decision).where(_of(identity), decision.c.at_us == _to_us(first_at)).values(changed))


def _select(connection: Connection, wanted: Sequence[ColumnElement[bool]], limit: int) -> list[DecisionRecord]:
    query = select(decision).where(*wanted).order_by(decision.c.id.desc()).limit(limit)
    return [
        DecisionRecord(
            _from_us(row.at_us),
            row.api_group,
            row.kind,
            row.namespace,
            row.name,
            row.outcome,
            row.duration_ms,
            row.explanation,
            row.repeats,
            None if row.last_at_us is None else _from_us(row.last_at_us),
            row.id,
        )
        for row in connection.execute(query)
    ]


def _delete_surplus(connection: Connection, rows_max: int) -> None:
    count = connection.execute(select(func.count()).select_from(decision)).scalar_one()
    if count > rows_max:
        last = select(decision.c.id).order_by(decision.c.id).offset(count - rows_max - 1).limit(1)
        connection.execute(delete(decision).where(decision.c.id <= last.scalar_subquery()))


def _delete_aged(connection: Connection, oldest_us: int, start: int, rows_max: int) -> int:
    """Look at some records after `start`; return where to go on the next time, 0 for the beginning."""
    aged = select(decision.c.id).where(decision.c.id > start, decision.c.at_us < oldest_us)
    found = list(connection.execute(aged.order_by(decision.c.id).limit(rows_max)).scalars())
    if found:
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
        window = (decision.c.id > start, decision.c.id <= found[-1], decision.c.at_us < oldest_us)
        connection.execute(delete(decision).where(*window, is_superseded))
    return found[-1] if len(found) == rows_max else 0


def _trim(connection: Connection, identities: Sequence[Identity], rows_max: int) -> None:
    for identity in identities:
        oldest_kept = (
            select(decision.c.id).where(_of(identity)).order_by(decision.c.id.desc()).offset(rows_max - 1).limit(1)
        )
        connection.execute(delete(decision).where(_of(identity), decision.c.id < oldest_kept.scalar_subquery()))
