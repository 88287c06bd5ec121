"""What the store needs of a database, whichever it is: run a piece of synchronous SQLAlchemy Core in one transaction.

The pieces of work (`Callable[[Connection], T]`) are the same for SQLite and PostgreSQL; how they run without making
the event loop wait is not. A thread per write is the obvious way and the wrong one: under a busy event loop a thread
that needs the interpreter lock after every statement starves (measured: seconds per commit). So SQLite's statements,
microseconds each, run on the loop and a helper process waits for the disk (`sqlite.py`), and PostgreSQL is spoken to
without blocking (`postgres.py`). This module is the one seam where SQLAlchemy's exceptions become ours.
"""

import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Protocol, TypeVar

from sqlalchemy import Connection, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from federation.base.errors import ConfigurationError, StoreUnavailable
from federation.store.options import StoreOptions

T = TypeVar("T")


class Database(Protocol):
    """One database, used from one event loop."""

    name: str
    """The database in error messages: a file, or host and database without the password."""

    is_shared: bool
    """Whether other processes may write to it meanwhile."""

    async def open(self) -> None:
        """Connect and bring the schema up to date; ConfigurationError or StoreUnavailable with name and remedy."""
        ...

    async def close(self) -> None:
        """Disconnect; what was handed in before is done. A second call does nothing."""
        ...

    async def write(self, work: Callable[[Connection], T], *, is_durable: bool = True) -> T:
        """Run `work` in one transaction and return its result once that is durable, or, without `is_durable`, once it
        survives the end of this process. Writes run one after the other.

        StoreUnavailable when the database refuses or does not answer; the outcome is unknown if the connection broke
        during the commit.
        """
        ...

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Run `work`, which only reads, on one snapshot, beside other reads and writes."""
        ...

    def notify(self, connection: Connection) -> None:
        """Within a write: wake the other processes when it commits."""
        ...

    def changes(self) -> AsyncIterator[None]:
        """Yield once, then whenever another process may have committed; ends at once for a database of our own."""
        ...

    async def run(self) -> None:
        """Maintain the database until cancelled; returns at once when it maintains itself."""
        ...


def open_database(url: str, options: StoreOptions) -> Database:
    """Return the database at `url`, not yet connected; ConfigurationError when the URL cannot be right."""
    usage = "use sqlite:///PATH or postgresql://USER:PASSWORD@HOST/NAME"
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise ConfigurationError(f"store url: it does not parse; {usage}") from error
    match parsed.get_backend_name():
        case "sqlite":
            from federation.store.sqlite import SQLiteDatabase  # noqa: PLC0415  # it builds on this module

            return SQLiteDatabase(parsed, options)
        case "postgresql" | "postgres":
            from federation.store.postgres import PostgreSQLDatabase  # noqa: PLC0415  # likewise; its driver is large

            return PostgreSQLDatabase(parsed, options)
        case other:
            raise ConfigurationError(f"store url: {other} is not supported; {usage}")


@contextlib.contextmanager
def translated(name: str, remedies: tuple[tuple[str, str], ...]) -> Iterator[None]:
    """Turn SQLAlchemy's errors into StoreUnavailable with the database's name and the first remedy that fits."""
    try:
        yield
    except DBAPIError as error:
        # Without the statement, which PostgreSQL quotes: it may hold values.
        reason = " ".join(str(error.orig).partition("\nLINE ")[0].split())[:200]
        remedy = next((remedy for part, remedy in remedies if part in reason), "")
        raise StoreUnavailable(f"{name}: {reason}" + (f"; {remedy}" if remedy else "")) from error
    except PoolTimeout as error:
        raise StoreUnavailable(f"{name}: all connections are busy") from error
