"""The connections to SQLite's file: one for writes, which is kept, and a pool of others for reads and checkpoints.

On a disk without room for the shared index of the WAL one connection has the file for itself and keeps the index in
memory; then all work is done one after the other. Read `sqlite.py` next.
"""

import contextlib
import sqlite3
from collections.abc import Iterator
from typing import Any, Literal, cast

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import OperationalError, SQLAlchemyError
from sqlalchemy.pool import QueuePool

from federation.apimachinery.errors import StoreUnavailable
from federation.apiserver.store.database import translated

# The commit that finds a WAL of this many pages (32 MB) checkpoints it, on the event loop, and SQLite restarts the WAL.
# The checkpoints in `sqlite.py` have moved nearly all pages by then, so this one is short.
_WAL_PAGES = 8_000


@contextlib.contextmanager
def driver_errors() -> Iterator[None]:
    """Turn the driver's errors into SQLAlchemy's, for statements that do not go through it."""
    try:
        yield
    except sqlite3.Error as error:
        raise OperationalError("", None, error) from error


def _decode(text: bytes) -> str:
    return text.decode(errors="backslashreplace")


class SQLiteConnections:
    """All connections of one database, with its settings."""

    def __init__(
        self, url: URL, name: str, remedies: tuple[tuple[str, str], ...], *, busy_timeout_s: float, log_bytes: int
    ) -> None:
        self._url = url
        self._name = name
        self._remedies = remedies
        self._busy_timeout_ms = int(busy_timeout_s * 1000)
        self._log_bytes = log_bytes
        self._engine: Engine | None = None
        self._connection: Connection | None = None
        self._checkpoints_at_commits = True
        self.is_alone = False

    @property
    def is_open(self) -> bool:
        return self._engine is not None

    def open(self, *, is_alone: bool = False) -> None:
        """Prepare connections; each is made when it is needed."""
        self.is_alone = is_alone
        arguments = {"check_same_thread": False, "timeout": 0, "isolation_level": None}
        pool: dict[str, Any] = {"pool_size": 1, "max_overflow": 0} if is_alone else {}
        self._engine = create_engine(
            self._url, poolclass=QueuePool, connect_args=arguments, hide_parameters=True, **pool
        )
        event.listen(self._engine, "connect", self._configure)
        event.listen(self._engine, "begin", self._begin)

    @contextlib.contextmanager
    def writing(self) -> Iterator[Connection]:
        """Yield the writer's connection; within the lock of writes only."""
        if self.is_alone:
            with self.engine().connect() as connection:
                yield connection
            return
        if self._connection is None:
            self._connection = self.engine().connect()
        yield self._connection

    @contextlib.contextmanager
    def driving(self) -> Iterator[sqlite3.Connection]:
        """Yield the writer's connection itself, for pragmas; errors are translated."""
        with translated(self._name, self._remedies), self.writing() as connection, driver_errors():
            yield cast("sqlite3.Connection", connection.connection.driver_connection)

    def checkpoint(self, mode: Literal["PASSIVE", "RESTART"] = "PASSIVE") -> bool:
        """Return whether the whole WAL is in the file and no reader or other checkpoint was in the way."""
        with translated(self._name, self._remedies), self.engine().connect() as connection:
            driver = cast("sqlite3.Connection", connection.connection.driver_connection)
            with driver_errors():
                (is_busy, frames, moved) = driver.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
            return not is_busy and frames == moved

    def close(self) -> None:
        """Close all connections, which must be idle."""
        if self._connection is not None:
            with contextlib.suppress(SQLAlchemyError):
                self._connection.close()
            self._connection = None
        if self._engine is not None:
            self._engine.dispose()
            self._engine = None

    def engine(self) -> Engine:
        """Return the pool; StoreUnavailable when it is closed."""
        if self._engine is None:
            raise StoreUnavailable(f"{self._name} is not open")
        return self._engine

    def keep_checkpoints_from_commits(self, *, are_kept: bool) -> None:
        """Let commits checkpoint a long WAL, or leave it to `checkpoint`."""
        if self._checkpoints_at_commits == are_kept:
            self._checkpoints_at_commits = not are_kept
            with self.driving() as driver:
                driver.execute(f"PRAGMA wal_autocheckpoint = {self._wal_pages}")

    @property
    def _wal_pages(self) -> int:
        return _WAL_PAGES if self._checkpoints_at_commits else 0

    def _configure(self, connection: Any, _record: object) -> None:
        # A damaged key that is no UTF-8 must not prevent reading the other rows.
        connection.text_factory = _decode
        cursor = connection.cursor()
        if self.is_alone:
            # With an exclusive lock SQLite keeps the index of the WAL in memory instead of in a new file.
            cursor.execute("PRAGMA locking_mode = EXCLUSIVE")
        # A commit of another connection may lock the file for a moment while this one opens it.
        cursor.execute(f"PRAGMA busy_timeout = {self._busy_timeout_ms}")
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
            f"wal_autocheckpoint = {self._wal_pages}",
            # A WAL that starts again has this length, which is held.
            f"journal_size_limit = {self._log_bytes}",
            # Later, only writers and checkpoints meet a lock; they must not wait for it on the event loop.
            "busy_timeout = 0",
        ):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    def _begin(self, connection: Connection) -> None:
        # A transaction that upgrades from a read lock may fail with "locked", so writers lock at their start.
        is_reader = connection.get_execution_options().get("federation_reads")
        driver = cast("sqlite3.Connection", connection.connection.driver_connection)
        # Directly on the driver, because it runs once per commit: executing through SQLAlchemy costs ten times as much.
        try:
            driver.execute("BEGIN" if is_reader else "BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            raise OperationalError("BEGIN", None, error) from error
