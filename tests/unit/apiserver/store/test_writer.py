"""Group commit: batches, limits, and the failure of waiting writes when the database or the writer fails."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

import pytest
from sqlalchemy import Connection
from tests.support.stores import a_body

from federation.apimachinery.errors import Bug, StoreError, StoreUnavailable
from federation.apiserver.store.encryption import ValueCipher
from federation.apiserver.store.interface import Entry, EventType
from federation.apiserver.store.options import StoreOptions
from federation.apiserver.store.quota import SpaceQuota
from federation.apiserver.store.sqlite import SQLiteDatabase
from federation.apiserver.store.watchcache import WatchCache
from federation.apiserver.store.writer import GroupCommit

T = TypeVar("T")


class GatedDatabase(SQLiteDatabase):
    """A real database whose next write can be held back or made to fail."""

    def __init__(self, url, options: StoreOptions) -> None:
        super().__init__(url, options)
        self.gate = asyncio.Event()
        self.gate.set()
        self.failure: BaseException | None = None
        self.writes = 0

    async def write(self, work: Callable[[Connection], T], *, is_durable: bool = True, frees_space: bool = False) -> T:
        self.writes += 1
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        return await super().write(work, is_durable=is_durable, frees_space=frees_space)


class Rig:
    """A writer on its database."""

    def __init__(self, database: GatedDatabase, options: StoreOptions) -> None:
        self.database = database
        self.watch_cache = WatchCache(options, 100, 1 << 20)
        quota = SpaceQuota(database, options)
        self.writer = GroupCommit(database, self.watch_cache, options, ValueCipher(), lambda: None, quota)
        self.writer.open()

    def create(self, key: str) -> "asyncio.Task[Entry]":
        return asyncio.create_task(self.writer.write(EventType.CREATED, key, a_body(), 0))


@pytest.fixture
async def make(tmp_path) -> AsyncIterator[Callable[..., Rig]]:
    from sqlalchemy import make_url

    rigs = []

    async def build(**fields: int) -> Rig:
        options = StoreOptions(**fields)
        database = GatedDatabase(make_url(f"sqlite:///{tmp_path}/state.db"), options)
        await SQLiteDatabase.open(database)
        database.writes = 0
        rigs.append(Rig(database, options))
        return rigs[-1]

    yield build
    for rig in rigs:
        await rig.database.close()


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_writes_that_arrive_during_a_commit_share_the_next_one(make) -> None:
    rig = await make()
    rig.database.gate.clear()
    first = rig.create("/first")
    await settle()
    rest = [rig.create(f"/{n}") for n in range(50)]
    await settle()
    rig.database.gate.set()
    await asyncio.gather(first, *rest)
    assert rig.database.writes == 2


async def test_a_batch_is_bounded_by_number_and_by_bytes(make) -> None:
    rig = await make(writes_per_commit_max=10)
    await asyncio.gather(*(rig.create(f"/{n}") for n in range(35)))
    assert rig.database.writes == 4


async def test_a_batch_is_bounded_by_bytes(make) -> None:
    rig = await make(bytes_per_commit_max=1)
    await asyncio.gather(*(rig.create(f"/{n}") for n in range(5)))
    assert rig.database.writes == 5


async def test_too_many_waiting_writes_are_refused(make) -> None:
    rig = await make(writes_pending_max=3)
    rig.database.gate.clear()
    first = rig.create("/first")
    await settle()
    waiting = [rig.create(f"/{n}") for n in range(3)]
    await settle()
    with pytest.raises(StoreUnavailable, match="3 writes are waiting already"):
        await rig.create("/one/too/many")
    rig.database.gate.set()
    await asyncio.gather(first, *waiting)


async def test_a_write_that_is_cancelled_while_it_waits_does_not_happen(make) -> None:
    rig = await make()
    rig.database.gate.clear()
    first = rig.create("/first")
    await settle()
    gone, kept = rig.create("/gone"), rig.create("/kept")
    await settle()
    gone.cancel()
    rig.database.gate.set()
    await asyncio.gather(first, kept)
    assert rig.watch_cache.cache.get("/gone") is None
    assert (await kept).revision == 2


async def test_a_write_that_is_cancelled_during_its_commit_happens(make) -> None:
    rig = await make()
    rig.database.gate.clear()
    first = rig.create("/first")
    await settle()
    first.cancel()
    rig.database.gate.set()
    assert (await rig.create("/second")).revision == 2
    assert rig.watch_cache.cache.get("/first") is not None


async def test_writes_that_fail_their_precondition_need_no_transaction(make) -> None:
    rig = await make()
    await rig.create("/a")
    with pytest.raises(StoreError):
        await rig.create("/a")
    assert rig.database.writes == 1


async def test_an_unavailable_database_fails_its_batch_only(make) -> None:
    rig = await make()
    rig.database.failure = StoreUnavailable("gone")
    for outcome in await asyncio.gather(rig.create("/a"), rig.create("/b"), return_exceptions=True):
        assert isinstance(outcome, StoreUnavailable)
    rig.database.failure = None
    assert (await rig.create("/a")).revision == 1


async def test_every_caller_gets_an_error_when_the_writer_fails(make) -> None:
    rig = await make(writes_per_commit_max=2)
    unhandled = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(context["exception"]))
    rig.database.failure = Bug("an invariant does not hold")
    outcomes = await asyncio.gather(*(rig.create(f"/{n}") for n in range(5)), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [StoreUnavailable] * 5
    rig.database.failure = None
    assert (await rig.create("/a")).revision == 1


async def test_a_commit_that_was_not_noticed_is_found_by_the_next(make) -> None:
    """As when the helper or the connection dies between the commit and its acknowledgement."""
    rig = await make()
    await rig.create("/a")
    other = Rig(rig.database, StoreOptions())
    other.watch_cache.load([], 0, 0)
    assert (await other.create("/b")).revision == 2
    assert other.watch_cache.cache.get("/a") is not None
    assert (await rig.create("/c")).revision == 3
    assert [event.key for event in rig.watch_cache.cache.events_since(0, "")] == ["/a", "/b", "/c"]


async def test_a_closed_writer_refuses(make) -> None:
    rig = await make()
    await rig.writer.close()
    with pytest.raises(StoreUnavailable, match="is not open"):
        await rig.create("/a")
