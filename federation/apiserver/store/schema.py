"""The tables and the schema's version pair.

`store_log` has one row per change, numbered by revision, as in kine. The newest row of a key is its current state, so
a write is one append. Each row names the row that it replaced, for compaction and lists at older revisions.
`store_state` is a single counter row; its lock makes the revision order the commit order.

`SCHEMA_VERSION` is the version of these tables; `SCHEMA_COMPAT`, stored beside it, is the oldest code version that may
use them, so that processes of the previous release keep running during a rolling update. A test compares the
migrations in `migrations/versions` with these declarations. Read `database.py` next.
"""

from sqlalchemy import (
    BigInteger,
    Column,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
)

from federation.apiserver.store.interface import EventType

SCHEMA_VERSION = 6
SCHEMA_COMPAT = 1
MIGRATION_HEAD = "0006"

TYPES = (EventType.CREATED, EventType.UPDATED, EventType.DELETED)
"""`store_log.type` is a position in this tuple."""
CODES = {event_type: code for code, event_type in enumerate(TYPES)}

RowNumber = BigInteger().with_variant(Integer(), "sqlite")
"""SQLite uses a primary key as the row number, without a second index, only if its type is exactly INTEGER."""

metadata = MetaData(
    naming_convention={"ix": "ix_%(table_name)s_%(column_0_N_name)s", "pk": "pk_%(table_name)s"},
)

schema_version = Table(
    "federation_schema",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("version", Integer, nullable=False),
    Column("compat", Integer, nullable=False),
)

state = Table(
    "store_state",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("revision", BigInteger, nullable=False),
    Column("compacted", BigInteger, nullable=False),
    Column("purged", BigInteger, nullable=False),
)

log = Table(
    "store_log",
    metadata,
    Column("revision", RowNumber, primary_key=True, autoincrement=False),
    Column("key", Text, nullable=False),
    Column("type", SmallInteger, nullable=False),
    Column("create_revision", BigInteger, nullable=False),
    Column("previous_revision", BigInteger, nullable=True),
    # NULL in rows of versions before schema 4; see `checksums.py`.
    Column("checksum", BigInteger, nullable=True),
    # Last, so that SQLite reads the columns before it without following a large value's overflow pages.
    Column("value", LargeBinary, nullable=False),
)
