"""A reader of the database's files finds no Secret, and a writer of its rows cannot exchange Secrets."""

import os
import sqlite3
import stat
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest
from sqlalchemy import Connection
from tests.support.encryption import write_keys
from tests.support.metrics import sample_of
from tests.support.stores import StoreBackend, a_body, a_value, eventually

from federation.api.secretvalues import carries_secret_values
from federation.apimachinery.errors import ConfigurationError, StoreUnavailable
from federation.apiserver.store.interface import Body
from federation.apiserver.store.options import StoreOptions
from federation.apiserver.store.sql import SQLStore
from federation.journal.decisions import DecisionFilter, DecisionRecord
from federation.journal.sqljournal import SQLJournal

CANARY = b"correct-horse-battery-staple"
SECRET = "/core/secrets/default/db"


def files_with(folder: Path, needle: bytes = CANARY) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != "keys" and needle in path.read_bytes())


def a_secret(size: int = 0) -> str:
    return CANARY.decode() + "x" * size


def a_database(folder: Path) -> StoreBackend:
    (folder / "db").mkdir(exist_ok=True)
    return StoreBackend("sqlite", f"sqlite:///{folder}/db/state.db")


def change_rows(store: SQLStore, statement: str):
    def work(connection: Connection) -> None:
        connection.exec_driver_sql(statement)

    return store.database.write(work)


@pytest.mark.parametrize("size", [0, 300, 20_000])
async def test_a_secret_is_in_no_file_at_any_time(tmp_path: Path, size: int) -> None:
    database = a_database(tmp_path)
    store = await database.open(encryption=write_keys(tmp_path / "keys", "k1"))
    journal = SQLJournal(store.database, cipher=store.cipher)
    entry = await store.create(SECRET, a_body(a_secret(size)))
    at = datetime(2026, 1, 1, tzinfo=UTC)
    record = DecisionRecord(at, "", "Secret", "default", "db", "Scheduled", 1.0, CANARY)
    await journal.append(record)
    await journal.flush()
    assert files_with(tmp_path / "db") == []
    assert (await store.get(SECRET)).value == a_value(1, a_secret(size))
    assert (await journal.query(DecisionFilter()))[0].explanation == CANARY
    await store.delete(SECRET, a_body(a_secret(size)), entry.revision)
    assert files_with(tmp_path / "db") == []
    await store.compact(await store.revision())
    await store.database.erase_deleted()
    assert files_with(tmp_path / "db") == []
    await database.close()
    assert files_with(tmp_path / "db") == []


@pytest.mark.parametrize("size", [0, 300, 20_000])
async def test_without_a_key_a_deleted_secret_is_gone_after_compaction(tmp_path: Path, size: int) -> None:
    database = a_database(tmp_path)
    store = await database.open()
    for number in range(40):
        await store.create(f"/core/configmaps/default/{number:03}", a_body("y" * (number * 40)))
        entry = await store.create(f"{SECRET}-{number:03}", a_body(a_secret(size)))
        entry = await store.update(entry.key, a_body(a_secret(size + 1)), entry.revision)
        await store.delete(entry.key, a_body(a_secret(size)), entry.revision)
    assert files_with(tmp_path / "db")
    await store.compact(await store.revision())
    assert files_with(tmp_path / "db") == []
    await database.close()


async def test_secrets_from_before_the_key_are_encrypted_in_the_background(tmp_path: Path) -> None:
    database = a_database(tmp_path)
    store = await database.open()
    await store.create(SECRET, a_body(a_secret()))
    for number in range(50):
        await store.create(f"{SECRET}-{number}", a_body(a_secret(number * 300)))
    await database.stop(store)
    assert files_with(tmp_path / "db") == ["state.db"]
    store = await database.open(encryption=write_keys(tmp_path / "keys", "k1"))
    await eventually(lambda: files_with(tmp_path / "db") == [])
    assert (await store.get(SECRET)).value == a_value(1, a_secret())
    await database.stop(store)
    store = await database.open(encryption=write_keys(tmp_path / "keys", "k1"))
    assert (await store.get(f"{SECRET}-49")).value == a_value(51, a_secret(49 * 300))
    await database.close()


async def test_what_carries_a_secret_is_encrypted_whatever_its_name_also_from_before_and_after_a_rotation(
    tmp_path: Path,
) -> None:
    key, database = "/example.com/works/default/w", a_database(tmp_path)
    manifest = {"kind": "Work", "spec": [{"kind": "Secret", "stringData": {"a": CANARY.decode()}}]}
    body = Body(b'{"rv":"', b'",' + orjson.dumps(manifest)[1:])
    store = await database.open()
    value = (await store.create(key, body)).value
    await database.stop(store)
    for names in (("old",), ("new", "old")):
        options = replace(write_keys(tmp_path / "keys", *names), is_secret=carries_secret_values)
        store = await database.open(encryption=options)
        await eventually(lambda: files_with(tmp_path / "db") == [])
        assert (await store.get(key)).value == value
        if names[0] == "new":
            await eventually(lambda: files_with(tmp_path / "db", b"\x03old") == [])
        await store.create(f"{key}-{names[0]}", body)
        assert files_with(tmp_path / "db") == []
        await database.stop(store)
    await database.close()


async def test_after_a_rotation_the_old_key_can_be_removed(tmp_path: Path) -> None:
    database = a_database(tmp_path)
    store = await database.open(encryption=write_keys(tmp_path / "keys", "old"))
    await store.create(SECRET, a_body(a_secret()))
    await database.stop(store)
    store = await database.open(encryption=write_keys(tmp_path / "keys", "new", "old"))
    await eventually(lambda: files_with(tmp_path / "db", b"\x03old") == [])
    await database.stop(store)
    store = await database.open(encryption=write_keys(tmp_path / "keys", "new"))
    assert (await store.get(SECRET)).value == a_value(1, a_secret())
    await database.close()


def dump(path: Path) -> list[str]:
    """Return the contents of an SQLite database; its header counts openings."""
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


async def test_a_missing_key_prevents_the_start_and_changes_nothing(tmp_path: Path) -> None:
    database = a_database(tmp_path)
    store = await database.open(encryption=write_keys(tmp_path / "keys", "k1"))
    await store.create(SECRET, a_body(a_secret()))
    await database.stop(store)
    before = dump(tmp_path / "db" / "state.db")
    url = f"sqlite:///{tmp_path}/db/state.db"
    for options in (StoreOptions(), StoreOptions(encryption=write_keys(tmp_path / "keys", "k2"))):
        store = SQLStore(url, options)
        with pytest.raises(StoreUnavailable, match="encrypted with key 'k1', which is not configured") as caught:
            await store.ready()
        assert "\n" not in str(caught.value)
        await store.close()
        assert dump(tmp_path / "db" / "state.db") == before


async def test_a_key_with_other_content_prevents_the_start(tmp_path: Path) -> None:
    database = a_database(tmp_path)
    options = write_keys(tmp_path / "keys", "k1")
    store = await database.open(encryption=options)
    await store.create(SECRET, a_body(a_secret()))
    await database.stop(store)
    (tmp_path / "keys").write_text("k1 " + "A" * 43 + "=\n")
    store = SQLStore(database.url, StoreOptions(encryption=options))
    with pytest.raises(StoreUnavailable, match=f"{SECRET} does not decrypt"):
        await store.ready()
    await store.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE store_log SET value = (SELECT value FROM store_log WHERE revision = 2), checksum = NULL WHERE revision = 1",
        "UPDATE store_log SET value = CAST(substr(value, 1, length(value) - 4) || x'00000000' AS BLOB), checksum = NULL WHERE revision = 1",
        "UPDATE store_log SET value = substr(value, 1, 20), checksum = NULL WHERE revision = 1",
        "UPDATE store_log SET value = x'00656E6331', checksum = NULL WHERE revision = 1",
    ],
    ids=["a value copied from another key", "a changed byte", "a truncated value", "only the marker"],
)
async def test_a_changed_row_is_refused(tmp_path: Path, statement: str) -> None:
    database = a_database(tmp_path)
    options = write_keys(tmp_path / "keys", "k1")
    store = await database.open(encryption=options)
    await store.create(SECRET, a_body("public"))
    await store.create("/core/secrets/kube-system/admin", a_body(a_secret()))
    await change_rows(store, statement)
    await database.stop(store)
    store = SQLStore(database.url, StoreOptions(encryption=options))
    with pytest.raises(StoreUnavailable, match=SECRET):
        await store.ready()
    await store.close()


async def test_equal_secrets_have_different_ciphertexts(tmp_path: Path) -> None:
    database = a_database(tmp_path)
    store = await database.open(encryption=write_keys(tmp_path / "keys", "k1"))
    for name in "ab":
        await store.create(SECRET + name, a_body(a_secret()))
    stored = await store.database.read(
        lambda connection: list(connection.exec_driver_sql("SELECT value FROM store_log").scalars())
    )
    assert stored[0][-16:] != stored[1][-16:]
    await database.close()


async def test_a_key_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    options = write_keys(tmp_path / "keys", "k1")
    (tmp_path / "keys").chmod(0o640)
    database = a_database(tmp_path)
    with pytest.raises(ConfigurationError, match="accessible to other users; run: chmod 600"):
        await SQLStore(database.url, StoreOptions(encryption=options)).ready()


async def test_a_key_stays_pending_while_a_decision_still_needs_another_one(tmp_path: Path) -> None:
    database = a_database(tmp_path)
    store = await database.open(encryption=write_keys(tmp_path / "keys", "k1"))
    journal = SQLJournal(store.database, cipher=store.cipher)
    at = datetime(2026, 1, 1, tzinfo=UTC)
    await journal.append(DecisionRecord(at, "", "Secret", "default", "db", "Scheduled", 1.0, CANARY))
    await journal.flush()
    await database.stop(store)
    store = await database.open(encryption=write_keys(tmp_path / "keys", "k2"))
    await SQLJournal(store.database, cipher=store.cipher).reencrypt()
    assert sample_of("federation_store_reencryption_pending", {"table": "decision"}) == 1
    await database.stop(store)
    store = await database.open(encryption=write_keys(tmp_path / "keys", "k2", "k1"))
    await SQLJournal(store.database, cipher=store.cipher).reencrypt()
    assert sample_of("federation_store_reencryption_pending", {"table": "decision"}) == 0
    await database.close()


async def test_the_files_of_the_database_are_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        database = a_database(tmp_path)
        store = await database.open()
        await store.create(SECRET, a_body(a_secret()))
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "db").iterdir()}
        assert {"state.db", "state.db-wal"} <= modes.keys()
        assert {name: mode for name, mode in modes.items() if mode & 0o077} == {}
        await database.close()
    finally:
        os.umask(before)
