"""Access to a database from outside of a control plane, for `fedctl db`, `backup` and `restore`.

`reading` gives one snapshot while a control plane runs; `exclusively` gives one transaction that no control plane
disturbs: on SQLite it takes the lock that a running one holds, on PostgreSQL the lock of migrations. Unlike
`Database.open`, neither changes the schema. Synchronous: the caller has nothing else to do. Read `backup.py` next.
"""

import contextlib
import os
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    MetaData,
    NullPool,
    Row,
    Table,
    create_engine,
    event,
    func,
    select,
)
from sqlalchemy.exc import NoSuchTableError

from federation.apimachinery import progress
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.lockfile import read_owner, try_lock
from federation.apiserver.store.checksums import is_intact
from federation.apiserver.store.database import translated
from federation.apiserver.store.databases import open_database, parsed_url
from federation.apiserver.store.history import read_state
from federation.apiserver.store.interface import EventType
from federation.apiserver.store.migrate import downgrade, migrate, read_versions, revision_of
from federation.apiserver.store.options import StoreOptions
from federation.apiserver.store.schema import CODES, SCHEMA_VERSION, log

_REMEDIES = (
    ("not a database", "it is another file or damaged; restore a backup"),
    ("malformed", "it is damaged; restore a backup"),
    ("readonly", "make the file and its folder writable"),
    ("unable to open", "check that the file exists and that you may read it and its folder"),
    ("locked", "another process holds it; stop that process"),
    ("password authentication", "check user and password of the store url"),
    ("does not exist", "create it, or correct the store url"),
    ("onnection", "check that the server runs and is reachable"),
)
_CHUNK = 500


@dataclass(frozen=True, slots=True)
class Report:
    """The findings of a check."""

    version: int
    compat: int
    revision: int
    objects: int
    bytes: int
    damaged: tuple[str, ...]
    """Keys of objects whose row does not match its checksum, and what SQLite says about its file."""

    @property
    def is_upgrade_due(self) -> bool:
        """Whether the next start of this version migrates the database."""
        return self.version < SCHEMA_VERSION


def name_of(url: str) -> str:
    """Return the database's name for messages; ConfigurationError when the URL cannot be right."""
    return open_database(url, StoreOptions()).name


def file_of(url: str) -> Path | None:
    """Return the file of a SQLite database, None for a server."""
    parsed = parsed_url(url)
    return Path(parsed.database).absolute() if parsed.get_backend_name() == "sqlite" and parsed.database else None


@contextlib.contextmanager
def reading(url: str) -> Iterator[Connection]:
    """Yield a connection that sees one snapshot. Control planes may run; ConfigurationError, StoreUnavailable."""
    name, file = name_of(url), file_of(url)
    if file is not None and not (file.is_file() and file.stat().st_size):
        raise ConfigurationError(f"{name} does not exist or is empty; check --dir and FEDERATION_STORE_URL")
    engine = (
        _sqlite(file, "ro")
        if file is not None
        else _server(url).execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
    )
    with translated(name, _REMEDIES), _disposing(engine), engine.begin() as connection:
        yield connection


@contextlib.contextmanager
def exclusively(url: str) -> Iterator[Connection]:
    """Yield a connection in one transaction; ConfigurationError when a control plane uses the SQLite file."""
    name, file = name_of(url), file_of(url)
    if file is None:
        engine = _server(url)
        with translated(name, _REMEDIES), _disposing(engine), engine.begin() as connection:
            connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext('federation migrations'))")
            yield connection
        return
    with locked(file):
        engine = _sqlite(file, "rwc")
        with translated(name, _REMEDIES), _disposing(engine), engine.begin() as connection:
            yield connection


@contextlib.contextmanager
def locked(file: Path) -> Iterator[None]:
    """Hold the lock of a SQLite database; ConfigurationError when a process uses it."""
    path = file.with_name(file.name + ".lock")
    try:
        lock = try_lock(path)
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror}; use a folder that exists and is writable") from error
    if lock is None:
        raise ConfigurationError(f"database {file} is in use by process {read_owner(path)}; stop that process first")
    try:
        yield
    finally:
        os.close(lock)


def check(url: str, report: progress.Report = progress.unreported) -> Report:
    """Read the whole database and return what is in it; ConfigurationError for one of a version that is too new."""
    name = name_of(url)
    with reading(url) as connection:
        version, compat = read_versions(connection, name)
        if not version:
            raise ConfigurationError(f"{name} has no tables of a control plane; check --dir and FEDERATION_STORE_URL")
        revision, _, _ = read_state(connection)
        objects = size = 0
        damaged = list(_file_damage(connection))
        for row in current_rows(connection, reflected(connection, log.name)):
            objects += 1
            report(f"reading objects: {objects}")
            size += len(row.value)
            if not is_intact(row.key, row.value, getattr(row, "checksum", None)):
                damaged.append(str(row.key))
    return Report(version, compat, revision, objects, size, tuple(damaged))


def change_schema(url: str, target: int) -> tuple[int, int]:
    """Migrate the database up or down to schema `target`; return the versions before and after."""
    name, file = name_of(url), file_of(url)
    if not 1 <= target <= SCHEMA_VERSION:
        raise ConfigurationError(f"schema {target} is not between 1 and {SCHEMA_VERSION}, which this version knows")
    if file is not None and not file.is_file():
        raise ConfigurationError(f"{name} does not exist; check --dir and FEDERATION_STORE_URL")
    with exclusively(url) as connection:
        before, compat = read_versions(connection, name)
        if before > SCHEMA_VERSION:
            raise ConfigurationError(
                f"{name} has schema {before}, newer than the {SCHEMA_VERSION} of this version (compatible with "
                f"{compat}); run this command of the newer version"
            )
        if target < before:
            downgrade(connection, revision_of(target))
        elif target > before:
            migrate(connection, name, revision_of(target))
        after, _ = read_versions(connection, name)
    return before, after


def reflected(connection: Connection, table: str) -> Table:
    """Return a table with the columns that it has in this database, which may be of an older schema.

    ConfigurationError if it has none of that name.
    """
    try:
        return Table(table, MetaData(), autoload_with=connection)
    except NoSuchTableError as error:
        raise ConfigurationError(f"the table {error} is missing; the file is damaged, or of another program") from error


def current_rows(connection: Connection, table: Table) -> Iterator[Row[Any]]:
    """Yield the newest row of each object that exists, by revision, from the reflected log."""
    newest = select(func.max(table.c.revision)).group_by(table.c.key)
    query = (
        select(table)
        .where(table.c.revision.in_(newest), table.c.type != CODES[EventType.DELETED])
        .order_by(table.c.revision)
    )
    yield from connection.execute(query, execution_options={"yield_per": _CHUNK})


def _file_damage(connection: Connection) -> Iterator[str]:
    if connection.dialect.name == "sqlite":
        for (line,) in connection.exec_driver_sql("PRAGMA quick_check(10)"):
            if line != "ok":
                yield str(line)


def _sqlite(file: Path, mode: str) -> Engine:
    def connect() -> sqlite3.Connection:
        connection = sqlite3.connect(f"{file.as_uri()}?mode={mode}", uri=True, timeout=5, isolation_level=None)
        connection.text_factory = lambda text: text.decode(errors="backslashreplace")
        if mode != "ro":
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # of a new file, as the store creates it
        return connection

    engine = create_engine("sqlite://", creator=connect, poolclass=NullPool, hide_parameters=True)
    begin = "BEGIN" if mode == "ro" else "BEGIN IMMEDIATE"
    event.listen(engine, "begin", lambda connection: connection.exec_driver_sql(begin))
    return engine


def _server(url: str) -> Engine:
    parsed: URL = parsed_url(url).set(drivername="postgresql+psycopg")
    return create_engine(parsed, poolclass=NullPool, connect_args={"connect_timeout": 10}, hide_parameters=True)


@contextlib.contextmanager
def _disposing(engine: Engine) -> Iterator[None]:
    try:
        yield
    finally:
        engine.dispose()
