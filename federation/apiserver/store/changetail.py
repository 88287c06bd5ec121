"""The tail of the log: changes that other processes commit to a shared database.

`sync` makes a read linearizable, like etcd's ReadIndex: it queries the newest revision after the read began and returns
when the cache has reached it. Concurrent reads share one query. `run` follows the log for watchers. A SQLite database
belongs to one process and uses neither.
"""

import asyncio
from collections.abc import Callable

import structlog

from federation.apimachinery.errors import RevisionCompacted, StoreUnavailable
from federation.apiserver.store.database import Database
from federation.apiserver.store.encryption import ValueCipher
from federation.apiserver.store.history import Tail, read_tail
from federation.apiserver.store.watchcache import WatchCache

_log = structlog.get_logger(__name__)

ROWS_PER_READ = 1_000


class ChangeTail:
    """Applies the commits of other processes to this process's watch cache."""

    def __init__(
        self,
        database: Database,
        watch_cache: WatchCache,
        cipher: ValueCipher,
        on_missed_changes: Callable[[], None],
    ) -> None:
        self._database = database
        self._cipher = cipher
        self._watch_cache = watch_cache
        self._on_missed_changes = on_missed_changes
        self._lock = asyncio.Lock()
        self._started = 0
        self._finished = 0

    async def sync(self) -> None:
        """Return when the cache holds everything that was committed before the call."""
        # A running query may have read the revision before this call began, so only the next one is good enough.
        needed = self._started + 1
        async with self._lock:
            if self._finished < needed:
                self._started += 1
                number = self._started
                await self._catch_up()
                self._finished = number

    async def run(self) -> None:
        """Follow the log until cancelled; return at once for a database that is not shared."""
        async for _ in self._database.changes():
            try:
                await self.sync()
            except StoreUnavailable as error:
                _log.info("store cannot follow", error=str(error))

    async def _catch_up(self) -> None:
        cache = self._watch_cache.cache
        while True:
            tail = await self._read_tail(cache.revision)
            self._watch_cache.publish_records(tail.records)
            cache.compact(min(tail.compacted, cache.revision))
            if cache.revision >= tail.revision:
                return

    async def _read_tail(self, since: int) -> Tail:
        try:
            return await self._database.read(
                lambda connection: read_tail(connection, self._cipher, since, ROWS_PER_READ), is_one_statement=True
            )
        except RevisionCompacted as error:
            self._on_missed_changes()
            raise StoreUnavailable(f"{self._database.name}: this process fell behind and loads it again") from error
