"""Clients that fill the store: the quota refuses writes and allows deletions, and the file shrinks afterwards."""

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.registry.conftest import Api
from tests.support.stores import a_body, eventually

from federation.apimachinery.clock import ManualClock
from federation.apimachinery.entropy import SeededEntropy
from federation.apimachinery.errors import AlreadyExists, ServiceUnavailable, StoreUnavailable
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.options import MEBIBYTE, StoreOptions
from federation.apiserver.store.sql import SQLStore
from federation.apiserver.verbs.requestoptions import WriteOptions

REFUSED = r"^database space exceeded: .* MiB are used, --store-bytes-max allows 1\.0 MiB; delete objects"


def a_config_map(name: str, kib: int = 100, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, **metadata}, "data": {"k": "v" * 1024 * kib}}


@contextlib.asynccontextmanager
async def an_api(path: Path, bytes_max: int = MEBIBYTE) -> AsyncIterator[Api]:
    store = SQLStore(f"sqlite:///{path}/state.db", StoreOptions(bytes_max=bytes_max))
    clock = ManualClock()
    registry = Registry(store, clock=clock, entropy=SeededEntropy(1))
    await registry.start()
    with contextlib.suppress(AlreadyExists):
        await registry.create(
            registry.kinds.lookup("", "v1", "namespaces"), "", {"metadata": {"name": "default"}}, WriteOptions()
        )
    try:
        yield Api(registry, clock)
    finally:
        await store.close()


async def fill(api: Api) -> list[str]:
    """Create objects until the quota refuses one, and return their names."""
    names: list[str] = []

    async def create_many() -> None:
        for number in range(100):
            await api.create("configmaps", a_config_map(f"cm-{number}", finalizers=["example.com/a", "example.com/b"]))
            names.append(f"cm-{number}")

    with pytest.raises(ServiceUnavailable, match=REFUSED):
        await create_many()
    return names


async def test_the_quota_refuses_creates_and_updates(tmp_path: Path) -> None:
    async with an_api(tmp_path) as api:
        names = await fill(api)
        assert 5 <= len(names) <= 12
        with pytest.raises(ServiceUnavailable, match=REFUSED):
            await api.patch("configmaps", names[0], {"data": {"k": "x"}})
        with pytest.raises(AlreadyExists):
            await api.create("configmaps", a_config_map(names[0]))
        assert await api.names("configmaps") == sorted(names)
        assert "database space exceeded" in api.registry.store.warnings()[0]
        await api.registry.store.check_writable()


async def test_above_the_quota_deletions_with_finalizers_succeed_and_free_space(tmp_path: Path) -> None:
    async with an_api(tmp_path) as api:
        for name in await fill(api):
            await api.delete("configmaps", name)
            await api.patch("configmaps", name, {"metadata": {"finalizers": ["example.com/b"]}})
            await api.patch("configmaps", name, {"metadata": {"finalizers": None}})
        assert await api.names("configmaps") == []
        store = api.registry.store
        await store.compact(store._compactor.compaction_target(0))
        await api.create("configmaps", a_config_map("late"))
        assert store.warnings() == []


async def test_above_the_quota_each_deletion_frees_space_at_once(tmp_path: Path) -> None:
    async with an_api(tmp_path) as api:
        names = await fill(api)
        used = api.registry.store.database.bytes_used
        for name in names:
            await api.delete("configmaps", name)
            await api.patch("configmaps", name, {"metadata": {"finalizers": None}})
            before, used = used, api.registry.store.database.bytes_used
            if before > MEBIBYTE:
                assert used < before
        await api.create("configmaps", a_config_map("new"))


async def test_above_the_quota_a_leader_renews_its_lease(tmp_path: Path) -> None:
    """Without a leader no controller removes the finalizers of deleted objects, and they would keep their space."""
    async with an_api(tmp_path) as api:
        await api.create("leases", {"metadata": {"name": "controllers"}, "spec": {"holderIdentity": "a"}})
        await fill(api)
        for holder in ("a", "another-one"):
            renewal = {"holderIdentity": holder, "renewTime": "2026-01-01T00:00:00.000000Z"}
            lease = await api.patch("leases", "controllers", {"spec": renewal})
            assert lease["spec"]["holderIdentity"] == holder
        with pytest.raises(ServiceUnavailable, match=REFUSED):
            await api.patch("leases", "controllers", {"metadata": {"annotations": {"example.com/a": "x" * 4_096}}})


async def test_a_store_above_its_quota_starts(tmp_path: Path) -> None:
    async with an_api(tmp_path) as api:
        names = await fill(api)
    async with an_api(tmp_path) as api:
        assert len(await api.names("configmaps")) == len(names)
        await api.delete("configmaps", names[0])


async def test_concurrent_writers_cannot_run_past_the_quota(tmp_path: Path) -> None:
    store = SQLStore(f"sqlite:///{tmp_path}/state.db", StoreOptions(bytes_max=MEBIBYTE, bytes_per_commit_max=MEBIBYTE))
    await store.ready()
    body = a_body("x" * 100_000)
    await asyncio.gather(*(store.create(f"/{number}", body) for number in range(200)), return_exceptions=True)
    assert store.database.bytes_used < 3 * MEBIBYTE
    await store.close()


async def test_the_file_shrinks_after_everything_was_deleted(tmp_path: Path) -> None:
    store = SQLStore(f"sqlite:///{tmp_path}/state.db")
    running = asyncio.create_task(store.run())
    await store.ready()
    entries = await asyncio.gather(*(store.create(f"/{number}", a_body("x" * 20_000)) for number in range(1000)))
    await eventually(lambda: (tmp_path / "state.db").stat().st_size > 15 * MEBIBYTE)
    await asyncio.gather(*(store.delete(entry.key, a_body(), entry.revision) for entry in entries))
    await store.compact(await store.revision())
    await eventually(lambda: (tmp_path / "state.db").stat().st_size < 6 * MEBIBYTE)
    await eventually(lambda: (tmp_path / "state.db-wal").stat().st_size == StoreOptions().disk_reserve_bytes)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await store.close()


async def test_a_file_of_an_older_version_that_is_mostly_free_is_rebuilt_at_start(tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "state.db", isolation_level=None)) as raw:
        raw.execute("PRAGMA journal_mode = WAL")
        raw.execute("CREATE TABLE old (value BLOB)")
        raw.execute("INSERT INTO old VALUES (zeroblob(8000000))")
        raw.execute("DROP TABLE old")
    store = SQLStore(f"sqlite:///{tmp_path}/state.db")
    await store.ready()
    await store.create("/a", a_body())
    await store.close()
    assert (tmp_path / "state.db").stat().st_size < 2 * MEBIBYTE


async def test_the_write_probe_reports_a_database_that_refuses_writes(tmp_path: Path) -> None:
    clock = ManualClock()
    store = SQLStore(f"sqlite:///{tmp_path}/state.db", StoreOptions(busy_timeout_s=0.01), clock=clock)
    await store.ready()
    await store.check_writable()
    with contextlib.closing(sqlite3.connect(tmp_path / "state.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        await store.check_writable()  # the result of the last probe
        await clock.advance(3)
        with pytest.raises(StoreUnavailable, match="database is locked"):
            await store.check_writable()
    await clock.advance(3)
    await store.check_writable()
    await store.close()
