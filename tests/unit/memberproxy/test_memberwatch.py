"""Watches in a member: an error of the member ends them, and is no event of a client's watch."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, nullcontext
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs, urlsplit

import orjson
import pytest
from tests.unit.memberproxy.members import ALICE, Member, a_configmap, a_pool, event

from federation.api import names
from federation.apimachinery.clock import ManualClock
from federation.apimachinery.errors import (
    ClusterError,
    Expired,
    FederationError,
    Forbidden,
    InternalError,
    Invalid,
    TooManyRequests,
)
from federation.apimachinery.resources import CONFIGMAPS
from federation.apiserver.verbs.requestoptions import ListOptions
from federation.memberproxy import memberreads, mergedtokens
from federation.memberproxy.memberreads import Selection
from federation.memberproxy.mergedwatch import MergedWatches

SELECTION = Selection(CONFIGMAPS, "default")


def an_error(code: int, reason: str) -> bytes:
    return event("ERROR", {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": "no"})


async def _seen(member: Member) -> tuple[list[tuple[str, str]], FederationError | None]:
    """Return the events of a watch in the member, and the error that ends it."""
    seen: list[tuple[str, str]] = []
    try:
        async for found in memberreads.watch(a_pool(m1=member), "m1", ALICE, SELECTION, "4"):
            seen.append((found.type.value, found.object["metadata"]["name"]))
    except FederationError as error:
        return seen, error
    return seen, None


@pytest.mark.parametrize(
    ("end", "error"),
    [
        (an_error(410, "Expired"), Expired),
        (an_error(500, "InternalError"), InternalError),
        (an_error(403, "Forbidden"), Forbidden),
        (b'{"type": "ERROR"}\n', ClusterError),
        (b"no JSON\n", ClusterError),
        (b"", None),
    ],
    ids=["expired", "internal", "forbidden", "without a status", "no JSON", "end"],
)
async def test_an_error_event_ends_the_watch_after_the_events_before_it(end: bytes, error: type | None) -> None:
    first, later = event("ADDED", a_configmap("a")), event("ADDED", a_configmap("later"))
    seen, found = await _seen(Member((200, [first[:20], first[20:] + end + (later if error else b"")])))
    assert seen == [("ADDED", "a")]
    assert found is None if error is None else isinstance(found, error)


@pytest.mark.parametrize(
    ("status", "error"), [(410, Expired), (403, Forbidden), (401, FederationError), (302, FederationError)]
)
async def test_a_refused_watch_has_no_events(status: int, error: type) -> None:
    body = orjson.dumps({"kind": "Status", "code": status, "reason": "Expired" if status == 410 else ""})
    seen, found = await _seen(Member((status, [body, event("ADDED", a_configmap("a"))])))
    assert seen == []
    assert isinstance(found, error)


class Everywhere:
    """A `Visibility` of one cluster and the namespace default."""

    def clusters(self, namespace: str) -> list[str]:
        return ["m1"]

    def is_visible(self, cluster: str, namespace: str) -> bool:
        return namespace == "default"

    def listening(self, on_change: Any) -> Any:
        return nullcontext()


class Watching:
    """A merged watch of one member."""

    def __init__(self, *answers: tuple[int, Iterable[bytes]], own: Any = None, **limits: int) -> None:
        self.clock, self.member, self.own = ManualClock(), Member(*answers), own
        self.pool = a_pool(self.clock, m1=self.member)
        most = {"watches_max": 2, "user_watches_max": 1, **limits}
        self.watches = MergedWatches(self.pool, Everywhere(), self.clock, **most)

    def open(self, revision: str = "4", **options: Any) -> Any:
        token = mergedtokens.encode_revisions({"m1": revision}) if revision else ""
        given = ListOptions(resource_version=token, **options)
        return self.watches.watch(ALICE, CONFIGMAPS, None, "default", given, self.own)  # type: ignore[arg-type]

    async def names(self, watch: Any, count: int) -> list[tuple[str, str]]:
        """Return type and name of the next events."""
        found: list[tuple[str, str]] = []
        while len(found) < count:
            batch = await asyncio.wait_for(anext(watch), 60)
            found += [(type_, orjson.loads(value)["metadata"]["annotations"][names.RAW_NAME]) for type_, value in batch]
        return found


@asynccontextmanager
async def opened(watching: Watching, revision: str = "4", **options: Any) -> AsyncIterator[Any]:
    watch = watching.open(revision, **options)
    try:
        yield watch
    finally:
        await watch.aclose()


def revisions(member: Member) -> list[str]:
    """Return the resourceVersion of each watch request."""
    queries = [parse_qs(urlsplit(target).query) for target in member.targets]
    return [query.get("resourceVersion", [""])[0] for query in queries if "watch" in query]


async def test_a_broken_watch_goes_on_from_its_last_event_without_showing_the_error() -> None:
    bookmark = event("BOOKMARK", a_configmap("", 8))
    watching = Watching(
        (200, [event("ADDED", a_configmap("a", 7)), bookmark, an_error(500, "InternalError")]),
        (503, [b"{}"]),
        (200, [event("DELETED", a_configmap("a", 9))]),
    )
    async with opened(watching) as watch:
        assert await watching.names(watch, 1) == [("ADDED", "a")]
        later = asyncio.ensure_future(watching.names(watch, 1))
        while not later.done():
            await watching.clock.advance(0.5)
        assert later.result() == [("DELETED", "a")]
    assert revisions(watching.member)[:3] == ["4", "8", "8"]


async def test_retries_come_later_and_later_until_an_event_arrives() -> None:
    failures = [(503, [b"{}"])] * 7
    watching = Watching(*failures, (200, [event("ADDED", a_configmap("a"))]))
    times_s: list[float] = []
    async with opened(watching) as watch:
        found = asyncio.ensure_future(watching.names(watch, 1))
        while not found.done():
            if len(watching.member.targets) > len(times_s):
                times_s.append(watching.clock.monotonic())
            await watching.clock.advance(0.25)
    pauses = [round(later - before, 1) for before, later in pairwise(times_s)]
    assert pauses[:7] == [0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 15.0][: len(pauses)]
    assert len(pauses) >= 6


@pytest.mark.parametrize("answer", [(200, [an_error(410, "Expired")]), (410, [b"{}"])], ids=["event", "response"])
async def test_an_expired_member_makes_the_client_list_again(answer: tuple[int, list[bytes]]) -> None:
    watching = Watching(answer)
    async with opened(watching) as watch:
        with pytest.raises(Expired):
            await watching.names(watch, 1)


async def test_a_cluster_that_leaves_makes_the_client_list_again() -> None:
    watching = Watching((200, [event("ADDED", a_configmap("a"))]))
    async with opened(watching) as watch:
        await watching.names(watch, 1)
        watching.pool.remove("m1")
        failed = asyncio.ensure_future(watching.names(watch, 1))
        while not failed.done():
            await watching.clock.advance(0.5)
        with pytest.raises(Expired, match="cluster m1 has left"):
            failed.result()


async def test_only_objects_of_visible_namespaces_arrive() -> None:
    foreign, odd = a_configmap("b", namespace="kube-system"), {"metadata": {"name": 7}}
    lines = [event("ADDED", each) for each in (foreign, odd, a_configmap("a"))]
    watching = Watching((200, lines))
    async with opened(watching) as watch:
        assert await watching.names(watch, 1) == [("ADDED", "a")]


async def test_a_watch_without_a_revision_begins_with_the_existing_objects() -> None:
    pages = [
        {"metadata": {"resourceVersion": "6", "continue": "next"}, "items": [a_configmap("a")]},
        {"metadata": {"resourceVersion": "6"}, "items": [a_configmap("b")]},
    ]
    watching = Watching(*((200, [orjson.dumps(page)]) for page in pages), (200, [event("MODIFIED", a_configmap("b"))]))
    async with opened(watching, "") as watch:
        expected = [("ADDED", "a"), ("ADDED", "b"), ("MODIFIED", "b")]
        assert await watching.names(watch, 3) == expected
    assert "continue=next" in watching.member.targets[1]
    assert revisions(watching.member)[0] == "6"


async def test_watches_are_limited_in_all_and_per_user_and_counted_until_they_end() -> None:
    watching = Watching()
    async with opened(watching) as first:
        begun = asyncio.ensure_future(anext(first, None))
        await watching.member.asked.wait()
        with pytest.raises(TooManyRequests, match=r'1 watches of user "alice"'):
            await anext(watching.open())
        begun.cancel()
        await asyncio.gather(begun, return_exceptions=True)
    async with opened(watching, timeout_s=0.01) as again:
        assert await anext(again, None) is None, "a watch ends at its timeout"
    none = Watching(watches_max=0)
    with pytest.raises(TooManyRequests, match="0 watches of objects"):
        await anext(none.open())


async def test_an_event_without_a_revision_does_not_change_where_the_watch_goes_on() -> None:
    bare: dict[str, Any] = {"metadata": {"name": "", "annotations": {}}}
    watching = Watching(
        (200, [event("ADDED", a_configmap("a", 7)), event("BOOKMARK", bare)]), (200, [event("ADDED", a_configmap("b"))])
    )
    async with opened(watching) as watch:
        assert await watching.names(watch, 1) == [("ADDED", "a")]
        later = asyncio.ensure_future(watching.names(watch, 1))
        while not later.done():
            await watching.clock.advance(0.5)
    assert revisions(watching.member)[:2] == ["4", "7"]


async def test_a_cluster_without_the_selected_name_is_not_watched() -> None:
    watching = Watching((200, [event("ADDED", a_configmap("a"))]))
    async with opened(watching, field_selector="metadata.name=m2-a", timeout_s=0.01) as watch:
        assert await anext(watch, None) is None
    assert watching.member.targets == []
    async with opened(watching, field_selector="metadata.name=m1-a") as watch:
        assert await watching.names(watch, 1) == [("ADDED", "a")]
    assert "fieldSelector=metadata.name%3Da" in watching.member.targets[0]


async def test_initial_events_are_refused() -> None:
    with pytest.raises(Invalid, match="list first"):
        await anext(Watching().open(send_initial_events=True))


async def test_the_changes_of_the_host_are_among_those_of_members() -> None:
    given: list[tuple[str, bool]] = []

    async def own(_info: Any, namespace: str, options: ListOptions) -> AsyncIterator[Any]:
        given.append((options.resource_version, options.allow_watch_bookmarks))
        assert namespace == "default"
        metadata = {"name": "own", "annotations": {names.RAW_NAME: "own"}}
        yield [("ADDED", orjson.dumps({"metadata": metadata}))]
        await asyncio.get_running_loop().create_future()

    watching = Watching((200, [event("ADDED", a_configmap("a"))]), own=own)
    token = mergedtokens.encode_revisions({"m1": "4", mergedtokens.HOST: "7"})
    options = ListOptions(resource_version=token, allow_watch_bookmarks=True)
    watch = watching.watches.watch(ALICE, CONFIGMAPS, None, "default", options, own)  # type: ignore[arg-type]
    try:
        assert sorted(await watching.names(watch, 2)) == [("ADDED", "a"), ("ADDED", "own")]
    finally:
        await watch.aclose()
    assert given == [("7", False)]
