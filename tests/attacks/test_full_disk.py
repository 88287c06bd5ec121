"""A full disk: reads and deletions go on, a restart succeeds, and room on the disk ends the state."""

import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.stores import a_body, eventually

from federation.apimachinery.errors import StoreError, StoreFull, StoreUnavailable
from federation.apiserver.store.interface import Entry
from federation.apiserver.store.sql import SQLStore

MOUNTED_KIB = 8 * 1024


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small file system."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={MOUNTED_KIB}k", "tmpfs", str(tmp_path)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small tmpfs needs privileges that this user does not have")
    yield tmp_path
    subprocess.run(["umount", "-l", str(tmp_path)], check=True)


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


@pytest.mark.parametrize("has_reserve", [True, False], ids=["with the reserve", "without any room"])
async def test_a_restart_on_a_full_disk_reads_and_recovers(disk: Path, *, has_reserve: bool) -> None:
    store, running = await started(disk)
    entries = [await store.create(f"/{number:02d}", a_body("x" * 20_000)) for number in range(20)]
    await stopped(store, running)
    if not has_reserve:
        (disk / "state.db.reserve").unlink()
    ballast = fill_disk(disk)
    store, running = await started(disk)
    assert (await store.list("/")).entries == entries
    with pytest.raises(StoreFull, match="the disk is full"):
        await store.create("/new", a_body())
    if has_reserve:
        await store.delete("/00", a_body(), entries[0].revision)
    else:
        with pytest.raises(StoreUnavailable, match="read-only until its disk has room"):
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
    for name in ("state.db", "state.db.lock", "state.db.reserve"):
        (disk / name).unlink()
    for name, content in copies.items():
        (disk / name).write_bytes(content)
    ballast = fill_disk(disk)
    assert os.statvfs(disk).f_bavail == 0
    store, running = await started(disk)
    assert store.database.is_full
    assert sorted((await store.list("/")).entries, key=lambda entry: entry.revision) == entries
    ballast.unlink()
    await eventually(lambda: not store.database.is_full)
    await store.create("/new", a_body())
    await stopped(store, running)
