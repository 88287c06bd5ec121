"""Compaction of the log: by age, by number of changes, or on request.

First one transaction advances the compacted revision; then the rows are purged some revisions at a time, so that
writes run in between. A row is purged if a change at or before the compacted revision replaced it, or if it is a
deletion. The remaining rows are current states and states that a kept change replaced. The cost is proportional to the
number of purged changes. A purge interrupted by a crash continues at the next start. After a purge the database erases
the values of the deleted rows from its files.
"""

import asyncio
from collections import deque
from functools import partial

from prometheus_client import Counter
from sqlalchemy import Connection, delete, select, update

from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import StoreUnavailable
from federation.apiserver.store.database import Database
from federation.apiserver.store.history import read_state
from federation.apiserver.store.interface import EventType
from federation.apiserver.store.options import StoreOptions
from federation.apiserver.store.quota import SpaceQuota
from federation.apiserver.store.schema import CODES, log, state
from federation.apiserver.store.watchcache import WatchCache

# The pause between two purge transactions, so that a long purge takes only a small share of the event loop.
_PURGE_PAUSE_S = 0.005

_purged = Counter("federation_store_purged_rows_total", "Log rows deleted by compaction")


def _advance_compacted(connection: Connection, revision: int) -> int:
    newest, compacted, _ = read_state(connection, is_locking=True)
    target = max(compacted, min(revision, newest))
    connection.execute(update(state).where(state.c.id == 1).values(compacted=target))
    return target


def _purge(connection: Connection, revisions_max: int) -> tuple[bool, int]:
    """Purge the next revisions; return whether all are purged, and the number of deleted rows."""
    _, compacted, purged = read_state(connection, is_locking=True)
    if purged >= compacted:
        return True, 0
    until = min(compacted, purged + revisions_max)
    forgotten = (log.c.revision > purged) & (log.c.revision <= until)
    replaced = select(log.c.previous_revision).where(forgotten, log.c.previous_revision.is_not(None))
    rows = connection.execute(delete(log).where(log.c.revision.in_(replaced))).rowcount
    # The statement above may also have deleted rows of this range, whose `previous_revision` is lost to this query. The
    # rows that those replaced are older and were deleted by the same statement.
    rows += connection.execute(delete(log).where(forgotten, log.c.type == CODES[EventType.DELETED])).rowcount
    connection.execute(update(state).where(state.c.id == 1).values(purged=until))
    return until == compacted, rows


class Compactor:
    """Chooses the revision to compact to, and compacts."""

    def __init__(
        self, database: Database, watch_cache: WatchCache, options: StoreOptions, clock: Clock, quota: SpaceQuota
    ) -> None:
        self._database = database
        self._watch_cache = watch_cache
        self._options = options
        self._clock = clock
        self._quota = quota
        self._checkpoints: deque[tuple[float, int]] = deque()

    async def run(self) -> None:
        """Compact by age and number every `compaction_interval_s`, until cancelled."""
        while True:
            self._checkpoints.append((self._clock.monotonic(), self._watch_cache.cache.revision))
            await self._purge_all()
            await self._pause()
            target = self.compaction_target(self._clock.monotonic())
            if target > self._watch_cache.cache.compacted:
                await self.compact(target)

    async def _pause(self) -> None:
        """Return after `compaction_interval_s`, or as soon as space is short."""
        tasks = [
            asyncio.create_task(self._clock.sleep(self._options.compaction_interval_s)),
            asyncio.create_task(self._quota.became_short.wait()),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
        self._quota.became_short.clear()

    def compaction_target(self, now_s: float) -> int:
        """Return the newest revision past the age or number limit; changes from before the start count as new.

        Above the space quota it is the newest revision: deletions shall free space, even if watchers must list again.
        """
        if self._quota.is_exceeded:
            return self._watch_cache.cache.revision
        target = self._watch_cache.cache.revision - self._options.history_rows_max
        while self._checkpoints and self._checkpoints[0][0] <= now_s - self._options.history_age_s_max:
            target = max(target, self._checkpoints.popleft()[1])
        return target

    async def compact(self, revision: int) -> None:
        """Compact to `revision`; return when the rows are deleted."""
        compacted = await self._database.write(
            lambda connection: _advance_compacted(connection, revision), frees_space=True
        )
        self._watch_cache.cache.compact(compacted)
        await self._purge_all()

    async def _purge_all(self) -> None:
        revisions_max = self._options.compaction_revisions_per_transaction
        is_done = False
        purged = 0
        while not is_done:
            try:
                # Not durable: a purge that a power cut undoes is repeated.
                is_done, rows = await self._database.write(
                    partial(_purge, revisions_max=revisions_max), is_durable=False, frees_space=True
                )
            except StoreUnavailable:
                if not self._database.is_full or revisions_max == 1:
                    raise
                # The log of the database, which is as long as it can be, has no room for so many values.
                revisions_max //= 2
                continue
            _purged.inc(rows)
            purged += rows
            await asyncio.sleep(_PURGE_PAUSE_S)
        if purged:
            await self._database.erase_deleted()
