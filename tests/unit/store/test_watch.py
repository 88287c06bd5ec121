"""The hub: who is told of which key, batches per commit, slow readers."""

import asyncio

import pytest
from tests.unit.store.test_cache import put

from federation.base.errors import StoreError
from federation.store.cache import Cache
from federation.store.interface import Nudge
from federation.store.watch import Watcher, WatcherHub


def published(hub: WatcherHub, cache: Cache, *keys: str) -> None:
    hub.publish([put(cache, key) for key in keys])


@pytest.mark.parametrize(
    ("prefix", "is_told"),
    [
        ("", True),
        ("/", True),
        ("/core/", True),
        ("/core/pods/", True),
        ("/core/pods/ns/", True),
        ("/core/pods/ns/na", True),
        ("/core/pods/ns/name", True),
        ("/core/po", True),
        ("/core/pods/ns/name2", False),
        ("/core/pods/n/", False),
        ("/core/pod/", False),
        ("/apps/", False),
        ("core", False),
    ],
)
async def test_a_watcher_is_told_of_the_keys_under_its_prefix(prefix: str, is_told: bool) -> None:
    hub, cache = WatcherHub(10), Cache(10, 1000)
    watcher = hub.open(prefix, 0, [])
    published(hub, cache, "/core/pods/ns/name")
    hub.announce_progress()
    assert [event.key for event in await watcher.next()] == (["/core/pods/ns/name"] if is_told else [])


async def test_one_commit_is_one_batch() -> None:
    hub, cache = WatcherHub(10), Cache(10, 1000)
    watcher = hub.open("/a/", 0, [])
    reading = asyncio.create_task(watcher.next())
    await asyncio.sleep(0)
    published(hub, cache, "/a/1", "/b/1", "/a/2")
    batch = await reading
    assert ([event.key for event in batch], batch.revision) == (["/a/1", "/a/2"], 3)


async def test_a_watcher_that_overflows_fails_and_stays_failed_without_holding_memory() -> None:
    hub, cache = WatcherHub(3), Cache(100, 10_000)
    slow, fast = hub.open("", 0, []), hub.open("", 0, [])
    for number in range(5):
        published(hub, cache, f"/{number}")
        assert len(await fast.next()) == 1
    for _ in range(2):
        with pytest.raises(StoreError, match="too slow: 3 changes were waiting"):
            await slow.next()
    assert not slow._buffer


async def test_progress_is_announced_once_per_revision() -> None:
    hub, cache = WatcherHub(3), Cache(100, 10_000)
    watcher = hub.open("/quiet/", 0, [])
    published(hub, cache, "/loud")
    hub.announce_progress()
    assert (await watcher.next()).revision == 1
    hub.announce_progress()
    reading = asyncio.create_task(watcher.next())
    await asyncio.sleep(0)
    assert not reading.done()
    reading.cancel()


async def test_closing_a_watcher_forgets_its_folder() -> None:
    hub = WatcherHub(3)
    watchers = [hub.open("/a/", 0, []), hub.open("/a/", 0, []), hub.open("/b/", 0, [])]
    for watcher in watchers:
        assert isinstance(watcher, Watcher)
        hub.close(watcher)
    assert not hub._folders


def test_publishing_costs_by_interest_and_not_by_number_of_watchers() -> None:
    hub, cache = WatcherHub(1000), Cache(1000, 100_000)
    for number in range(500):
        hub.open(f"/core/pods/ns{number}/", 0, [])
    looked_at = list(hub._interested("/core/pods/ns7/name"))
    assert [watcher.prefix for watcher in looked_at] == ["/core/pods/ns7/"]
    published(hub, cache, "/core/pods/ns7/name")


async def test_a_nudge_ends_the_wait_of_its_watcher_and_of_no_other() -> None:
    hub, nudge = WatcherHub(10), Nudge()
    nudged, other = hub.open("/a/", 0, [], nudge), hub.open("/a/", 0, [])
    reading, waiting = asyncio.create_task(nudged.next()), asyncio.create_task(other.next())
    await asyncio.sleep(0)
    nudge()
    assert await reading == []
    again = asyncio.create_task(nudged.next())
    await asyncio.sleep(0.01)
    assert not again.done()
    assert not waiting.done()
    again.cancel()
    waiting.cancel()
