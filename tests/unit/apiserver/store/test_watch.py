"""The broadcaster: matching watchers, one batch per commit, slow readers, wake signals."""

import asyncio

import pytest
from tests.unit.apiserver.store.test_cache import put

from federation.apimachinery.errors import StoreError
from federation.apiserver.store.cache import Cache
from federation.apiserver.store.interface import WakeSignal
from federation.apiserver.store.watch import Broadcaster, Watcher


def published(broadcaster: Broadcaster, cache: Cache, *keys: str) -> None:
    broadcaster.publish([put(cache, key) for key in keys])


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
async def test_a_watcher_receives_the_keys_under_its_prefix(prefix: str, is_told: bool) -> None:
    broadcaster, cache = Broadcaster(10), Cache(10, 1000)
    watcher = broadcaster.subscribe(prefix, 0, [])
    published(broadcaster, cache, "/core/pods/ns/name")
    broadcaster.announce_progress()
    assert [event.key for event in await watcher.next()] == (["/core/pods/ns/name"] if is_told else [])


async def test_one_commit_is_one_batch() -> None:
    broadcaster, cache = Broadcaster(10), Cache(10, 1000)
    watcher = broadcaster.subscribe("/a/", 0, [])
    reading = asyncio.create_task(watcher.next())
    await asyncio.sleep(0)
    published(broadcaster, cache, "/a/1", "/b/1", "/a/2")
    batch = await reading
    assert ([event.key for event in batch], batch.revision) == (["/a/1", "/a/2"], 3)


async def test_an_overflowing_watcher_stays_failed_with_an_empty_buffer() -> None:
    broadcaster, cache = Broadcaster(3), Cache(100, 10_000)
    slow, fast = broadcaster.subscribe("", 0, []), broadcaster.subscribe("", 0, [])
    for number in range(5):
        published(broadcaster, cache, f"/{number}")
        assert len(await fast.next()) == 1
    for _ in range(2):
        with pytest.raises(StoreError, match="too slow: 3 changes were waiting"):
            await slow.next()
    assert not slow._buffer


async def test_progress_is_announced_once_per_revision() -> None:
    broadcaster, cache = Broadcaster(3), Cache(100, 10_000)
    watcher = broadcaster.subscribe("/quiet/", 0, [])
    published(broadcaster, cache, "/loud")
    broadcaster.announce_progress()
    assert (await watcher.next()).revision == 1
    broadcaster.announce_progress()
    reading = asyncio.create_task(watcher.next())
    await asyncio.sleep(0)
    assert not reading.done()
    reading.cancel()


async def test_unsubscribing_the_last_watcher_removes_its_directory() -> None:
    broadcaster = Broadcaster(3)
    watchers = [
        broadcaster.subscribe("/a/", 0, []),
        broadcaster.subscribe("/a/", 0, []),
        broadcaster.subscribe("/b/", 0, []),
    ]
    for watcher in watchers:
        assert isinstance(watcher, Watcher)
        broadcaster.unsubscribe(watcher)
    assert not broadcaster._directories


def test_publishing_visits_only_matching_watchers() -> None:
    broadcaster, cache = Broadcaster(1000), Cache(1000, 100_000)
    for number in range(500):
        broadcaster.subscribe(f"/core/pods/ns{number}/", 0, [])
    looked_at = broadcaster._watchers_of("/core/pods/ns7/name")
    assert [watcher.prefix for watcher in looked_at] == ["/core/pods/ns7/"]
    published(broadcaster, cache, "/core/pods/ns7/name")


def test_the_watchers_of_a_directory_change_with_every_subscription() -> None:
    broadcaster = Broadcaster(10)
    everything = broadcaster.subscribe("/", 0, [])
    assert broadcaster._watchers_of("/core/pods/a/web-1") == [everything]
    pods = broadcaster.subscribe("/core/pods/", 0, [])
    named = broadcaster.subscribe("/core/pods/a/web", 0, [])
    assert broadcaster._watchers_of("/core/pods/a/web-1") == [everything, pods, named]
    assert broadcaster._watchers_of("/core/pods/a/db-1") == [everything, pods]
    broadcaster.unsubscribe(pods)
    assert broadcaster._watchers_of("/core/pods/a/web-1") == [everything, named]
    assert broadcaster._watchers_of("/core/secrets/a/web-1") == [everything]


async def test_a_wake_signal_wakes_only_its_own_watcher() -> None:
    broadcaster, wake_signal = Broadcaster(10), WakeSignal()
    nudged, other = broadcaster.subscribe("/a/", 0, [], wake_signal), broadcaster.subscribe("/a/", 0, [])
    reading, waiting = asyncio.create_task(nudged.next()), asyncio.create_task(other.next())
    await asyncio.sleep(0)
    wake_signal()
    assert await reading == []
    again = asyncio.create_task(nudged.next())
    await asyncio.sleep(0.01)
    assert not again.done()
    assert not waiting.done()
    again.cancel()
    waiting.cancel()
