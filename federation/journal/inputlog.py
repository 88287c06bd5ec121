"""The records of what decisions depended on, in the store's database: chunks of segments, written every few seconds.

Whole segments are removed, the oldest first, when they are too old or all together too large: a segment cannot be read
without its beginning. A crash may lose the last seconds. `federation/scheduling/replay` makes and reads the chunks.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Index,
    Integer,
    LargeBinary,
    Row,
    Table,
    delete,
    func,
    insert,
    select,
)
from sqlalchemy import Identity as IdentityColumn

from federation.apiserver.store.database import Database
from federation.apiserver.store.encryption import ValueCipher
from federation.apiserver.store.reencryption import EncryptedColumn
from federation.apiserver.store.schema import RowNumber, metadata
from federation.journal.decisions import ENCRYPTION_PREFIX
from federation.scheduling.replay.logentries import Chunk

inputs = Table(
    "decision_inputs",
    metadata,
    Column("id", RowNumber, IdentityColumn(always=False), primary_key=True),
    Column("segment", BigInteger, nullable=False),
    Column("number", Integer, nullable=False),
    Column("first_us", BigInteger, nullable=False),
    Column("last_us", BigInteger, nullable=False),
    Column("decisions", Integer, nullable=False),
    Column("content_bytes", Integer, nullable=False),
    Column("content", LargeBinary, nullable=False),
    # All that reads and removals compare, without the content.
    Index("ix_decision_inputs_segment", "segment", "number", "last_us", "content_bytes"),
)


class SQLInputLog:
    """Stores chunks and finds them again."""

    def __init__(self, database: Database, cipher: ValueCipher) -> None:
        self._database = database
        self._cipher = cipher

    async def append(self, chunk: Chunk) -> None:
        """Write a chunk."""
        content = self._cipher.encrypt(_to_name(chunk.segment, chunk.number), chunk.content)
        row = {
            "segment": chunk.segment,
            "number": chunk.number,
            "first_us": chunk.first_us,
            "last_us": chunk.last_us,
            "decisions": chunk.decisions,
            "content_bytes": len(content),
            "content": content,
        }
        await self._database.write(lambda connection: connection.execute(insert(inputs), [row]), is_durable=False)

    async def read(self, since_us: int, after: tuple[int, int], bytes_max: int) -> list[Chunk]:
        """Return the next chunks after a segment and number, of segments that have decisions since a time.

        At least one, and no more than `bytes_max` allows.
        """
        found = partial(_read, cipher=self._cipher, since_us=since_us, after=after, most=bytes_max)
        return await self._database.read(found)

    async def prune(self, oldest_us: int, bytes_max: int) -> None:
        """Remove the segments that ended before a time, and the oldest ones beyond the limit."""
        segments = await self._database.read(_segments)
        left = sum(size for _, _, size in segments)
        for segment, last_us, size in segments[:-1]:  # the newest is being written
            if last_us >= oldest_us and left <= bytes_max:
                continue
            left -= size
            await self._database.write(partial(_remove, segment=segment), is_durable=False, frees_space=True)

    def encrypted_column(self) -> EncryptedColumn:
        """Return the column that is encrypted anew after a rotation of keys."""
        return EncryptedColumn(inputs, inputs.c.id, inputs.c.content, _name_of)


def _to_name(segment: int, number: int) -> str:
    return f"{ENCRYPTION_PREFIX}inputs/{segment}/{number}"


def _name_of(row: Row[Any]) -> str:
    return _to_name(row.segment, row.number)


def _read(
    connection: Connection, *, cipher: ValueCipher, since_us: int, after: tuple[int, int], most: int
) -> list[Chunk]:
    wanted = select(inputs.c.segment).where(inputs.c.last_us >= since_us).distinct()
    is_later = (inputs.c.segment > after[0]) | ((inputs.c.segment == after[0]) & (inputs.c.number > after[1]))
    order = (inputs.c.segment, inputs.c.number)
    listed = select(inputs.c.id, inputs.c.content_bytes).where(inputs.c.segment.in_(wanted), is_later).order_by(*order)
    chosen: list[int] = []
    size = 0
    found = connection.execute(listed)
    for number, length in found:
        size += length
        if chosen and size > most:
            break
        chosen.append(number)
    found.close()
    rows = connection.execute(select(inputs).where(inputs.c.id.in_(chosen)).order_by(*order))
    return [
        Chunk(
            row.segment,
            row.number,
            row.first_us,
            row.last_us,
            row.decisions,
            cipher.decrypt(_name_of(row), row.content),
        )
        for row in rows
    ]


def _segments(connection: Connection) -> Sequence[tuple[int, int, int]]:
    query = select(inputs.c.segment, func.max(inputs.c.last_us), func.sum(inputs.c.content_bytes))
    rows = connection.execute(query.group_by(inputs.c.segment).order_by(inputs.c.segment))
    return [(int(segment), int(last_us), int(size)) for segment, last_us, size in rows]


def _remove(connection: Connection, segment: int) -> None:
    connection.execute(delete(inputs).where(inputs.c.segment == segment))
