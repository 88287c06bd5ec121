"""What SQLite and PostgreSQL do differently, in one place: connecting, locking, waking other processes, error texts.

Everything else in this package is the same code for both. SQLite is held by one process (a lock file beside the
database says so), which makes its memory authoritative; a PostgreSQL database may be shared, so reads ask it for the
newest revision first and every commit notifies the others. Read `database.py` next.
"""

import fcntl
import os
from pathlib import Path
from typing import Any, Protocol

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.pool import QueuePool

from federation.base.errors import ConfigurationError
from federation.store.options import StoreOptions

CHANNEL = "federation_store"
READS = {"federation_reads": True}
"""Execution option of connections that only read: SQLite must not take its write lock for them."""


class Dialect(Protocol):
    """One kind of database."""

    url: URL
    name: str
    """The database in error messages: a file, or host and database without the password."""

    is_shared: bool
    """Whether other processes may write to the database while this one runs."""

    def open(self) -> Engine:
        """Return an engine; ConfigurationError when the address can never work."""
        ...

    def reading_options(self) -> dict[str, Any]:
        """Return the execution options under which one transaction sees one snapshot."""
        ...

    def lock_migrations(self, connection: Connection) -> None:
        """Keep other processes from migrating until this transaction ends."""
        ...

    def notify(self, connection: Connection, origin: str) -> None:
        """Wake the other processes when this transaction commits; `origin` names this one."""
        ...

    def remedy(self, error: DBAPIError) -> str:
        """Return what the operator can do about the error, "" when the error says it itself."""
        ...

    def close(self) -> None:
        """Release what `open` took beside the engine."""
        ...


class SQLite:
    """A file in WAL mode: readers never wait for the writer."""

    is_shared = False

    def __init__(self, url: URL, options: StoreOptions) -> None:
        if not url.database or url.database == ":memory:":
            raise ConfigurationError("store url: SQLite needs a file (sqlite:///PATH); use MemoryStore to keep nothing")
        self.url = url
        self.path = Path(url.database).absolute()
        self.name = f"database {self.path}"
        self._options = options
        self._lock: int | None = None

    def open(self) -> Engine:
        if not self.path.parent.is_dir():
            raise ConfigurationError(f"{self.name}: the directory does not exist; create {self.path.parent}")
        self._take_lock()
        self._create_private()
        arguments = {"check_same_thread": False, "timeout": self._options.busy_timeout_s, "isolation_level": None}
        engine = create_engine(self.url, poolclass=QueuePool, connect_args=arguments)
        event.listen(engine, "connect", self._configure)
        event.listen(engine, "begin", self._begin)
        return engine

    def reading_options(self) -> dict[str, Any]:
        return READS

    def lock_migrations(self, connection: Connection) -> None:
        """Nothing to add: BEGIN IMMEDIATE is the lock."""

    def notify(self, connection: Connection, origin: str) -> None:
        """Nobody to wake: the lock file keeps other processes out."""

    def remedy(self, error: DBAPIError) -> str:
        text = str(error.orig)
        for part, remedy in (
            ("locked", "another process holds it; stop that process"),
            ("readonly", f"make {self.path} and its directory writable for uid {os.geteuid()}"),
            ("unable to open", f"make {self.path} and its directory writable for uid {os.geteuid()}"),
            ("full", f"free space on the disk of {self.path.parent}"),
            ("not a database", f"{self.path} is another file or damaged; restore a backup or move it away"),
            ("malformed", f"{self.path} is damaged; restore a backup or move it away"),
        ):
            if part in text:
                return remedy
        return ""

    def close(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _configure(self, connection: Any, _record: object) -> None:
        cursor = connection.cursor()
        for pragma in (
            "journal_mode = WAL",
            f"synchronous = {self._options.synchronous}",
            "foreign_keys = ON",
            "temp_store = MEMORY",
            "cache_size = -8000",
            "mmap_size = 67108864",
            "wal_autocheckpoint = 2000",
            "journal_size_limit = 67108864",
        ):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @staticmethod
    def _begin(connection: Connection) -> None:
        # A transaction that reads first and writes later could fail with "locked" in between: writers lock at once.
        is_reader = connection.get_execution_options().get("federation_reads")
        connection.exec_driver_sql("BEGIN" if is_reader else "BEGIN IMMEDIATE")

    def _take_lock(self) -> None:
        path = self.path.with_name(self.path.name + ".lock")
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise ConfigurationError(
                f"{self.name}: cannot write {path}: {error.strerror}; change its permissions"
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
            os.close(descriptor)
            raise ConfigurationError(
                f"{self.name} is in use by process {holder}; stop it or use another file"
            ) from error
        os.truncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        self._lock = descriptor

    def _create_private(self) -> None:
        try:
            # Secrets are stored here; SQLite gives its side files the same mode.
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError as error:
            self.close()
            raise ConfigurationError(f"{self.name}: {error.strerror}; change the file's permissions") from error


class PostgreSQL:
    """A server that several processes may share."""

    is_shared = True

    def __init__(self, url: URL, options: StoreOptions) -> None:
        self.url = url.set(drivername="postgresql+psycopg")
        self.name = f"database {url.database} on {url.host or url.query.get('host') or 'the local socket'}"
        self._options = options

    def open(self) -> Engine:
        timeouts = f"-c lock_timeout={int(self._options.busy_timeout_s * 1000)} -c timezone=UTC"
        arguments = {"connect_timeout": 10, "options": timeouts, "application_name": "federation"}
        return create_engine(self.url, pool_pre_ping=True, pool_size=4, max_overflow=2, connect_args=arguments)

    def reading_options(self) -> dict[str, Any]:
        return {"isolation_level": "REPEATABLE READ"}

    def lock_migrations(self, connection: Connection) -> None:
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext('federation migrations'))")

    def notify(self, connection: Connection, origin: str) -> None:
        connection.exec_driver_sql(f"SELECT pg_notify('{CHANNEL}', '{origin}')")

    def remedy(self, error: DBAPIError) -> str:
        text = str(error.orig)
        for part, remedy in (
            ("password authentication", "check user and password of the store url"),
            ("does not exist", "create it, or correct the store url"),
            ("permission denied", "grant the user of the store url the right to create tables"),
            ("lock timeout", "another process holds the store's counter; look at pg_stat_activity"),
            ("read-only transaction", "connect to the primary server"),
            ("onnection", "check that the server runs and is reachable"),
        ):
            if part in text:
                return remedy
        return ""

    def close(self) -> None:
        """Nothing is held beside the engine."""


def dialect_of(url: str, options: StoreOptions) -> Dialect:
    """Return the dialect for a database URL; ConfigurationError when it does not parse or is of another kind."""
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise ConfigurationError(
            "store url: it does not parse; use sqlite:///PATH or postgresql://HOST/NAME"
        ) from error
    match parsed.get_backend_name():
        case "sqlite":
            return SQLite(parsed, options)
        case "postgresql" | "postgres":
            return PostgreSQL(parsed, options)
        case other:
            raise ConfigurationError(
                f"store url: {other} is not supported; use sqlite:///PATH or postgresql://HOST/NAME"
            )
