"""SQLite: a file in WAL mode that one process owns.

Statements run on the event loop: they only touch memory and the page cache, some microseconds per row. Everything that
waits for the disk runs elsewhere: checkpoints, long reads and the start in threads, and the fsync of a commit in the
`FsyncHelper`. SQLite itself does not sync commits: `synchronous = NORMAL` keeps a WAL file consistent, and the helper's
fsync before the acknowledgement makes the write durable. A lock file beside the database excludes other processes.
"""

import asyncio
import contextlib
import os
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import structlog
from prometheus_client import Gauge
from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import OperationalError, SQLAlchemyError
from sqlalchemy.pool import QueuePool

from federation.apimachinery.errors import ConfigurationError, StoreUnavailable
from federation.apimachinery.lockfile import read_owner, try_lock
from federation.apiserver.store.database import translated
from federation.apiserver.store.diskreserve import DiskReserve
from federation.apiserver.store.fsync import FsyncHelper
from federation.apiserver.store.migrate import migrate
from federation.apiserver.store.options import StoreOptions
from federation.apiserver.store.sqlitefile import OpenFile, check_pages

T = TypeVar("T")

_log = structlog.get_logger(__name__)

_READS = {"federation_reads": True}
_LOCKED = "database is locked"
# Errors of a full disk: in the database or WAL, in the index of the WAL, at its creation.
_FULL = ("is full", "disk I/O error", "unable to open", "No space left")
_ROOM_CHECKS = 10
_LOCK_RETRY_S = 0.01
# The commit that finds a WAL of this many pages (32 MB) checkpoints it, on the event loop, and SQLite restarts the WAL.
# The checkpoints in `run` have moved nearly all pages by then, so this one is short.
_WAL_PAGES = 8_000
# What an idle store may leave in its WAL; a larger one is truncated.
_WAL_BYTES_IDLE = 4 << 20
_PAGE_BYTES = 4096
# Free pages that are not returned to the file system (4 MB), or a quarter of the file: new rows use them again.
_FREE_PAGES_KEPT = 1_024
# About two milliseconds on the event loop, ten times a second.
_PAGES_PER_SHRINK = 256
# On a full disk each moved page takes space in the WAL until a checkpoint.
_PAGES_PER_SHRINK_FULL = 32
_INCREMENTAL = 2
_CHECKPOINT_COMMITS = 16
_CHECKPOINT_CHECK_S = 0.1
_CHECKPOINT_CHECKS_MAX = 10

_bytes_used = Gauge("federation_store_used_bytes", "Size of the databases without their free pages")


@contextlib.contextmanager
def _driver_errors() -> Iterator[None]:
    """Turn the driver's errors into SQLAlchemy's, for statements that do not go through it."""
    try:
        yield
    except sqlite3.Error as error:
        raise OperationalError("", None, error) from error


def _decode(text: bytes) -> str:
    return text.decode(errors="backslashreplace")


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
        self._wal_path = self._path.with_name(self._path.name + "-wal")
        self._fsync = FsyncHelper(self._wal_path)
        self._is_shrinkable = False
        self._reserve = DiskReserve(self._path.with_name(self._path.name + ".reserve"), options.disk_reserve_bytes)
        self.is_full = False
        self._is_read_only = False
        self._write_lock = asyncio.Lock()
        self._lock: int | None = None
        self._file = OpenFile(self._path, self.name)
        self._commits = 0
        self.bytes_used = 0
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

    def missing_file(self) -> Path | None:
        return None if self._path.is_file() and self._path.stat().st_size else self._path

    async def open(self) -> None:
        if self._engine is not None:
            return
        if not self._path.parent.is_dir():
            raise ConfigurationError(f"{self.name}: the directory does not exist; create {self._path.parent}")
        self._take_lock()
        try:
            self._create_private()
            await self._in_thread(self._connect_with_any_room)
        except BaseException:
            self._disconnect()
            raise

    async def close(self) -> None:
        async with self._write_lock:
            self._threads.shutdown()
            self._disconnect()

    async def write(self, work: Callable[[Connection], T], *, is_durable: bool = True) -> T:
        async with self._write_lock:
            deadline_s = time.monotonic() + self._options.busy_timeout_s
            while True:
                if self._is_read_only:
                    raise StoreUnavailable(f"{self.name} is read-only until its disk has room; free space on it")
                self._file.check()
                try:
                    result = self._transact(work)
                    break
                except StoreUnavailable as error:
                    self._notice_full_disk(error)
                    if _LOCKED not in str(error) or time.monotonic() > deadline_s:
                        raise
                await asyncio.sleep(_LOCK_RETRY_S)
            self._commits += 1
            if is_durable and self._options.synchronous == "FULL":
                await self._fsync.sync()
            self._file.check()
            return result

    async def read(self, work: Callable[[Connection], T], *, is_one_statement: bool = False) -> T:
        del is_one_statement  # a transaction costs microseconds

        def transact() -> T:
            with translated(self.name, self._remedies), self._opened().connect() as connection:
                return work(connection.execution_options(**_READS))

        if not self._is_read_only:
            return await self._in_thread(transact)
        async with self._write_lock:  # then there is one connection, which `_find_room` replaces
            return await self._in_thread(transact)

    def notify(self, connection: Connection) -> None:
        """Do nothing: no other process uses the database."""

    async def changes(self) -> AsyncIterator[None]:
        for _ in ():
            yield

    async def now(self) -> None:
        """Return None: this process has the database for itself."""

    async def erase_deleted(self) -> None:
        """Checkpoint and truncate the WAL, whose old pages hold deleted rows; `secure_delete` overwrote the others.

        A read that takes longer than `busy_timeout_s` prevents it; the next call repeats it.
        """
        deadline_s = time.monotonic() + self._options.busy_timeout_s
        await self._in_thread(self._checkpoint)
        while time.monotonic() < deadline_s:
            # Without the lock, commits would wait for this checkpoint with retries.
            async with self._write_lock:
                if await self._in_thread(self._checkpoint, "TRUNCATE"):
                    return
            await asyncio.sleep(_LOCK_RETRY_S)

    async def run(self) -> None:
        """Checkpoint the WAL and return free pages to the file system, concurrently with writes, until cancelled."""
        done = checks = 0
        while True:
            await asyncio.sleep(_CHECKPOINT_CHECK_S)
            checks += 1
            if self.is_full and checks % _ROOM_CHECKS == 0:
                await self._find_room()
            if self._is_read_only:
                continue
            async with self._write_lock:
                self._commits += self._shrink()
            waiting = self._commits - done
            if waiting >= _CHECKPOINT_COMMITS or (waiting and checks >= _CHECKPOINT_CHECKS_MAX):
                done, checks = self._commits, 0
                await self._in_thread(self._checkpoint)
            elif checks >= _CHECKPOINT_CHECKS_MAX and self._wal_bytes() > _WAL_BYTES_IDLE:
                checks = 0
                # Needs the lock of a writer. The next write waits for it.
                async with self._write_lock:
                    await self._in_thread(self._checkpoint, "TRUNCATE")

    def _notice_full_disk(self, error: StoreUnavailable) -> bool:
        """Release the reserve if the disk is full; return whether it is."""
        if not any(part in str(error) for part in _FULL) or not self._reserve.is_disk_full():
            return False
        if not self.is_full:
            _log.error("the disk is full; only deletions are accepted", database=self.name)
        self.is_full = True
        self._reserve.release()
        return True

    async def _find_room(self) -> None:
        """Accept all writes again if the disk has room for the reserve."""
        async with self._write_lock:
            if not await self._in_thread(self._reserve.allocate):
                return
            if self._is_read_only:
                self._disconnect_engine()
                await self._in_thread(self._connect_with_any_room)
            self.is_full = self._is_read_only
            if not self.is_full:
                _log.warning("the disk has room again; all writes are accepted", database=self.name)

    def _transact(self, work: Callable[[Connection], T]) -> T:
        with translated(self.name, self._remedies):
            if self._connection is None:
                self._connection = self._opened().connect()
            with self._connection.begin():
                result = work(self._connection)
                if self._options.bytes_max:
                    # Inside the transaction, where it costs a few microseconds instead of a hundred.
                    self._measure()
                return result

    def _checkpoint(self, mode: Literal["PASSIVE", "TRUNCATE"] = "PASSIVE") -> bool:
        """Return whether no reader or other checkpoint was in the way."""
        with translated(self.name, self._remedies), self._opened().connect() as connection:
            cursor = connection.connection.cursor()
            if self.is_full:
                # A checkpoint that makes the file longer would take the space that is reserved for deletions.
                (pages,) = cursor.execute("PRAGMA page_count").fetchone()
                if pages * _PAGE_BYTES > self._path.stat().st_size:
                    cursor.close()
                    return False
            (is_busy, _, _) = cursor.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
            cursor.close()
            return not is_busy

    def _wal_bytes(self) -> int:
        try:
            return self._wal_path.stat().st_size
        except OSError:
            return 0

    def _measure(self) -> tuple[int, int]:
        """Update `bytes_used`; return the numbers of pages and of free pages."""
        driver = self._driver()
        (pages,) = driver.execute("PRAGMA page_count").fetchone()
        (free,) = driver.execute("PRAGMA freelist_count").fetchone()
        before, self.bytes_used = self.bytes_used, (pages - free) * _PAGE_BYTES
        _bytes_used.inc(self.bytes_used - before)
        return pages, free

    def _shrink(self) -> int:
        """Cut some free pages off the file if there are many; return the number of transactions."""
        with translated(self.name, self._remedies), _driver_errors():
            pages, free = self._measure()
            if free <= max(_FREE_PAGES_KEPT, pages // 4) or not self._is_shrinkable:
                return 0
            # As a script: `execute` steps a statement without result columns only once, which frees a single page.
            count = _PAGES_PER_SHRINK_FULL if self.is_full else _PAGES_PER_SHRINK
            self._driver().executescript(f"PRAGMA incremental_vacuum({count})")
            return 1

    def _make_shrinkable(self) -> None:
        """Rebuild a file of an older version that is more than half empty, so that it can shrink from now on."""
        with translated(self.name, self._remedies), _driver_errors():
            (mode,) = self._driver().execute("PRAGMA auto_vacuum").fetchone()
            self._is_shrinkable = mode == _INCREMENTAL
            pages, free = self._measure()
            if self._is_shrinkable or free <= max(_FREE_PAGES_KEPT, pages // 2):
                return
            try:
                self._driver().execute("PRAGMA auto_vacuum = INCREMENTAL")
                self._driver().execute("VACUUM")
            except sqlite3.OperationalError as error:
                _log.warning("the database file cannot be shrunk", database=self.name, error=str(error))
                return
            self._is_shrinkable = True
            self._measure()

    def _driver(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = self._opened().connect()
        return cast("sqlite3.Connection", self._connection.connection.driver_connection)

    async def _in_thread(self, work: Callable[..., T], *arguments: Any) -> T:
        try:
            running = asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)
        except RuntimeError as error:
            raise StoreUnavailable(f"{self.name} is closed") from error
        return await running

    def _connect_with_any_room(self) -> None:
        """Connect; on a full disk with the space of the reserve, or without any space for reading only."""
        self._is_read_only = False
        try:
            self._connect()
        except (ConfigurationError, StoreUnavailable) as error:
            self._disconnect_engine()
            if not self._notice_full_disk(StoreUnavailable(str(error))):
                raise
            try:
                self._connect()
            except (ConfigurationError, StoreUnavailable):
                self._disconnect_engine()
                self._is_read_only = True
                self._connect()
        if not self.is_full and not self._reserve.allocate():
            self.is_full = self._reserve.is_disk_full()

    def _connect(self) -> None:
        arguments = {"check_same_thread": False, "timeout": 0, "isolation_level": None}
        pool: dict[str, Any] = {"pool_size": 1, "max_overflow": 0} if self._is_read_only else {}
        self._engine = create_engine(self._url, poolclass=QueuePool, connect_args=arguments, **pool)
        event.listen(self._engine, "connect", self._configure)
        event.listen(self._engine, "begin", self._begin)
        try:
            with translated(self.name, self._remedies), _driver_errors():
                check_pages(self._driver(), self.name)
            self._transact(lambda connection: migrate(connection, self.name))
            self._file.remember()
            if not self._is_read_only:
                self._make_shrinkable()
            elif self._connection is not None:
                self._connection.close()  # the pool has no other for reads
                self._connection = None
        except StoreUnavailable as error:
            if _LOCKED in str(error):
                raise
            # An error of the first transaction means a wrong path, a missing permission or a damaged file.
            raise ConfigurationError(str(error)) from error

    def _disconnect(self) -> None:
        self._disconnect_engine()
        self._fsync.stop()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _disconnect_engine(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(SQLAlchemyError):
                self._connection.close()
            self._connection = None
        if self._engine is not None:
            self._engine.dispose()
            self._engine = None

    def _opened(self) -> Engine:
        if self._engine is None:
            raise StoreUnavailable(f"{self.name} is not open")
        return self._engine

    def _configure(self, connection: Any, _record: object) -> None:
        # A damaged key that is no UTF-8 must not prevent reading the other rows.
        connection.text_factory = _decode
        cursor = connection.cursor()
        if self._is_read_only:
            # With an exclusive lock SQLite keeps the index of the WAL in memory instead of in a new file.
            for pragma in ("locking_mode = EXCLUSIVE", "temp_store = MEMORY", "query_only = ON"):
                cursor.execute(f"PRAGMA {pragma}")
            cursor.close()
            return
        # A commit of another connection may lock the file for a moment while this one opens it.
        cursor.execute(f"PRAGMA busy_timeout = {int(self._options.busy_timeout_s * 1000)}")
        if not cursor.execute("PRAGMA page_count").fetchone()[0]:
            # Before the first page is written; later it has no effect, but needs the lock of a writer.
            cursor.execute("PRAGMA auto_vacuum = INCREMENTAL")
        for pragma in (
            "journal_mode = WAL",
            "synchronous = NORMAL",
            "temp_store = MEMORY",
            # Deleted values are overwritten with zeros. Some builds of SQLite have it off.
            "secure_delete = ON",
            "cache_size = -4000",
            f"wal_autocheckpoint = {_WAL_PAGES}",
            # Later, only writers and checkpoints meet a lock; they must not wait for it on the event loop.
            "busy_timeout = 0",
        ):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    def _begin(self, connection: Connection) -> None:
        # A transaction that upgrades from a read lock may fail with "locked", so writers lock at their start.
        is_reader = self._is_read_only or connection.get_execution_options().get("federation_reads")
        driver = cast("sqlite3.Connection", connection.connection.driver_connection)
        # Directly on the driver, because it runs once per commit: executing through SQLAlchemy costs ten times as much.
        try:
            driver.execute("BEGIN" if is_reader else "BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            raise OperationalError("BEGIN", None, error) from error

    def _take_lock(self) -> None:
        path = self._path.with_name(self._path.name + ".lock")
        try:
            self._lock = try_lock(path)
        except OSError as error:
            raise ConfigurationError(
                f"{self.name}: cannot write {path}: {error.strerror}; change its permissions or use another path"
            ) from error
        if self._lock is None:
            raise ConfigurationError(
                f"{self.name} is in use by process {read_owner(path)}; stop that process or use another path"
            )

    def _create_private(self) -> None:
        try:
            # Private, because Secrets are stored here. SQLite gives its side files the same mode.
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError as error:
            raise ConfigurationError(
                f"{self.name}: {error.strerror}; change its permissions or use another path"
            ) from error
