"""Connections and threads: one writer thread with one connection, a few reader threads, never the event loop.

Owns the engine from `open` to `close`, brings the schema up to date, and is the one seam where SQLAlchemy's
exceptions become ours. It knows nothing of keys or revisions. Store and journal share one `Database`, so that on
SQLite their writes queue up in one thread instead of waiting for each other's file lock. Read `writer.py` next.
"""

import asyncio
import contextlib
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from federation.base.errors import ConfigurationError, FederationError, StoreError, StoreUnavailable
from federation.store.dialects import dialect_of
from federation.store.migrate import migrate
from federation.store.options import StoreOptions

P = ParamSpec("P")
T = TypeVar("T")

READERS = 2


class Database:
    """One database, opened once; every method may be called from the event loop unless it says otherwise."""

    def __init__(self, url: str, options: StoreOptions) -> None:
        self.dialect = dialect_of(url, options)
        self.origin = uuid.uuid4().hex
        """Names this process in notifications, so that it can ignore its own."""
        self._engine: Engine | None = None
        self._connection: Connection | None = None
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="store-writer")
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="store-reader")
        self._users = 0
        self._guard = threading.Lock()

    async def open(self) -> None:
        """Connect and migrate, once; ConfigurationError or StoreUnavailable with the database's name and a remedy.

        Every successful `open` needs its `close`: the last one disconnects.
        """
        await asyncio.get_running_loop().run_in_executor(self._writer, self._open)

    async def close(self) -> None:
        """Wait for the work that was handed in, and disconnect when this was the last user."""
        if self._users:
            await asyncio.get_running_loop().run_in_executor(self._writer, self._close)
        if not self._users:
            self._readers.shutdown()
            self._writer.shutdown()

    def submit(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run `work` in the writer thread, after what was submitted before."""
        try:
            return self._writer.submit(work, *args, **kwargs)
        except RuntimeError as error:
            raise StoreUnavailable(f"{self.dialect.name} is closed") from error

    async def write(self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `work(connection, …)` in the writer thread in one transaction."""

        def transact() -> T:
            with self.writing() as connection:
                return work(connection, *args, **kwargs)

        return await asyncio.wrap_future(self.submit(transact))

    async def read(self, work: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run `work(connection, …)` in a reader thread on one snapshot."""

        def transact() -> T:
            with self.reading() as connection:
                return work(connection, *args, **kwargs)

        try:
            return await asyncio.wrap_future(self._readers.submit(transact))
        except RuntimeError as error:
            raise StoreUnavailable(f"{self.dialect.name} is closed") from error

    @contextlib.contextmanager
    def writing(self) -> Iterator[Connection]:
        """Give the writer's connection in one transaction. Only in the writer thread."""
        with self._translated():
            if self._connection is None:
                self._connection = self._opened().connect()
            with self._connection.begin():
                yield self._connection

    @contextlib.contextmanager
    def reading(self) -> Iterator[Connection]:
        """Give a pooled connection on one snapshot. Not on the event loop."""
        with self._translated(), self._opened().connect() as connection:
            yield connection.execution_options(**self.dialect.reading_options())

    def connect(self) -> Connection:
        """Return a connection of the caller's own, which it must close. Not on the event loop."""
        with self._translated():
            return self._opened().connect()

    def _open(self) -> None:
        with self._guard:
            if self._engine is None:
                self._engine = self.dialect.open()
                try:
                    self._migrate()
                except FederationError:
                    self._disconnect()
                    raise
            self._users += 1

    def _migrate(self) -> None:
        try:
            with self.writing() as connection:
                self.dialect.lock_migrations(connection)
                migrate(connection, self.dialect.name)
        except StoreError as error:
            # Before the first transaction a database error nearly always means a wrong path, right or address.
            if (
                isinstance(error.__cause__, DBAPIError)
                and self.dialect.remedy(error.__cause__)
                and not self._is_locked(error)
            ):
                raise ConfigurationError(str(error)) from error
            raise

    @staticmethod
    def _is_locked(error: StoreError) -> bool:
        return "lock" in str(error)

    def _close(self) -> None:
        with self._guard:
            self._users -= 1
            if not self._users:
                self._readers.shutdown()
                self._disconnect()

    def _disconnect(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(SQLAlchemyError):
                self._connection.close()
            self._connection = None
        if self._engine is not None:
            self._engine.dispose()
            self._engine = None
        self.dialect.close()

    def _opened(self) -> Engine:
        if self._engine is None:
            raise StoreUnavailable(f"{self.dialect.name} is not open")
        return self._engine

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except DBAPIError as error:
            reason = " ".join(str(error.orig).split())[:200]
            remedy = self.dialect.remedy(error)
            raise StoreUnavailable(f"{self.dialect.name}: {reason}" + (f"; {remedy}" if remedy else "")) from error
        except PoolTimeout as error:
            raise StoreUnavailable(f"{self.dialect.name}: all connections are busy") from error
