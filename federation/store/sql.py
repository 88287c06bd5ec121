"""`SQLStore`: the revisioned store on SQLite or PostgreSQL.

It only puts the parts together: `database.py` (connections, transactions, migrations), `view.py` (memory: reads,
watches), `writer.py` (group commit), `history.py` (what left the memory), `tail.py` (other processes),
`compaction.py`. Nothing runs before `ready()` or `run()`; after `run()` has ended reads and writes still work, until
`close()`.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from federation.base.clock import Clock, SystemClock
from federation.base.errors import StoreError, StoreUnavailable
from federation.base.tasks import Supervisor
from federation.store.compaction import Compactor
from federation.store.database import open_database
from federation.store.history import SQLHistory, read_snapshot
from federation.store.interface import Body, Entry, EventBatch, EventType, Nudge, Page
from federation.store.options import StoreOptions
from federation.store.tail import Follower
from federation.store.view import View
from federation.store.writer import GroupCommit


class SQLStore:
    """`Store` on the database at `url`: sqlite:///PATH, or postgresql://USER:PASSWORD@HOST/NAME."""

    def __init__(self, url: str, options: StoreOptions | None = None, *, clock: Clock | None = None) -> None:
        self._options = options or StoreOptions()
        self._clock = clock or SystemClock()
        self.database = open_database(url, self._options)
        self._view = View(self._options, self._options.recent_events_max, self._options.recent_bytes_max)
        self._history = SQLHistory(self.database, self._options)
        self._writer = GroupCommit(self.database, self._view, self._options, self._fall_behind)
        self._follower = Follower(self.database, self._view, self._fall_behind)
        self._compactor = Compactor(self.database, self._view, self._options, self._clock)
        self._opening = asyncio.Lock()
        self._is_open = False
        self._must_reload = asyncio.Event()

    async def run(self) -> None:
        await self.ready()
        supervisor = Supervisor(self._clock)
        supervisor.add("store-compaction", self._compactor.run)
        supervisor.add("store-database", self.database.run)
        supervisor.add("store-follower", self._follower.run)
        supervisor.add("store-progress", self._announce_progress)
        supervisor.add("store-reload", self._keep_loaded)
        await supervisor.run()

    async def ready(self) -> None:
        """Open, migrate and load the database once; ConfigurationError or StoreUnavailable with name and remedy."""
        async with self._opening:
            if self._is_open:
                return
            await self.database.open()
            await self._load()
            self._writer.open()
            self._is_open = True

    async def create(self, key: str, body: Body) -> Entry:
        return await self._writer.write(EventType.CREATED, key, body, 0)

    async def update(self, key: str, body: Body, expected_revision: int) -> Entry:
        return await self._writer.write(EventType.UPDATED, key, body, expected_revision)

    async def delete(self, key: str, body: Body, expected_revision: int) -> Entry:
        return await self._writer.write(EventType.DELETED, key, body, expected_revision)

    async def get(self, key: str) -> Entry | None:
        await self._sync()
        return self._view.cache.get(key)

    async def list(self, prefix: str, *, limit: int = 0, from_key: str = "", revision: int = 0) -> Page:
        await self._sync()
        return await self._view.list(prefix, limit, from_key, revision, self._history)

    async def watch(self, prefix: str, since: int, nudge: Nudge | None = None) -> AsyncIterator[EventBatch]:
        await self._sync()
        async with contextlib.aclosing(self._view.watch(prefix, since, self._history, nudge)) as batches:
            async for batch in batches:
                yield batch

    async def revision(self) -> int:
        await self._sync()
        return self._view.cache.revision

    async def compact(self, revision: int) -> None:
        await self._sync()
        await self._compactor.compact(revision)

    async def close(self) -> None:
        """Commit what was accepted, end every watch, disconnect."""
        await self._writer.close()
        self._is_open = False
        self._view.fail_watches(StoreError("the store is closed"))
        await self.database.close()

    async def _sync(self) -> None:
        if not self._is_open:
            raise StoreUnavailable(f"{self.database.name} is not open")
        if self.database.is_shared:
            await self._follower.sync()

    async def _load(self) -> None:
        snapshot = await self.database.read(read_snapshot)
        self._view.load(snapshot.entries, snapshot.revision, snapshot.compacted)

    async def _announce_progress(self) -> None:
        await self._view.announce_progress(self._clock, self._options.progress_interval_s)

    def _fall_behind(self) -> None:
        self._must_reload.set()

    async def _keep_loaded(self) -> None:
        while True:
            await self._must_reload.wait()
            self._must_reload.clear()
            self._view.fail_watches(StoreError("changes were missed that are compacted by now; list and watch again"))
            await self._load()
