"""Writes in every store: revisions, preconditions, values that contain their own revision."""

import asyncio

import pytest
from tests.support.stores import StoreBackend, a_body, a_value

from federation.apimachinery.errors import KeyExists, KeyNotFound, RevisionConflict, StoreError, StoreUnavailable
from federation.apiserver.store.interface import Body, Entry, Store
from federation.apiserver.store.writes import VALUE_BYTES_MAX


async def test_a_new_store_is_at_revision_zero(store: Store) -> None:
    assert await store.revision() == 0
    assert await store.get("/a") is None


async def test_a_created_key_carries_its_revision(store: Store) -> None:
    entry = await store.create("/a", a_body("x"))
    assert entry == Entry("/a", 1, 1, a_value(1, "x"))
    assert await store.get("/a") == entry
    assert await store.revision() == 1


async def test_creating_twice_is_refused_and_takes_no_revision(store: Store) -> None:
    await store.create("/a", a_body())
    with pytest.raises(KeyExists):
        await store.create("/a", a_body())
    assert await store.revision() == 1


async def test_an_update_keeps_the_create_revision(store: Store) -> None:
    await store.create("/other", a_body())
    first = await store.create("/a", a_body("1"))
    second = await store.update("/a", a_body("2"), first.revision)
    assert second == Entry("/a", 3, 2, a_value(3, "2"))
    assert await store.get("/a") == second


async def test_an_update_at_an_older_revision_is_refused(store: Store) -> None:
    first = await store.create("/a", a_body())
    await store.update("/a", a_body(), first.revision)
    with pytest.raises(RevisionConflict):
        await store.update("/a", a_body(), first.revision)
    assert await store.revision() == 2


async def test_changing_a_missing_key_is_refused(store: Store) -> None:
    with pytest.raises(KeyNotFound):
        await store.update("/a", a_body(), 1)
    with pytest.raises(KeyNotFound):
        await store.delete("/a", a_body(), 1)


async def test_a_delete_removes_the_key_and_returns_the_last_state(store: Store) -> None:
    first = await store.create("/a", a_body())
    with pytest.raises(RevisionConflict):
        await store.delete("/a", a_body(), first.revision + 1)
    gone = await store.delete("/a", a_body("gone"), first.revision)
    assert gone == Entry("/a", 2, 1, a_value(2, "gone"))
    assert await store.get("/a") is None


async def test_a_key_that_is_created_again_begins_a_new_life(store: Store) -> None:
    first = await store.create("/a", a_body())
    await store.delete("/a", a_body(), first.revision)
    assert (await store.create("/a", a_body())).create_revision == 3


async def test_concurrent_writes_to_one_key_act_one_after_the_other(store: Store) -> None:
    outcomes = await asyncio.gather(
        store.create("/a", a_body("1")),
        store.create("/a", a_body("2")),
        store.update("/a", a_body("3"), 1),
        store.update("/a", a_body("4"), 1),
        store.delete("/a", a_body("5"), 2),
        store.create("/a", a_body("6")),
        return_exceptions=True,
    )
    assert [getattr(o, "revision", type(o).__name__) for o in outcomes] == [
        1, "KeyExists", 2, "RevisionConflict", 3, 4,
    ]  # fmt: skip
    entry = await store.get("/a")
    assert entry is not None
    assert entry.value == a_value(4, "6")


async def test_revisions_have_no_gap_with_eight_concurrent_writers(store: Store) -> None:
    async def write(name: int) -> list[int]:
        revisions = []
        for number in range(25):
            entry = await store.create(f"/w{name}/{number}", a_body())
            revisions.append(entry.revision)
            if number % 3 == 0:
                revisions.append((await store.update(entry.key, a_body(), entry.revision)).revision)
            if number % 5 == 0:
                with pytest.raises(KeyExists):
                    await store.create(entry.key, a_body())
        return revisions

    written = await asyncio.gather(*(write(name) for name in range(8)))
    assert sorted(r for revisions in written for r in revisions) == list(range(1, 8 * 34 + 1))
    for revisions in written:
        assert revisions == sorted(revisions)


async def test_values_hold_any_bytes_and_keys_any_characters(store: Store) -> None:
    head, tail = bytes(range(256)), b"\0" * 100_000
    for key in ("/ä/ö", "/a%_b", "/日本", "/😀", "/x y'\"\\"):
        entry = await store.create(key, Body(head, tail))
        assert await store.get(key) == entry
        assert entry.value == head + str(entry.revision).encode() + tail


@pytest.mark.parametrize("key", ["", "/a\0b", "/" + "x" * 3000, "/\ud800"], ids=["empty", "nul", "long", "surrogate"])
async def test_an_impossible_key_is_refused_and_harms_no_other_write(store: Store, key: str) -> None:
    good, bad = await asyncio.gather(
        store.create("/good", a_body()), store.create(key, a_body()), return_exceptions=True
    )
    assert isinstance(good, Entry)
    assert isinstance(bad, StoreError)
    assert await store.revision() == 1


async def test_a_value_that_is_too_large_is_refused(store: Store) -> None:
    with pytest.raises(StoreError, match="larger than"):
        await store.create("/a", Body(b"x" * VALUE_BYTES_MAX, b"x"))
    assert await store.revision() == 0


async def test_a_write_whose_caller_is_cancelled_leaves_the_store_consistent(store: Store) -> None:
    task = asyncio.create_task(store.create("/a", a_body()))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    entry = await store.create("/b", a_body())
    assert await store.revision() == entry.revision
    assert entry.revision == (2 if await store.get("/a") else 1)


async def test_a_closed_store_refuses_everything(backend: StoreBackend) -> None:
    store = await backend.open()
    await store.create("/a", a_body())
    await backend.stop(store)
    for call in (store.create("/b", a_body()), store.get("/a"), store.list("/"), store.revision(), store.compact(1)):
        with pytest.raises(StoreUnavailable):
            await call


async def test_close_commits_accepted_writes(durable: StoreBackend) -> None:
    store = await durable.open()
    writes = [asyncio.create_task(store.create(f"/{n}", a_body())) for n in range(300)]
    await asyncio.sleep(0)
    await durable.stop(store)
    assert len(await asyncio.gather(*writes)) == 300
    assert len((await (await durable.open()).list("/")).entries) == 300
