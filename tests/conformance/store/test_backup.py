"""Backups of both databases, taken while they are written, and their restore into either."""

import asyncio
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import text
from tests.conformance.store.test_upgrades import make_database, write_decision
from tests.support.encryption import write_keys
from tests.support.stores import StoreBackend, a_body, a_value, recording

from federation.apimachinery.errors import ConfigurationError, RevisionCompacted
from federation.apiserver.store import maintenance
from federation.apiserver.store.backup import (
    REVISIONS_SKIPPED,
    continue_database,
    read_backup,
    restore_backup,
    write_backup,
)
from federation.apiserver.store.schema import SCHEMA_VERSION
from federation.apiserver.store.sql import SQLStore
from federation.journal import sqljournal  # noqa: F401  # adds its table
from federation.journal.decisions import DecisionFilter
from federation.journal.sqljournal import SQLJournal

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
FILES = {"ca.crt": b"certificate", "front-proxy/ca.key": b"key"}


def unchanged(_key: str, value: bytes) -> bytes:
    return value


def back_up(url: str, file: Path) -> Path:
    write_backup(url, file, FILES, now=NOW, written_by="1.0")
    return file


@pytest.fixture
def elsewhere(request: pytest.FixtureRequest, durable: StoreBackend, tmp_path: Path) -> str:
    """The URL of an empty database of the other kind."""
    if durable.url.startswith("postgresql"):
        return f"sqlite:///{tmp_path}/other.db"
    return str(request.getfixturevalue("postgres").create_database())


@pytest.mark.postgres
@pytest.mark.xdist_group("postgres")
async def test_a_backup_restores_into_the_other_kind_of_database(
    durable: StoreBackend, elsewhere: str, tmp_path: Path
) -> None:
    store = await durable.open()
    assert isinstance(store, SQLStore)
    await store.create("/a", a_body("one"))
    await store.update("/a", a_body("two"), 1)
    await store.create("/b", a_body("gone"))
    await store.delete("/b", a_body(), 3)
    await store.database.write(write_decision)

    reports: list[str] = []
    about = write_backup(durable.url, tmp_path / "backup", FILES, now=NOW, written_by="1.0", report=reports.append)
    assert reports == ["copying table decision: 1 rows"]  # objects are counted by hundreds
    assert (about.objects, about.revision, about.version, about.damaged) == (1, 4, SCHEMA_VERSION, ())
    assert (tmp_path / "backup").stat().st_mode & 0o777 == 0o600
    assert read_backup(tmp_path / "backup") == (about, FILES)

    revision, _ = restore_backup(tmp_path / "backup", elsewhere, is_replacement=False, transform=unchanged)
    assert revision == 4 + REVISIONS_SKIPPED
    other = StoreBackend("other", elsewhere)
    try:
        restored = await other.open()
        assert isinstance(restored, SQLStore)
        assert [e.value for e in (await restored.list("/")).entries] == [a_value(2, "two")]
        assert (await restored.update("/a", a_body("three"), 2)).revision == revision + 1
        async with recording(restored, since=3) as watch:
            assert isinstance(await watch.wait_for_error(), RevisionCompacted)
        journal = SQLJournal(restored.database)
        assert [record.outcome for record in await journal.query(DecisionFilter(name="web"))] == ["Scheduled"]
        await restored.database.write(write_decision)  # its number does not collide with a restored one
    finally:
        await other.close()


async def test_a_backup_is_one_moment_of_a_database_that_is_being_written(
    durable: StoreBackend, tmp_path: Path
) -> None:
    """Two keys change together; a backup that saw the change of one only would hold different values."""
    store = await durable.open()
    left, right = await asyncio.gather(store.create("/left", a_body("0")), store.create("/right", a_body("0")))
    is_over = asyncio.Event()

    async def write() -> None:
        first, second, count = left, right, 0
        while not is_over.is_set():
            count += 1
            first = await store.update("/left", a_body(str(count)), first.revision)
            second = await store.update("/right", a_body(str(count)), second.revision)

    writing = asyncio.create_task(write())
    for number in range(5):
        file = tmp_path / f"backup-{number}"
        await asyncio.to_thread(write_backup, durable.url, file, {}, now=NOW, written_by="1.0")
        about, _ = read_backup(file)
        with maintenance.reading(f"sqlite:///{file}") as connection:
            rows = {row.key: row.revision for row in connection.execute(text("SELECT key, revision FROM store_log"))}
        assert max(rows.values()) == about.revision
        assert abs(rows["/left"] - rows["/right"]) == 1
    is_over.set()
    await writing


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION + 1))
async def test_a_backup_of_an_earlier_version_is_migrated_when_it_is_restored(
    durable: StoreBackend, tmp_path: Path, version: int
) -> None:
    make_database(f"sqlite:///{tmp_path}/old.db", version)
    file = back_up(f"sqlite:///{tmp_path}/old.db", tmp_path / "backup")
    assert read_backup(file)[0].version == version
    restore_backup(file, durable.url, is_replacement=False, transform=unchanged)
    store = await durable.open()
    assert [e.key for e in (await store.list("/")).entries] == ["/a", "/c"]


async def test_encrypted_values_stay_encrypted_in_the_backup(durable: StoreBackend, tmp_path: Path) -> None:
    encryption = write_keys(tmp_path / "keys", "k1")
    store = await durable.open(encryption=encryption)
    await store.create("/core/secrets/default/db", a_body("correct-horse"))
    file = back_up(durable.url, tmp_path / "backup")
    assert b"correct-horse" not in file.read_bytes()
    await durable.stop(store)
    restore_backup(file, durable.url, is_replacement=True, transform=unchanged)
    store = await durable.open(encryption=encryption)
    assert [e.value for e in (await store.list("/")).entries] == [a_value(1, "correct-horse")]


async def test_a_restore_replaces_objects_only_on_request_and_gives_no_revision_out_twice(
    durable: StoreBackend, tmp_path: Path
) -> None:
    store = await durable.open()
    await store.create("/a", a_body("backed up"))
    file = back_up(durable.url, tmp_path / "backup")
    await store.create("/b", a_body("since then"))
    await durable.stop(store)
    with pytest.raises(ConfigurationError, match=r"give --replace"):
        restore_backup(file, durable.url, is_replacement=False, transform=unchanged)
    restored = restore_backup(file, durable.url, is_replacement=True, transform=unchanged)
    assert restored == (2 + REVISIONS_SKIPPED, ())
    store = await durable.open()
    assert [e.key for e in (await store.list("/")).entries] == ["/a"]
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".")]  # noqa: PTH208  # one call


async def test_a_transformed_value_has_a_valid_checksum(durable: StoreBackend, tmp_path: Path) -> None:
    store = await durable.open()
    await store.create("/a", a_body("old"))
    file = back_up(durable.url, tmp_path / "backup")
    await durable.stop(store)
    restore_backup(file, durable.url, is_replacement=True, transform=lambda _, value: value.replace(b"old", b"new"))
    store = await durable.open()
    assert [e.value for e in (await store.list("/")).entries] == [a_value(1, "new")]
    assert maintenance.check(durable.url).damaged == ()


async def test_a_damaged_object_is_named_and_stays_damaged(durable: StoreBackend, tmp_path: Path) -> None:
    store = await durable.open()
    await store.create("/a", a_body())
    await durable.stop(store)
    with maintenance.exclusively(durable.url) as connection:
        connection.execute(text("UPDATE store_log SET value = :value"), {"value": b"[]"})
    about = write_backup(durable.url, tmp_path / "backup", {}, now=NOW, written_by="1.0")
    assert about.damaged == ("/a",)
    restored = restore_backup(tmp_path / "backup", durable.url, is_replacement=True, transform=unchanged)
    assert restored.damaged == maintenance.check(durable.url).damaged == ("/a",)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE store_state SET revision = 9223372036854775807",
        "UPDATE backup_about SET value = 'x' WHERE name = 'revision'",
        "DELETE FROM backup_about WHERE name = 'createdAt'",
    ],
)
async def test_a_damaged_backup_is_refused_in_one_line(durable: StoreBackend, tmp_path: Path, change: str) -> None:
    await durable.stop(await durable.open())
    file = back_up(durable.url, tmp_path / "backup")
    with maintenance.exclusively(f"sqlite:///{file}") as connection:
        connection.execute(text(change))
    with pytest.raises(ConfigurationError, match=r"backup is damaged.*restore another backup"):
        read_backup(file)


async def test_a_file_that_exists_and_a_file_that_is_no_backup_are_refused(
    durable: StoreBackend, tmp_path: Path
) -> None:
    await durable.stop(await durable.open())
    (tmp_path / "taken").touch()
    with pytest.raises(ConfigurationError, match=r"taken exists; name another file"):
        back_up(durable.url, tmp_path / "taken")
    make_database(f"sqlite:///{tmp_path}/state-2.db", 1)
    with pytest.raises(ConfigurationError, match=r"state-2.db is no backup"):
        read_backup(tmp_path / "state-2.db")
    with pytest.raises(ConfigurationError, match=r"use a folder that exists"):
        back_up(durable.url, tmp_path / "missing" / "backup")
    with pytest.raises(ConfigurationError, match=r"backup .*nowhere does not exist"):
        read_backup(tmp_path / "nowhere")


async def test_a_database_that_was_restored_by_other_means_goes_on_with_its_objects(durable: StoreBackend) -> None:
    store = await durable.open()
    for key in ("/a", "/b", "/gone"):
        await store.create(key, a_body(f"old {key}"))
    await store.update("/a", a_body("new /a"), 1)
    await store.delete("/gone", a_body(), 3)
    await durable.stop(store)
    revision = continue_database(
        durable.url, lambda key, value: value.replace(b"old", b"kept") if key == "/b" else value
    )
    assert revision == 5 + REVISIONS_SKIPPED
    store = await durable.open()
    assert [entry.value for entry in (await store.list("/")).entries] == [a_value(4, "new /a"), a_value(2, "kept /b")]
