"""Room on the disk of a PostgreSQL server, which others may fill.

A deletion on a full disk only marks rows as deleted (`writer.py` adds none then), so it needs no page of a table. An
update of an object that is being deleted adds a row before VACUUM gives back the one that it replaced. For these the
log of changes has a reserve: rows with negative revisions, which every version ignores. Their space is in the table's
own files, where no other program can take it, and VACUUM, which never truncates these tables, keeps it there.

The server's log (WAL) is the other need. The server keeps `min_wal_size` of it in files that it uses again after each
checkpoint, so a checkpoint comes early enough while the disk is full.

Decision: docs/decisions/0225-room-for-deletions-in-postgresql.md
"""

import asyncio
import os
from collections.abc import Callable

import structlog
from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

_log = structlog.get_logger(__name__)

_DISK_FULL = "53100"
_NOT_ALLOWED = "42501"
# Each row of a value below 2 KB is in the table itself, and has an entry in a page of the index.
_SMALL_ROWS, _SMALL_BYTES = 2_048, 480
_LARGE_ROWS, _LARGE_BYTES = 2, 1 << 20
_ROWS = _SMALL_ROWS + _LARGE_ROWS
# Free pages for so many more rows end the state of a full disk.
_SPARE_SMALL_ROWS, _SPARE_LARGE_ROWS = 64, 1
_COUNT = text("SELECT count(*) FROM store_log WHERE revision < 0")
_RELEASE = text("DELETE FROM store_log WHERE revision < 0")
_DELETE_SPARE = text("DELETE FROM store_log WHERE revision < :last")
_LACKS_MAPS = text("SELECT pg_relation_size('store_log', 'vm') = 0 OR pg_relation_size('pk_store_log', 'fsm') = 0")
# As a deletion of a key that no object has. The values are random, because others would be compressed.
_INSERT = text(
    "WITH reserve AS (SELECT generate_series(CAST(:first AS bigint), CAST(:last AS bigint)) AS number)"
    " INSERT INTO store_log (revision, key, type, create_revision, value)"
    " SELECT -number, '', 2, 0, CAST(:value AS bytea) FROM reserve ON CONFLICT DO NOTHING"
)
# Autovacuum would give free pages at the end of the files to the disk.
_KEEP_PAGES = text("ALTER TABLE store_log SET (vacuum_truncate = false, toast.vacuum_truncate = false)")
_VACUUMS = (
    "VACUUM (TRUNCATE FALSE, INDEX_CLEANUP ON) store_log",
    # Without the indexes, whose maps of free space may need a page.
    "VACUUM (TRUNCATE FALSE, INDEX_CLEANUP OFF) store_log",
)
_IS_LOG_LONG = text(
    "SELECT pg_current_wal_lsn() - redo_lsn > pg_size_bytes(current_setting('min_wal_size')) / 4"
    " FROM pg_control_checkpoint()"
)
_LOG_CHECK_S = 0.2
# The size of the database without what the log of changes has beside its rows: deleted rows and free pages.
_LIVE_BYTES = text(
    "SELECT pg_database_size(current_database()) - pg_total_relation_size('store_log')"
    " + coalesce(sum(pg_column_size(value) + 200), 0) FROM store_log WHERE revision >= 0"
)


def is_of_full_disk(error: DBAPIError) -> bool:
    return getattr(error.orig, "sqlstate", None) == _DISK_FULL


class ServerRoom:
    """The reserve, the free pages and the write-ahead log of one database. Errors are SQLAlchemy's."""

    def __init__(self, name: str, engine: Callable[[], AsyncEngine]) -> None:
        self._name = name
        self._engine = engine
        self._vacuuming = asyncio.Lock()
        self._may_checkpoint = True

    async def is_reserved(self) -> bool:
        async with self._engine().connect() as connection:
            return int((await connection.execute(_COUNT)).scalar_one()) >= _ROWS

    async def reserve(self) -> None:
        """Write the missing rows of the reserve, if there is room for some other writes as well."""
        await self.vacuum()
        await self._write_maps()
        async with self._engine().begin() as connection:
            await _insert_rows(connection, 0, _SMALL_ROWS, _LARGE_ROWS)
            await _insert_rows(connection, _ROWS, _SPARE_SMALL_ROWS, _SPARE_LARGE_ROWS)
            await connection.execute(_DELETE_SPARE, {"last": -_ROWS})
        await self.vacuum()

    async def _write_maps(self) -> None:
        """Have the maps of free space and of visible rows written, which VACUUM needs and a full disk has no page for.

        That of an index is written when VACUUM finds pages that an earlier one has removed.
        """
        async with self._engine().connect() as connection:
            if not (await connection.execute(_LACKS_MAPS)).scalar_one():
                return
        async with self._engine().begin() as connection:
            await connection.execute(_KEEP_PAGES)
        for _ in range(2):
            async with self._engine().connect() as connection:
                await _insert_rows(connection, 0, _SMALL_ROWS, _LARGE_ROWS)
                await connection.rollback()
            await self.vacuum()

    async def release(self) -> None:
        """Give the reserve to the other rows of the table."""
        async with self._engine().begin() as connection:
            await connection.execute(_RELEASE)
        await self.vacuum()

    async def vacuum(self) -> None:
        """Make the space of deleted rows usable for others, as far as no open transaction may still read them."""
        async with self._vacuuming:
            for statement in _VACUUMS:
                try:
                    await self._vacuum(statement)
                except DBAPIError as error:
                    _log.info("the server cannot vacuum", database=self._name, error=_brief(error))
                    continue
                return

    async def _vacuum(self, statement: str) -> None:
        running = asyncio.ensure_future(self._execute(statement))
        try:
            while not (await asyncio.wait([running], timeout=_LOG_CHECK_S))[0]:
                await self.shorten_log()
            running.result()
        finally:
            running.cancel()

    async def shorten_log(self) -> None:
        """Have a checkpoint made before the server's log needs another file, if this user may."""
        if not self._may_checkpoint:
            return
        try:
            async with self._engine().connect() as connection:
                is_long = (await connection.execute(_IS_LOG_LONG)).scalar_one()
            if is_long:
                await self._execute("CHECKPOINT")
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) == _NOT_ALLOWED:
                self._may_checkpoint = False
                _log.warning("the user of the store may not CHECKPOINT: GRANT pg_checkpoint", database=self._name)
            else:
                _log.info("the server's log cannot be shortened", database=self._name, error=_brief(error))

    async def _execute(self, statement: str) -> None:
        """Run a statement that cannot be in a transaction."""
        async with self._engine().connect() as connection:
            outside = await connection.execution_options(isolation_level="AUTOCOMMIT")
            await outside.exec_driver_sql(statement)


def live_bytes(connection: Connection) -> int:
    """Return the size of the database without free pages and deleted rows. It reads the table, not large values."""
    return int(connection.execute(_LIVE_BYTES).scalar_one())


async def _insert_rows(connection: AsyncConnection, after: int, small: int, large: int) -> None:
    for count, size in ((small, _SMALL_BYTES), (large, _LARGE_BYTES)):
        await connection.execute(_INSERT, {"first": after + 1, "last": after + count, "value": os.urandom(size)})
        after += count


def _brief(error: DBAPIError) -> str:
    return " ".join(str(error.orig).split())[:200]
