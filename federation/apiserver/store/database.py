"""The database protocol: run a piece of synchronous SQLAlchemy Core in one transaction.

The pieces of work (`Callable[[Connection], T]`) are the same for SQLite and PostgreSQL; only the way to run them
without blocking the event loop differs. A thread per write does not work: under a busy event loop a thread that needs
the interpreter lock after every statement starves (measured: seconds per commit). So SQLite's statements, microseconds
each, run on the loop and a helper process waits for the disk (`sqlite.py`); PostgreSQL has an asynchronous driver
(`postgres.py`). This module is the one place where SQLAlchemy's exceptions are translated.
"""

import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Protocol, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError, StatementError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from federation.apimachinery.errors import StoreUnavailable

T = TypeVar("T")


class Database(Protocol):
    """One database, used from one event loop."""

    name: str
    """The name in error messages: a file, or host and database without the password."""

    is_shared: bool
    """Whether other processes may write to it."""

    def missing_file(self) -> Path | None:
        """Return the database's file when it is missing or empty, so that `open` creates it; None for a server."""
        ...

    is_full: bool
    """Whether the disk is full, so that only writes that free space are accepted."""

    bytes_used: int
    """The size without free pages when it was last measured: with a quota SQLite after each write, else
    within 0.1 s; PostgreSQL every 10 s."""

    async def open(self) -> None:
        """Connect and bring the schema up to date; ConfigurationError or StoreUnavailable with name and remedy."""
        ...

    async def close(self) -> None:
        """Finish submitted work and disconnect. A second call does nothing."""
        ...

    async def write(self, work: Callable[[Connection], T], *, is_durable: bool = True, frees_space: bool = False) -> T:
        """Run `work` in one transaction and return its result once that is durable or, without `is_durable`, once it
        survives the end of this process. Writes are serialized.

        On a full disk only work that `frees_space` is accepted: it removes at least as much as it adds, and may use the
        reserve.

        StoreUnavailable when the database refuses or does not answer; the outcome is unknown if the connection broke
        during the commit.
        """
        ...

    async def read(self, work: Callable[[Connection], T], *, is_one_statement: bool = False) -> T:
        """Run read-only `work` on one snapshot, concurrently with other reads and writes.

        With `is_one_statement`, which is a snapshot by itself, it costs no transaction; such reads are serialized.
        """
        ...

    def notify(self, connection: Connection) -> None:
        """Within a write: notify other processes when it commits."""
        ...

    def changes(self) -> AsyncIterator[None]:
        """Yield once, then whenever another process may have committed; end at once for a database not shared."""
        ...

    async def now(self) -> datetime | None:
        """Return the time of the server that all processes share; None for a database not shared."""
        ...

    async def erase_deleted(self) -> None:
        """Return when the files of the database no longer hold the values of deleted rows; best effort."""
        ...

    async def run(self) -> None:
        """Maintain the database until cancelled; return at once if it needs no maintenance."""
        ...


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
    except StatementError as error:
        # Without the statement and its values: they are those of the row.
        raise StoreUnavailable(
            f"{name}: a value has not the type of its column ({error.orig}); it is damaged"
        ) from None
    except PoolTimeout as error:
        raise StoreUnavailable(f"{name}: all connections are busy") from error
