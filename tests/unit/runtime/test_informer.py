"""A cache that follows its server through failures, and never forgets what the server did not take back."""

import asyncio

import pytest
import structlog

from federation.apimachinery.errors import ClusterUnreachable, Expired, NotFound, Timeout
from federation.apimachinery.resources import CONFIGMAPS, NODES
from federation.client.client import ObjectPage, PatchType
from federation.runtime.informer import Informer, InformerOptions
from federation.runtime.timeslice import host_list, list_slice

GONE = ClusterUnreachable("no route")


class Heard:
    """A handler that remembers what it heard as (what, name, color before, color after)."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str, str | None, str | None]] = []

    def __call__(self, old, new) -> None:
        what = "add" if old is None else "delete" if new is None else "update"
        colors = [obj.get("data", {}).get("color") if obj else None for obj in (old, new)]
        self.events.append((what, (new or old)["metadata"]["name"], *colors))

    def take(self) -> list[tuple[str, str, str | None, str | None]]:
        events, self.events = self.events, []
        return events


def an_informer(client, clock, **arguments) -> Informer:
    options = InformerOptions(page_size=2, backoff_s_min=1.0, backoff_s_max=8.0)
    return Informer(
        client, CONFIGMAPS, namespace="default", clock=clock, options=options, jitter=lambda: 1.0, **arguments
    )


async def paint(server, name: str, color: str):
    patch = {"data": {"color": color}}
    return await server.patch(CONFIGMAPS, name, patch, patch_type=PatchType.MERGE, namespace="default")


@pytest.fixture
def heard() -> Heard:
    return Heard()


async def test_it_lists_in_pages_and_then_follows(server, client, clock, start, settle, a_configmap, heard) -> None:
    for number in range(5):
        await server.create(CONFIGMAPS, a_configmap(f"c{number}", color="blue"))
    informer = an_informer(client, clock)
    informer.add_handler(heard)
    assert not informer.has_synced
    start(informer.run())
    await informer.wait_synced()
    assert client.calls.count("list") == 3
    assert [event[:2] for event in heard.take()] == [("add", f"c{number}") for number in range(5)]
    await paint(server, "c1", "red")
    await server.delete(CONFIGMAPS, "c2", "default")
    await server.create(CONFIGMAPS, a_configmap("c9", color="green"))
    await settle()
    assert heard.take() == [
        ("update", "c1", "blue", "red"),
        ("delete", "c2", "blue", None),
        ("add", "c9", None, "green"),
    ]
    assert len(informer) == 5
    assert informer.get("default", "c1")["data"] == {"color": "red"}
    assert informer.get("default", "c2") is None


async def test_it_tells_when_its_server_does_not_know_the_resource_and_when_it_does(
    server, client, clock, start, settle, a_configmap
) -> None:
    heard: list[bool] = []
    informer = an_informer(client, clock)
    informer.server.add_listener(lambda: heard.append(informer.server.is_served))
    client.fail(NotFound("the server could not find the requested resource"))
    start(informer.run())
    await settle()
    assert (informer.server.is_served, informer.server.failure) == (
        False,
        "the server could not find the requested resource",
    )
    client.fail(GONE)
    await clock.advance(1)
    assert not informer.server.is_served, "a silent server says nothing about the resource"
    client.fail(None)
    await clock.advance(2)
    await settle()
    assert (informer.server.is_served, informer.server.failure, informer.has_synced) == (True, "", True)
    client.fail(NotFound("", details={"name": "default"}))
    await clock.advance(2)
    await settle()
    assert heard == [False, True]


async def test_a_later_handler_hears_what_is_there(server, client, clock, start, a_configmap, heard) -> None:
    await server.create(CONFIGMAPS, a_configmap("one"))
    informer = an_informer(client, clock)
    start(informer.run())
    await informer.wait_synced()
    remove = informer.add_handler(heard)
    assert heard.take() == [("add", "one", None, None)]
    remove()
    await server.delete(CONFIGMAPS, "one", "default")
    assert heard.take() == []


async def test_an_unreachable_server_leaves_the_cache_as_it_is(
    server, client, clock, start, settle, a_configmap, heard
) -> None:
    await server.create(CONFIGMAPS, a_configmap("one", color="blue"))
    await server.create(CONFIGMAPS, a_configmap("two"))
    informer = an_informer(client, clock)
    start(informer.run())
    await informer.wait_synced()
    informer.add_handler(heard)
    heard.take()
    client.fail(GONE)
    await settle()
    await clock.advance(300)
    assert informer.has_synced
    assert not informer.is_connected
    assert informer.get("default", "one") is not None
    assert heard.take() == []
    await paint(server, "one", "red")
    client.fail(None)
    await clock.advance(10)
    assert heard.take() == [("update", "one", "blue", "red")]
    assert informer.is_connected
    assert client.calls.count("list") == 1


async def test_pauses_double_and_are_reset_after_progress(server, client, clock, start, settle, a_configmap) -> None:
    await server.create(CONFIGMAPS, a_configmap("one"))
    client.fail(GONE)
    informer = an_informer(client, clock)
    start(informer.run())
    await settle()
    await clock.advance(40)
    assert client.calls.count("list") == len([0, 1, 3, 7, 15, 23, 31, 39])
    client.fail(None)
    await clock.advance(8)
    assert informer.has_synced
    client.fail(GONE)
    await settle()
    before = len(client.calls)
    await clock.advance(1.1)
    assert client.calls[before:] == ["look"], "the first request of a watch that goes on"


async def test_a_list_after_an_expired_watch_reports_the_difference(
    server, client, clock, start, settle, a_configmap, heard
) -> None:
    for name in ("stays", "changes", "goes", "returns"):
        await server.create(CONFIGMAPS, a_configmap(name, color="blue"))
    informer = an_informer(client, clock)
    start(informer.run())
    await informer.wait_synced()
    informer.add_handler(heard)
    heard.take()
    is_unseen: list[bool] = []
    informer.add_handler(lambda _, new: is_unseen.append(informer.is_comparing) if new is None else None)
    client.fail(GONE)
    await settle()
    await paint(server, "changes", "red")
    await server.delete(CONFIGMAPS, "goes", "default")
    await server.delete(CONFIGMAPS, "returns", "default")
    await server.create(CONFIGMAPS, a_configmap("returns", color="green"))
    await server.create(CONFIGMAPS, a_configmap("comes", color="white"))
    client.fail(Expired("too old"))
    await clock.advance(20)
    client.fail(None)
    await clock.advance(20)
    assert sorted(heard.take()) == [
        ("add", "comes", None, "white"),
        ("delete", "goes", "blue", None),
        ("update", "changes", "blue", "red"),
        ("update", "returns", "blue", "green"),
    ]
    await paint(server, "comes", "black")
    await settle()
    assert heard.take() == [("update", "comes", "white", "black")]
    await server.delete(CONFIGMAPS, "comes", "default")
    await settle()
    assert is_unseen == [True, False], "nobody saw how an object left that a list lacks"


async def test_a_restored_server_that_counts_again_is_believed_although_a_revision_is_the_same(
    server, new_server, client, clock, start, settle, a_configmap, heard
) -> None:
    await server.create(CONFIGMAPS, a_configmap("one", color="blue"))
    informer = an_informer(client, clock)
    start(informer.run())
    await informer.wait_synced()
    informer.add_handler(heard)
    heard.take()
    restored = await new_server()
    await restored.create(CONFIGMAPS, a_configmap("one", color="red"))
    (before, after) = [await each.get(CONFIGMAPS, "one", "default") for each in (server, restored)]
    assert before["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]
    client.replace(restored.transport)
    client.fail(Expired("too old"))
    await clock.advance(20)
    client.fail(None)
    await clock.advance(20)
    assert heard.take() == [("update", "one", "blue", "red")]


@pytest.mark.parametrize(
    ("resource", "namespace", "of_answer", "is_taken"),
    [
        (CONFIGMAPS, "", "default", True),
        (CONFIGMAPS, "default", "default", True),
        (CONFIGMAPS, "default", "elsewhere", False),
        (CONFIGMAPS, "", "", False),
        (NODES, "", "", True),
        (NODES, "", None, True),
        (NODES, "", "default", False),
    ],
)
async def test_a_member_cannot_put_objects_into_a_collection_that_nobody_asked_for(
    clock, start, settle, resource, namespace, of_answer, is_taken
) -> None:
    class Liar:
        async def page(self, *arguments, **named) -> ObjectPage:
            metadata = {"name": "one", "namespace": of_answer, "resourceVersion": "5"}
            return ObjectPage([{"metadata": metadata}], "5")

        async def watch(self, *arguments, **named):
            yield []
            await clock.sleep(1000)

    informer = Informer(Liar(), resource, namespace=namespace, clock=clock, cluster="east")
    start(informer.run())
    await settle()
    assert len(informer) == is_taken
    assert (informer.get(of_answer or "", "one") is not None) == is_taken


async def test_a_server_that_is_behind_our_revision_is_listed_again(client, clock, start, settle) -> None:
    informer = an_informer(client, clock)
    start(informer.run())
    await informer.wait_synced()
    too_new = Timeout("Too large resource version", details={"causes": [{"reason": "ResourceVersionTooLarge"}]})
    client.fail(too_new)
    await settle()
    client.fail(None)
    await clock.advance(5)
    assert client.calls.count("list") == 2


async def test_pages_that_expire_are_fetched_in_one_piece(server, client, clock, start, a_configmap) -> None:
    for number in range(5):
        await server.create(CONFIGMAPS, a_configmap(f"c{number}"))

    class Compacting:
        """Forgets the history under the second page."""

        async def page(self, resource, namespace="", *, limit=0, continue_token="", **selection) -> ObjectPage:
            if continue_token:
                raise Expired("The provided continue parameter is too old")
            return await server.page(resource, namespace, limit=limit, **selection)

        def watch(self, *arguments, **named):
            return server.watch(*arguments, **named)

    informer = an_informer(Compacting(), clock)
    start(informer.run())
    await asyncio.wait_for(informer.wait_synced(), 60)
    assert len(informer) == 5


async def test_a_failing_page_deletes_nothing(server, client, clock, start, settle, a_configmap, heard) -> None:
    for number in range(5):
        await server.create(CONFIGMAPS, a_configmap(f"c{number}"))
    informer = an_informer(client, clock)
    start(informer.run())
    await informer.wait_synced()
    informer.add_handler(heard)
    heard.take()
    page = await server.list(CONFIGMAPS, "default", limit=2)

    class Breaking:
        async def request(self, request):
            if request.continue_token:
                raise GONE
            metadata = {"resourceVersion": page.resource_version, "continue": page.continue_token}
            return {"items": page.items, "metadata": metadata}

        async def stream(self, request):
            raise GONE
            yield []

    client.replace(Breaking())
    informer.invalidate()
    await settle()
    await clock.advance(30)
    assert heard.take() == []
    assert len(informer) == 5


async def test_a_watch_that_ends_is_taken_up_where_it_ended(
    server, client, clock, start, settle, a_configmap, heard
) -> None:
    informer = an_informer(client, clock)
    informer.add_handler(heard)
    start(informer.run())
    await informer.wait_synced()
    await settle()
    await clock.advance(2)
    client.cut()
    await server.create(CONFIGMAPS, a_configmap("one"))
    await settle()
    assert heard.take() == [("add", "one", None, None)]
    assert client.calls == ["list", "watch", "watch"]


async def test_a_server_that_ends_every_watch_at_once_is_not_asked_in_a_loop(client, clock, start, settle) -> None:
    class Ending:
        page = staticmethod(client.page)

        async def watch(self, *arguments, **named):
            client.calls.append("watch")
            return
            yield []

    informer = an_informer(Ending(), clock)
    start(informer.run())
    await settle()
    await clock.advance(16)
    assert client.calls.count("watch") == len([0, 1, 3, 7, 15])


async def test_bookmarks_move_the_revision(server, client, clock, start, settle, a_configmap) -> None:
    informer = an_informer(client, clock)
    start(informer.run())
    await informer.wait_synced()
    await settle()
    other = await server.create(CONFIGMAPS, a_configmap("elsewhere", namespace="kube-system"))
    await clock.advance(130)
    assert informer.has_seen(other["metadata"]["resourceVersion"])


async def test_a_writer_can_wait_for_its_own_write(server, client, clock, start, settle, a_configmap) -> None:
    informer = an_informer(client, clock)
    start(informer.run())
    await informer.wait_synced()
    client.fail(GONE)
    await settle()
    written = await server.create(CONFIGMAPS, a_configmap("one"))
    revision = written["metadata"]["resourceVersion"]
    waiting = asyncio.ensure_future(informer.wait_for(revision, timeout_s=60))
    late = asyncio.ensure_future(informer.wait_for(str(int(revision) + 1000), timeout_s=20))
    await settle()
    assert not waiting.done()
    client.fail(None)
    await clock.advance(10)
    assert await waiting is True
    assert informer.get("default", "one") is not None
    assert await informer.wait_for(revision) is True
    await clock.advance(20)
    assert await late is False


async def test_a_broken_handler_does_not_keep_others_from_hearing(
    server, client, clock, start, settle, a_configmap, heard
) -> None:
    def broken(old, new) -> None:
        raise KeyError("oops")

    informer = an_informer(client, clock)
    informer.add_handler(broken)
    informer.add_handler(heard)
    start(informer.run())
    with structlog.testing.capture_logs() as logs:
        await informer.wait_synced()
        await server.create(CONFIGMAPS, a_configmap("one"))
        await settle()
    assert heard.take() == [("add", "one", None, None)]
    assert [entry["event"] for entry in logs if entry["log_level"] == "error"] == ["handler failed"]


async def test_an_index_follows_its_objects(server, client, clock, start, settle, a_configmap) -> None:
    await server.create(CONFIGMAPS, a_configmap("one", color="blue"))
    informer = an_informer(client, clock)
    informer.add_index("color", lambda obj: [obj["data"]["color"]] if obj.get("data") else [])
    start(informer.run())
    await informer.wait_synced()

    def names(color: str) -> list[str]:
        return [obj["metadata"]["name"] for obj in informer.by_index("color", color)]

    assert names("blue") == ["one"]
    await server.create(CONFIGMAPS, a_configmap("two", color="blue"))
    await paint(server, "one", "red")
    await settle()
    assert (names("blue"), names("red")) == (["two"], ["one"])
    await server.delete(CONFIGMAPS, "one", "default")
    await settle()
    assert names("red") == []
    informer.add_index("name", lambda obj: [obj["metadata"]["name"]])
    assert len(informer.by_index("name", "two")) == 1


async def test_a_transform_decides_what_is_kept(server, client, clock, start, settle, a_configmap, heard) -> None:
    def without_data(obj):
        obj.pop("data", None)
        return obj

    await server.create(CONFIGMAPS, a_configmap("one", color="blue"))
    informer = an_informer(client, clock, transform=without_data)
    informer.add_handler(heard)
    start(informer.run())
    await informer.wait_synced()
    await paint(server, "one", "red")
    await server.delete(CONFIGMAPS, "one", "default")
    await settle()
    assert heard.take() == [
        ("add", "one", None, None),
        ("update", "one", None, None),
        ("delete", "one", None, None),
    ]


async def test_another_server_behind_the_client_is_listed(
    server, new_server, client, clock, start, settle, a_configmap, heard
) -> None:
    await server.create(CONFIGMAPS, a_configmap("old"))
    informer = an_informer(client, clock)
    start(informer.run())
    await informer.wait_synced()
    informer.add_handler(heard)
    heard.take()
    other = await new_server()
    await other.create(CONFIGMAPS, a_configmap("new"))
    client.replace(other.transport)
    informer.invalidate()
    await settle()
    await clock.advance(5)
    assert sorted(heard.take()) == [("add", "new", None, None), ("delete", "old", None, None)]


async def test_a_pause_ends_when_the_server_is_said_to_answer_again(client, clock, start, settle) -> None:
    client.fail(GONE)
    informer = an_informer(client, clock)
    start(informer.run())
    await clock.advance(60)
    client.fail(None)
    await settle()
    assert not informer.has_synced
    informer.retry()
    await settle()
    assert informer.has_synced


async def test_lists_of_members_wait_for_their_common_time_and_those_of_the_host_do_not(
    server, client, clock, start, settle, a_configmap
) -> None:
    await server.create(CONFIGMAPS, a_configmap("one"))
    common = list_slice()

    async def use_all() -> None:
        while True:
            while common.take(clock.monotonic()):
                pass
            await asyncio.sleep(0)

    user = start(use_all())
    host, member = an_informer(client, clock), an_informer(client, clock, cluster="m1")
    start(host.run())
    start(member.run())
    await settle()
    assert host.has_synced
    assert not member.has_synced
    user.cancel()
    await member.wait_synced()
    assert len(member) == 1


async def test_lists_of_members_get_less_time_while_one_of_the_host_is_under_way(clock) -> None:
    lists = list_slice()
    alone_s = lists.limit_s
    with host_list():
        beside_s = lists.limit_s
        with host_list():
            assert lists.limit_s == beside_s
        assert lists.limit_s == beside_s
    assert (beside_s < alone_s, lists.limit_s) == (True, alone_s)


async def test_a_handler_may_be_added_without_what_is_cached(server, client, clock, start, settle, a_configmap) -> None:
    await server.create(CONFIGMAPS, a_configmap("old"))
    informer = an_informer(client, clock)
    start(informer.run())
    await settle()
    heard: list[str] = []
    informer.add_handler(lambda _, new: heard.append(new["metadata"]["name"]), is_replayed=False)
    assert heard == []
    await server.create(CONFIGMAPS, a_configmap("new"))
    await settle()
    assert heard == ["new"]
