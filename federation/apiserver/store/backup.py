"""Backups: a SQLite file with the current objects, whatever database they come from, and the restore of one.

A backup is taken from one snapshot while control planes run. It has the schema of its database, so a restore migrates
an old backup as a start migrates an old database. Values are copied as they are stored: encrypted ones stay encrypted.
Additional files, the keys of the API server, are in the table `backup_file`.

A restore fills an empty database in one transaction. It skips many revisions, so that no revision is given out twice:
clients that watch from before the loss get 410 and list again.
"""

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import (
    Column,
    Connection,
    LargeBinary,
    MetaData,
    Table,
    Text,
    delete,
    func,
    insert,
    inspect,
    select,
    update,
)
from sqlalchemy.exc import SQLAlchemyError

from federation.apimachinery.errors import ConfigurationError, StoreUnavailable
from federation.apimachinery.progress import Report, unreported
from federation.apiserver.store import maintenance
from federation.apiserver.store.checksums import checksum, is_intact
from federation.apiserver.store.history import read_state
from federation.apiserver.store.interface import EventType
from federation.apiserver.store.migrate import migrate, read_versions, revision_of
from federation.apiserver.store.schema import CODES, SCHEMA_VERSION, log, schema_version, state
from federation.apiserver.store.sqliteroom import RESERVE

REVISIONS_SKIPPED = 1_000_000_000
"""More than a control plane writes between a backup and its restore."""
_REVISION_MAX = 2**62
"""More than any database reaches, and less than the largest number that it can store."""
_CHUNK = 500
_about = Table(
    "backup_about",
    MetaData(),
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)
_files = Table(
    "backup_file",
    MetaData(),
    Column("path", Text, primary_key=True),
    Column("content", LargeBinary, nullable=False),
)
_OWN_TABLES = frozenset({schema_version.name, state.name, RESERVE, "alembic_version", _about.name, _files.name})
Transform = Callable[[str, bytes], bytes]
"""Returns the bytes to restore for a key and its plain stored bytes."""


@dataclass(frozen=True, slots=True)
class About:
    """The description that a backup contains."""

    created_at: datetime
    written_by: str
    version: int
    """The schema of its database."""
    revision: int
    objects: int
    damaged: tuple[str, ...] = ()
    """Keys of objects that were damaged when the backup was made."""


def write_backup(
    url: str,
    file: Path,
    files: Mapping[str, bytes],
    *,
    now: datetime,
    written_by: str,
    report: Report = unreported,
) -> About:
    """Write the database's objects and the files into a new private file, which appears when it is complete."""
    if file.exists():
        raise ConfigurationError(f"{file} exists; name another file, or remove it first")
    name = maintenance.name_of(url)
    with maintenance.reading(url) as source, _new_file(file) as temporary:
        version, _ = read_versions(source, name)
        if not 0 < version <= SCHEMA_VERSION:
            raise ConfigurationError(
                f"{name} has schema {version}, and this version knows 1 to {SCHEMA_VERSION}; use the fedctl of the "
                "version that runs"
            )
        with maintenance.exclusively(f"sqlite:///{temporary}") as target:
            migrate(target, str(temporary), revision_of(version))
            revision, _, _ = read_state(source)
            objects, damaged = _copy_objects(source, target, report)
            for table in _other_tables(source):
                _copy(source, target, table, report)
            target.execute(update(state).values(revision=revision, compacted=revision, purged=revision))
            _about.create(target)
            _files.create(target)
            about = About(now.astimezone(UTC), written_by, version, revision, objects, tuple(damaged))
            target.execute(insert(_about), [{"name": key, "value": text} for key, text in _to_text(about).items()])
            if files:
                target.execute(insert(_files), [{"path": path, "content": data} for path, data in files.items()])
    return about


class Restored(NamedTuple):
    """A database after a restore: its revision, and the keys of objects that are damaged in the backup."""

    revision: int
    damaged: tuple[str, ...]


def read_backup(file: Path) -> tuple[About, dict[str, bytes]]:
    """Return what the backup says about itself, and its files; ConfigurationError for another file."""
    if not file.is_file():
        raise ConfigurationError(f"backup {file} does not exist; give a file that `fedctl backup` has written")
    with maintenance.reading(f"sqlite:///{file}") as connection:
        if not inspect(connection).has_table(_about.name):
            raise ConfigurationError(f"{file} is no backup; give a file that `fedctl backup` has written")
        try:
            found = {row.name: row.value for row in connection.execute(select(_about))}
            files = {row.path: row.content for row in connection.execute(select(_files))}
            about = _to_about(found)
            stored = int(connection.execute(select(state.c.revision)).scalar_one())
        except (SQLAlchemyError, KeyError, ValueError, TypeError) as error:
            raise ConfigurationError(f"{file} is damaged; restore another backup") from error
    if not (0 <= about.revision <= _REVISION_MAX and 0 <= stored <= _REVISION_MAX):
        raise ConfigurationError(f"{file} is damaged: its revision is {stored}; restore another backup")
    return about, files


def _to_about(found: Mapping[str, str]) -> About:
    at, by = datetime.fromisoformat(found["createdAt"]), found["writtenBy"]
    return About(at, by, int(found["schema"]), int(found["revision"]), int(found["objects"]))


def restore_backup(
    file: Path, url: str, *, is_replacement: bool, transform: Transform, report: Report = unreported
) -> Restored:
    """Fill the database from the backup; `is_replacement` discards the objects that it has."""
    target_file = maintenance.file_of(url)
    with _migrated_copy(file, (target_file or file).parent) as copy, maintenance.reading(f"sqlite:///{copy}") as source:
        if target_file is None:
            with maintenance.exclusively(url) as target:
                migrate(target, maintenance.name_of(url))
                return _fill(source, target, maintenance.name_of(url), transform, report, is_replacement=is_replacement)
        return _replace_file(source, target_file, transform, report, is_replacement=is_replacement)


def continue_database(url: str, transform: Transform) -> int:
    """Let a database that was restored by other means go on as after `restore_backup`, and return its revision.

    Its objects stay, without their history, and get later revisions than any that it gave out before.
    """
    with maintenance.exclusively(url) as connection:
        table = maintenance.reflected(connection, log.name)
        newest = select(func.max(table.c.revision)).group_by(table.c.key)
        connection.execute(delete(table).where(table.c.revision.not_in(newest)))
        connection.execute(delete(table).where(table.c.type == CODES[EventType.DELETED]))
        for row in list(maintenance.current_rows(connection, table)):
            if (changed := transform(row.key, row.value)) != row.value:
                values = {"value": changed, "checksum": checksum(row.key, changed)}
                connection.execute(update(table).where(table.c.revision == row.revision).values(values))
        revision = read_state(connection)[0] + REVISIONS_SKIPPED
        connection.execute(update(state).values(revision=revision, compacted=revision, purged=revision))
    return revision


def _replace_file(
    source: Connection, file: Path, transform: Transform, report: Report, *, is_replacement: bool
) -> Restored:
    """Build a new SQLite file beside the old one, and put it in its place when it is complete."""
    with maintenance.locked(file):
        if file.is_file() and file.stat().st_size and not is_replacement:
            raise ConfigurationError(f"database {file} exists; give --replace to put the backup in its place")
        with _new_file(file, is_replacement=is_replacement) as temporary:
            with maintenance.exclusively(f"sqlite:///{temporary}") as target:
                migrate(target, str(temporary))
                known = _revision_in(file) if is_replacement else 0
                restored = _fill(source, target, str(file), transform, report, is_replacement=False, known=known)
            for suffix in ("-wal", "-shm"):  # they belong to the old file, and would be applied to the new one
                file.with_name(file.name + suffix).unlink(missing_ok=True)
    return restored


def _revision_in(file: Path) -> int:
    """Return the revision of the database that is replaced, 0 when it cannot be read."""
    with (
        contextlib.suppress(ConfigurationError, StoreUnavailable),
        maintenance.reading(f"sqlite:///{file}") as connection,
    ):
        return read_state(connection)[0]
    return 0


def _fill(
    source: Connection,
    target: Connection,
    name: str,
    transform: Transform,
    report: Report,
    *,
    is_replacement: bool,
    known: int = 0,
) -> Restored:
    current, _, _ = read_state(target, is_locking=target.dialect.name != "sqlite")
    if current and not is_replacement:
        raise ConfigurationError(f"{name} holds objects; give --replace to put the backup in their place")
    for table in (log.name, *_other_tables(target)):
        target.execute(delete(maintenance.reflected(target, table)))
    _, damaged = _copy_objects(source, target, report, transform)
    for table in _other_tables(source):
        _copy(source, target, table, report)
    revision = max(read_state(source)[0], current, known) + REVISIONS_SKIPPED
    target.execute(update(state).values(revision=revision, compacted=revision, purged=revision))
    return Restored(revision, tuple(damaged))


def _copy_objects(
    source: Connection, target: Connection, report: Report, transform: Transform | None = None
) -> tuple[int, list[str]]:
    table, destination = maintenance.reflected(source, log.name), maintenance.reflected(target, log.name)
    has_checksums = "checksum" in destination.columns
    count, damaged = 0, []
    rows: list[dict[str, Any]] = []
    for row in maintenance.current_rows(source, table):
        count += 1
        # The replaced row is not in the backup.
        values = {**row._mapping, "previous_revision": None}
        if not is_intact(row.key, row.value, getattr(row, "checksum", None)):
            damaged.append(str(row.key))
        elif transform is not None and (changed := transform(row.key, row.value)) != row.value:
            values |= {"value": changed} | ({"checksum": checksum(row.key, changed)} if has_checksums else {})
        rows.append(values)
        if len(rows) == _CHUNK:
            target.execute(insert(destination), rows)
            rows = []
            report(f"copying objects: {count}")
    if rows:
        target.execute(insert(destination), rows)
    return count, damaged


def _copy(source: Connection, target: Connection, name: str, report: Report) -> None:
    """Copy a whole table; an identity column keeps its numbers, and PostgreSQL continues after them."""
    table, destination = maintenance.reflected(source, name), maintenance.reflected(target, name)
    result = source.execute(select(table), execution_options={"yield_per": _CHUNK})
    copied = 0
    for rows in result.mappings().partitions(_CHUNK):
        target.execute(insert(destination), [dict(row) for row in rows])
        copied += len(rows)
        report(f"copying table {name}: {copied} rows")
    if target.dialect.name == "postgresql":
        for column in destination.primary_key.columns:
            sequence = func.pg_get_serial_sequence(name, column.name)
            target.execute(select(func.setval(sequence, func.coalesce(func.max(column), 0) + 1, False)))


def _other_tables(connection: Connection) -> list[str]:
    """Return the tables beside the store's: those of the journal."""
    return sorted(set(inspect(connection).get_table_names()) - _OWN_TABLES - {log.name})


@contextlib.contextmanager
def _migrated_copy(file: Path, folder: Path) -> Iterator[Path]:
    """Yield a copy of the backup with this version's schema."""
    try:
        handle, name = tempfile.mkstemp(dir=folder, prefix=".restore.")
    except OSError as error:
        raise ConfigurationError(f"{folder}: {error.strerror}; use a folder that exists and is writable") from error
    copy = Path(name)
    try:
        with os.fdopen(handle, "wb") as written, file.open("rb") as read:
            while block := read.read(1 << 20):
                written.write(block)
        with maintenance.exclusively(f"sqlite:///{copy}") as connection:
            migrate(connection, f"backup {file}")
        yield copy
    finally:
        _remove(copy)


@contextlib.contextmanager
def _new_file(file: Path, *, is_replacement: bool = False) -> Iterator[Path]:
    """Yield the path of a private file beside `file`, which gets its name when the block is complete and durable."""
    try:
        handle, name = tempfile.mkstemp(dir=file.absolute().parent, prefix=f".{file.name}.")
    except OSError as error:
        raise ConfigurationError(f"{file}: {error.strerror}; use a folder that exists and is writable") from error
    temporary = Path(name)
    try:
        yield temporary
        os.fsync(handle)
        if is_replacement:
            temporary.replace(file)
        else:
            os.link(temporary, file)  # fails for a file that was created meanwhile
        _sync_folder(file.absolute().parent)
    except FileExistsError as error:
        raise ConfigurationError(f"{file} exists; name another file, or remove it first") from error
    finally:
        os.close(handle)
        _remove(temporary)


def _remove(file: Path) -> None:
    for suffix in ("", "-journal", "-wal", "-shm", ".lock"):
        file.with_name(file.name + suffix).unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _to_text(about: About) -> dict[str, str]:
    return {
        "createdAt": about.created_at.isoformat(timespec="microseconds"),
        "writtenBy": about.written_by,
        "schema": str(about.version),
        "revision": str(about.revision),
        "objects": str(about.objects),
    }
