"""PostgreSQL: a database that several processes of one control plane may share.

SQLAlchemy's asyncio extension runs the same synchronous pieces of work on psycopg without blocking the event loop.
Every commit notifies the other processes (LISTEN/NOTIFY); they also poll, in case a notification was lost.

When the server's disk is full, only writes that free space are accepted: read `postgresroom.py`.

A session keeps the settings of its role, and the server, that it began with. So after an error that these may have
caused, such as "read-only transaction", it is closed, and all older sessions are before their next use: those that read
might be connected to a server that is a standby now.
"""

import asyncio
import contextlib
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from datetime import datetime
from typing import Any, TypeVar

import psycopg
import structlog
from sqlalchemy import URL, Connection, ExceptionContext, NullPool, create_engine, event, func, select
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from federation.apimachinery.errors import ConfigurationError, StoreUnavailable
from federation.apiserver.store.database import translated
from federation.apiserver.store.migrate import migrate
from federation.apiserver.store.options import StoreOptions
from federation.apiserver.store.postgresroom import ServerRoom, is_of_full_disk, live_bytes

T = TypeVar("T")

_log = structlog.get_logger(__name__)

_CHANNEL = "federation_store"
_REMEDIES = (
    ("password authentication", "check user and password of the store url"),
    ("does not exist", "create it, or correct the store url"),
    ("permission denied", "let the user of the store url create tables in the database"),
    ("lock timeout", "another process holds the store's counter; look at pg_stat_activity"),
    ("read-only transaction", "connect to the primary server"),
    ("idle-in-transaction", "this process was paused, and others wrote meanwhile"),
    ("No space left", "free space on the disk of the server"),
    ("onnection", "check that the server runs and is reachable"),
)
# Detects a dead connection to the server after some 20 seconds instead of the kernel's two hours.
_ARGUMENTS: dict[str, Any] = {
    "application_name": "federation",
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 2,
    "tcp_user_timeout": 20_000,
}
_SIZE_INTERVAL_S = 10.0
# Above the quota each measurement reads the table: it takes a fiftieth of the time at most.
_SIZE_PAUSE_FACTOR = 50
_ROOM_INTERVAL_S = 1.0
_ROOM_INTERVAL_S_MAX = 10.0
_FINAL = ("password authentication", "does not exist", "permission denied")
_WITHIN_SESSION = ("22", "23", "40", "42501", "53100", "55P03")
"""Beginnings of the SQLSTATEs of which a new session would not help: values, constraints, conflicts, rights, a full
disk and locks."""


class PostgreSQLDatabase:
    """`Database` on a server."""

    is_shared = True

    def __init__(self, url: URL, options: StoreOptions) -> None:
        self._url = url.set(drivername="postgresql+psycopg")
        self.name = f"database {url.database} on {url.host or url.query.get('host') or 'the local socket'}"
        self._options = options
        self.bytes_used = 0
        self.is_full = False
        self._room = ServerRoom(self.name, self._opened)
        # Set when the reserve may be incomplete, as at the start.
        self._is_room_due = asyncio.Event()
        self._is_room_due.set()
        # Set when a write has freed space on a full disk.
        self._has_freed = asyncio.Event()
        self._engine: AsyncEngine | None = None
        self._connection: AsyncConnection | None = None
        self._write_lock = asyncio.Lock()
        # Set when a session that is kept must be replaced before its next use.
        self._is_writer_old = self._is_reader_old = self._is_listener_old = False
        self._reader: AsyncConnection | None = None
        self._query_lock = asyncio.Lock()
        # Identifies this process in notifications, so that it can ignore its own.
        self._origin = uuid.uuid4().hex

    def missing_file(self) -> None:
        """Return None: the server owns the files."""

    async def open(self) -> None:
        if self._engine is not None:
            return
        arguments = _ARGUMENTS | {"options": f"-c lock_timeout={int(self._options.busy_timeout_s * 1000)}"}
        self._engine = create_async_engine(
            self._url,
            pool_pre_ping=True,
            pool_size=5,
            max_overflow=2,
            connect_args=arguments,
            hide_parameters=True,
        )
        event.listen(self._engine.sync_engine, "handle_error", self._notice_error)
        try:
            # In a thread, as for SQLite: Alembic's lock in migrate.py is held across round trips.
            await asyncio.get_running_loop().run_in_executor(None, self._migrate, arguments)
            await self._measure()
        except BaseException as error:
            await self._disconnect()
            if isinstance(error, StoreUnavailable) and any(part in str(error) for part in _FINAL):
                raise ConfigurationError(str(error)) from error
            raise

    async def close(self) -> None:
        async with self._write_lock, self._query_lock:
            await self._disconnect()

    async def write(self, work: Callable[[Connection], T], *, is_durable: bool = True, frees_space: bool = False) -> T:
        del is_durable  # the server's synchronous_commit decides for all
        async with self._write_lock:
            if self.is_full and not frees_space:
                raise StoreUnavailable(f"{self.name}: the disk is full; free space on the server's disk")
            with translated(self.name, _REMEDIES):
                try:
                    if self.is_full:
                        await self._room.shorten_log()
                    result = await self._transact(work)
                except DBAPIError as error:
                    if not is_of_full_disk(error):
                        raise
                    self._notice_full_disk()
                    if not frees_space:
                        raise
                    result = await self._transact_with_room(work)
            if self.is_full:
                self._has_freed.set()
            return result

    async def _transact_with_room(self, work: Callable[[Connection], T]) -> T:
        """Run work that removes what it replaces, now that the disk is known to be full."""
        for make_room in (None, self._room.vacuum, self._room.release, self._room.vacuum):
            if make_room is not None:
                await make_room()
            try:
                return await self._transact(work)
            except DBAPIError as error:
                if not is_of_full_disk(error):
                    raise
                last = error
        raise last

    def _notice_error(self, context: ExceptionContext) -> None:
        """Replace all sessions after an error that the session, or the server that it is connected to, may cause."""
        if context.connection is None:
            return  # No session began: the others are as they were.
        state = getattr(context.original_exception, "sqlstate", None)
        if state is not None and not state.startswith(_WITHIN_SESSION):
            context.is_disconnect = True
        # Without the second, it is a cancelled request, which ends its own session only.
        if context.is_disconnect and context.invalidate_pool_on_disconnect:
            self._is_writer_old = self._is_reader_old = self._is_listener_old = True

    async def _transact(self, work: Callable[[Connection], T]) -> T:
        if self._is_writer_old and self._connection is not None:
            await _close(self._connection)
            self._connection = None
        self._is_writer_old = False
        if self._connection is None:
            self._connection = await self._connect_writer()
        try:
            async with self._connection.begin():
                return await self._connection.run_sync(work)
        except BaseException:
            if await _closed_if_broken(self._connection):
                self._connection = None
            raise

    def _notice_full_disk(self) -> None:
        if not self.is_full:
            _log.error("the server's disk is full; only writes that free space are accepted", database=self.name)
        self.is_full = True
        self._is_room_due.set()

    async def _connect_writer(self) -> AsyncConnection:
        connection = await self._opened().connect()
        # The writer holds the lock of the store's counter between its statements, and all other processes wait for it.
        limit_ms = int(self._options.transaction_pause_s_max * 1000)
        await connection.exec_driver_sql(f"SET idle_in_transaction_session_timeout = {limit_ms}")
        await connection.commit()
        return connection

    async def read(self, work: Callable[[Connection], T], *, is_one_statement: bool = False) -> T:
        if is_one_statement:
            return await self._query(work)
        with translated(self.name, _REMEDIES):
            async with self._opened().connect() as connection:
                snapshot = await connection.execution_options(isolation_level="REPEATABLE READ")
                return await snapshot.run_sync(work)

    async def _query(self, work: Callable[[Connection], T]) -> T:
        async with self._query_lock:
            with translated(self.name, _REMEDIES):
                is_kept = self._reader is not None
                try:
                    return await self._query_once(work)
                except DBAPIError as error:
                    if not is_kept or not error.connection_invalidated:
                        raise
                    # The server was restarted since the last query. Another connection shows whether it runs again.
                    return await self._query_once(work)

    async def _query_once(self, work: Callable[[Connection], T]) -> T:
        if self._is_reader_old and self._reader is not None:
            await _close(self._reader)
            self._reader = None
        self._is_reader_old = False
        if self._reader is None:
            reader = await self._opened().connect()
            self._reader = await reader.execution_options(isolation_level="AUTOCOMMIT")
        try:
            return await self._reader.run_sync(work)
        except BaseException:
            if await _closed_if_broken(self._reader):
                self._reader = None
            raise

    def notify(self, connection: Connection) -> None:
        if self.is_full:
            return  # the queue of notifications may need a page; the others poll
        connection.exec_driver_sql(f"SELECT pg_notify('{_CHANNEL}', '{self._origin}')")

    async def changes(self) -> AsyncIterator[None]:
        while True:
            try:
                async with contextlib.aclosing(self._listen()) as notifications:
                    async for _ in notifications:
                        yield
            except (psycopg.Error, SQLAlchemyError) as error:
                _log.info("store listener reconnects", database=self.name, error=" ".join(str(error).split())[:200])
                await asyncio.sleep(self._options.tail_interval_s)

    async def now(self) -> datetime:
        query = select(func.clock_timestamp())
        found: datetime = await self.read(
            lambda connection: connection.execute(query).scalar_one(), is_one_statement=True
        )
        return found

    async def erase_deleted(self) -> None:
        """Return at once: the server's VACUUM frees deleted rows, and its WAL is recycled."""
        self._has_freed.set()

    async def run(self) -> None:
        """Measure the size and keep the reserve, until cancelled; the server maintains itself otherwise."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._keep_measuring(), name="store-size")
            tasks.create_task(self._keep_room(), name="store-room")

    async def _keep_measuring(self) -> None:
        pause_s = _SIZE_INTERVAL_S
        while True:
            await asyncio.sleep(pause_s)
            started_s = time.monotonic()
            try:
                await self._measure()
            except StoreUnavailable as error:
                _log.info("the size of the store cannot be measured", error=str(error))
            pause_s = max(_SIZE_INTERVAL_S, _SIZE_PAUSE_FACTOR * (time.monotonic() - started_s))

    async def _keep_room(self) -> None:
        """Write missing rows of the reserve; when there are all, and room for others, accept all writes again."""
        pause_s = _ROOM_INTERVAL_S
        while True:
            await self._is_room_due.wait()
            self._is_room_due.clear()
            self._has_freed.clear()
            try:
                await self._find_room()
            except StoreUnavailable as error:
                _log.debug("no room for the reserve", database=self.name, error=str(error))
                self._is_room_due.set()
            else:
                if self.is_full and not self._is_room_due.is_set():
                    self.is_full = False
                    _log.warning("the server's disk has room again; all writes are accepted", database=self.name)
            await asyncio.sleep(_ROOM_INTERVAL_S)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._has_freed.wait(), pause_s)
            pause_s = min(2 * pause_s, _ROOM_INTERVAL_S_MAX) if self.is_full else _ROOM_INTERVAL_S

    async def _find_room(self) -> None:
        with translated(self.name, _REMEDIES):
            try:
                if self.is_full or not await self._room.is_reserved():
                    await self._room.reserve()
            except DBAPIError as error:
                if is_of_full_disk(error):
                    self._notice_full_disk()
                raise

    async def _measure(self) -> None:
        query = select(func.pg_database_size(func.current_database()))
        size = await self.read(lambda connection: int(connection.execute(query).scalar_one()))
        if 0 < self._options.bytes_max < size:
            # The files do not shrink, but new rows use the space of deleted ones.
            size = min(size, await self.read(live_bytes, is_one_statement=True))
        self.bytes_used = size

    async def _listen(self) -> AsyncGenerator[None, None]:
        async with self._opened().connect() as connection:
            await connection.execution_options(isolation_level="AUTOCOMMIT")
            await connection.exec_driver_sql(f"LISTEN {_CHANNEL}")
            pooled = await connection.get_raw_connection()
            driver = pooled.driver_connection
            assert isinstance(driver, psycopg.AsyncConnection)
            self._is_listener_old = False
            try:
                while not self._is_listener_old:
                    yield
                    async for notification in driver.notifies(timeout=self._options.tail_interval_s):
                        if notification.payload != self._origin:
                            break
            finally:
                # A listening connection must not return to the pool.
                await connection.invalidate()

    def _migrate(self, arguments: dict[str, Any]) -> None:
        engine = create_engine(self._url, poolclass=NullPool, connect_args=arguments, hide_parameters=True)
        with translated(self.name, _REMEDIES), engine.begin() as connection:
            connection.exec_driver_sql("SET LOCAL lock_timeout = 0")
            connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext('federation migrations'))")
            connection.exec_driver_sql(f"SET LOCAL lock_timeout = {int(self._options.busy_timeout_s * 1000)}")
            migrate(connection, self.name)

    def _opened(self) -> AsyncEngine:
        if self._engine is None:
            raise StoreUnavailable(f"{self.name} is not open")
        return self._engine

    async def _disconnect(self) -> None:
        for connection in (self._connection, self._reader):
            if connection is not None:
                with contextlib.suppress(SQLAlchemyError):
                    await connection.close()
        self._connection = self._reader = None
        if self._engine is not None:
            await self._engine.dispose()
            self._engine = None


async def _closed_if_broken(connection: AsyncConnection) -> bool:
    """Return whether the connection cannot be used any more; then it is closed."""
    if not (connection.invalidated or connection.closed):
        return False
    await _close(connection)
    return True


async def _close(connection: AsyncConnection) -> None:
    """End the session, so that it does not return to the pool."""
    with contextlib.suppress(SQLAlchemyError):
        await connection.invalidate()
        await connection.close()
