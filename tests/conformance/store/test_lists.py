"""Lists in every store: order, prefixes, pages, and one snapshot for all pages of a list."""

import asyncio

import pytest
from tests.support.stores import StoreBackend, a_body

from federation.apimachinery.errors import RevisionCompacted
from federation.apiserver.store.interface import Page, Store


def keys(page: Page) -> list[str]:
    return [entry.key for entry in page.entries]


async def fill(store: Store, *names: str) -> None:
    await asyncio.gather(*(store.create(name, a_body()) for name in names))


async def test_a_list_is_in_key_order_and_only_under_its_prefix(store: Store) -> None:
    await fill(store, "/b/2", "/a/2", "/a/10", "/a/1", "/ab/1", "/a", "/a0", "/A/1", "/a/ä", "/a/Z")
    assert keys(await store.list("/a/")) == ["/a/1", "/a/10", "/a/2", "/a/Z", "/a/ä"]
    assert len((await store.list("")).entries) == 10
    assert keys(await store.list("/c/")) == []


async def test_special_characters_of_sql_mean_nothing_in_a_prefix(store: Store) -> None:
    await fill(store, "/a%/1", "/ab/1", "/a_/1", "/A%/1")
    assert keys(await store.list("/a%/")) == ["/a%/1"]
    assert keys(await store.list("/a_/")) == ["/a_/1"]


async def test_pages_follow_each_other(store: Store) -> None:
    await fill(store, *(f"/a/{n:02d}" for n in range(10)), "/b/1")
    first = await store.list("/a/", limit=4)
    assert (keys(first), first.next_key, first.remaining) == (["/a/00", "/a/01", "/a/02", "/a/03"], "/a/04", 6)
    second = await store.list("/a/", limit=4, from_key=first.next_key, revision=first.revision)
    assert (second.next_key, second.remaining) == ("/a/08", 2)
    third = await store.list("/a/", limit=4, from_key=second.next_key, revision=first.revision)
    assert (keys(third), third.next_key, third.remaining) == (["/a/08", "/a/09"], "", 0)


async def test_a_page_that_ends_with_the_last_key_is_the_last(store: Store) -> None:
    await fill(store, "/a/1", "/a/2")
    page = await store.list("/a/", limit=2)
    assert (page.next_key, page.remaining) == ("", 0)


@pytest.mark.parametrize("recent_events_max", [8192, 3, 0], ids=["in memory", "partly in memory", "from the log"])
async def test_all_pages_show_the_snapshot_of_the_first(backend: StoreBackend, recent_events_max: int) -> None:
    store = await backend.open(recent_events_max=recent_events_max)
    await fill(store, *(f"/a/{n}" for n in range(8)))
    before = await store.list("/a/")
    first = await store.list("/a/", limit=3)
    entries = {entry.key: entry for entry in before.entries}

    await store.delete("/a/4", a_body(), entries["/a/4"].revision)
    await store.create("/a/35", a_body())
    update = await store.update("/a/6", a_body("new"), entries["/a/6"].revision)
    await store.update("/a/6", a_body("newer"), update.revision)
    await store.create("/a/4", a_body("another life"))
    await store.create("/b/1", a_body())

    second = await store.list("/a/", limit=3, from_key=first.next_key, revision=first.revision)
    assert (second.revision, second.remaining) == (first.revision, 2)
    third = await store.list("/a/", limit=3, from_key=second.next_key, revision=first.revision)
    assert first.entries + second.entries + third.entries == before.entries
    assert (await store.list("/a/", revision=first.revision)).entries == before.entries
    assert keys(await store.list("/a/")) == ["/a/0", "/a/1", "/a/2", "/a/3", "/a/35", *(f"/a/{n}" for n in range(4, 8))]


async def test_every_kept_revision_can_be_listed(store: Store) -> None:
    expected = [[]]
    entry = None
    for number in range(12):
        if number % 4 == 3 and entry is not None:
            await store.delete(entry.key, a_body(), entry.revision)
        else:
            entry = await store.create(f"/a/{number}", a_body())
        expected.append((await store.list("/a/")).entries)
    for revision in range(1, 13):
        assert (await store.list("/a/", revision=revision)).entries == expected[revision]


async def test_a_list_at_a_compacted_revision_is_refused(store: Store) -> None:
    await fill(store, *(f"/a/{n}" for n in range(6)))
    await store.compact(4)
    with pytest.raises(RevisionCompacted):
        await store.list("/a/", revision=3)
    assert len((await store.list("/a/", revision=4)).entries) == 4
    assert len((await store.list("/a/")).entries) == 6


async def test_a_list_at_a_future_revision_is_refused(store: Store) -> None:
    await fill(store, "/a/1")
    with pytest.raises(RevisionCompacted):
        await store.list("/a/", revision=2)
