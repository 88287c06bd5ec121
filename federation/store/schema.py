"""The tables, and the pair of versions that says who may use them.

`store_log` is the store: one row per change, numbered by revision. The newest row of a key is its current state, so a
value is written once and a write is one append; each row names the row that it replaced, which is all that compaction
and lists at older revisions need. `store_state` is the one counter row whose lock makes revision order commit order.

`SCHEMA_VERSION` is the version of these tables; `SCHEMA_COMPAT`, stored beside it, is the oldest version of this code
that may still use them, so that processes of the previous release keep running while a rolling update migrates. The
migrations in `migrations/versions` make what is declared here (a test compares them). Read `database.py` next.
"""

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    Table,
    Text,
)

from federation.store.interface import EventType

SCHEMA_VERSION = 3
SCHEMA_COMPAT = 1
MIGRATION_HEAD = "0003"

TYPES = (EventType.CREATED, EventType.UPDATED, EventType.DELETED)
"""What `store_log.type` stands for: the position in this tuple."""
CODES = {event_type: code for code, event_type in enumerate(TYPES)}

# SQLite calls a column its row number, which costs no second index, only when its type is exactly INTEGER.
_RowNumber = BigInteger().with_variant(Integer(), "sqlite")

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
    Column("revision", _RowNumber, primary_key=True, autoincrement=False),
    Column("key", Text, nullable=False),
    Column("type", SmallInteger, nullable=False),
    Column("create_revision", BigInteger, nullable=False),
    Column("previous_revision", BigInteger, nullable=True),
    # Last, so that SQLite reads the columns before it without following a large value's overflow pages.
    Column("value", LargeBinary, nullable=False),
)

decision = Table(
    "decision",
    metadata,
    Column("id", _RowNumber, Identity(always=False), primary_key=True),
    Column("at_us", BigInteger, nullable=False),
    Column("api_group", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("namespace", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("duration_ms", Float, nullable=False),
    Column("explanation", LargeBinary, nullable=False),
    Column("repeats", Integer, nullable=False, server_default="0"),
    Column("last_at_us", BigInteger, nullable=True),
    Index(None, "kind", "namespace", "name", "id"),
    Index(None, "at_us"),
)
