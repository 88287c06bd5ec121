"""Watches in every store: every change once, in order, from any kept revision, with its previous value."""

import asyncio
import random

import pytest
from tests.support.stores import StoreBackend, a_body, a_value, recording

from federation.apimachinery.errors import RevisionCompacted, StoreError
from federation.apiserver.store.interface import Event, EventType, Store, WakeSignal


async def write_some(store: Store, count: int, seed: int = 1) -> list[Event]:
    """Do `count` random writes and return the events that they must give."""
    rng = random.Random(seed)
    events: list[Event] = []
    live: dict[str, tuple[int, bytes]] = {}
    for _ in range(count):
        key = f"/{rng.choice('ab')}/{rng.randrange(8)}"
        text = str(rng.random())
        if key not in live:
            entry = await store.create(key, a_body(text))
            events.append(Event(entry.revision, key, EventType.CREATED, entry.value, None))
            live[key] = (entry.revision, entry.value)
        elif rng.random() < 0.3:
            revision, previous = live.pop(key)
            entry = await store.delete(key, a_body(text), revision)
            events.append(Event(entry.revision, key, EventType.DELETED, entry.value, previous))
        else:
            revision, previous = live[key]
            entry = await store.update(key, a_body(text), revision)
            events.append(Event(entry.revision, key, EventType.UPDATED, entry.value, previous))
            live[key] = (entry.revision, entry.value)
    return events


async def test_a_watch_yields_each_change_with_the_previous_value(store: Store) -> None:
    async with recording(store) as watch:
        first = await store.create("/a", a_body("1"))
        second = await store.update("/a", a_body("2"), first.revision)
        await store.delete("/a", a_body("3"), second.revision)
        assert await watch.wait_for(3) == [
            Event(1, "/a", EventType.CREATED, a_value(1, "1"), None),
            Event(2, "/a", EventType.UPDATED, a_value(2, "2"), a_value(1, "1")),
            Event(3, "/a", EventType.DELETED, a_value(3, "3"), a_value(2, "2")),
        ]


@pytest.mark.parametrize("recent_events_max", [8192, 20, 0], ids=["in memory", "partly in memory", "from the log"])
async def test_a_watch_can_be_resumed_at_any_revision(backend: StoreBackend, recent_events_max: int) -> None:
    store = await backend.open(recent_events_max=recent_events_max, replay_events_max=7)
    expected = await write_some(store, 60)
    for since in [0, *random.Random(2).sample(range(1, 60), 8), 60]:
        for prefix in ("", "/a/", "/a/3"):
            async with recording(store, prefix, since) as watch:
                wanted = [e for e in expected if e.revision > since and e.key.startswith(prefix)]
                assert await watch.wait_for(60) == wanted


async def test_a_watch_goes_on_from_the_past_into_the_present_without_gap(backend: StoreBackend) -> None:
    store = await backend.open(recent_events_max=10, replay_events_max=3)
    past = await write_some(store, 40, seed=3)

    async def more(name: int) -> None:
        for number in range(20):
            await store.create(f"/a/more/{name}/{number}", a_body())

    writers = [asyncio.create_task(more(name)) for name in range(8)]
    async with recording(store, since=5) as watch:
        await asyncio.gather(*writers)
        events = await watch.wait_for(200)
        assert [event.revision for event in events] == list(range(6, 201))
        assert events[:35] == past[5:]


async def test_watchers_see_every_change_of_concurrent_writers_once_and_in_order(store: Store) -> None:
    async def write(name: int) -> None:
        for number in range(20):
            entry = await store.create(f"/w{name}/{number}", a_body())
            await store.update(entry.key, a_body(), entry.revision)

    async with recording(store) as everything, recording(store, "/w3/") as one, recording(store, "/none/") as none:
        await asyncio.gather(*(write(name) for name in range(8)))
        assert [event.revision for event in await everything.wait_for(320)] == list(range(1, 321))
        assert await one.wait_for(320) == [e for e in everything.events if e.key.startswith("/w3/")]
        assert await none.wait_for(320) == []


async def test_an_idle_watch_gets_empty_batches_as_progress(store: Store) -> None:
    async with recording(store, "/quiet/") as watch:
        await store.create("/loud/1", a_body())
        assert await watch.wait_for(1) == []
        await store.create("/loud/2", a_body())
        assert await watch.wait_for(2) == []


async def test_a_batch_carries_the_watch_s_revision(store: Store) -> None:
    watch = store.watch("/a/", 0)
    await store.create("/a/1", a_body())
    await store.create("/b/1", a_body())
    batch = await anext(watch)
    assert [event.key for event in batch] == ["/a/1"]
    assert batch.revision == 2
    await watch.aclose()


async def test_a_slow_watcher_is_ended_alone(backend: StoreBackend) -> None:
    store = await backend.open(watcher_events_max=10)
    slow, fast = store.watch("/", 0), []
    await store.create("/0", a_body())
    await anext(slow)
    async with recording(store, "/", 0) as recorder:
        for number in range(1, 30):
            await store.create(f"/{number}", a_body())
            await recorder.wait_for(number + 1)
        fast = recorder.events
    with pytest.raises(StoreError, match="too slow"):
        await anext(slow)
    assert [event.revision for event in fast] == list(range(1, 31))


async def test_a_watch_from_a_compacted_revision_is_refused(store: Store) -> None:
    expected = await write_some(store, 30)
    await store.compact(20)
    async with recording(store, since=19) as watch:
        assert isinstance(await watch.wait_for_error(), RevisionCompacted)
    async with recording(store, since=20) as watch:
        assert await watch.wait_for(30) == expected[20:]


async def test_a_watch_from_the_future_is_refused(store: Store) -> None:
    async with recording(store, since=1) as watch:
        assert isinstance(await watch.wait_for_error(), RevisionCompacted)


async def test_a_watch_behind_the_compacted_revision_fails(durable: StoreBackend) -> None:
    store = await durable.open(recent_events_max=0, replay_events_max=5)
    await write_some(store, 30)
    watch = store.watch("", 0)
    assert len(await anext(watch)) == 5
    await store.compact(20)
    with pytest.raises(RevisionCompacted):
        await anext(watch)


async def test_closing_the_store_ends_its_watches(backend: StoreBackend) -> None:
    store = await backend.open()
    async with recording(store) as watch:
        await store.create("/a", a_body())
        await watch.wait_for(1)
        await backend.stop(store)
        assert isinstance(await watch.wait_for_error(), StoreError)


async def test_a_cancelled_watch_is_unsubscribed(store: Store) -> None:
    broadcaster = store._watch_cache.broadcaster
    for _ in range(20):
        async with recording(store, "/a/") as watch:
            entry = await store.create(f"/a/{await store.revision()}", a_body())
            await watch.wait_for(entry.revision)
    assert not broadcaster._directories


async def test_a_nudge_makes_a_quiet_watch_yield_an_empty_batch(store: Store) -> None:
    entry = await store.create("/a", a_body("1"))
    wake_signal = WakeSignal()
    watch = store.watch("/", 0, wake_signal)
    assert [event.key for event in await anext(watch)] == ["/a"]
    quiet = asyncio.ensure_future(anext(watch))
    await asyncio.sleep(0)
    wake_signal()
    batch = await quiet
    assert (list(batch), batch.revision) == ([], entry.revision)
    await watch.aclose()  # type: ignore[attr-defined]  # every store's watch is an async generator
