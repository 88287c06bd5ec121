"""Guarantees of the store in memory only: no threads, no suspension, a virtual clock, any event loop."""

import asyncio
import threading

import pytest
import uvloop
from tests.support.stores import a_body, recording

from federation.apimachinery.clock import ManualClock
from federation.apiserver.store.memory import MemoryStore
from federation.apiserver.store.options import StoreOptions


async def test_progress_follows_the_virtual_clock() -> None:
    clock = ManualClock()
    store = MemoryStore(StoreOptions(progress_interval_s=5), clock=clock)
    running = asyncio.create_task(store.run())
    await clock.advance(0)
    async with recording(store, "/quiet/") as watch:
        await store.create("/loud", a_body())
        await clock.advance(4)
        assert watch.revision == 0
        await clock.advance(1)
        assert watch.revision == 1
    running.cancel()


def test_a_write_does_not_pause() -> None:
    store = MemoryStore()
    with pytest.raises(StopIteration) as done:
        store.create("/a", a_body()).send(None)
    assert done.value.value.revision == 1


def test_it_moves_between_event_loops_and_starts_no_thread() -> None:
    store = MemoryStore()
    threads = threading.active_count()
    asyncio.run(store.create("/a", a_body()))
    uvloop.run(store.create("/b", a_body()))
    assert asyncio.run(store.revision()) == 2
    assert threading.active_count() == threads
