"""The view: changes that arrive twice, from a commit and from the tail, are taken once."""

from tests.unit.store.test_cache import put

from federation.store.cache import Cache
from federation.store.interface import EventType
from federation.store.options import StoreOptions
from federation.store.view import View
from federation.store.writes import Record


async def test_changes_that_are_known_already_are_skipped() -> None:
    other = Cache(100, 10_000)
    changes = [put(other, key) for key in ("/a", "/b", "/a", "/c")]
    records = [Record(change.event.type, change.entry) for change in changes]
    view = View(StoreOptions(), 100, 10_000)
    watcher = view.hub.open("", 0, [])
    view.publish_records(records[:2])
    view.publish(changes[:3])
    view.publish_records(records)
    view.publish(changes)
    assert await watcher.next() == [change.event for change in changes]
    assert view.cache.revision == 4


async def test_what_a_record_replaced_comes_from_the_cache_and_from_the_records_before_it() -> None:
    other = Cache(100, 10_000)
    changes = [put(other, key) for key in ("/a", "/a", "/b", "/a")]
    view = View(StoreOptions(), 100, 10_000)
    view.publish(changes[:1])
    view.publish_records([Record(change.event.type, change.entry) for change in changes[1:]])
    assert [event.previous for event in view.cache.events_since(0, "/a")] == [None, b"1", b"2"]
    assert [event.type for event in view.cache.events_since(0, "/b")] == [EventType.CREATED]
