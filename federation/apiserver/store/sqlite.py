"""SQLite: a file in WAL mode that one process owns.

Statements run on the event loop: they only touch memory and the page cache, some microseconds per row. Everything that
waits for the disk runs elsewhere: checkpoints, long reads and the start in threads, and the fsync of a commit in the
`FsyncHelper`. SQLite itself does not sync commits: `synchronous = NORMAL` keeps a WAL file consistent, and the helper's
fsync before the acknowledgement makes the write durable. A lock file beside the database excludes other processes.

On a full disk the files have the space already that deletions need: read `sqliteroom.py` and `heldspace.py`.
"""

import asyncio
import contextlib
import os
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar, cast

import structlog
from prometheus_client import Gauge
from sqlalchemy import URL, Connection

from federation.apimachinery.errors import ConfigurationError, StoreUnavailable
from federation.apiserver.store.database import translated
from federation.apiserver.store.fsync import FsyncHelper
from federation.apiserver.store.heldspace import PAGE_BYTES, HeldSpace
from federation.apiserver.store.migrate import migrate
from federation.apiserver.store.options import StoreOptions
from federation.apiserver.store.sqliteconnections import SQLiteConnections
from federation.apiserver.store.sqlitefile import OpenFile, check_pages, create_private, take_lock
from federation.apiserver.store.sqliteroom import Room

T = TypeVar("T")

_log = structlog.get_logger(__name__)

_READS = {"federation_reads": True}
_LOCKED = "database is locked"
_FULL = "is full"
# May be errors of a full disk: of the index of the WAL, of files that are created.
_MAYBE_FULL = ("disk I/O error", "unable to open", "No space left")
_LOCK_RETRY_S = 0.01
# The commit that finds a WAL of this many pages (32 MB) checkpoints it, on the event loop, and SQLite restarts the WAL.
# The checkpoints in `run` have moved nearly all pages by then, so this one is short.
_WAL_PAGES = 8_000
# Free pages that are not returned to the file system (4 MB), or a quarter of the file: new rows use them again.
_FREE_PAGES_KEPT = 1_024
# About two milliseconds on the event loop, ten times a second.
_PAGES_PER_SHRINK = 256
# On a full disk each moved page takes space in the WAL until a checkpoint.
_PAGES_PER_SHRINK_FULL = 32
# Pages that a refused write tries to hold, more each time: the largest batch needs some thousand.
_GROWTH_PAGES = (0, 256, 1_024, 4_096)
_ROWS_PER_CHECK = 4
# Eight commits of one object each.
_ROWS_PER_MEASUREMENT = 16
_UNUSED_PAGES_MIN = 64
_INCREMENTAL = 2
_CHECKPOINT_COMMITS = 16
_CHECKPOINT_CHECK_S = 0.1
_CHECKPOINT_CHECKS_MAX = 10

_bytes_used = Gauge("federation_store_used_bytes", "Size of the databases without their free pages")


class SQLiteDatabase:
    """`Database` in a file."""

    is_shared = False

    def __init__(self, url: URL, options: StoreOptions) -> None:
        if not url.database or url.database == ":memory:":
            raise ConfigurationError("store url: SQLite needs a file (sqlite:///PATH); use MemoryStore to keep nothing")
        self._path = Path(url.database).absolute()
        self.name = f"database {self._path}"
        self._options = options
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="store-reader")
        self._wal_path = self._path.with_name(self._path.name + "-wal")
        self._fsync = FsyncHelper(self._wal_path)
        self._is_shrinkable = False
        self._held = HeldSpace(self._path, self._wal_path, options.disk_reserve_bytes)
        self._room = Room(self._held)
        self.is_full = False
        self._write_lock = asyncio.Lock()
        self._lock: int | None = None
        self._file = OpenFile(self._path, self.name)
        self._commits = 0
        self._changes_measured = 0
        self.bytes_used = 0
        writable = f"make {self._path.parent} and the files in it writable for uid {os.geteuid()}"
        self._remedies = (
            (_LOCKED, "another process holds it; stop that process"),
            ("readonly", writable),
            ("unable to open", writable),
            (_FULL, f"free space on the disk of {self._path.parent}"),
            ("disk I/O error", "check the disk"),
            ("not a database", "it is another file or damaged; restore a backup or move it away"),
            ("malformed", "it is damaged; restore a backup or move it away"),
        )
        self._connections = SQLiteConnections(
            url.set(database=str(self._path)),
            self.name,
            self._remedies,
            busy_timeout_s=options.busy_timeout_s,
            log_bytes=options.disk_reserve_bytes,
        )

    def missing_file(self) -> Path | None:
        return None if self._path.is_file() and self._path.stat().st_size else self._path

    async def open(self) -> None:
        if self._connections.is_open:
            return
        if not self._path.parent.is_dir():
            raise ConfigurationError(f"{self.name}: the directory does not exist; create {self._path.parent}")
        self._lock = take_lock(self._path, self.name)
        try:
            create_private(self._path, self.name)
            await self._in_thread(self._connect_with_any_room)
        except BaseException:
            self._disconnect()
            raise

    async def close(self) -> None:
        async with self._write_lock:
            self._threads.shutdown()
            if not self._connections.is_open:
                self._disconnect()
                return
            # The last connection removes the WAL, and its space would be missing at a start on a full disk.
            with self._held.keeping_log():
                self._disconnect()

    async def write(self, work: Callable[[Connection], T], *, is_durable: bool = True, frees_space: bool = False) -> T:
        async with self._write_lock:
            if self.is_full and not frees_space:
                raise StoreUnavailable(f"{self.name}: the disk is full; free space on it, or delete objects")
            result = await self._transact_with_room(work, frees_space=frees_space)
            self._commits += 1
            if is_durable and self._options.synchronous == "FULL":
                await self._fsync.sync()
            self._file.check()
            return result

    async def _transact_with_room(self, work: Callable[[Connection], T], *, frees_space: bool) -> T:
        deadline_s = time.monotonic() + self._options.busy_timeout_s
        tries = 0
        while True:
            self._file.check()
            try:
                return self._transact(work)
            except StoreUnavailable as error:
                is_late = time.monotonic() > deadline_s
                if self._is_of_full_disk(error):
                    if is_late or not await self._make_room(tries, frees_space=frees_space):
                        raise
                    tries += 1
                elif _LOCKED not in str(error) or is_late:
                    raise
            await asyncio.sleep(_LOCK_RETRY_S)

    async def _make_room(self, tries: int, *, frees_space: bool) -> bool:
        """Return whether a transaction that lacked room may succeed now."""
        is_log_empty = False
        with contextlib.suppress(StoreUnavailable):
            is_log_empty = await self._in_thread(self._connections.checkpoint)
        self._connections.keep_checkpoints_from_commits(are_kept=True)
        self._held.hold_log()
        with self._connections.driving() as driver:
            self._room.measure(driver)
            self._room.hold_again(driver)
            if not tries:
                return True  # the WAL starts again, or there is more space
            if tries < len(_GROWTH_PAGES) and (
                self._room.grow(driver, _GROWTH_PAGES[tries]) or self._room.grow(driver)
            ):
                return True
            if not frees_space or not self.is_full:
                self._notice_full_disk()
                return frees_space  # now it keeps no history and may use the reserve
            # Without spare pages the transaction needs the reserve. With them a reader keeps the WAL from starting
            # again, and ends some time.
            if self._room.spare < _UNUSED_PAGES_MIN:
                with contextlib.suppress(sqlite3.OperationalError):
                    return self._room.release_row(driver)
            return not is_log_empty

    async def read(self, work: Callable[[Connection], T], *, is_one_statement: bool = False) -> T:
        del is_one_statement  # a transaction costs microseconds

        def transact() -> T:
            with translated(self.name, self._remedies), self._connections.engine().connect() as connection:
                return work(connection.execution_options(**_READS))

        if not self._connections.is_alone:
            return await self._in_thread(transact)
        async with self._write_lock:  # then there is one connection
            return await self._in_thread(transact)

    def notify(self, connection: Connection) -> None:
        """Do nothing: no other process uses the database."""

    async def changes(self) -> AsyncIterator[None]:
        for _ in ():
            yield

    async def now(self) -> None:
        """Return None: this process has the database for itself."""

    async def erase_deleted(self) -> None:
        """Checkpoint and overwrite the WAL, whose old pages hold deleted rows; `secure_delete` overwrote the others.

        A read that takes longer than `busy_timeout_s` prevents it; the next call repeats it.
        """
        deadline_s = time.monotonic() + self._options.busy_timeout_s
        await self._checkpoint_and_hold()
        while time.monotonic() < deadline_s:
            # Without the lock, commits would wait for this checkpoint with retries.
            async with self._write_lock:
                if await self._restart_log():
                    return
            await asyncio.sleep(_LOCK_RETRY_S)

    async def _restart_log(self) -> bool:
        """Move the WAL into the file, let it start again at its intended length, and overwrite what it had.

        Return False if a reader is in the way.
        """
        if not await self._in_thread(self._connections.checkpoint, "RESTART"):
            return False
        # This commit starts the WAL again. What is behind its frames belongs to no reader any more. (SQLite writes no
        # page for an UPDATE that changes nothing.)
        with self._connections.driving() as driver:
            (number,) = driver.execute("PRAGMA user_version").fetchone()
            driver.execute(f"PRAGMA user_version = {1 - number}")
            self._room.hold_again(driver)
            (_, frames, _) = driver.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            self._room.hold_again(driver)
        await self._in_thread(self._held.erase_log, max(0, frames))
        return True

    async def run(self) -> None:
        """Checkpoint the WAL, return free pages to the file system and keep the reserve, until cancelled."""
        done = checks = 0
        while True:
            await asyncio.sleep(_CHECKPOINT_CHECK_S)
            checks += 1
            async with self._write_lock:
                if self._connections.is_alone and not self._held.is_full():
                    await self._in_thread(self._reconnect)
                self._keep_reserve()
                self._commits += self._shrink()
            waiting = self._commits - done
            if waiting >= _CHECKPOINT_COMMITS or (waiting and checks >= _CHECKPOINT_CHECKS_MAX):
                done, checks = self._commits, 0
                await self._checkpoint_and_hold()
            elif checks >= _CHECKPOINT_CHECKS_MAX and self._wal_bytes() > self._held.log_bytes:
                checks = 0
                # Needs the lock of a writer. The next write waits for it.
                async with self._write_lock:
                    await self._restart_log()

    async def _checkpoint_and_hold(self) -> None:
        is_exclusive = self._connections.is_alone or self._held.is_short()
        if not is_exclusive:
            await self._in_thread(self._connections.checkpoint)
        async with self._write_lock:
            # What a checkpoint releases is held again at once, which those of commits do not do.
            self._connections.keep_checkpoints_from_commits(are_kept=is_exclusive)
            if is_exclusive:
                await self._in_thread(self._connections.checkpoint)
            with self._connections.driving() as driver:
                self._room.hold_again(driver)

    def _is_of_full_disk(self, error: Exception) -> bool:
        return _FULL in str(error) or (any(part in str(error) for part in _MAYBE_FULL) and self._held.is_short())

    def _notice_full_disk(self) -> None:
        if not self.is_full:
            _log.error("the disk is full; only writes that free space are accepted", database=self.name)
            self._room.look_again()
        self.is_full = True

    def _keep_reserve(self) -> None:
        """Write missing rows of the reserve and release superfluous ones; after the last one accept all writes."""
        with self._connections.driving() as driver:
            if self._room.has_superfluous_row():
                self._room.release_row(driver)
            if not self.is_full and self._room.is_reserved:
                return
            try:
                if not self._room.find(driver):
                    raise sqlite3.OperationalError(_FULL)
                for _ in range(_ROWS_PER_CHECK):
                    if self._room.is_reserved:
                        break
                    self._room.reserve_row(driver)
            except sqlite3.OperationalError as error:
                if not self._is_of_full_disk(error):
                    raise
                self._notice_full_disk()
                return
        if self.is_full and self._room.is_reserved:
            self.is_full = False
            _log.warning("the disk has room again; all writes are accepted", database=self.name)

    def _transact(self, work: Callable[[Connection], T]) -> T:
        with translated(self.name, self._remedies), self._connections.writing() as connection:
            with connection.begin():
                result = work(connection)
                driver = cast("sqlite3.Connection", connection.connection.driver_connection)
                is_due = self._is_size_due(driver)
                if is_due:
                    self._room.measure(driver)  # inside the transaction, where it costs a tenth
            if is_due:
                self._publish_size()
                if self._room.is_due:
                    self._room.grow(driver)
            return result

    def _is_size_due(self, driver: sqlite3.Connection) -> bool:
        """Return whether this transaction measures the file; each would cost 7 % of a small one.

        One that lacks room because of that is repeated after more pages are held.
        """
        changes = driver.total_changes - self._changes_measured
        if not (self.is_full or self._options.bytes_max or not 0 <= changes < _ROWS_PER_MEASUREMENT):
            return False
        self._changes_measured = driver.total_changes
        return True

    def _wal_bytes(self) -> int:
        try:
            return self._wal_path.stat().st_size
        except OSError:
            return 0

    def _publish_size(self) -> None:
        before, self.bytes_used = self.bytes_used, self._room.used * PAGE_BYTES
        _bytes_used.inc(self.bytes_used - before)

    def _shrink(self) -> int:
        """Cut some free pages off the file if there are many; return the number of transactions."""
        with self._connections.driving() as driver:
            self._room.measure(driver)
            self._publish_size()
            pages, free = self._room.pages, self._room.free
            if free <= max(_FREE_PAGES_KEPT, pages // 4, self._room.kept) or not self._is_shrinkable:
                return 0
            # As a script: `execute` steps a statement without result columns only once, which frees a single page.
            count = _PAGES_PER_SHRINK_FULL if self.is_full else _PAGES_PER_SHRINK
            driver.executescript(f"PRAGMA incremental_vacuum({count})")
            return 1

    def _make_shrinkable(self, driver: sqlite3.Connection) -> None:
        """Rebuild a file of an older version that is more than half empty, so that it can shrink from now on."""
        (mode,) = driver.execute("PRAGMA auto_vacuum").fetchone()
        self._is_shrinkable = mode == _INCREMENTAL
        self._room.measure(driver)
        if self._is_shrinkable or self._room.free <= max(_FREE_PAGES_KEPT, self._room.pages // 2):
            return
        try:
            driver.execute("PRAGMA auto_vacuum = INCREMENTAL")
            driver.execute("VACUUM")
        except sqlite3.OperationalError as error:
            _log.warning("the database file cannot be shrunk", database=self.name, error=str(error))
            return
        self._is_shrinkable = True

    async def _in_thread(self, work: Callable[..., T], *arguments: Any) -> T:
        try:
            running = asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)
        except RuntimeError as error:
            raise StoreUnavailable(f"{self.name} is closed") from error
        return await running

    def _connect_with_any_room(self) -> None:
        """Connect; on a full disk with what the files have."""
        self._held.recover_log()
        # Of a version that released a file on a full disk.
        self._path.with_name(self._path.name + ".reserve").unlink(missing_ok=True)
        try:
            self._connect()
        except (ConfigurationError, StoreUnavailable) as error:
            with self._held.keeping_log():
                self._connections.close()
            if not self._is_of_full_disk(error):
                raise
            self._held.hold_log()
            self._connect(is_alone=True)
            self._notice_full_disk()

    def _reconnect(self) -> None:
        with self._held.keeping_log():
            self._connections.close()
        self._connect_with_any_room()

    def _connect(self, *, is_alone: bool = False) -> None:
        self._connections.open(is_alone=is_alone)
        try:
            with self._connections.driving() as driver:
                check_pages(driver, self.name)
                self._room.start(driver)
            self._migrate()
            self._file.remember()
            with self._connections.driving() as driver:
                self._make_shrinkable(driver)
                self._start_reserve(driver)
        except StoreUnavailable as error:
            if _LOCKED in str(error):
                raise
            # An error of the first transaction means a wrong path, a missing permission or a damaged file.
            raise ConfigurationError(str(error)) from error

    def _migrate(self) -> None:
        pages = _GROWTH_PAGES[1]
        while True:
            try:
                self._transact(lambda connection: migrate(connection, self.name))
                return
            except StoreUnavailable as error:
                with self._connections.driving() as driver:
                    if _FULL not in str(error) or not self._room.grow(driver, pages):
                        raise
            pages *= 2

    def _start_reserve(self, driver: sqlite3.Connection) -> None:
        if not self._held.hold_log():
            _log.warning("the disk has no room for the whole log of the database", database=self.name)
        self._room.start_reserve(driver)
        self._publish_size()
        try:
            for _ in range(_ROWS_PER_CHECK):
                if not self._room.is_reserved and self._room.find(driver):
                    self._room.reserve_row(driver)
        except sqlite3.OperationalError as error:
            if not self._is_of_full_disk(error):
                raise
        if not self._room.has_any:
            self._notice_full_disk()

    def _disconnect(self) -> None:
        self._connections.close()
        self._fsync.stop()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None
