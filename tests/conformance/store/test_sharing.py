"""Several processes on one PostgreSQL database: one order of changes, linearizable reads, correct preconditions."""

import asyncio
from urllib.parse import urlsplit

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine
from tests.support.postgres import PostgresServer
from tests.support.stores import StoreBackend, a_body, a_value, eventually, recording

from federation.apimachinery.errors import (
    KeyExists,
    RevisionConflict,
    StoreError,
    StoreUnavailable,
    WatchCanceled,
    WriteFenced,
)
from federation.apiserver.store.fencing import Fence, fenced
from federation.apiserver.store.history import read_snapshot
from federation.apiserver.store.interface import Entry
from federation.apiserver.store.sql import SQLStore

pytestmark = [pytest.mark.postgres, pytest.mark.xdist_group("postgres")]


async def test_a_read_sees_earlier_commits_of_another_process(shared: StoreBackend) -> None:
    # No tail that would tell in time: only the read itself can find out.
    one, other = await shared.open(tail_interval_s=60), await shared.open(tail_interval_s=60)
    for number in range(1, 20):
        entry = await one.create(f"/{number}", a_body())
        assert await other.get(entry.key) == entry
        assert await other.revision() == number
        assert len((await other.list("/")).entries) == number
        one, other = other, one


async def test_a_read_succeeds_after_the_server_has_closed_its_connections(
    shared: StoreBackend, postgres: PostgresServer
) -> None:
    store = await shared.open(tail_interval_s=60)
    entry = await store.create("/a", a_body())
    assert await store.get("/a") == entry
    name = urlsplit(shared.url).path[1:]
    closed = postgres.execute(f"SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = '{name}'")
    assert closed
    assert all(is_closed for (is_closed,) in closed)
    assert await store.get("/a") == entry


async def test_the_rows_of_a_commit_are_one_statement(shared: StoreBackend) -> None:
    """While several statements are under way, the server does not end the transaction of a process that is paused."""
    counted = {True: 0, False: 0}

    def count(
        _c: object, _cursor: object, statement: str, _p: object, _context: object, is_executed_many: bool
    ) -> None:
        counted[is_executed_many] += statement.startswith("INSERT INTO store_log")

    event.listen(Engine, "before_cursor_execute", count)
    try:
        store = await shared.open()
        await asyncio.gather(*(store.create(f"/{number}", a_body(str(number))) for number in range(60)))
    finally:
        event.remove(Engine, "before_cursor_execute", count)
    assert counted[True] == 0
    assert 0 < counted[False] < 60
    entries = (await (await shared.open()).list("/")).entries
    assert {entry.key for entry in entries} == {f"/{number}" for number in range(60)}
    assert all(entry.value == a_value(entry.revision, entry.key[1:]) for entry in entries)


async def test_both_see_everybodys_writes_in_the_same_order(shared: StoreBackend) -> None:
    one, other = await shared.open(), await shared.open()

    async def write(store, name: str) -> None:
        for number in range(40):
            entry = await store.create(f"/{name}/{number}", a_body())
            await store.update(entry.key, a_body("again"), entry.revision)

    async with recording(one) as first, recording(other) as second:
        await asyncio.gather(*(write(store, f"{store is one}{n}") for store in (one, other) for n in range(4)))
        assert await first.wait_for(640) == await second.wait_for(640)
        assert [event.revision for event in first.events] == list(range(1, 641))


async def test_one_of_two_racing_writers_wins(shared: StoreBackend) -> None:
    one, other = await shared.open(), await shared.open()
    for number in range(20):
        created = await asyncio.gather(
            one.create(f"/{number}", a_body("one")), other.create(f"/{number}", a_body("other")), return_exceptions=True
        )
        assert sorted(type(outcome) for outcome in created if not isinstance(outcome, Entry)) == [KeyExists]
        (winner,) = (outcome for outcome in created if isinstance(outcome, Entry))
        updated = await asyncio.gather(
            one.update(winner.key, a_body("one"), winner.revision),
            other.update(winner.key, a_body("other"), winner.revision),
            return_exceptions=True,
        )
        assert sorted(type(outcome).__name__ for outcome in updated) == ["Entry", "RevisionConflict"]
    assert await one.revision() == await other.revision() == 40


async def test_a_write_does_not_conflict_because_the_cache_lags(shared: StoreBackend) -> None:
    one, other = await shared.open(tail_interval_s=60), await shared.open(tail_interval_s=60)
    entry = await one.create("/a", a_body())
    newer = await other.update("/a", a_body(), entry.revision)
    with pytest.raises(RevisionConflict):
        await one.update("/a", a_body(), entry.revision)
    gone = await one.delete("/a", a_body(), newer.revision)
    assert (await other.create("/a", a_body())).revision == gone.revision + 1


async def test_a_watcher_receives_another_process_s_commit_at_once(shared: StoreBackend) -> None:
    one, other = await shared.open(), await shared.open(tail_interval_s=60)
    await one.create("/warm", a_body())
    async with recording(other) as watch, asyncio.timeout(30):  # half of what the tail would take for one of them
        await watch.wait_for(1)
        for number in range(2, 10):
            await one.create(f"/{number}", a_body())
            await watch.wait_for(number)


async def test_a_watcher_receives_it_without_notifications_too(shared: StoreBackend, postgres: PostgresServer) -> None:
    store = await shared.open(tail_interval_s=0.05)
    await store.create("/1", a_body())
    async with recording(store) as watch:
        await watch.wait_for(1)
        with_sql = (
            "UPDATE store_state SET revision = 2;"
            "INSERT INTO store_log (revision, key, type, create_revision, value) VALUES (2, '/2', 0, 2, '{}')"
        )
        postgres.execute(with_sql, urlsplit(shared.url).path[1:])
        assert [event.key for event in await watch.wait_for(2)] == ["/1", "/2"]


async def test_a_process_that_fell_behind_compaction_loads_again(shared: StoreBackend) -> None:
    one, sleeper = await shared.open(), await shared.open(tail_interval_s=60)
    await one.create("/kept", a_body())
    async with recording(sleeper) as watch:
        await watch.wait_for(1)
        # While the other does not follow (its lock is taken), history passes it by.
        async with sleeper._tail._lock:
            for number in range(20):
                await one.create(f"/{number}", a_body())
            await one.compact(15)
        assert isinstance(await watch.wait_for_error(), StoreError)
    async with asyncio.timeout(60):
        while True:
            try:
                page = await sleeper.list("/")
                break
            except StoreError:
                await asyncio.sleep(0.01)
    assert page == await one.list("/")
    assert (await sleeper.create("/new", a_body())).revision == 22


async def test_a_snapshot_that_is_older_than_what_was_published_meanwhile_changes_nothing(
    shared: StoreBackend,
) -> None:
    store = await shared.open()
    assert isinstance(store, SQLStore)
    for number in range(5):
        await store.create(f"/{number}", a_body())
    snapshot = await store.database.read(lambda connection: read_snapshot(connection, store.cipher))
    async with recording(store) as watch:
        await watch.wait_for(5)
        await store.create("/later", a_body())
        await watch.wait_for(6)
        store._adopt(snapshot)
        assert await store.get("/later") is not None
        await store.create("/last", a_body())
        events = await watch.wait_for(7)
    assert [event.revision for event in events] == list(range(1, 8)), "no gap and no repetition"


async def test_a_watch_that_begins_while_a_snapshot_is_read_misses_nothing(shared: StoreBackend) -> None:
    one, sleeper = await shared.open(), await shared.open(tail_interval_s=60)
    assert isinstance(sleeper, SQLStore)
    async with sleeper._tail._lock:  # the other does not follow
        for number in range(20):
            await one.create(f"/{number}", a_body())
        snapshot = await sleeper.database.read(lambda connection: read_snapshot(connection, sleeper.cipher))
        watch = sleeper._watch_cache.watch("/", sleeper._watch_cache.cache.revision, None)
        begun = asyncio.ensure_future(anext(watch))
        await asyncio.sleep(0)
        sleeper._adopt(snapshot)
        with pytest.raises(WatchCanceled):
            await begun
    assert await sleeper.list("/") == await one.list("/")


async def test_a_write_of_a_process_that_fell_behind_is_refused_until_it_has_loaded_again(shared: StoreBackend) -> None:
    one, sleeper = await shared.open(), await shared.open(tail_interval_s=60)
    async with sleeper._tail._lock:
        for number in range(20):
            await one.create(f"/{number}", a_body())
        await one.compact(15)
        with pytest.raises(StoreUnavailable, match="fell behind and loads it again"):
            await sleeper.create("/new", a_body())
        await eventually(lambda: sleeper._watch_cache.cache.revision == 20)
        assert (await sleeper.create("/new", a_body())).revision == 21


async def test_compaction_by_one_process_applies_to_all(shared: StoreBackend) -> None:
    one, other = await shared.open(), await shared.open()
    for number in range(10):
        await one.create(f"/{number}", a_body())
    assert await other.revision() == 10
    await one.compact(5)
    await other.revision()
    with pytest.raises(StoreError, match="compacted"):
        await other.list("/", revision=4)
    assert len((await other.list("/", revision=5)).entries) == 5


async def test_processes_that_start_together_migrate_once(shared: StoreBackend) -> None:
    stores = await asyncio.gather(*(shared.open() for _ in range(4)))
    await asyncio.gather(*(store.create(f"/{n}", a_body()) for n, store in enumerate(stores)))
    assert {await store.revision() for store in stores} == {4}


async def test_a_process_may_open_several_databases_at_once(postgres: PostgresServer) -> None:
    backends = [StoreBackend("postgres", postgres.create_database()) for _ in range(3)]
    async with asyncio.timeout(60):
        stores = await asyncio.gather(*(backend.open() for backend in backends))
    assert [await store.revision() for store in stores] == [0, 0, 0]
    for backend in backends:
        await backend.close()


async def test_a_process_that_lost_the_lease_writes_nothing(shared: StoreBackend) -> None:
    """Its cache may say that it holds the Lease: the transaction sees the commit of the new holder."""
    one, other = await shared.open(tail_interval_s=60), await shared.open(tail_interval_s=60)
    fence = Fence("/lease", b'"text":"one"')
    held = await one.create("/lease", a_body("one"))
    with fenced(fence):
        mine = await one.create("/mine", a_body())
    await other.update("/lease", a_body("other"), held.revision)
    with fenced(fence):
        for write in (
            one.create("/new", a_body()),
            one.update("/mine", a_body("again"), mine.revision),
            one.delete("/mine", a_body(), mine.revision),
        ):
            with pytest.raises(WriteFenced):
                await write
    assert await other.get("/new") is None
    assert await other.get("/mine") == mine
    await one.update("/mine", a_body("a user"), mine.revision)  # without a fence


async def test_nothing_is_written_without_the_lease(shared: StoreBackend) -> None:
    store = await shared.open()
    with fenced(Fence("/lease", b"one")), pytest.raises(WriteFenced):
        await store.create("/new", a_body())
