"""Rows that the disk has damaged: one object is lost and reported, everything else goes on, also at the next start."""

import asyncio
import contextlib
import random
import sqlite3
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.registry.conftest import Api
from tests.support.apiserver import build
from tests.support.stores import a_body
from tests.unit.apiserver.conftest import connect

from federation.apimachinery.clock import ManualClock
from federation.apimachinery.entropy import SeededEntropy
from federation.apimachinery.errors import (
    AlreadyExists,
    ConfigurationError,
    Conflict,
    Expired,
    InternalError,
    NotFound,
    StoreUnavailable,
)
from federation.apiserver.auth.bootstrappolicy import ensure_default_rbac
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.sql import SQLStore
from federation.apiserver.verbs.requestoptions import ListOptions

NEWEST = "revision = (SELECT MAX(revision) FROM store_log WHERE key = ?)"
DAMAGES: dict[str, Callable[[bytes], Any]] = {
    "a flipped bit inside a string": lambda value: value.replace(b'"k":"v', b'"k":"w'),
    "a flipped bit outside strings": lambda value: value.replace(b'"k":', b'"k";'),
    "zeros": lambda value: bytes(len(value)),
    "truncated": lambda value: value[:40],
    "nothing": lambda value: b"",
    "another type": lambda value: value.decode(),
    "a number": lambda value: 7,
}


def config_map(name: str, text: str = "") -> dict[str, Any]:
    return {"metadata": {"name": name}, "data": {"k": text}}


def damage(path: Path, key: str, change: Callable[[bytes], Any]) -> None:
    with contextlib.closing(sqlite3.connect(path / "state.db", isolation_level=None)) as raw:
        (value,) = raw.execute(f"SELECT value FROM store_log WHERE {NEWEST}", (key,)).fetchone()
        raw.execute(f"UPDATE store_log SET value = ? WHERE {NEWEST}", (change(value), key))


@contextlib.asynccontextmanager
async def an_api(path: Path) -> AsyncIterator[Api]:
    store = SQLStore(f"sqlite:///{path}/state.db")
    clock = ManualClock()
    registry = Registry(store, clock=clock, entropy=SeededEntropy(1))
    await registry.start()
    try:
        yield Api(registry, clock)
    finally:
        await store.close()


async def filled(path: Path, *damaged: str, change: Callable[[bytes], Any] = DAMAGES["zeros"]) -> str:
    """Store three ConfigMaps, damage those named, and return the revision before the last one."""
    async with an_api(path) as api:
        with contextlib.suppress(AlreadyExists):
            await api.create("namespaces", {"metadata": {"name": "default"}}, "")
        for name in ("cm-a", "cm-b", "cm-c"):
            created = await api.create("configmaps", config_map(name, "v" * 3000))
    for name in damaged:
        damage(path, f"/core/configmaps/default/{name}", change)
    return str(int(created["metadata"]["resourceVersion"]) - 1)


@pytest.mark.parametrize("change", DAMAGES.values(), ids=DAMAGES)
async def test_one_damaged_row_costs_one_object_until_it_is_deleted(
    tmp_path: Path, change: Callable[[bytes], Any]
) -> None:
    await filled(tmp_path, "cm-b", change=change)
    async with an_api(tmp_path) as api:
        assert await api.names("configmaps") == ["cm-a", "cm-c"]
        with pytest.raises(InternalError, match=r"the stored object is damaged .* /core/configmaps/default/cm-b .*del"):
            await api.get("configmaps", "cm-b")
        with pytest.raises(InternalError, match="damaged"):
            await api.patch("configmaps", "cm-b", {"data": {"k": "x"}})
        with pytest.raises(AlreadyExists):
            await api.create("configmaps", config_map("cm-b"))
        assert api.registry.store.warnings() == [
            "1 damaged objects in core/configmaps; the log names them; restore or delete them"
        ]
        await api.delete("configmaps", "cm-b")
        assert api.registry.store.warnings() == []
        with pytest.raises(NotFound):
            await api.get("configmaps", "cm-b")
        await api.create("configmaps", config_map("cm-b", "again"))
    async with an_api(tmp_path) as api:
        assert (await api.get("configmaps", "cm-b"))["data"] == {"k": "again"}
        assert await api.names("configmaps") == ["cm-a", "cm-b", "cm-c"]


async def test_the_deletion_of_a_damaged_object_survives_restart_and_compaction(tmp_path: Path) -> None:
    await filled(tmp_path, "cm-b")
    async with an_api(tmp_path) as api:
        await api.delete("configmaps", "cm-b")
    async with an_api(tmp_path) as api:
        with pytest.raises(NotFound):
            await api.get("configmaps", "cm-b")
        await api.registry.store.compact(await api.registry.store.revision())
    async with an_api(tmp_path) as api:
        assert await api.names("configmaps") == ["cm-a", "cm-c"]
        assert api.registry.store.warnings() == []


async def test_preconditions_protect_a_damaged_object_too(tmp_path: Path) -> None:
    await filled(tmp_path, "cm-b")
    async with an_api(tmp_path) as api:
        for options in ({"uid": "of-another-object"}, {"resource_version": "1"}):
            with pytest.raises(Conflict):
                await api.delete("configmaps", "cm-b", **options)
        await api.delete("configmaps", "cm-b", dry_run=True)
        assert api.registry.store.warnings()


async def test_a_watch_sees_the_deletion_of_a_damaged_object(tmp_path: Path) -> None:
    await filled(tmp_path, "cm-b")
    async with an_api(tmp_path) as api, api.watching("configmaps") as watching:
        assert await watching.said(2) == [("ADDED", "cm-a"), ("ADDED", "cm-c")]
        await api.delete("configmaps", "cm-b")
        assert await watching.said(1) == [("DELETED", "cm-b")]


async def test_a_watch_over_a_damaged_change_has_to_list_again(tmp_path: Path) -> None:
    since = await filled(tmp_path, "cm-c")
    async with an_api(tmp_path) as api:
        async with api.watching("configmaps", resource_version=since) as watching:
            with pytest.raises(Expired):
                await watching.next()
        await api.delete("configmaps", "cm-c")
        exact = ListOptions(resource_version=str(int(since) + 1), resource_version_match="Exact")
        assert len((await api.registry.list(api.info("configmaps"), "default", exact)).items) == 2
    async with an_api(tmp_path) as api:
        # Now that list has to come from the log, which does not tell when the row was damaged.
        with pytest.raises(Expired):
            await api.registry.list(api.info("configmaps"), "default", exact)


async def test_a_key_that_is_no_text_does_not_prevent_the_start(tmp_path: Path) -> None:
    await filled(tmp_path)
    with contextlib.closing(sqlite3.connect(tmp_path / "state.db", isolation_level=None)) as raw:
        raw.execute(
            "UPDATE store_log SET key = CAST(x'2f636f72652f636f6e6669676d6170732f64656661756c742fff' AS TEXT) WHERE key = ?",
            ("/core/configmaps/default/cm-b",),
        )
    async with an_api(tmp_path) as api:
        assert await api.names("configmaps") == ["cm-a", "cm-c"]
        assert len(api.registry.store.warnings()) == 1


async def test_damaged_system_objects_do_not_prevent_the_start(tmp_path: Path) -> None:
    await filled(tmp_path)
    damage(tmp_path, "/core/namespaces/kube-system", DAMAGES["zeros"])
    async with an_api(tmp_path) as api:
        assert await api.names("configmaps") == ["cm-a", "cm-b", "cm-c"]


async def test_rows_of_older_versions_have_no_checksum_and_are_intact(tmp_path: Path) -> None:
    await filled(tmp_path)
    with contextlib.closing(sqlite3.connect(tmp_path / "state.db", isolation_level=None)) as raw:
        raw.execute("UPDATE store_log SET checksum = NULL")
    async with an_api(tmp_path) as api:
        assert await api.names("configmaps") == ["cm-a", "cm-b", "cm-c"]


async def test_readiness_warns_without_naming_objects_and_stays_ready(tmp_path: Path) -> None:
    await filled(tmp_path, "cm-b")
    store = SQLStore(f"sqlite:///{tmp_path}/state.db")
    parts = build(tmp_path, store)
    await parts.registry.start()
    await ensure_default_rbac(parts.registry)
    roles = asyncio.create_task(parts.authorizer.run())
    await parts.authorizer.wait_synced()
    async with connect(parts.app) as client:
        answer = await client.get("/readyz?verbose")
        assert answer.status_code == 200
        assert "[!]warning: 1 damaged objects in core/configmaps; the log names them" in answer.text
        assert "cm-b" not in answer.text
        assert (await client.get("/readyz")).text == "ok"
        refused = await client.get("/api/v1/namespaces/default/configmaps/cm-b")
        assert (refused.status_code, refused.json()["reason"]) == (500, "InternalError")
        listed = await client.get("/api/v1/configmaps")
        assert len(listed.json()["items"]) == 2
    roles.cancel()
    await asyncio.gather(roles, return_exceptions=True)
    await store.close()


KEY = "/core/configmaps/default/owner"


def with_flipped_bit(key: str, position: int, bit: int) -> bytes:
    raw = bytearray(key.encode())
    raw[position] ^= 1 << bit
    return bytes(raw)


@pytest.mark.parametrize("position", [1, 8, len(KEY) - 1], ids=["group", "kind", "name"])
@pytest.mark.parametrize("bit", [0, 7], ids=["another character", "no text"])
async def test_an_owner_with_a_flipped_bit_in_its_key_keeps_its_dependents(
    tmp_path: Path, position: int, bit: int
) -> None:
    async with an_api(tmp_path) as api:
        with contextlib.suppress(AlreadyExists):
            await api.create("namespaces", {"metadata": {"name": "default"}}, "")
        owner = await api.create("configmaps", config_map("owner"))
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
        await api.create("configmaps", {"metadata": {"name": "dependent", "ownerReferences": [reference]}})
    flipped = with_flipped_bit(KEY, position, bit)
    with contextlib.closing(sqlite3.connect(tmp_path / "state.db", isolation_level=None)) as raw:
        raw.execute("UPDATE store_log SET key = CAST(? AS TEXT) WHERE key = ?", (flipped, KEY))
    async with an_api(tmp_path) as api:
        running = asyncio.create_task(api.registry.run())
        for _ in range(100):
            await asyncio.sleep(0)
            await api.clock.advance(0.1)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert await api.names("configmaps") == ["dependent", "owner"]
        await api.patch("configmaps", "owner", {"data": {"k": "x"}})
    async with an_api(tmp_path) as api:
        assert (await api.get("configmaps", "owner"))["data"] == {"k": "x"}
        assert api.registry.store.warnings() == []


@pytest.mark.parametrize("is_deleted", [False, True], ids=["updated later", "deleted later"])
async def test_an_old_change_with_a_flipped_bit_in_its_key_does_not_come_back(
    tmp_path: Path, *, is_deleted: bool
) -> None:
    async with an_api(tmp_path) as api:
        with contextlib.suppress(AlreadyExists):
            await api.create("namespaces", {"metadata": {"name": "default"}}, "")
        created = await api.create("configmaps", config_map("owner", "old"))
        if is_deleted:
            await api.delete("configmaps", "owner")
        else:
            await api.patch("configmaps", "owner", {"data": {"k": "new"}})
    revision = int(created["metadata"]["resourceVersion"])
    with contextlib.closing(sqlite3.connect(tmp_path / "state.db", isolation_level=None)) as raw:
        key = with_flipped_bit(KEY, len(KEY) - 1, 0)
        raw.execute("UPDATE store_log SET key = CAST(? AS TEXT) WHERE revision = ?", (key, revision))
    async with an_api(tmp_path) as api:
        assert await api.names("configmaps") == ([] if is_deleted else ["owner"])
        if not is_deleted:
            assert (await api.get("configmaps", "owner"))["data"] == {"k": "new"}


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM store_state",
        "UPDATE store_state SET revision = 'x'",
        "UPDATE store_state SET revision = 1, compacted = 0, purged = 0",
        "UPDATE store_state SET compacted = revision + 1",
        "DELETE FROM federation_schema",
        "UPDATE federation_schema SET version = 'x'",
    ],
)
async def test_a_damaged_counter_is_one_line_at_the_start_and_nothing_is_written(
    tmp_path: Path, statement: str
) -> None:
    await filled(tmp_path)
    with contextlib.closing(sqlite3.connect(tmp_path / "state.db", isolation_level=None)) as raw:
        raw.execute(statement)
        before = list(raw.iterdump())
    store = SQLStore(f"sqlite:///{tmp_path}/state.db")
    with pytest.raises((StoreUnavailable, ConfigurationError), match="is damaged; restore a backup") as caught:
        await store.ready()
    assert "\n" not in str(caught.value)
    await store.close()
    with contextlib.closing(sqlite3.connect(tmp_path / "state.db", isolation_level=None)) as raw:
        assert list(raw.iterdump()) == before


@pytest.mark.parametrize("value", [b"", b"{{", b"[1]", b'{"metadata":'], ids=["nothing", "text", "list", "cut"])
async def test_a_damaged_row_of_an_older_version_costs_one_object(tmp_path: Path, value: bytes) -> None:
    await filled(tmp_path)
    with contextlib.closing(sqlite3.connect(tmp_path / "state.db", isolation_level=None)) as raw:
        raw.execute("UPDATE store_log SET checksum = NULL")
        raw.execute("UPDATE store_log SET value = ? WHERE key = '/core/configmaps/default/cm-b'", (value,))
    async with an_api(tmp_path) as api:
        assert await api.names("configmaps") == ["cm-a", "cm-c"]
        await api.delete("configmaps", "cm-b")


def _zero(page: int, rng: random.Random, pages: bytearray) -> None:
    pages[page * 4096 : (page + 1) * 4096] = bytes(4096)


def _fill_with_noise(page: int, rng: random.Random, pages: bytearray) -> None:
    pages[page * 4096 : (page + 1) * 4096] = rng.randbytes(4096)


def _flip_bytes(page: int, rng: random.Random, pages: bytearray) -> None:
    for _ in range(8):
        pages[page * 4096 + rng.randrange(4096)] ^= rng.randrange(1, 256)


def _swap(page: int, rng: random.Random, pages: bytearray) -> None:
    """Write two pages to each other's place, as a disk that loses its way."""
    other = rng.randrange(len(pages) // 4096)
    left, right = slice(page * 4096, (page + 1) * 4096), slice(other * 4096, (other + 1) * 4096)
    pages[left], pages[right] = pages[right], pages[left]


@pytest.mark.parametrize("damages", [24, pytest.param(500, marks=pytest.mark.nightly)])
async def test_a_damaged_page_refuses_the_start_or_costs_objects_that_are_reported(
    tmp_path: Path, damages: int
) -> None:
    """Objects that are missing without a word would be deleted in the members."""
    whole, damaged = tmp_path / "whole.db", tmp_path / "state.db"
    store = SQLStore(f"sqlite:///{whole}")
    await store.ready()
    for number in range(120):
        entry = await store.create(f"/core/configmaps/default/cm-{number}", a_body("x" * (number * 7 % 900)))
        if number % 4 == 0:
            await store.update(entry.key, a_body("y"), entry.revision)
    kept = {entry.key for entry in (await store.list("/")).entries}
    await store.close()
    pages = whole.read_bytes()
    refused: list[str] = []
    for seed in range(damages):
        rng, copy = random.Random(seed), bytearray(pages)
        damage = (_zero, _fill_with_noise, _flip_bytes, _swap)[seed % 4]
        damage(rng.randrange(len(pages) // 4096), rng, copy)
        damaged.write_bytes(copy)
        store = SQLStore(f"sqlite:///{damaged}")
        try:
            await store.ready()
            found = {entry.key for entry in (await store.list("/")).entries}
            assert found == kept or store.warnings(), f"{damage.__name__}, seed {seed}: {sorted(kept - found)} are gone"
        except (ConfigurationError, StoreUnavailable) as error:
            refused.append(str(error))
        finally:
            await store.close()
    assert len(refused) > damages // 3
    assert not [message for message in refused if "damaged" not in message or "\n" in message]
