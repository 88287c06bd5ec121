"""Forgetting history: by age, by number of changes, or on request.

First the compacted revision is raised, in a transaction of its own; then the rows behind it are purged some
revisions at a time, so that writes pass in between. A row may go when a change at or before the compacted revision has
replaced it, or when it is a deletion: whatever is left is a current state or what a kept change has replaced. Cost
follows the number of forgotten changes. A purge that a crash interrupted goes on at the next start.
"""

import asyncio
from collections import deque

from prometheus_client import Counter
from sqlalchemy import Connection, delete, select, update

from federation.base.clock import Clock
from federation.store.database import Database
from federation.store.history import read_state
from federation.store.interface import EventType
from federation.store.options import StoreOptions
from federation.store.schema import CODES, log, state
from federation.store.view import View

# Between two purge transactions, so that forgetting takes a small share of the event loop however much there is.
_PURGE_PAUSE_S = 0.005

_purged = Counter("federation_store_purged_rows_total", "Log rows deleted by compaction")


def _raise_compacted(connection: Connection, revision: int) -> int:
    newest, compacted, _ = read_state(connection, is_locking=True)
    target = max(compacted, min(revision, newest))
    connection.execute(update(state).where(state.c.id == 1).values(compacted=target))
    return target


def _purge(connection: Connection, revisions_max: int) -> tuple[bool, int]:
    """Purge the next revisions; return whether that was all, and how many rows went."""
    _, compacted, purged = read_state(connection, is_locking=True)
    if purged >= compacted:
        return True, 0
    until = min(compacted, purged + revisions_max)
    forgotten = (log.c.revision > purged) & (log.c.revision <= until)
    replaced = select(log.c.previous_revision).where(forgotten, log.c.previous_revision.is_not(None))
    rows = connection.execute(delete(log).where(log.c.revision.in_(replaced))).rowcount
    # Rows of this range that its own later changes replaced are gone already, with their `previous_revision`: what that
    # named is smaller, and has been deleted by the same statement.
    rows += connection.execute(delete(log).where(forgotten, log.c.type == CODES[EventType.DELETED])).rowcount
    connection.execute(update(state).where(state.c.id == 1).values(purged=until))
    return until == compacted, rows


class Compactor:
    """Decides how far to forget, and forgets."""

    def __init__(self, database: Database, view: View, options: StoreOptions, clock: Clock) -> None:
        self._database = database
        self._view = view
        self._options = options
        self._clock = clock
        self._checkpoints: deque[tuple[float, int]] = deque()

    async def run(self) -> None:
        """Check age and number every `compaction_interval_s`, until cancelled."""
        while True:
            self._checkpoints.append((self._clock.monotonic(), self._view.cache.revision))
            await self._purge_all()
            await self._clock.sleep(self._options.compaction_interval_s)
            target = self.plan_target(self._clock.monotonic())
            if target > self._view.cache.compacted:
                await self.compact(target)

    def plan_target(self, now_s: float) -> int:
        """Return how far age and number allow to forget; changes from before the start count as new."""
        target = self._view.cache.revision - self._options.history_rows_max
        while self._checkpoints and self._checkpoints[0][0] <= now_s - self._options.history_age_s_max:
            target = max(target, self._checkpoints.popleft()[1])
        return target

    async def compact(self, revision: int) -> None:
        """Forget up to `revision`; returns when the rows are gone."""
        compacted = await self._database.write(lambda connection: _raise_compacted(connection, revision))
        self._view.cache.forget(compacted)
        await self._purge_all()

    async def _purge_all(self) -> None:
        revisions_max = self._options.compaction_revisions_per_transaction
        is_done = False
        while not is_done:
            # A purge that a power cut undoes is done again: no need to wait for the disk.
            is_done, rows = await self._database.write(
                lambda connection: _purge(connection, revisions_max), is_durable=False
            )
            _purged.inc(rows)
            await asyncio.sleep(_PURGE_PAUSE_S)
