"""Group commit: all waiting writes share the next transaction and are acknowledged when it is durable.

There is no artificial delay: an idle store commits a single write at once, and the next batch gathers while a
transaction runs.

A batch is planned against the cache and guarded by `UPDATE store_state … WHERE revision = <the cache's>`. In a shared
database the writer locks that row first. If its revision is not the cache's, another process has committed: under the
lock the writer reads the missed changes and plans again. So preconditions hold at the moment of the commit, revisions
follow commit order, and a rollback leaves no gap.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple
from weakref import WeakSet

from prometheus_client import Counter, Gauge, Histogram
from sqlalchemy import Connection, bindparam, delete, insert, literal_column, select, update

from federation.apimachinery.errors import Bug, RevisionCompacted, StoreError, StoreUnavailable
from federation.apimachinery.metrics import LATENCY_BUCKETS_S
from federation.apiserver.store.checksums import checksum
from federation.apiserver.store.database import Database
from federation.apiserver.store.encryption import ValueCipher
from federation.apiserver.store.fencing import current_fence
from federation.apiserver.store.history import lock_state, read_tail
from federation.apiserver.store.interface import Body, Entry, EventType
from federation.apiserver.store.options import StoreOptions
from federation.apiserver.store.quota import SpaceQuota
from federation.apiserver.store.schema import CODES, log, state
from federation.apiserver.store.statements import Statement
from federation.apiserver.store.watchcache import WatchCache
from federation.apiserver.store.writes import Change, Outcome, Record, Write, check_write, plan_changes

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
_writers: "WeakSet[GroupCommit]" = WeakSet()
# Counted when it is scraped, so that writes pay nothing for it.
_pending.set_function(lambda: sum(writer.pending for writer in _writers))

_TAIL_ROWS = 1 << 30
# While space is short, a batch is small: it needs room in the database's log for what it adds and removes.
_BYTES_MAX_SHORT = 1 << 20


_GUARD = Statement(
    update(state)
    .where(state.c.id == literal_column("1"), state.c.revision == bindparam("known"))
    .values(revision=bindparam("newest"))
)
_INSERT = Statement(insert(log))


class Batch(NamedTuple):
    """One planned batch: missed changes of other processes, the outcome of each write, the rows for the log."""

    missed: list[Record]
    outcomes: list[Outcome]
    rows: list[dict[str, Any]]


class GroupCommit:
    """The queue of writes of one store and the transactions that empty it."""

    def __init__(
        self,
        database: Database,
        watch_cache: WatchCache,
        options: StoreOptions,
        cipher: ValueCipher,
        on_missed_changes: Callable[[], None],
        quota: SpaceQuota,
    ) -> None:
        self._quota = quota
        self._database = database
        self._cipher = cipher
        self._watch_cache = watch_cache
        self._options = options
        self._on_missed_changes = on_missed_changes
        self._queue: deque[Write] = deque()
        self._draining: asyncio.Task[None] | None = None
        self._is_open = False
        self._writes_max_short = options.writes_per_commit_max
        _writers.add(self)

    @property
    def pending(self) -> int:
        """Writes that wait for their commit."""
        return len(self._queue)

    def open(self) -> None:
        """Accept writes."""
        self._is_open = True

    async def close(self) -> None:
        """Refuse new writes and return when every accepted one is acknowledged."""
        self._is_open = False
        if self._draining is not None:
            await asyncio.wait([self._draining])

    async def write(
        self, kind: EventType, key: str, body: Body, expected_revision: int, *, frees_space: bool = False
    ) -> Entry:
        """Return the entry once it is durable."""
        check_write(key, body)
        if not self._is_open:
            raise StoreUnavailable(f"{self._database.name} is not open")
        if len(self._queue) >= self._options.writes_pending_max:
            raise StoreUnavailable(f"{self._database.name}: {len(self._queue)} writes are waiting already")
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Entry] = loop.create_future()
        self._queue.append(Write(kind, key, body, expected_revision, done, frees_space, current_fence.get()))
        if self._draining is None:
            self._draining = loop.create_task(self._drain(), name="store-writer")
        return await done

    async def _drain(self) -> None:
        try:
            while self._queue:
                if batch := self._take():
                    await self._commit(batch)
                # Let the acknowledged callers run, so that their next writes join the next batch.
                await asyncio.sleep(0)
        finally:
            self._draining = None
            if self._queue:
                # An unexpected error ends this task: no caller may wait for ever.
                self._answer(self._queue, StoreUnavailable(f"{self._database.name}: the writer has failed"))
                self._queue.clear()

    def _take(self) -> list[Write]:
        batch: list[Write] = []
        size = 0
        queue, options = self._queue, self._options
        is_full = self._quota.check()
        writes_max, bytes_max = options.writes_per_commit_max, options.bytes_per_commit_max
        if is_full:
            writes_max, bytes_max = min(writes_max, self._writes_max_short), min(bytes_max, _BYTES_MAX_SHORT)
        else:
            self._writes_max_short = writes_max
        while queue and len(batch) < writes_max and size < bytes_max:
            write = queue.popleft()
            if write.done.done():  # the caller may have been cancelled meanwhile
                continue
            if is_full and not write.frees_space and not self._fails_anyway(write):
                write.done.set_exception(self._quota.refusal())
            else:
                batch.append(write)
                size += len(write.body.head) + len(write.body.tail)
                if is_full and (replaced := self._watch_cache.cache.current(write.key)) is not None:
                    size += len(replaced.value)
        return batch

    def _fails_anyway(self, write: Write) -> bool:
        """Return whether the key to create exists: KeyExists explains more than StoreFull."""
        return write.kind is EventType.CREATED and self._watch_cache.cache.current(write.key) is not None

    async def _commit(self, batch: list[Write]) -> None:
        error: StoreError = StoreUnavailable(
            f"{self._database.name}: the write was interrupted; whether it happened is unknown"
        )
        was_full = self._database.is_full
        try:
            try:
                result = await self._transact(batch)
            except StoreUnavailable:
                if not self._database.is_full or not (batch := self._smaller(batch, was_full=was_full)):
                    raise
                # They come first in the next batches, which take less space each.
                self._queue.extendleft(reversed(batch))
                batch = []
                return
            self._acknowledge(batch, result)
        except StoreUnavailable as failure:
            error = failure
        except RevisionCompacted:
            error = StoreUnavailable(f"{self._database.name}: this process fell behind and loads it again")
            self._on_missed_changes()
        finally:
            self._answer(batch, error)

    def _smaller(self, batch: list[Write], *, was_full: bool) -> list[Write]:
        """Refuse the writes of a failed batch that need space; return those that may succeed in other batches."""
        freeing = [write for write in batch if write.frees_space]
        self._answer([write for write in batch if not write.frees_space], self._quota.refusal())
        if not was_full or len(freeing) < len(batch):
            return freeing
        self._writes_max_short = max(1, len(batch) // 2)
        return freeing if len(batch) > 1 else []

    @staticmethod
    def _answer(writes: Iterable[Write], error: StoreError) -> None:
        for write in writes:
            if not write.done.done():
                write.done.set_exception(error)

    def _acknowledge(self, batch: list[Write], result: Batch) -> None:
        # The cache first: a caller must be able to read its own acknowledged write.
        self._watch_cache.publish_records(result.missed)
        self._watch_cache.publish([outcome for outcome in result.outcomes if isinstance(outcome, Change)])
        for write, outcome in zip(batch, result.outcomes, strict=True):
            if write.done.done():
                continue
            if isinstance(outcome, Change):
                write.done.set_result(outcome.entry)
            else:
                write.done.set_exception(outcome)

    async def _transact(self, batch: list[Write]) -> Batch:
        known = self._watch_cache.cache.revision
        outcomes = plan_changes(batch, self._watch_cache.cache.current, known)
        planned = Batch([], outcomes, _rows(outcomes, self._cipher))
        if not planned.rows and not self._database.is_shared:
            return planned
        started = time.perf_counter()
        frees_space = all(write.frees_space for write in batch)
        result = await self._database.write(
            lambda connection: self._write(connection, batch, planned, known), frees_space=frees_space
        )
        if result.rows:
            _commits.inc()
            _writes_per_commit.observe(len(result.rows))
            _commit_seconds.observe(time.perf_counter() - started)
        return result

    def _write(self, connection: Connection, batch: list[Write], planned: Batch, known: int) -> Batch:
        # Where other processes write, the lock comes first: a guard that fails costs one more round trip to the server
        # while they wait. A file of our own is ahead of the cache only after a commit whose result was lost.
        is_current = not self._database.is_shared or lock_state(connection) == known
        if is_current and self._append(connection, planned.rows, known):
            return planned
        planned = self._plan_again(connection, batch, known)
        latest = known + len(planned.missed)
        if not self._append(connection, planned.rows, latest):
            raise Bug(f"the locked store is not at revision {latest}")
        return planned

    def _append(self, connection: Connection, rows: list[dict[str, Any]], latest: int) -> bool:
        """Add the rows to the log after revision `latest`; return False if that is not the newest revision."""
        if rows:
            newest = latest + len(rows)
            if _GUARD.execute(connection, [{"known": latest, "newest": newest}]).rowcount != 1:
                return False
            if self._quota.keeps_no_history:
                rows = _without_history(connection, rows, newest)
            if rows:
                _INSERT.execute(connection, rows)
            self._database.notify(connection)
        return True

    def _plan_again(self, connection: Connection, batch: list[Write], known: int) -> Batch:
        missed = read_tail(connection, self._cipher, known, _TAIL_ROWS).records
        latest = known + len(missed)
        overlay = {r.entry.key: None if r.type is EventType.DELETED else r.entry for r in missed}
        lookup = self._watch_cache.cache.current
        outcomes = plan_changes(batch, lambda key: overlay[key] if key in overlay else lookup(key), latest)
        return Batch(missed, outcomes, _rows(outcomes, self._cipher))


def _without_history(connection: Connection, rows: list[dict[str, Any]], newest: int) -> list[dict[str, Any]]:
    """Delete what the rows replace, as a compaction would, and return the rows of objects that exist afterwards.

    First the deletion, so that the insertion finds its pages free.
    """
    replaced = {row["previous_revision"] for row in rows} - {None}
    # With all that those replaced in turn: without them a purge would not find it, and a start would read it.
    older = select(log.c.revision, log.c.previous_revision).where(log.c.revision.in_(replaced)).cte(recursive=True)
    older = older.union_all(
        select(log.c.revision, log.c.previous_revision).join(older, log.c.revision == older.c.previous_revision)
    )
    connection.execute(delete(log).where(log.c.revision.in_(select(older.c.revision))))
    connection.execute(update(state).where(state.c.id == 1).values(compacted=newest))
    return [row for row in rows if row["revision"] not in replaced and row["type"] != CODES[EventType.DELETED]]


def _rows(outcomes: Sequence[Outcome], cipher: ValueCipher) -> list[dict[str, Any]]:
    return [
        _to_row(outcome, cipher.encrypt(outcome.entry.key, outcome.entry.value))
        for outcome in outcomes
        if isinstance(outcome, Change)
    ]


def _to_row(change: Change, value: bytes) -> dict[str, Any]:
    entry = change.entry
    return {
        "revision": entry.revision,
        "key": entry.key,
        "type": CODES[change.event.type],
        "create_revision": entry.create_revision,
        "previous_revision": change.previous.revision if change.previous is not None else None,
        "checksum": checksum(entry.key, value),
        "value": value,
    }
