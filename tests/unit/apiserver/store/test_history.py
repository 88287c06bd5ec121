"""Rows of the log whose key or value the disk has damaged: what the state at start has of them."""

from collections.abc import Iterator

import pytest
from sqlalchemy import Connection, create_engine

from federation.apimachinery.errors import StoreUnavailable
from federation.apiserver.store.checksums import checksum
from federation.apiserver.store.encryption import ValueCipher
from federation.apiserver.store.history import Snapshot, read_snapshot, read_state, read_tail
from federation.apiserver.store.interface import EventType
from federation.apiserver.store.schema import CODES, log, state
from federation.apiserver.store.schema import metadata as tables

CIPHER = ValueCipher()
KEY, FLIPPED = "/web", "/veb"
"""FLIPPED is KEY with one flipped bit."""


@pytest.fixture
def connection() -> Iterator[Connection]:
    engine = create_engine("sqlite://")
    with engine.connect() as opened:
        tables.create_all(opened)
        yield opened
    engine.dispose()


def write(
    connection: Connection,
    revision: int,
    key: str,
    value: bytes,
    type_: EventType = EventType.UPDATED,
    stored: str = "",
) -> None:
    """Write a row; `stored` is the key that the disk has in its place."""
    row = {"revision": revision, "key": stored or key, "type": CODES[type_], "create_revision": 1}
    connection.execute(log.insert().values(**row, checksum=checksum(key, value), value=value))


def restarted(connection: Connection, revision: int = 9, compacted: int = 0) -> Snapshot:
    connection.execute(state.insert().values(id=1, revision=revision, compacted=compacted, purged=0))
    return read_snapshot(connection, CIPHER)


def found(snapshot: Snapshot) -> dict[str, tuple[int, bytes]]:
    assert len({entry.key for entry in snapshot.entries}) == len(snapshot.entries), "one entry for each key"
    return {entry.key: (entry.revision, entry.value) for entry in snapshot.entries}


def test_a_flipped_bit_in_the_only_row_of_a_key_costs_nothing(connection: Connection) -> None:
    write(connection, 1, KEY, b"{}", EventType.CREATED, stored=FLIPPED)
    write(connection, 2, "/other", b"{}", EventType.CREATED)
    snapshot = restarted(connection)
    assert found(snapshot) == {KEY: (1, b"{}"), "/other": (2, b"{}")}
    assert snapshot.damaged == []


@pytest.mark.parametrize("type_", [EventType.UPDATED, EventType.DELETED])
def test_an_old_change_under_a_wrong_key_does_not_replace_a_newer_one(connection: Connection, type_: EventType) -> None:
    write(connection, 1, KEY, b"{}", EventType.CREATED)
    write(connection, 2, KEY, b'{"a":1}', stored=FLIPPED)
    write(connection, 3, KEY, b'{"a":2}', type_)
    assert found(restarted(connection)) == ({} if type_ is EventType.DELETED else {KEY: (3, b'{"a":2}')})


def test_the_newest_change_under_a_wrong_key_replaces_an_older_one(connection: Connection) -> None:
    write(connection, 1, KEY, b'{"a":1}', EventType.CREATED)
    write(connection, 2, KEY, b'{"a":2}', stored=FLIPPED)
    assert found(restarted(connection)) == {KEY: (2, b'{"a":2}')}


def test_an_empty_log_is_an_empty_state(connection: Connection) -> None:
    assert restarted(connection, 7, 5) == Snapshot([], 7, 5, [])


def test_other_damage_is_an_entry_without_a_value(connection: Connection) -> None:
    write(connection, 1, KEY, b"{}", EventType.CREATED)
    connection.execute(log.update().values(value=b"{]"))
    snapshot = restarted(connection)
    assert snapshot.entries == []
    assert [(entry.key, entry.revision, entry.value) for entry in snapshot.damaged] == [(KEY, 1, b"")]


@pytest.mark.parametrize(
    ("row", "is_damaged"),
    [
        ((9, 3, 2), False),
        ((9, 9, 9), False),
        ((9, 0, 0), False),
        ((9, 10, 2), True),
        ((9, 3, 4), True),
        ((9, 3, -1), True),
        (("x", 0, 0), True),
        (None, True),
    ],
    ids=str,
)
def test_counters_that_cannot_be_are_damaged(
    connection: Connection, row: tuple[int, int, int] | None, is_damaged: bool
) -> None:
    if row is not None:
        values = dict(zip(("revision", "compacted", "purged"), row, strict=True))
        connection.exec_driver_sql(
            "INSERT INTO store_state (id, revision, compacted, purged) VALUES (1, :revision, :compacted, :purged)",
            values,
        )
    if not is_damaged:
        assert read_state(connection) == row
        return
    with pytest.raises(StoreUnavailable, match="restore a backup"):
        read_state(connection)


@pytest.mark.parametrize(("revision", "is_damaged"), [(4, False), (3, True)])
def test_a_log_beyond_its_counter_is_damaged(connection: Connection, revision: int, is_damaged: bool) -> None:
    write(connection, 1, "/other", b"{}", EventType.CREATED)
    write(connection, 4, KEY, b"{}", EventType.CREATED)
    if not is_damaged:
        assert found(restarted(connection, revision)) == {"/other": (1, b"{}"), KEY: (4, b"{}")}
        return
    with pytest.raises(StoreUnavailable, match="restore a backup"):
        restarted(connection, revision)


def test_the_changes_of_other_processes_are_those_after_the_known_one(connection: Connection) -> None:
    for revision in (1, 2, 3, 4):
        write(connection, revision, KEY, b"{}")
    restarted(connection, 4)
    tail = read_tail(connection, CIPHER, 1, 2)
    assert [record.entry.revision for record in tail.records] == [2, 3]
    assert (tail.revision, tail.compacted) == (4, 0)
    assert read_tail(connection, CIPHER, 4, 2).records == []
