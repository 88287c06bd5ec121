"""A full disk of a PostgreSQL server: deletions go on until nothing is left, and creations return by themselves.

All of the server is on the disk, the log (WAL) too. It is a server that survives a full disk, as docs/operations.md
describes: it owns the space of its log, and keeps no state of replication origins, for which each checkpoint writes a
file. `DISK_RUNS=30` runs as many random campaigns on disks of 100 to 200 MB that other programs fill.
"""

import asyncio
import os
import random
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import psycopg
import pytest
import pytest_asyncio
from tests.support.fulldisk.campaign import run, small_disk
from tests.support.postgres import PostgresServer
from tests.support.stores import StoreBackend, a_body, eventually

from federation.apimachinery.errors import StoreFull, StoreUnavailable
from federation.apiserver.store.interface import Entry
from federation.apiserver.store.options import MEBIBYTE
from federation.apiserver.store.sql import SQLStore

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.xdist_group("postgres"),
    pytest.mark.slow("a server of its own, whose disk is filled"),
]
RUNS = int(os.environ.get("DISK_RUNS", "0"))
UNPRIVILEGED = "mounting a small tmpfs needs privileges that this user does not have"
MOUNTED_MIB = 110
LOG_MIB = 32
SIZE = 60_000


@pytest.fixture
def disk(request: pytest.FixtureRequest) -> Iterator[Path]:
    """A small file system that the user of the server reaches: not below `tmp_path`, which pytest makes private."""
    with tempfile.TemporaryDirectory(prefix="feddisk-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        with small_disk(Path(folder), getattr(request, "param", MOUNTED_MIB)) as mounted:
            if mounted is None:
                pytest.skip(UNPRIVILEGED)
            yield mounted


@pytest.fixture
def server(disk: Path) -> Iterator[PostgresServer]:
    settings = ("max_active_replication_origins=0",)
    (disk / "server").mkdir()
    with PostgresServer(wal_segment_mib=1, disk=disk / "server", settings=settings) as server:
        server.own_log(LOG_MIB)
        yield server
        panics = [line for line in (server.folder / "log").read_text().splitlines() if "PANIC" in line]
        assert panics == [], "the server stopped"


@pytest_asyncio.fixture
async def database(server: PostgresServer) -> AsyncIterator[StoreBackend]:
    backend = StoreBackend("postgres", server.create_database())
    server.execute("CHECKPOINT")  # only now a new database has the blocks of its files
    yield backend
    await backend.close()


def fill(disk: Path) -> Path:
    """Take what the disk still has, as other programs do."""
    ballast = disk / "ballast"
    with ballast.open("ab", buffering=0) as file:
        for size in (65_536, 4_096):
            try:
                while file.write(bytes(size)) == size:
                    pass
            except OSError:
                continue
    return ballast


def a_text(size: int = SIZE) -> str:
    """Return a text that the server cannot compress by much."""
    return os.urandom(size // 2).hex()


async def opened(database: StoreBackend, **options: object) -> SQLStore:
    """Return a running store that has its reserve."""
    store = await database.open(**options)
    assert isinstance(store, SQLStore)
    async with asyncio.timeout(60):
        while not await store.database._room.is_reserved():  # noqa: ASYNC110  # written in the background
            await asyncio.sleep(0.01)
    return store


async def start_once(url: str) -> None:
    backend = StoreBackend("postgres", url)
    await opened(backend)
    await backend.close()


async def create_until_full(store: SQLStore, prefix: str = "/") -> list[Entry]:
    entries: list[Entry] = []
    while True:
        try:
            entries.append(await store.create(f"{prefix}{len(entries):05}", a_body(a_text())))
        except StoreFull:
            return entries


async def create_soon(store: SQLStore, key: str) -> Entry:
    """Create an object as soon as it is possible, as a client does that repeats its request."""
    async with asyncio.timeout(60):
        while True:
            try:
                return await store.create(key, a_body(a_text()))
            except StoreFull:
                await asyncio.sleep(0.05)


async def test_everything_can_be_deleted_while_others_keep_the_disk_full(disk: Path, database: StoreBackend) -> None:
    store = await opened(database)
    kept = await store.create("/kept", a_body("small"))
    for _ in range(20):  # a history that takes space
        kept = await store.update("/kept", a_body(a_text()), kept.revision)
    entries = [await store.create(f"/{number:05}", a_body(a_text())) for number in range(100)]
    fill(disk)
    entries += await create_until_full(store, "/more/")
    with pytest.raises(StoreFull, match="the disk is full; free space on it, or delete objects"):
        await store.create("/refused", a_body(a_text(MEBIBYTE)))
    for number, entry in enumerate([*entries, kept]):
        if number % 3 == 0:  # as with finalizers
            entry = await store.update(entry.key, a_body(a_text() + "marked"), entry.revision, frees_space=True)  # noqa: PLW2901
            entry = await store.update(entry.key, a_body(a_text()), entry.revision, frees_space=True)  # noqa: PLW2901
        await store.delete(entry.key, a_body("gone"), entry.revision)
        fill(disk)
    assert (await store.list("/")).entries == []
    created = [await create_soon(store, f"/again/{number}") for number in range(10)]
    assert (await store.list("/")).entries == created
    await store.check_writable()


async def test_all_objects_can_be_marked_before_any_is_deleted(disk: Path, database: StoreBackend) -> None:
    """As by the deletion of a namespace whose objects have finalizers."""
    store = await opened(database)
    entries = [await store.create(f"/{number:05}", a_body(a_text())) for number in range(100)]
    fill(disk)
    await create_until_full(store, "/more/")
    entries = (await store.list("/")).entries
    fill(disk)
    updates = [store.update(entry.key, a_body(a_text()), entry.revision, frees_space=True) for entry in entries]
    marked = await asyncio.gather(*updates)
    fill(disk)
    await asyncio.gather(*(store.delete(entry.key, a_body(), entry.revision) for entry in marked))
    await create_soon(store, "/new")


async def test_room_on_the_disk_ends_the_state(disk: Path, database: StoreBackend) -> None:
    store, other = await opened(database), await opened(database)
    ballast = fill(disk)
    entries = await create_until_full(store)
    with pytest.raises(StoreUnavailable, match="the disk is full"):
        await store.check_writable()
    assert (await other.list("/")).entries == entries
    ballast.unlink()
    await eventually(lambda: not store.database.is_full)
    await store.check_writable()
    created = await store.create("/new", a_body(a_text(MEBIBYTE)))
    assert await other.get("/new") == created


async def test_a_process_that_starts_on_a_full_disk_deletes(disk: Path, database: StoreBackend) -> None:
    store = await opened(database)
    entries = [await store.create(f"/{number:05}", a_body(a_text())) for number in range(50)]
    fill(disk)
    await create_until_full(store, "/more/")
    await database.stop(store)
    fill(disk)
    store = await opened(database)
    for entry in entries:
        await store.delete(entry.key, a_body(), entry.revision)
    await create_soon(store, "/new")


async def test_a_user_without_rights_on_the_server_deletes(disk: Path, server: PostgresServer) -> None:
    server.execute("CREATE ROLE plain LOGIN")
    server.execute("CREATE DATABASE plain OWNER plain")
    server.execute("CHECKPOINT")
    backend = StoreBackend("postgres", f"postgresql://plain@/plain?host={server.folder}")
    store = await opened(backend)
    entries = [await store.create(f"/{number:05}", a_body(a_text())) for number in range(50)]
    ballast = fill(disk)
    await create_until_full(store, "/more/")
    fill(disk)
    for entry in entries:
        await store.delete(entry.key, a_body(), entry.revision)
    await create_soon(store, "/new")
    ballast.unlink()
    await backend.close()


async def test_the_reserve_is_no_part_of_what_the_store_has(server: PostgresServer, database: StoreBackend) -> None:
    store = await opened(database)
    entry = await store.create("/a", a_body())
    await store.compact(await store.revision())
    await database.stop(store)
    with psycopg.connect(database.url) as connection:
        assert connection.execute("SELECT count(*) FROM store_log WHERE revision < 0").fetchone() == (2_050,)
    store = await opened(database)
    assert (await store.list("")).entries == [entry]
    assert not store.warnings()


async def test_above_the_quota_creations_return_without_a_full_vacuum(database: StoreBackend) -> None:
    store = await opened(database, bytes_max=24 * MEBIBYTE)
    entries: list[Entry] = []
    while not store.warnings():
        entries.append(await store.create(f"/{len(entries):05}", a_body(a_text())))
        await store.database._measure()
    with pytest.raises(StoreFull, match="database space exceeded"):
        await store.create("/refused", a_body())
    for entry in entries:
        await store.delete(entry.key, a_body(), entry.revision)
    await store.compact(await store.revision())
    await store.database._measure()
    await store.create("/new", a_body(a_text()))


@pytest.mark.parametrize(
    ("seed", "disk"),
    [(seed, random.Random(seed).randrange(100, 201) if RUNS else MOUNTED_MIB) for seed in range(max(1, RUNS))],
    indirect=["disk"],
)
def test_others_fill_the_disk_at_random(disk: Path, server: PostgresServer, seed: int) -> None:
    url = server.create_database()
    server.execute("CHECKPOINT")
    asyncio.run(start_once(url))
    figures = asyncio.run(run(disk, seed, rounds=6 if RUNS else 1, url=url))
    print(f"seed {seed}, {os.statvfs(disk).f_blocks >> 8} MiB: {dict(figures)}")
    assert figures["deletes"] > figures["objects on the full disk"] > 0
