"""SQLite: a file in WAL mode that one process holds.

Statements run on the event loop: they only touch memory and the page cache, some microseconds per row. What waits for
the disk does not: a commit is made durable by the `Syncer` before it is acknowledged (so SQLite itself need not: in
WAL mode `synchronous = NORMAL` keeps the file consistent, and the sync adds that no acknowledged write is lost),
checkpoints, long reads and the start run in threads. A lock file beside the database keeps a second process out.
"""

import asyncio
import contextlib
import fcntl
import os
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar, cast

import structlog
from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import OperationalError, SQLAlchemyError
from sqlalchemy.pool import QueuePool

from federation.base.errors import ConfigurationError, StoreUnavailable
from federation.store.database import translated
from federation.store.migrate import migrate
from federation.store.options import StoreOptions
from federation.store.syncer import Syncer

T = TypeVar("T")

_log = structlog.get_logger(__name__)

_READS = {"federation_reads": True}
_LOCKED = "database is locked"
_LOCK_RETRY_S = 0.01
# A log of this many pages (32 MB) is checkpointed by the commit that finds it, on the event loop, after which SQLite
# starts it over. `run` has moved nearly all of them by then, so that little is left to do and to wait for.
_WAL_PAGES = 8_000
_CHECKPOINT_COMMITS = 16
_CHECKPOINT_CHECK_S = 0.1
_CHECKPOINT_CHECKS_MAX = 10


class SQLiteDatabase:
    """`Database` in a file."""

    is_shared = False

    def __init__(self, url: URL, options: StoreOptions) -> None:
        if not url.database or url.database == ":memory:":
            raise ConfigurationError("store url: SQLite needs a file (sqlite:///PATH); use MemoryStore to keep nothing")
        self._path = Path(url.database).absolute()
        self.name = f"database {self._path}"
        self._url = url.set(database=str(self._path))
        self._options = options
        self._engine: Engine | None = None
        self._connection: Connection | None = None
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="store-reader")
        self._syncer = Syncer(self._path.with_name(self._path.name + "-wal"))
        self._turn = asyncio.Lock()
        self._lock: int | None = None
        self._commits = 0
        writable = f"make {self._path.parent} and the files in it writable for uid {os.geteuid()}"
        self._remedies = (
            (_LOCKED, "another process holds it; stop that process"),
            ("readonly", writable),
            ("unable to open", writable),
            ("is full", f"free space on the disk of {self._path.parent}"),
            ("disk I/O error", "check the disk"),
            ("not a database", "it is another file or damaged; restore a backup or move it away"),
            ("malformed", "it is damaged; restore a backup or move it away"),
        )

    async def open(self) -> None:
        if self._engine is not None:
            return
        if not self._path.parent.is_dir():
            raise ConfigurationError(f"{self.name}: the directory does not exist; create {self._path.parent}")
        self._take_lock()
        try:
            self._create_private()
            await self._in_thread(self._connect)
        except BaseException:
            self._disconnect()
            raise

    async def close(self) -> None:
        async with self._turn:
            self._threads.shutdown()
            self._disconnect()

    async def write(self, work: Callable[[Connection], T], *, is_durable: bool = True) -> T:
        async with self._turn:
            patience_ends_at = time.monotonic() + self._options.busy_timeout_s
            while True:
                try:
                    result = self._transact(work)
                    break
                except StoreUnavailable as error:
                    if _LOCKED not in str(error) or time.monotonic() > patience_ends_at:
                        raise
                await asyncio.sleep(_LOCK_RETRY_S)
            self._commits += 1
            if is_durable and self._options.synchronous == "FULL":
                await self._syncer.sync()
            return result

    async def read(self, work: Callable[[Connection], T]) -> T:
        def transact() -> T:
            with translated(self.name, self._remedies), self._opened().connect() as connection:
                return work(connection.execution_options(**_READS))

        return await self._in_thread(transact)

    def notify(self, connection: Connection) -> None:
        """Nobody to wake."""

    async def changes(self) -> AsyncIterator[None]:
        for _ in ():
            yield

    async def run(self) -> None:
        """Move committed pages from the log into the file, beside the writes, while there are any."""
        done = checks = 0
        while True:
            await asyncio.sleep(_CHECKPOINT_CHECK_S)
            checks += 1
            waiting = self._commits - done
            if waiting >= _CHECKPOINT_COMMITS or (waiting and checks >= _CHECKPOINT_CHECKS_MAX):
                done, checks = self._commits, 0
                await self._in_thread(self._checkpoint)

    def _transact(self, work: Callable[[Connection], T]) -> T:
        with translated(self.name, self._remedies):
            if self._connection is None:
                self._connection = self._opened().connect()
            with self._connection.begin():
                return work(self._connection)

    def _checkpoint(self) -> None:
        with translated(self.name, self._remedies), self._opened().connect() as connection:
            cursor = connection.connection.cursor()
            cursor.execute("PRAGMA wal_checkpoint(PASSIVE)")
            cursor.close()

    async def _in_thread(self, work: Callable[..., T], *arguments: Any) -> T:
        try:
            running = asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)
        except RuntimeError as error:
            raise StoreUnavailable(f"{self.name} is closed") from error
        return await running

    def _connect(self) -> None:
        arguments = {"check_same_thread": False, "timeout": 0, "isolation_level": None}
        self._engine = create_engine(self._url, poolclass=QueuePool, connect_args=arguments)
        event.listen(self._engine, "connect", self._configure)
        event.listen(self._engine, "begin", self._begin)
        try:
            self._transact(lambda connection: migrate(connection, self.name))
        except StoreUnavailable as error:
            if _LOCKED in str(error):
                raise
            # Before the first transaction a database error means a wrong path, a missing right or a damaged file.
            raise ConfigurationError(str(error)) from error

    def _disconnect(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(SQLAlchemyError):
                self._connection.close()
            self._connection = None
        if self._engine is not None:
            self._engine.dispose()
            self._engine = None
        self._syncer.stop()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _opened(self) -> Engine:
        if self._engine is None:
            raise StoreUnavailable(f"{self.name} is not open")
        return self._engine

    @staticmethod
    def _configure(connection: Any, _record: object) -> None:
        cursor = connection.cursor()
        for pragma in (
            "journal_mode = WAL",
            "synchronous = NORMAL",
            "temp_store = MEMORY",
            "cache_size = -4000",
            f"wal_autocheckpoint = {_WAL_PAGES}",
        ):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @staticmethod
    def _begin(connection: Connection) -> None:
        # A transaction that reads first and writes later could fail with "locked" in between: writers lock at once.
        is_reader = connection.get_execution_options().get("federation_reads")
        driver = cast("sqlite3.Connection", connection.connection.driver_connection)
        # Once per commit, so directly: SQLAlchemy's way of executing a statement costs ten times as much.
        try:
            driver.execute("BEGIN" if is_reader else "BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            raise OperationalError("BEGIN", None, error) from error

    def _take_lock(self) -> None:
        path = self._path.with_name(self._path.name + ".lock")
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ConfigurationError(
                f"{self.name}: cannot write {path}: {error.strerror}; change its permissions or use another path"
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
            os.close(descriptor)
            raise ConfigurationError(
                f"{self.name} is in use by process {holder}; stop that process or use another path"
            ) from error
        os.truncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        self._lock = descriptor

    def _create_private(self) -> None:
        try:
            # Secrets are stored here; SQLite gives its side files the same mode.
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError as error:
            raise ConfigurationError(
                f"{self.name}: {error.strerror}; change its permissions or use another path"
            ) from error
