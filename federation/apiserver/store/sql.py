"""`SQLStore`: the store on SQLite or PostgreSQL.

It wires `database.py` (connections, transactions), `watchcache.py` (watch cache), `writer.py` (group commit),
`history.py` (old changes), `changetail.py` (other processes' changes), `compaction.py` and `encryption.py`. Nothing
runs before `ready()` or `run()`. Reads and writes still work after `run()` ends, until `close()`.

Decision: docs/decisions/0004-commits-without-a-writer-thread.md
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence

import structlog
from sqlalchemy import Connection, update

from federation.apimachinery.clock import Clock, SystemClock
from federation.apimachinery.errors import StoreUnavailable, WatchCanceled
from federation.apimachinery.tasks import Supervisor
from federation.apiserver.store.changetail import ChangeTail
from federation.apiserver.store.compaction import Compactor
from federation.apiserver.store.databases import open_database
from federation.apiserver.store.encryption import ValueCipher
from federation.apiserver.store.history import Snapshot, SQLHistory, read_snapshot
from federation.apiserver.store.interface import Body, Entry, EventBatch, EventType, Page, WakeSignal
from federation.apiserver.store.options import StoreOptions
from federation.apiserver.store.quota import SpaceQuota
from federation.apiserver.store.reencryption import EncryptedColumn, reencrypt
from federation.apiserver.store.schema import log, state
from federation.apiserver.store.watchcache import WatchCache
from federation.apiserver.store.writer import GroupCommit

_log = structlog.get_logger(__name__)


def _touch(connection: Connection) -> None:
    connection.execute(update(state).where(state.c.id == 1).values(purged=state.c.purged))


class SQLStore:
    """`Store` on the database at `url`: sqlite:///PATH, or postgresql://USER:PASSWORD@HOST/NAME."""

    def __init__(self, url: str, options: StoreOptions | None = None, *, clock: Clock | None = None) -> None:
        self._options = options or StoreOptions()
        self._clock = clock or SystemClock()
        self.database = open_database(url, self._options)
        self.cipher = ValueCipher(self._options.encryption)
        self._watch_cache = WatchCache(self._options, self._options.recent_events_max, self._options.recent_bytes_max)
        self._history = SQLHistory(self.database, self._options, self.cipher)
        self._quota = SpaceQuota(self.database, self._options)
        self._writer = GroupCommit(
            self.database, self._watch_cache, self._options, self.cipher, self._request_reload, self._quota
        )
        self._tail = ChangeTail(self.database, self._watch_cache, self.cipher, self._request_reload)
        self._compactor = Compactor(self.database, self._watch_cache, self._options, self._clock, self._quota)
        self._probing = asyncio.Lock()
        self._probed_at_s: float | None = None
        self._probe_error: StoreUnavailable | None = None
        self._opening = asyncio.Lock()
        self._is_open = False
        self._reload_needed = asyncio.Event()

    async def run(self) -> None:
        await self.ready()
        supervisor = Supervisor(self._clock)
        supervisor.add("store-compaction", self._compactor.run)
        supervisor.add("store-database", self.database.run)
        supervisor.add("store-encryption", self._reencrypt)
        supervisor.add("store-tail", self._tail.run)
        supervisor.add("store-progress", self._announce_progress)
        supervisor.add("store-reload", self._run_reload)
        await supervisor.run()

    async def ready(self) -> None:
        """Open, migrate and load the database; ConfigurationError or StoreUnavailable with name and remedy."""
        async with self._opening:
            if self._is_open:
                return
            await self.cipher.open()
            await self.database.open()
            await self._load()
            self._writer.open()
            self._is_open = True

    async def create(self, key: str, body: Body) -> Entry:
        return await self._writer.write(EventType.CREATED, key, body, 0)

    async def update(self, key: str, body: Body, expected_revision: int, *, frees_space: bool = False) -> Entry:
        return await self._writer.write(EventType.UPDATED, key, body, expected_revision, frees_space=frees_space)

    async def delete(self, key: str, body: Body, expected_revision: int) -> Entry:
        return await self._writer.write(EventType.DELETED, key, body, expected_revision, frees_space=True)

    async def get(self, key: str) -> Entry | None:
        # The most frequent call, which on SQLite needs no second coroutine.
        if self.database.is_shared or not self._is_open:
            await self._sync()
        return self._watch_cache.get(key)

    async def list(self, prefix: str, *, limit: int = 0, from_key: str = "", revision: int = 0) -> Page:
        await self._sync()
        return await self._watch_cache.list(prefix, limit, from_key, revision, self._history)

    async def watch(
        self, prefix: str, since: int, wake_signal: WakeSignal | None = None
    ) -> AsyncGenerator[EventBatch, None]:
        await self._sync()
        async with contextlib.aclosing(self._watch_cache.watch(prefix, since, self._history, wake_signal)) as batches:
            async for batch in batches:
                yield batch

    async def revision(self) -> int:
        await self._sync()
        return self._watch_cache.cache.revision

    async def check_writable(self) -> None:
        async with self._probing:
            now_s = self._clock.monotonic()
            if self._probed_at_s is None or now_s - self._probed_at_s >= self._options.probe_interval_s:
                self._probe_error = None
                try:
                    await self.database.write(_touch, frees_space=True)
                except StoreUnavailable as error:
                    self._probe_error = error
                else:
                    self._probe_error = await self._check_following()
                self._probed_at_s = now_s
            if self.database.is_full:
                raise StoreUnavailable(self._quota.describe())
            if self._probe_error is not None:
                raise StoreUnavailable(str(self._probe_error))

    async def _check_following(self) -> StoreUnavailable | None:
        """Return an error if changes of other processes cannot be read, for example without their encryption key."""
        if self.database.is_shared:
            try:
                await self._tail.sync()
            except StoreUnavailable:
                # The cause may name an object, and everybody may read readiness; the tail logs it.
                return StoreUnavailable("changes of other processes cannot be read; the log names the cause")
        return None

    def warnings(self) -> Sequence[str]:
        found = [*self.cipher.warnings(), *self._watch_cache.warnings()]
        return [*found, self._quota.describe()] if self._quota.is_exceeded else found

    async def compact(self, revision: int) -> None:
        await self._sync()
        await self._compactor.compact(revision)

    async def close(self) -> None:
        """Commit accepted writes, end every watch, disconnect."""
        await self._writer.close()
        self._is_open = False
        self._watch_cache.fail_watches(WatchCanceled("the store is closed"))
        await self.database.close()

    async def _sync(self) -> None:
        if not self._is_open:
            raise StoreUnavailable(f"{self.database.name} is not open")
        if self.database.is_shared:
            await self._tail.sync()

    async def _load(self) -> None:
        self._adopt(await self.database.read(lambda connection: read_snapshot(connection, self.cipher)))

    def _adopt(self, snapshot: Snapshot) -> None:
        """Replace the cached state, unless what was published since the snapshot was read is as new.

        Watches end in the same step: one that begins before it would miss what the snapshot skips.
        """
        if self._is_open and snapshot.revision <= self._watch_cache.cache.revision:
            return
        error = WatchCanceled("changes were missed that are compacted by now; list and watch again")
        self._watch_cache.fail_watches(error)
        self._watch_cache.load(snapshot.entries, snapshot.revision, snapshot.compacted, snapshot.damaged)
        for entry in snapshot.damaged:
            _log.error(
                "stored object is damaged",
                database=self.database.name,
                key=entry.key,
                revision=entry.revision,
                remedy="restore a backup, or delete the object through the API and create it again",
            )

    async def _reencrypt(self) -> None:
        column = EncryptedColumn(log, log.c.revision, log.c.value, lambda row: str(row.key), log.c.checksum)
        await reencrypt(self.database, self.cipher, column, self._clock)

    async def _announce_progress(self) -> None:
        await self._watch_cache.announce_progress(self._clock, self._options.progress_interval_s)

    def _request_reload(self) -> None:
        self._reload_needed.set()

    async def _run_reload(self) -> None:
        while True:
            await self._reload_needed.wait()
            self._reload_needed.clear()
            await self._load()
