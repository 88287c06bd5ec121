"""The watch cache: changes that arrive twice, from a commit and from the log, are applied once."""

from tests.unit.apiserver.store.test_cache import put

from federation.apiserver.store.cache import Cache
from federation.apiserver.store.interface import EventType
from federation.apiserver.store.options import StoreOptions
from federation.apiserver.store.watchcache import WatchCache
from federation.apiserver.store.writes import Record


async def test_known_changes_are_skipped() -> None:
    other = Cache(100, 10_000)
    changes = [put(other, key) for key in ("/a", "/b", "/a", "/c")]
    records = [Record(change.event.type, change.entry) for change in changes]
    watch_cache = WatchCache(StoreOptions(), 100, 10_000)
    watcher = watch_cache.broadcaster.subscribe("", 0, [])
    watch_cache.publish_records(records[:2])
    watch_cache.publish(changes[:3])
    watch_cache.publish_records(records)
    watch_cache.publish(changes)
    assert await watcher.next() == [change.event for change in changes]
    assert watch_cache.cache.revision == 4


async def test_previous_values_come_from_the_cache_and_earlier_records() -> None:
    other = Cache(100, 10_000)
    changes = [put(other, key) for key in ("/a", "/a", "/b", "/a")]
    watch_cache = WatchCache(StoreOptions(), 100, 10_000)
    watch_cache.publish(changes[:1])
    watch_cache.publish_records([Record(change.event.type, change.entry) for change in changes[1:]])
    assert [event.previous for event in watch_cache.cache.events_since(0, "/a")] == [None, b"1", b"2"]
    assert [event.type for event in watch_cache.cache.events_since(0, "/b")] == [EventType.CREATED]


async def test_a_change_that_is_known_alone_is_not_published_again() -> None:
    change = put(Cache(100, 10_000), "/a")
    watch_cache = WatchCache(StoreOptions(), 100, 10_000)
    watcher = watch_cache.broadcaster.subscribe("", 0, [])
    watch_cache.publish([change])
    assert await watcher.next() == [change.event]
    watch_cache.publish([change])
    assert [event.revision for event in watch_cache.cache.events_since(0, "/a")] == [change.event.revision]


def test_a_warning_about_damage_has_the_kinds_and_no_names() -> None:
    watch_cache = WatchCache(StoreOptions(), 100, 10_000)
    damaged = [put(Cache(100, 10_000), f"/apps/deployments/{name}/web").entry for name in ("shop", "blog")]
    watch_cache.load([], 5, 0, damaged)
    (warning,) = watch_cache.warnings()
    watch_cache.load([], 6, 0)  # The metric counts what all stores of the process have.
    assert warning.startswith("2 damaged objects in apps/deployments; ")
    assert watch_cache.warnings() == []
