"""Compaction in every store: current values stay, events keep their previous values, rows are deleted."""

import asyncio

import pytest
from tests.conformance.store.test_watches import write_some
from tests.support.stores import StoreBackend, a_body, recording

from federation.apimachinery.errors import RevisionCompacted
from federation.apiserver.store.interface import Store
from federation.apiserver.store.sql import SQLStore


async def rows_of(store: SQLStore) -> set[int]:
    return await store.database.read(
        lambda connection: set(
            connection.exec_driver_sql("SELECT revision FROM store_log WHERE revision > 0").scalars()
        )
    )


async def test_current_values_survive_compaction(store: Store) -> None:
    await write_some(store, 50)
    before = await store.list("")
    await store.compact(50)
    after = await store.list("")
    assert after == before
    assert await store.revision() == 50


async def test_compacting_backwards_or_beyond_the_newest_is_harmless(store: Store) -> None:
    await write_some(store, 10)
    await store.compact(1000)
    await store.compact(3)
    entry = await store.create("/new", a_body())
    assert entry.revision == 11
    async with recording(store, since=10) as watch:
        assert len(await watch.wait_for(11)) == 1


async def test_events_after_the_compacted_revision_keep_what_they_replaced(durable: StoreBackend) -> None:
    store = await durable.open()
    expected = await write_some(store, 80)
    for revision in (10, 11, 40):
        await store.compact(revision)
    await durable.stop(store)
    store = await durable.open()
    async with recording(store, since=40) as watch:
        assert await watch.wait_for(80) == expected[40:]
    assert (await store.list("", revision=40)).revision == 40


async def test_only_current_and_still_needed_rows_are_left(durable: StoreBackend) -> None:
    store = await durable.open(compaction_revisions_per_transaction=7)
    assert isinstance(store, SQLStore)
    await write_some(store, 100)
    await store.compact(60)
    current_at_60 = {entry.revision for entry in (await store.list("", revision=60)).entries}
    assert await rows_of(store) == current_at_60 | set(range(61, 101))
    await store.compact(100)
    assert await rows_of(store) == {entry.revision for entry in (await store.list("")).entries}


async def test_a_deleted_last_key_leaves_no_row_and_no_gap(durable: StoreBackend) -> None:
    store = await durable.open()
    assert isinstance(store, SQLStore)
    entry = await store.create("/a", a_body())
    await store.delete("/a", a_body(), entry.revision)
    await store.compact(2)
    assert await rows_of(store) == set()
    await durable.stop(store)
    store = await durable.open()
    assert await store.revision() == 2
    assert (await store.create("/a", a_body())).revision == 3


async def test_history_is_bounded_by_number_of_changes(backend: StoreBackend) -> None:
    store = await backend.open(history_rows_max=20, compaction_interval_s=0.02)
    await write_some(store, 60)
    async with asyncio.timeout(60):
        while True:
            try:
                await store.list("", revision=39)
            except RevisionCompacted:
                break
            await asyncio.sleep(0.01)
    await store.list("", revision=40)


async def test_history_is_bounded_by_age(durable: StoreBackend) -> None:
    store = await durable.open(history_age_s_max=0.0, compaction_interval_s=0.02)
    await write_some(store, 10)
    async with asyncio.timeout(60):
        while True:
            try:
                await store.list("", revision=9)
            except RevisionCompacted:
                break
            await asyncio.sleep(0.01)
    assert len((await store.list("")).entries) > 0


async def test_writes_go_on_while_history_is_forgotten(durable: StoreBackend) -> None:
    store = await durable.open(compaction_revisions_per_transaction=3)
    await write_some(store, 100)

    async def compact() -> None:
        await store.compact(90)

    async with recording(store, since=100) as watch:
        await asyncio.gather(compact(), write_some_keys(store, 50))
        assert [event.revision for event in await watch.wait_for(150)] == list(range(101, 151))
    with pytest.raises(RevisionCompacted):
        await store.list("", revision=89)


async def write_some_keys(store: Store, count: int) -> None:
    for number in range(count):
        await store.create(f"/meanwhile/{number}", a_body())
