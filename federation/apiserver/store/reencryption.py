"""Encrypts stored values again that are plain or encrypted with an older key, after encryption or a new key was added.

It runs once per start, in the background and in small transactions. A row that does not decrypt stays as it is and is
reported. The metric says when an old key can be removed. Other processes on the same database must know the new key
before it is first anywhere.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import structlog
from prometheus_client import Counter, Gauge
from sqlalchemy import Column, Connection, Row, Table, select, update

from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import StoreUnavailable
from federation.apiserver.store.checksums import checksum, is_intact
from federation.apiserver.store.database import Database
from federation.apiserver.store.encryption import ValueCipher

_log = structlog.get_logger(__name__)
_rewritten = Counter("federation_store_reencrypted_rows_total", "Rows encrypted again with the first key", ["table"])
_pending = Gauge(
    "federation_store_reencryption_pending",
    "1 while rows may be plain or need an older key, 0 when older keys can be removed",
    ["table"],
)
_PAUSE_S = 0.005


class EncryptedColumn(NamedTuple):
    """A column with encrypted values. `name_of` returns the name that a row's value is encrypted for. `checksum` is the
    column with the row's checksum, if it has one.
    """

    table: Table
    number: Column[Any]
    value: Column[Any]
    name_of: Callable[[Row[Any]], str]
    checksum: Column[Any] | None = None


class _Step(NamedTuple):
    last: int
    """Number of the last row examined; 0 at the end of the table."""
    changes: list[dict[Any, Any]]
    failures: list[str]


async def reencrypt(database: Database, cipher: ValueCipher, column: EncryptedColumn, clock: Clock) -> None:
    """Encrypt all rows with the first key, and return."""
    if not cipher.is_enabled:
        return
    name = column.table.name
    _pending.labels(name).set(1)
    last = rows = 0
    failures: list[str] = []
    while True:
        after = last
        step = await database.read(lambda connection: _examine(connection, cipher, column, after))  # noqa: B023  # awaited
        failures += step.failures
        if step.changes:
            await database.write(lambda connection: _update(connection, column, step.changes), is_durable=False)  # noqa: B023  # awaited
            rows += len(step.changes)
            _rewritten.labels(name).inc(len(step.changes))
        last = step.last
        if not last:
            break
        await clock.sleep(_PAUSE_S)
    if rows:
        await database.erase_deleted()
        _log.info("rows are encrypted with the first key", table=name, rows=rows)
    if failures:
        _log.warning("rows cannot be decrypted", table=name, rows=len(failures), first=failures[0])
    else:
        _pending.labels(name).set(0)


def _examine(connection: Connection, cipher: ValueCipher, column: EncryptedColumn, after: int) -> _Step:
    limit = cipher.options.rows_per_transaction_max
    query = select(column.table).where(column.number > after).order_by(column.number).limit(limit)
    found: Sequence[Row[Any]] = connection.execute(query).all()
    changes: list[dict[Any, Any]] = []
    failures: list[str] = []
    for row in found:
        name, stored = column.name_of(row), row._mapping[column.value]
        if column.checksum is not None and not is_intact(row.key, stored, row._mapping[column.checksum]):
            continue  # damaged, which the store reports
        if cipher.is_current(name, stored):
            continue
        try:
            value = cipher.encrypt(name, cipher.decrypt(name, stored))
        except StoreUnavailable as error:
            failures.append(str(error))
            continue
        change = {column.number: row._mapping[column.number], column.value: value}
        changes.append(change if column.checksum is None else {**change, column.checksum: checksum(name, value)})
    return _Step(found[-1]._mapping[column.number] if len(found) == limit else 0, changes, failures)


def _update(connection: Connection, column: EncryptedColumn, changes: list[dict[Any, Any]]) -> None:
    for change in changes:
        connection.execute(update(column.table).where(column.number == change[column.number]).values(change))
