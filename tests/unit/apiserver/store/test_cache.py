"""The cache: pages of older states, the ring's bounds, gaps refused."""

import random

import pytest

from federation.apimachinery.errors import Bug
from federation.apiserver.store.cache import Cache, prefix_end
from federation.apiserver.store.interface import Body, Entry, EventType
from federation.apiserver.store.writes import Change, plan_change


def a_cache(changes_max: int = 1000, bytes_max: int = 1 << 30) -> Cache:
    return Cache(changes_max, bytes_max)


def put(cache: Cache, key: str, tail: bytes = b"") -> Change:
    current = cache.get(key)
    kind = EventType.UPDATED if current else EventType.CREATED
    change = plan_change(
        kind,
        key,
        Body(b"", tail),
        current.revision if current else 0,
        current=current,
        revision=cache.revision + 1,
    )
    assert isinstance(change, Change)
    cache.apply([change])
    return change


def drop(cache: Cache, key: str) -> None:
    current = cache.get(key)
    assert current is not None
    change = plan_change(
        EventType.DELETED, key, Body(b"", b""), current.revision, current=current, revision=cache.revision + 1
    )
    assert isinstance(change, Change)
    cache.apply([change])


@pytest.mark.parametrize(
    ("prefix", "end"),
    [("", ""), ("/a/", "/a0"), ("a\U0010ffff", "b"), ("\U0010ffff", ""), ("\U0010ffff\U0010ffff", "")],
)
def test_the_end_of_a_prefix_is_the_next_string_without_it(prefix: str, end: str) -> None:
    assert prefix_end(prefix) == end


def test_a_change_that_does_not_follow_is_our_own_mistake() -> None:
    cache, other = a_cache(), a_cache()
    put(other, "/a")
    change = put(other, "/b")
    with pytest.raises(Bug, match="change 2 does not follow revision 0"):
        cache.apply([change])


def test_the_ring_is_bounded_by_number() -> None:
    cache = a_cache(changes_max=3)
    for number in range(10):
        put(cache, f"/{number}")
    assert (cache.recent_after, cache.revision) == (7, 10)
    assert [event.revision for event in cache.events_since(8, "")] == [9, 10]


def test_the_ring_is_bounded_by_bytes() -> None:
    cache = a_cache(bytes_max=1000)
    for number in range(10):
        put(cache, f"/{number}", b"x" * 299)
    assert cache.recent_after == 7
    put(cache, "/large", b"x" * 5000)
    assert cache.recent_after == cache.revision
    put(cache, "/small")
    assert cache.recent_after == cache.revision - 1


def test_forgetting_drops_changes_and_never_goes_back() -> None:
    cache = a_cache()
    for number in range(6):
        put(cache, f"/{number}")
    cache.compact(4)
    cache.compact(2)
    assert (cache.compacted, cache.recent_after) == (4, 4)
    cache.load([Entry("/a", 9, 9, b"")], 9, 5)
    assert (cache.revision, cache.recent_after, cache.compacted, len(cache)) == (9, 9, 5, 1)


def test_every_page_of_every_revision_equals_the_state_of_then() -> None:
    rng = random.Random(7)
    cache = a_cache()
    states: list[list[Entry]] = [[]]
    for _ in range(120):
        key = f"/{rng.choice('ab')}/{rng.randrange(9)}"
        if cache.get(key) and rng.random() < 0.4:
            drop(cache, key)
        else:
            put(cache, key)
        states.append(cache.page("", limit=0, from_key="", revision=0, undo={}).entries)
    for revision, state in enumerate(states):
        for prefix in ("", "/a/", "/b/3"):
            expected = [entry for entry in state if entry.key.startswith(prefix)]
            undo = cache.undo_since(revision, prefix)
            for limit in (0, 1, 4):
                found, from_key = [], ""
                while True:
                    page = cache.page(prefix, limit=limit, from_key=from_key, revision=revision, undo=undo)
                    found += page.entries
                    assert page.remaining == len(expected) - len(found)
                    if not (from_key := page.next_key):
                        break
                assert found == expected


def test_a_write_replaces_the_damaged_entry_of_its_key_only() -> None:
    healthy, damaged = Entry("a", b"", 1, 1), Entry("b", b"", 2, 2)
    cache = a_cache()
    cache.load([healthy], 3, 0, [damaged])
    assert cache.current("a") is healthy
    assert cache.current("b") is damaged
    assert cache.current("c") is None
    assert cache.get("b") is None
    assert a_cache().current("a") is None
