"""Other processes' writes: noticing them, reading them, and knowing when one has seen them all.

`sync` makes a read linearizable: it asks the database for the newest revision after the read began and returns when
the cache has it. Reads that arrive together share one question. `run` notices commits through LISTEN/NOTIFY, and by
asking every `tail_interval_s` in case a notification was lost. A SQLite database belongs to one process, which needs
none of it.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import structlog
from sqlalchemy import Connection

from federation.base.errors import RevisionCompacted, StoreUnavailable
from federation.store.database import Database
from federation.store.dialects import CHANNEL
from federation.store.history import read_tail
from federation.store.options import StoreOptions
from federation.store.view import View

_log = structlog.get_logger(__name__)

ROWS_PER_READ = 1_000


class Follower:
    """Keeps the cache of one process up with a shared database."""

    def __init__(
        self, database: Database, view: View, options: StoreOptions, on_fell_behind: Callable[[], None]
    ) -> None:
        self._database = database
        self._view = view
        self._options = options
        self._on_fell_behind = on_fell_behind
        self._lock = asyncio.Lock()
        self._started = 0
        self._finished = 0
        self._notified = asyncio.Event()
        self._lost: psycopg.Error | None = None

    async def sync(self) -> None:
        """Return when the cache holds everything that was committed before the call."""
        if not self._database.dialect.is_shared:
            return
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
        if not self._database.dialect.is_shared:
            return
        while True:
            try:
                with self._listening(await self._listen()):
                    await self._follow()
            except (StoreUnavailable, psycopg.Error) as error:
                _log.info("store follower reconnects", database=self._database.dialect.name, error=str(error))
                await asyncio.sleep(self._options.tail_interval_s)

    async def _follow(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._options.tail_interval_s):
                    await self._notified.wait()
            self._notified.clear()
            if self._lost is not None:
                raise self._lost
            await self.sync()

    async def _catch_up(self) -> None:
        cache = self._view.cache
        while True:
            try:
                tail = await self._database.read(read_tail, cache.revision, ROWS_PER_READ)
            except RevisionCompacted as error:
                self._on_fell_behind()
                raise StoreUnavailable("this process fell behind and loads the store again") from error
            self._view.publish_records(tail.records)
            cache.forget(min(tail.compacted, cache.revision))
            if cache.revision >= tail.revision:
                return

    async def _listen(self) -> Connection:
        return await asyncio.get_running_loop().run_in_executor(None, self._connect)

    def _connect(self) -> Connection:
        connection = self._database.connect().execution_options(isolation_level="AUTOCOMMIT")
        connection.exec_driver_sql(f"LISTEN {CHANNEL}")
        return connection

    @contextlib.contextmanager
    def _listening(self, connection: Connection) -> Iterator[None]:
        driver = connection.connection.driver_connection
        assert isinstance(driver, psycopg.Connection)
        self._lost = None
        loop = asyncio.get_running_loop()
        descriptor = driver.fileno()
        loop.add_reader(descriptor, self._receive, driver)
        try:
            yield
        finally:
            loop.remove_reader(descriptor)
            connection.invalidate()
            connection.close()

    def _receive(self, driver: psycopg.Connection[Any]) -> None:
        try:
            driver.pgconn.consume_input()
            while (note := driver.pgconn.notifies()) is not None:
                if note.extra.decode() != self._database.origin:
                    self._notified.set()
        except psycopg.Error as error:
            asyncio.get_running_loop().remove_reader(driver.fileno())
            self._lost = error
            self._notified.set()
