"""Encryption on both databases: rows hold no plain Secret, and every read path decrypts."""

import asyncio
from pathlib import Path

import pytest
from tests.support.encryption import write_keys
from tests.support.postgres import PostgresServer
from tests.support.stores import StoreBackend, a_body, a_value, recording

from federation.apimachinery.errors import StoreUnavailable
from federation.apiserver.store.sql import SQLStore

KEY = "/core/secrets/default/db"
CANARY = "correct-horse-battery-staple"


async def stored_values(store: SQLStore) -> list[bytes]:
    return await store.database.read(
        lambda connection: [
            bytes(v) for v in connection.exec_driver_sql("SELECT value FROM store_log WHERE revision > 0").scalars()
        ]
    )


async def test_only_the_configured_prefixes_are_encrypted(durable: StoreBackend, tmp_path: Path) -> None:
    store = await durable.open(encryption=write_keys(tmp_path / "keys", "k1"))
    assert isinstance(store, SQLStore)
    await store.create(KEY, a_body(CANARY))
    await store.create("/core/configmaps/default/db", a_body("plain"))
    secret, configmap = await stored_values(store)
    assert CANARY.encode() not in secret
    assert configmap == a_value(2, "plain")


async def test_reads_after_a_restart_lists_and_watches_return_plain_values(
    durable: StoreBackend, tmp_path: Path
) -> None:
    options = {"encryption": write_keys(tmp_path / "keys", "k1"), "recent_events_max": 2}
    store = await durable.open(**options)
    entry = await store.create(KEY, a_body("one"))
    entry = await store.update(KEY, a_body("two"), entry.revision)
    await store.delete(KEY, a_body("gone"), entry.revision)
    for number in range(5):
        await store.create(f"{KEY}-{number}", a_body(CANARY))
    await durable.stop(store)
    store = await durable.open(**options)
    assert [e.value for e in (await store.list(KEY)).entries] == [a_value(4 + n, CANARY) for n in range(5)]
    assert [e.value for e in (await store.list(KEY, revision=2)).entries] == [a_value(2, "two")]
    async with recording(store) as watch:
        events = await watch.wait_for(8)
    assert [e.value for e in events[:3]] == [a_value(1, "one"), a_value(2, "two"), a_value(3, "gone")]
    assert [e.previous for e in events[:3]] == [None, a_value(1, "one"), a_value(2, "two")]


async def test_rows_of_every_age_are_encrypted_again_with_the_first_key(durable: StoreBackend, tmp_path: Path) -> None:
    store = await durable.open()
    for number in range(30):
        entry = await store.create(f"{KEY}-{number}", a_body(CANARY))
        await store.update(entry.key, a_body(CANARY), entry.revision)
    await durable.stop(store)
    store = await durable.open(encryption=write_keys(tmp_path / "keys", "new", "old"))
    assert isinstance(store, SQLStore)
    async with asyncio.timeout(10):
        while any(b"\x03new" not in value[:10] for value in await stored_values(store)):  # noqa: ASYNC110  # changes in SQL
            await asyncio.sleep(0.01)
    assert (await store.get(f"{KEY}-29")).value == a_value(60, CANARY)


@pytest.mark.postgres
@pytest.mark.xdist_group("postgres")
async def test_a_process_without_the_key_of_the_others_is_not_ready(shared: StoreBackend, tmp_path: Path) -> None:
    without = await shared.open(probe_interval_s=0.0)
    await without.check_writable()
    other = await shared.open(encryption=write_keys(tmp_path / "keys", "k1"))
    await other.create("/core/secrets/default/hidden", a_body())
    with pytest.raises(StoreUnavailable, match="changes of other processes cannot be read") as refused:
        await without.check_writable()
    assert "hidden" not in str(refused.value)
    await other.check_writable()


@pytest.mark.postgres
@pytest.mark.xdist_group("postgres")
async def test_two_processes_with_the_same_keys_read_each_other(shared: StoreBackend, tmp_path: Path) -> None:
    keys = write_keys(tmp_path / "keys", "k1")
    ours, theirs = await shared.open(encryption=keys), await shared.open(encryption=keys)
    entry = await ours.create(KEY, a_body(CANARY))
    assert (await theirs.get(KEY)).value == a_value(1, CANARY)
    await theirs.update(KEY, a_body("theirs"), entry.revision)
    await ours.create(f"{KEY}-2", a_body("ours"))
    assert (await ours.get(KEY)).value == a_value(2, "theirs")


@pytest.mark.postgres
@pytest.mark.xdist_group("postgres")
async def test_a_secret_is_in_no_file_of_the_server(
    shared: StoreBackend, postgres: PostgresServer, tmp_path: Path
) -> None:
    store = await shared.open(encryption=write_keys(tmp_path / "keys", "k1"))
    canary = "canary-of-the-files-of-postgresql"
    entry = await store.create(KEY, a_body(canary))
    await store.delete(KEY, a_body(canary), entry.revision)
    await store.compact(2)
    found = [
        path
        for path in postgres.folder.rglob("*")
        if path.is_file() and not path.is_symlink() and canary.encode() in path.read_bytes()
    ]
    assert found == []
