"""A full disk: reads and deletions go on, a restart succeeds, and room on the disk ends the state.

`DISK_RUNS=40` runs as many random campaigns on disks of 30 to 200 MB that other programs fill, instead of a short one.
"""

import asyncio
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.fulldisk.campaign import run, small_disk
from tests.support.stores import a_body, eventually

from federation.apimachinery.errors import StoreError, StoreFull, StoreUnavailable
from federation.apiserver.store.interface import Entry
from federation.apiserver.store.options import StoreOptions
from federation.apiserver.store.sql import SQLStore

RUNS = int(os.environ.get("DISK_RUNS", "0"))
UNPRIVILEGED = "mounting a small tmpfs needs privileges that this user does not have"
MOUNTED_MIB = 16


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system."""
    with small_disk(tmp_path, MOUNTED_MIB) as mounted:
        if mounted is None:
            pytest.skip(UNPRIVILEGED)
        yield mounted


def fill_disk(disk: Path) -> Path:
    """Write a file that takes all remaining space."""
    ballast = disk / "ballast"
    with ballast.open("ab", buffering=0) as file:
        for size in (65_536, 4_096):
            try:
                while file.write(bytes(size)) == size:
                    pass
            except OSError:
                continue
    return ballast


async def started(disk: Path) -> tuple[SQLStore, "asyncio.Task[None]"]:
    store = SQLStore(f"sqlite:///{disk}/state.db")
    await store.ready()
    return store, asyncio.create_task(store.run())


async def stopped(store: SQLStore, running: "asyncio.Task[None]") -> None:
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await store.close()


async def fill_store(store: SQLStore, count: int = 5_000) -> list[Entry]:
    """Create entries until the disk is full."""
    entries: list[Entry] = []

    async def create_many() -> None:
        for number in range(count):
            entries.append(await store.create(f"/{number:04d}", a_body("x" * 20_000)))

    with pytest.raises(StoreError):
        await create_many()
    return entries


async def test_a_full_disk_serves_reads_and_deletions(disk: Path) -> None:
    store, running = await started(disk)
    entries = await fill_store(store)
    assert len(entries) > 50
    with pytest.raises(StoreFull, match=r"the disk is full; free space on it, or delete objects"):
        await store.update("/0001", a_body(), entries[1].revision)
    with pytest.raises(StoreUnavailable, match="the disk is full"):
        await store.check_writable()
    assert await store.get("/0000") == entries[0]
    for entry in entries[:50]:
        await store.delete(entry.key, a_body(), entry.revision)
    assert len((await store.list("/")).entries) == len(entries) - 50
    await stopped(store, running)


async def test_after_space_was_freed_all_writes_are_accepted(disk: Path) -> None:
    store, running = await started(disk)
    entry = await store.create("/kept", a_body())
    ballast = fill_disk(disk)
    await fill_store(store)
    ballast.unlink()
    await eventually(lambda: not store.database.is_full)
    await store.check_writable()
    await store.update("/kept", a_body("changed"), entry.revision)
    await stopped(store, running)


async def test_everything_can_be_deleted_while_others_keep_the_disk_full(disk: Path) -> None:
    store, running = await started(disk)
    entries = await fill_store(store)
    fill_disk(disk)
    for number, entry in enumerate(entries):
        text = "x" * 20_000
        if number % 3 == 0:  # as with finalizers
            entry = await store.update(entry.key, a_body(text + "marked"), entry.revision, frees_space=True)  # noqa: PLW2901
            entry = await store.update(entry.key, a_body(text), entry.revision, frees_space=True)  # noqa: PLW2901
        await store.delete(entry.key, a_body(text), entry.revision)
        fill_disk(disk)
        if number % 40 == 0:
            await stopped(store, running)
            fill_disk(disk)
            store, running = await started(disk)
    assert (await store.list("/")).entries == []
    await eventually(lambda: not store.database.is_full)
    await store.create("/new", a_body("x" * 20_000))
    await stopped(store, running)


async def test_creations_return_to_a_small_file_while_others_keep_the_disk_full(disk: Path) -> None:
    store, running = await started(disk)
    entries = [await store.create(f"/{number:04d}", a_body("x" * 20_000)) for number in range(30)]
    await stopped(store, running)
    fill_disk(disk)
    store, running = await started(disk)
    entries += await fill_store(store)
    assert len(entries) < 50
    fill_disk(disk)
    for entry in entries:
        await store.delete(entry.key, a_body(), entry.revision)
    await eventually(lambda: not store.database.is_full)
    await store.create("/new", a_body("x" * 20_000))
    await stopped(store, running)


async def test_a_reader_that_keeps_the_log_delays_deletions_only(disk: Path) -> None:
    options = StoreOptions(disk_reserve_bytes=1 << 20)
    store = SQLStore(f"sqlite:///{disk}/state.db", options)
    await store.ready()
    entries = await fill_store(store)
    fill_disk(disk)
    with store.database._connections.engine().connect().execution_options(federation_reads=True) as reader:
        reader.exec_driver_sql("SELECT count(*) FROM store_log")
        deleting = [asyncio.create_task(store.delete(entry.key, a_body(), entry.revision)) for entry in entries]
        await asyncio.sleep(0.5)
        assert not deleting[-1].done()
        reader.rollback()
    await asyncio.gather(*deleting)
    await store.close()


async def test_history_that_fills_the_disk_is_removed_at_once(disk: Path) -> None:
    store, running = await started(disk)
    entry = await store.create("/changed", a_body("x" * 20_000))
    fill_disk(disk)
    async with asyncio.timeout(60):
        for _ in range(2_000):
            while True:
                try:
                    entry = await store.update(entry.key, a_body("x" * 20_000), entry.revision)
                    break
                except StoreError:
                    await asyncio.sleep(0.01)
    await stopped(store, running)


async def test_the_space_of_the_log_is_kept_between_two_starts(disk: Path) -> None:
    store, running = await started(disk)
    await store.create("/a", a_body("secret"))
    await stopped(store, running)
    log = (disk / "state.db-wal").read_bytes()
    assert len(log) == StoreOptions().disk_reserve_bytes
    assert not any(log), "it is overwritten"


async def test_a_restart_on_a_full_disk_deletes_and_recovers(disk: Path) -> None:
    store, running = await started(disk)
    entries = [await store.create(f"/{number:02d}", a_body("x" * 20_000)) for number in range(20)]
    await stopped(store, running)
    ballast = fill_disk(disk)
    store, running = await started(disk)
    assert (await store.list("/")).entries == entries
    await fill_store(store)
    with pytest.raises(StoreFull, match="the disk is full"):
        await store.create("/new", a_body("x" * 20_000))
    await store.delete("/00", a_body(), entries[0].revision)
    ballast.unlink()
    await eventually(lambda: not store.database.is_full)
    await store.create("/new", a_body())
    await stopped(store, running)
    store, running = await started(disk)
    assert await store.get("/new") is not None
    await stopped(store, running)


async def test_a_restart_after_a_crash_on_a_full_disk_keeps_acknowledged_writes(disk: Path) -> None:
    """As after kill -9: the newest rows are in the WAL only, and there is no room to move them."""
    store, running = await started(disk)
    entries = [await store.create(f"/{number}", a_body("x" * 2_000)) for number in range(20)]
    copies = {name: (disk / name).read_bytes() for name in ("state.db", "state.db-wal")}
    await stopped(store, running)
    (disk / "state.db.lock").unlink()
    for name, content in copies.items():
        (disk / name).write_bytes(content)
    ballast = fill_disk(disk)
    assert os.statvfs(disk).f_bavail == 0
    store, running = await started(disk)
    assert sorted((await store.list("/")).entries, key=lambda entry: entry.revision) == entries
    ballast.unlink()
    await eventually(lambda: not store.database.is_full)
    await store.create("/new", a_body())
    await stopped(store, running)


@pytest.mark.slow("processes that are killed and started again")
@pytest.mark.parametrize("seed", range(max(1, RUNS)))
def test_others_fill_the_disk_at_random(tmp_path: Path, seed: int) -> None:
    mebibytes = random.Random(seed).randrange(30, 201) if RUNS else 20
    with small_disk(tmp_path, mebibytes) as mounted:
        if mounted is None:
            pytest.skip(UNPRIVILEGED)
        figures = asyncio.run(run(mounted, seed, rounds=6 if RUNS else 1))
    print(f"seed {seed}, {mebibytes} MiB: {dict(figures)}")
    assert figures["deletes"] > figures["objects on the full disk"] > 0
    assert figures["bytes at the end"] < mebibytes << 20
