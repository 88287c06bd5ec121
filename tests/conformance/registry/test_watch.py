"""WATCH: order, start revisions, selectors, bookmarks, timeouts."""

import asyncio

import pytest
from tests.conformance.registry.conftest import Api, a_config_map

from federation.apimachinery.errors import Expired, Invalid


async def now(api: Api) -> str:
    return str(await api.registry.store.revision())


@pytest.mark.every_store
async def test_every_change_is_delivered_in_order(api: Api) -> None:
    async with api.watching("configmaps", resource_version=await now(api)) as watching:
        made = await api.create("configmaps", a_config_map())
        changed = await api.patch("configmaps", "cm", {"data": {"a": "b"}})
        await api.delete("configmaps", "cm")
        assert await watching.next() == ("ADDED", made)
        assert await watching.next() == ("MODIFIED", changed)
        kind, last = await watching.next()
        assert kind == "DELETED"
        assert last["data"] == changed["data"]


@pytest.mark.every_store
async def test_a_deletion_carries_its_own_revision(api: Api) -> None:
    await api.create("configmaps", a_config_map())
    async with api.watching("configmaps", resource_version=await now(api)) as watching:
        await api.delete("configmaps", "cm")
        _, last = await watching.next()
        assert last["metadata"]["resourceVersion"] == await now(api)


@pytest.mark.every_store
async def test_without_a_revision_existing_objects_come_first(api: Api) -> None:
    await api.create("configmaps", a_config_map("a"))
    for start in ("", "0"):
        async with api.watching("configmaps", resource_version=start) as watching:
            assert (await watching.next())[0] == "ADDED"
    async with api.watching("configmaps") as watching:
        assert await watching.said(1) == [("ADDED", "a")]
        await api.create("configmaps", a_config_map("b"))
        assert await watching.said(1) == [("ADDED", "b")]


@pytest.mark.every_store
async def test_a_revision_resumes_after_it(api: Api) -> None:
    first = await api.create("configmaps", a_config_map("a"))
    await api.create("configmaps", a_config_map("b"))
    async with api.watching("configmaps", resource_version=first["metadata"]["resourceVersion"]) as watching:
        assert await watching.said(1) == [("ADDED", "b")]


@pytest.mark.every_store
async def test_changes_of_other_namespaces_and_kinds_are_not_delivered(api: Api) -> None:
    async with api.watching("configmaps", "default", resource_version=await now(api)) as watching:
        await api.create("configmaps", a_config_map(), "kube-system")
        await api.create("secrets", {"metadata": {"name": "s"}})
        await api.create("configmaps", a_config_map("mine"))
        assert await watching.said(1) == [("ADDED", "mine")]


@pytest.mark.every_store
async def test_all_namespaces_are_watched_together(api: Api) -> None:
    async with api.watching("configmaps", "", resource_version=await now(api)) as watching:
        await api.create("configmaps", a_config_map("a"), "kube-system")
        await api.create("configmaps", a_config_map("b"))
        assert await watching.said(2) == [("ADDED", "a"), ("ADDED", "b")]


@pytest.mark.every_store
async def test_an_object_enters_and_leaves_a_selection(api: Api) -> None:
    async with api.watching("configmaps", resource_version=await now(api), label_selector="x=1") as watching:
        await api.create("configmaps", a_config_map())
        await api.patch("configmaps", "cm", {"metadata": {"labels": {"x": "1"}}})
        await api.patch("configmaps", "cm", {"data": {"a": "b"}})
        left = await api.patch("configmaps", "cm", {"metadata": {"labels": {"x": "2"}}})
        await api.patch("configmaps", "cm", {"data": {"a": "c"}})
        assert await watching.said(2) == [("ADDED", "cm"), ("MODIFIED", "cm")]
        kind, last = await watching.next()
        assert kind == "DELETED"
        assert last["metadata"]["labels"] == {"x": "1"}
        assert last["metadata"]["resourceVersion"] == left["metadata"]["resourceVersion"]


async def test_a_deletion_outside_the_selection_is_not_delivered(api: Api) -> None:
    await api.create("configmaps", a_config_map("out"))
    await api.create("configmaps", a_config_map("in", {"x": "1"}))
    async with api.watching("configmaps", resource_version=await now(api), label_selector="x=1") as watching:
        await api.delete("configmaps", "out")
        await api.delete("configmaps", "in")
        assert await watching.said(1) == [("DELETED", "in")]


async def test_one_object_is_watched_by_name(api: Api) -> None:
    async with api.watching(
        "configmaps", resource_version=await now(api), field_selector="metadata.name=b"
    ) as watching:
        for name in ("a", "b", "bb"):
            await api.create("configmaps", a_config_map(name))
        await api.delete("configmaps", "b")
        assert await watching.said(2) == [("ADDED", "b"), ("DELETED", "b")]


@pytest.mark.every_store
async def test_a_compacted_start_is_expired(api: Api) -> None:
    first = await api.create("configmaps", a_config_map("a"))
    for index in range(3):
        await api.create("configmaps", a_config_map(f"b{index}"))
    await api.registry.store.compact(await api.registry.store.revision())
    async with api.watching("configmaps", resource_version=first["metadata"]["resourceVersion"]) as watching:
        with pytest.raises(Expired, match="too old resource version"):
            await watching.next()


@pytest.mark.every_store
async def test_a_start_in_the_future_is_expired(api: Api) -> None:
    async with api.watching("configmaps", resource_version="99999") as watching:
        with pytest.raises(Expired):
            await watching.next()


@pytest.mark.every_store
async def test_initial_events_end_with_a_bookmark(api: Api) -> None:
    await api.create("configmaps", a_config_map("a"))
    options = {"send_initial_events": True, "allow_watch_bookmarks": True, "resource_version_match": "NotOlderThan"}
    async with api.watching("configmaps", **options) as watching:
        assert await watching.said(1) == [("ADDED", "a")]
        kind, bookmark = await watching.next()
        assert kind == "BOOKMARK"
        assert bookmark["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert bookmark["metadata"]["resourceVersion"] == await now(api)
        assert bookmark["kind"] == "ConfigMap"


async def test_initial_events_need_their_match(api: Api) -> None:
    async with api.watching("configmaps", send_initial_events=True) as watching:
        with pytest.raises(Invalid, match="sendInitialEvents requires setting resourceVersionMatch"):
            await watching.next()


@pytest.mark.every_store
@pytest.mark.real_time
async def test_an_idle_watch_gets_bookmarks(api: Api) -> None:
    start = await now(api)
    async with api.watching("configmaps", resource_version=start, allow_watch_bookmarks=True) as watching:
        said = asyncio.ensure_future(watching.next())
        await api.create("secrets", {"metadata": {"name": "elsewhere"}})
        newest = await now(api)
        async with asyncio.timeout(60):
            while not said.done():
                # The store announces progress on the real clock, every 0.05 s in these tests.
                await asyncio.sleep(0.005)
                await api.clock.advance(61)
        kind, bookmark = await said
        assert kind == "BOOKMARK"
        assert bookmark["metadata"]["resourceVersion"] == newest


async def test_a_watch_ends_at_its_timeout(api: Api) -> None:
    async with api.watching("configmaps", resource_version=await now(api), timeout_s=5) as watching:
        ended = asyncio.ensure_future(watching.next())
        for _ in range(3):
            await api.clock.advance(3)
        with pytest.raises(StopAsyncIteration):
            await ended


async def test_a_match_without_initial_events_is_refused(api: Api) -> None:
    async with api.watching("configmaps", resource_version="1", resource_version_match="NotOlderThan") as watching:
        with pytest.raises(Invalid, match="forbidden for watch unless sendInitialEvents is provided"):
            await watching.next()
