"""Other processes' writes: noticing them, reading them, and knowing when one has seen them all.

`sync` makes a read linearizable: it asks the database for the newest revision after the read began and returns when
the cache has it. Reads that arrive together share one question. `run` follows what other processes commit, for the
watchers. A SQLite database belongs to one process, which needs none of it.
"""

import asyncio
from collections.abc import Callable

import structlog

from federation.base.errors import RevisionCompacted, StoreUnavailable
from federation.store.database import Database
from federation.store.history import Tail, read_tail
from federation.store.view import View

_log = structlog.get_logger(__name__)

ROWS_PER_READ = 1_000


class Follower:
    """Keeps the cache of one process up with a shared database."""

    def __init__(self, database: Database, view: View, on_fell_behind: Callable[[], None]) -> None:
        self._database = database
        self._view = view
        self._on_fell_behind = on_fell_behind
        self._lock = asyncio.Lock()
        self._started = 0
        self._finished = 0

    async def sync(self) -> None:
        """Return when the cache holds everything that was committed before the call."""
        # A question that is under way may have been answered before this call began; only the next one counts.
        wanted = self._started + 1
        async with self._lock:
            if self._finished < wanted:
                self._started += 1
                number = self._started
                await self._catch_up()
                self._finished = number

    async def run(self) -> None:
        """Follow until cancelled; returns at once for a database that is not shared."""
        async for _ in self._database.changes():
            try:
                await self.sync()
            except StoreUnavailable as error:
                _log.info("store cannot follow", error=str(error))

    async def _catch_up(self) -> None:
        cache = self._view.cache
        while True:
            tail = await self._read_tail(cache.revision)
            self._view.publish_records(tail.records)
            cache.forget(min(tail.compacted, cache.revision))
            if cache.revision >= tail.revision:
                return

    async def _read_tail(self, since: int) -> Tail:
        try:
            return await self._database.read(lambda connection: read_tail(connection, since, ROWS_PER_READ))
        except RevisionCompacted as error:
            self._on_fell_behind()
            raise StoreUnavailable(f"{self._database.name}: this process fell behind and loads it again") from error
