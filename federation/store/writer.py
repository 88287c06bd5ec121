"""Group commit: all writes that wait share the next transaction, and are acknowledged when it is durable.

There is no artificial delay: an idle store commits a single write at once, and while one transaction runs the next
batch gathers. The event loop owns queue, cache and futures; `_commit` runs in the writer thread and only reads the
cache.

A batch is planned against the cache and guarded by `UPDATE store_state … WHERE revision = <the cache's>`. If that
matches nothing, another process has committed: under the row lock the writer reads what it missed and plans again, so
that preconditions hold at the moment of the commit, revisions follow commit order, and a rollback leaves no gap.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from prometheus_client import Counter, Gauge, Histogram
from sqlalchemy import ClauseElement, Connection, CursorResult, Dialect, bindparam, insert, literal_column, update
from sqlalchemy.sql.compiler import SQLCompiler

from federation.base.errors import Bug, RevisionCompacted, StoreUnavailable
from federation.base.metrics import LATENCY_BUCKETS_S
from federation.store.database import Database
from federation.store.history import read_state, read_tail
from federation.store.interface import Body, Entry, EventType
from federation.store.options import StoreOptions
from federation.store.schema import CODES, log, state
from federation.store.view import View
from federation.store.writes import Change, Outcome, Record, Write, check_write, plan_changes

_commits = Counter("federation_store_commits_total", "Transactions that changed the store")
_writes_per_commit = Histogram(
    "federation_store_writes_per_commit",
    "Changes that shared one transaction",
    buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256),
)
_commit_seconds = Histogram(
    "federation_store_commit_seconds", "From the start of a transaction until it was durable", buckets=LATENCY_BUCKETS_S
)
_pending = Gauge("federation_store_pending_writes", "Writes that wait for their commit")

_TAIL_ROWS = 1 << 30


class _Statement:
    """One statement in the words of the connection's driver, made once.

    What SQLAlchemy prepares for every single execution was a fifth of the cost of a write.
    """

    def __init__(self, statement: ClauseElement) -> None:
        self._statement = statement
        self._made: dict[str, tuple[str, list[str] | None]] = {}

    def execute(self, connection: Connection, rows: list[dict[str, Any]]) -> CursorResult[Any]:
        """Execute it once for each row of parameters."""
        text, order = self._for(connection.dialect)
        if order is None:
            return connection.exec_driver_sql(text, rows if len(rows) > 1 else rows[0])
        given = [tuple([row[name] for name in order]) for row in rows]
        return connection.exec_driver_sql(text, given if len(given) > 1 else given[0])

    def _for(self, dialect: Dialect) -> tuple[str, list[str] | None]:
        made = self._made.get(dialect.name)
        if made is None:
            compiled = self._statement.compile(dialect=dialect)
            assert isinstance(compiled, SQLCompiler)
            order = compiled.positiontup if compiled.positional else None
            made = self._made[dialect.name] = (str(compiled), order)
        return made


_GUARD = _Statement(
    update(state)
    .where(state.c.id == literal_column("1"), state.c.revision == bindparam("known"))
    .values(revision=bindparam("newest"))
)
_INSERT = _Statement(insert(log))


class Batch(NamedTuple):
    """One batch: other processes' changes that were found on the way, each write's outcome, the rows for the log."""

    missed: list[Record]
    outcomes: list[Outcome]
    rows: list[dict[str, Any]]


class GroupCommit:
    """The queue of writes of one store and the transactions that empty it."""

    def __init__(
        self, database: Database, view: View, options: StoreOptions, on_fell_behind: Callable[[], None]
    ) -> None:
        self._database = database
        self._view = view
        self._options = options
        self._on_fell_behind = on_fell_behind
        self._queue: deque[Write] = deque()
        self._draining: asyncio.Task[None] | None = None
        self._is_open = False

    def open(self) -> None:
        """Accept writes."""
        self._is_open = True

    async def close(self) -> None:
        """Refuse new writes and return when every accepted one has its answer."""
        self._is_open = False
        if self._draining is not None:
            await asyncio.wait([self._draining])

    async def write(self, kind: EventType, key: str, body: Body, expected_revision: int) -> Entry:
        """Return the entry once it is durable."""
        check_write(key, body)
        if not self._is_open:
            raise StoreUnavailable(f"{self._database.name} is not open")
        if len(self._queue) >= self._options.writes_pending_max:
            raise StoreUnavailable(f"{self._database.name}: {len(self._queue)} writes are waiting already")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Entry] = loop.create_future()
        self._queue.append(Write(kind, key, body, expected_revision, done))
        _pending.inc()
        if self._draining is None:
            self._draining = loop.create_task(self._drain(), name="store-writer")
        return await done

    async def _drain(self) -> None:
        try:
            while self._queue:
                await self._commit(self._take())
                # The callers that were just answered run first: what they write next joins the next batch.
                await asyncio.sleep(0)
        finally:
            self._draining = None
            if self._queue:
                # Only when something unforeseen ends this task: nobody may wait for ever.
                self._answer(self._queue, StoreUnavailable(f"{self._database.name}: the writer has failed"))
                _pending.dec(len(self._queue))
                self._queue.clear()

    def _take(self) -> list[Write]:
        batch: list[Write] = []
        size = 0
        queue, options = self._queue, self._options
        waiting = len(queue)
        while queue and len(batch) < options.writes_per_commit_max and size < options.bytes_per_commit_max:
            write = queue.popleft()
            if not write.done.done():  # the caller may have been cancelled meanwhile
                batch.append(write)
                size += len(write.body.head) + len(write.body.tail)
        _pending.dec(waiting - len(queue))
        return batch

    async def _commit(self, batch: list[Write]) -> None:
        error = StoreUnavailable(f"{self._database.name}: the write was interrupted; whether it happened is unknown")
        try:
            self._acknowledge(batch, await self._transact(batch))
        except StoreUnavailable as failure:
            error = failure
        except RevisionCompacted:
            error = StoreUnavailable(f"{self._database.name}: this process fell behind and loads it again")
            self._on_fell_behind()
        finally:
            self._answer(batch, error)

    @staticmethod
    def _answer(writes: Iterable[Write], error: StoreUnavailable) -> None:
        for write in writes:
            if not write.done.done():
                write.done.set_exception(error)

    def _acknowledge(self, batch: list[Write], result: Batch) -> None:
        # The cache first: who is told that the write is done must be able to read it.
        self._view.publish_records(result.missed)
        self._view.publish([outcome for outcome in result.outcomes if isinstance(outcome, Change)])
        for write, outcome in zip(batch, result.outcomes, strict=True):
            if write.done.done():
                continue
            if isinstance(outcome, Change):
                write.done.set_result(outcome.entry)
            else:
                write.done.set_exception(outcome)

    async def _transact(self, batch: list[Write]) -> Batch:
        known = self._view.cache.revision
        outcomes = plan_changes(batch, self._view.cache.get, known)
        planned = Batch([], outcomes, _rows(outcomes))
        if not planned.rows and not self._database.is_shared:
            return planned
        started = time.perf_counter()
        result = await self._database.write(lambda connection: self._write(connection, batch, planned, known))
        if result.rows:
            _commits.inc()
            _writes_per_commit.observe(len(result.rows))
            _commit_seconds.observe(time.perf_counter() - started)
        return result

    def _write(self, connection: Connection, batch: list[Write], planned: Batch, known: int) -> Batch:
        if not _advance(connection, known, known + len(planned.rows)):
            planned = self._plan_again(connection, batch, known)
        if planned.rows:
            _INSERT.execute(connection, planned.rows)
            self._database.notify(connection)
        return planned

    def _plan_again(self, connection: Connection, batch: list[Write], known: int) -> Batch:
        read_state(connection, is_locking=True)
        missed = read_tail(connection, known, _TAIL_ROWS).records
        latest = known + len(missed)
        overlay = {r.entry.key: None if r.type is EventType.DELETED else r.entry for r in missed}
        lookup = self._view.cache.get
        outcomes = plan_changes(batch, lambda key: overlay[key] if key in overlay else lookup(key), latest)
        rows = _rows(outcomes)
        if not _advance(connection, latest, latest + len(rows)):
            raise Bug(f"the locked store is not at revision {latest}")
        return Batch(missed, outcomes, rows)


def _advance(connection: Connection, known: int, revision: int) -> bool:
    return _GUARD.execute(connection, [{"known": known, "newest": revision}]).rowcount == 1


def _rows(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    return [
        {
            "revision": outcome.entry.revision,
            "key": outcome.entry.key,
            "type": CODES[outcome.event.type],
            "create_revision": outcome.entry.create_revision,
            "previous_revision": outcome.previous.revision if outcome.previous is not None else None,
            "value": outcome.entry.value,
        }
        for outcome in outcomes
        if isinstance(outcome, Change)
    ]
