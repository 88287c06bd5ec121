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
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple

from prometheus_client import Counter, Gauge, Histogram
from sqlalchemy import Connection, bindparam, insert, update
from sqlalchemy.exc import DataError

from federation.base.errors import Bug, RevisionCompacted, StoreError, StoreUnavailable
from federation.base.metrics import LATENCY_BUCKETS_S
from federation.store.database import Database
from federation.store.history import read_state, read_tail
from federation.store.interface import Body, Entry, EventType
from federation.store.options import StoreOptions
from federation.store.schema import CODES, log, state
from federation.store.view import View
from federation.store.writes import Change, Operation, Outcome, Record, Write, plan_changes

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
_GUARD = (
    update(state).where(state.c.id == 1, state.c.revision == bindparam("known")).values(revision=bindparam("newest"))
)
_INSERT = insert(log)


class Batch(NamedTuple):
    """What came of one batch: other processes' changes that were found on the way, and each write's outcome."""

    missed: list[Record]
    outcomes: list[Outcome]


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
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_busy = False
        self._idle: asyncio.Future[None] | None = None
        self.is_open = False

    def open(self) -> None:
        """Accept writes, on the running event loop."""
        self._loop = asyncio.get_running_loop()
        self.is_open = True

    async def close(self) -> None:
        """Refuse new writes and return when every accepted one has its answer."""
        self.is_open = False
        while self._is_busy:
            self._idle = asyncio.get_running_loop().create_future()
            await self._idle

    async def write(self, operation: Operation, key: str, body: Body, expected_revision: int) -> Entry:
        """Return the entry once it is durable."""
        loop = self._loop
        if loop is None or not self.is_open:
            raise StoreUnavailable(f"{self._database.dialect.name} is not open")
        if len(self._queue) >= self._options.writes_pending_max:
            raise StoreUnavailable(f"{self._database.dialect.name}: {len(self._queue)} writes are waiting already")
        done: asyncio.Future[Entry] = loop.create_future()
        _pending.inc()
        self._queue.append(Write(operation, key, body, expected_revision, done))
        if not self._is_busy:
            self._is_busy = True
            loop.call_soon(self._start)
        return await done

    def _start(self) -> None:
        batch = self._take()
        if not batch:
            self._rest()
            return
        try:
            future = self._database.submit(self._commit, batch, self._view.cache.revision)
        except StoreError as error:
            self._fail(batch, error)
            self._continue()
            return
        future.add_done_callback(lambda done: self._hand_back(batch, done))

    def _take(self) -> list[Write]:
        batch: list[Write] = []
        size = 0
        queue, options = self._queue, self._options
        while queue and len(batch) < options.writes_per_commit_max and size < options.bytes_per_commit_max:
            write = queue.popleft()
            _pending.dec()
            if not write.done.done():  # the caller may have been cancelled meanwhile
                batch.append(write)
                size += len(write.body.head) + len(write.body.tail)
        return batch

    def _hand_back(self, batch: list[Write], done: Future[Batch]) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._finish, batch, done)

    def _finish(self, batch: list[Write], done: Future[Batch]) -> None:
        error = done.exception()
        if error is None:
            self._acknowledge(batch, done.result())
        else:
            self._fail(batch, error)
            if isinstance(error, RevisionCompacted):
                self._on_fell_behind()
        self._continue()

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

    def _fail(self, batch: Sequence[Write], error: BaseException) -> None:
        if not isinstance(error, StoreUnavailable):
            error = StoreUnavailable(f"{self._database.dialect.name}: the write failed: {error}")
        for write in batch:
            if not write.done.done():
                write.done.set_exception(error)

    def _continue(self) -> None:
        assert self._loop is not None
        # After the callbacks of the acknowledged writes: what they write next joins the next batch.
        self._loop.call_soon(self._start)

    def _rest(self) -> None:
        self._is_busy = False
        if self._idle is not None and not self._idle.done():
            self._idle.set_result(None)

    # From here on: writer thread.

    def _commit(self, batch: list[Write], known: int) -> Batch:
        try:
            return self._commit_together(batch, known)
        except StoreUnavailable as error:
            if not isinstance(error.__cause__, DataError):
                raise
            if len(batch) == 1:
                return Batch([], [StoreError(f"{batch[0].key} cannot be stored: {error}")])
        # One value that the database refuses must not fail its neighbours.
        alone = [self._commit([write], known) for write in batch]
        return Batch(alone[-1].missed, [outcome for result in alone for outcome in result.outcomes])

    def _commit_together(self, batch: list[Write], known: int) -> Batch:
        started = time.perf_counter()
        outcomes = plan_changes(batch, self._view.cache.get, known)
        rows = _rows(outcomes)
        if not rows and not self._database.dialect.is_shared:
            return Batch([], outcomes)
        missed: list[Record] = []
        with self._database.writing() as connection:
            if not _advance(connection, known, known + len(rows)):
                missed, outcomes = self._plan_again(connection, batch, known)
                rows = _rows(outcomes)
            if rows:
                connection.execute(_INSERT, rows)
                self._database.dialect.notify(connection, self._database.origin)
        if rows:
            _commits.inc()
            _writes_per_commit.observe(len(rows))
            _commit_seconds.observe(time.perf_counter() - started)
        return Batch(missed, outcomes)

    def _plan_again(self, connection: Connection, batch: list[Write], known: int) -> tuple[list[Record], list[Outcome]]:
        read_state(connection, is_locking=True)
        missed = read_tail(connection, known, _TAIL_ROWS).records
        latest = known + len(missed)
        overlay = {r.entry.key: None if r.type is EventType.DELETED else r.entry for r in missed}
        lookup = self._view.cache.get
        outcomes = plan_changes(batch, lambda key: overlay[key] if key in overlay else lookup(key), latest)
        changes = sum(isinstance(outcome, Change) for outcome in outcomes)
        if not _advance(connection, latest, latest + changes):
            raise Bug(f"the locked store is not at revision {latest}")
        return missed, outcomes


def _advance(connection: Connection, known: int, revision: int) -> bool:
    result = connection.execute(_GUARD, {"known": known, "newest": revision})
    return result.rowcount == 1


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
