"""A watch goes on after a failure only if the server proves that it has the history of our caches."""

import pytest
from tests.unit.runtime.conftest import FaultyClient

from federation.apimachinery.errors import (
    ClusterError,
    ClusterLimitExceeded,
    ClusterUnreachable,
    Expired,
    Forbidden,
    InternalError,
    RequestTimeout,
    ServiceUnavailable,
    Timeout,
    TooManyRequests,
)
from federation.apimachinery.resources import CONFIGMAPS, PODS, SECRETS
from federation.client.client import PatchType
from federation.runtime.informer import Informer, InformerOptions
from federation.runtime.informers import Informers
from federation.runtime.lineage import Lineage
from federation.runtime.pageslots import PageSlots
from federation.runtime.podstream import PodStream

GONE = ClusterUnreachable("connection reset")
OPTIONS = InformerOptions(backoff_s_min=1.0, backoff_s_max=8.0)


@pytest.fixture
def informers(client, clock) -> Informers:
    return Informers(client, clock=clock, cluster="east", options=OPTIONS)


async def paint(server, name: str, color: str) -> None:
    patch = {"data": {"color": color}}
    await server.patch(CONFIGMAPS, name, patch, patch_type=PatchType.MERGE, namespace="default")


def a_secret(a_configmap, name: str):
    return {**a_configmap(name), "kind": "Secret", "data": {}}


def names(informer) -> list[str]:
    return sorted(obj["metadata"]["name"] for obj in informer.list())


@pytest.fixture
def fail_and_return(client, clock, settle):
    """Lose the server, do something meanwhile, and reach it again; return the calls since then."""

    async def run(*, meanwhile, refusal: Exception | None = None) -> list[str]:
        client.fail(GONE)
        await settle()
        await meanwhile()
        client.calls.clear()
        client.fail(refusal)
        await clock.advance(20)
        client.fail(None)
        await clock.advance(20)
        await settle()
        return client.calls

    return run


async def test_a_restored_server_that_has_passed_our_revision_is_listed_again(
    new_server, server, client, informers, start, settle, a_configmap, fail_and_return
) -> None:
    """What the restore took back is gone, and what got its number is seen: the watch alone shows neither."""
    restored = await new_server()
    for each in (server, restored):
        await each.create(CONFIGMAPS, a_configmap("kept"))
    await server.create(CONFIGMAPS, a_configmap("lost"))
    informer = informers.for_resource(CONFIGMAPS)
    start(informers.run())
    await informer.wait_synced()
    assert names(informer) == ["kept", "lost"]

    async def restore() -> None:
        client.replace(restored.transport)
        for name in ("first", "second", "third"):
            await restored.create(CONFIGMAPS, a_configmap(name))

    calls = await fail_and_return(meanwhile=restore)
    assert names(informer) == ["first", "kept", "second", "third"]
    assert calls.count("list") == 1


async def test_a_restored_server_in_which_the_same_write_was_made_again_is_listed_again(
    new_server, server, client, informers, start, settle, a_configmap, fail_and_return
) -> None:
    """The same object has the same number in both histories, with another state."""
    restored = await new_server()
    for each in (server, restored):
        await each.create(CONFIGMAPS, a_configmap("one", color="blue"))
    await paint(server, "one", "red")
    informer = informers.for_resource(CONFIGMAPS)
    start(informers.run())
    await informer.wait_synced()

    async def restore() -> None:
        client.replace(restored.transport)
        await paint(restored, "one", "green")

    revisions = [(await server.get(CONFIGMAPS, "one", "default"))["metadata"]["resourceVersion"]]
    await fail_and_return(meanwhile=restore)
    revisions.append((await restored.get(CONFIGMAPS, "one", "default"))["metadata"]["resourceVersion"])
    assert revisions[0] == revisions[1]
    assert informer.get("default", "one")["data"] == {"color": "green"}


async def test_one_request_proves_the_history_for_all_caches_of_a_server(
    server, client, informers, start, a_configmap, fail_and_return
) -> None:
    for name in ("one", "two"):
        await server.create(CONFIGMAPS, a_configmap(name, color="blue"))
    configmaps, secrets = informers.for_resource(CONFIGMAPS), informers.for_resource(SECRETS)
    start(informers.run())
    await informers.wait_synced()

    async def change() -> None:
        await paint(server, "one", "red")
        await server.create(SECRETS, {**a_configmap("three"), "kind": "Secret", "data": {}})

    calls = await fail_and_return(meanwhile=change)
    assert (calls.count("look"), calls.count("list")) == (1, 0)
    assert configmaps.get("default", "one")["data"] == {"color": "red"}
    assert names(secrets) == ["three"]


async def test_a_cache_whose_newest_object_changed_meanwhile_lists_again_and_the_others_do_not(
    server, client, informers, start, a_configmap, fail_and_return
) -> None:
    await server.create(SECRETS, {**a_configmap("old"), "kind": "Secret", "data": {}})
    await server.create(CONFIGMAPS, a_configmap("new", color="blue"))
    configmaps, _ = informers.for_resource(CONFIGMAPS), informers.for_resource(SECRETS)
    start(informers.run())
    await informers.wait_synced()
    calls = await fail_and_return(meanwhile=lambda: paint(server, "new", "red"))
    assert (calls.count("look"), calls.count("list")) == (2, 1)
    assert configmaps.get("default", "new")["data"] == {"color": "red"}


async def test_a_removal_after_the_proven_history_makes_a_cache_list_again(
    server, client, informers, start, settle, a_configmap, fail_and_return
) -> None:
    """A server that was restored to the time before the object has none either."""
    await server.create(CONFIGMAPS, a_configmap("stays"))
    await server.create(CONFIGMAPS, a_configmap("goes"))
    informer = informers.for_resource(CONFIGMAPS)
    start(informers.run())
    await informer.wait_synced()
    await server.delete(CONFIGMAPS, "goes", "default")
    await settle()

    async def nothing() -> None:
        pass

    assert (await fail_and_return(meanwhile=nothing)).count("list") == 1
    assert names(informer) == ["stays"]


@pytest.mark.parametrize(
    ("refusal", "lists"),
    [
        (TooManyRequests("slow down"), 0),
        (ServiceUnavailable("no healthy upstream"), 0),
        (Timeout("the storage is slow"), 0),
        (InternalError("the webhook does not answer"), 1),
    ],
)
async def test_a_server_that_answers_nobody_is_asked_again_and_one_that_fails_for_the_object_is_listed(
    server, client, clock, informers, start, settle, a_configmap, refusal, lists
) -> None:
    await server.create(CONFIGMAPS, a_configmap("one"))
    informer = informers.for_resource(CONFIGMAPS)
    start(informers.run())
    await informer.wait_synced()
    client.fail(refusal)
    await settle()
    client.calls.clear()
    await clock.advance(1)
    client.fail(None)
    await clock.advance(20)
    assert client.calls.count("list") == 2 * lists  # the list failed as well, and was repeated
    assert informer.is_connected


@pytest.mark.parametrize("refusal", [Forbidden("its rights were revoked"), TooManyRequests("it waits"), Expired("old")])
async def test_what_a_cache_has_of_the_new_history_proves_nothing_for_a_cache_that_comes_later(
    new_server, server, client, clock, informers, start, settle, a_configmap, refusal
) -> None:
    """After a restore, one kind is listed first. Its objects are those that the server has, whatever it lost."""
    restored = await new_server()
    for each in (server, restored):
        await each.create(CONFIGMAPS, a_configmap("kept"))
    await server.create(SECRETS, a_secret(a_configmap, "gone"))
    await server.create(CONFIGMAPS, a_configmap("lost"))
    late, early = informers.for_resource(CONFIGMAPS), informers.for_resource(SECRETS)
    start(informers.run())
    await informers.wait_synced()
    client.fail(GONE)
    await settle()
    client.replace(restored.transport)
    for name in ("first", "second", "third"):
        await restored.create(CONFIGMAPS, a_configmap(name))
    await restored.create(SECRETS, a_secret(a_configmap, "newest"))
    client.refuse(CONFIGMAPS, refusal)
    client.fail(None)
    await clock.advance(20)
    assert names(early) == ["newest"]
    client.refuse(CONFIGMAPS, None)
    await clock.advance(20)
    assert names(late) == ["first", "kept", "second", "third"]


async def test_a_watch_that_hangs_while_others_find_a_new_history_is_not_proven_by_them(
    new_server, server, client, clock, start, settle, a_configmap
) -> None:
    """One connection is known to be lost at once, another only when no bookmark has come for a while."""
    hanging = FaultyClient(server)
    restored = await new_server()
    await restored.create(CONFIGMAPS, a_configmap("kept"))
    await server.create(CONFIGMAPS, a_configmap("kept"))
    await server.create(CONFIGMAPS, a_configmap("lost"))
    lineage = Lineage()
    late = Informer(hanging, CONFIGMAPS, clock=clock, cluster="east", options=OPTIONS, lineage=lineage)
    early = Informer(client, SECRETS, clock=clock, cluster="east", options=OPTIONS, lineage=lineage)
    for informer in (late, early):
        start(informer.run())
        await informer.wait_synced()
    client.fail(GONE)
    await settle()
    client.replace(restored.transport)
    hanging.transport.transport = restored.transport  # the running watch goes on at the old server, which is silent
    await restored.create(CONFIGMAPS, a_configmap("first"))
    await restored.create(CONFIGMAPS, a_configmap("second"))
    await restored.create(SECRETS, a_secret(a_configmap, "newest"))
    client.fail(None)
    await clock.advance(20)
    assert names(early) == ["newest"]
    hanging.fail(GONE)
    await settle()
    hanging.fail(None)
    await clock.advance(20)
    assert names(late) == ["first", "kept", "second"]


async def test_a_proof_lasts_until_the_cache_has_changed(
    server, client, clock, informers, start, settle, a_configmap
) -> None:
    """A kind that is refused for ever begins a proof with each attempt: that costs the other caches no list."""
    await server.create(SECRETS, a_secret(a_configmap, "one"))
    informer, _ = informers.for_resource(SECRETS), informers.for_resource(CONFIGMAPS)
    start(informers.run())
    await informers.wait_synced()
    client.refuse(CONFIGMAPS, Forbidden("its rights were revoked"))
    client.cut()
    await clock.advance(60)
    await server.create(SECRETS, a_secret(a_configmap, "two"))
    await clock.advance(60)
    client.calls.clear()
    client.fail(GONE)
    await settle()
    client.fail(None)
    await clock.advance(20)
    assert names(informer) == ["one", "two"]
    assert client.calls.count("list") == 0


@pytest.mark.parametrize(
    "failure",
    [
        TooManyRequests("storage is (re)initializing"),
        RequestTimeout("no answer within 30 s"),
        ClusterError("malformed JSON"),
        ClusterLimitExceeded("too large"),
    ],
)
@pytest.mark.parametrize("has_objects", [True, False])
async def test_a_kind_that_is_never_answered_stops_no_other_one(
    server, client, clock, informers, start, settle, a_configmap, failure, has_objects
) -> None:
    """The newest object is of that kind. The others have their own, or are listed."""
    if has_objects:
        await server.create(SECRETS, a_secret(a_configmap, "one"))
    await server.create(CONFIGMAPS, a_configmap("newest"))
    secrets, _ = informers.for_resource(SECRETS), informers.for_resource(CONFIGMAPS)
    start(informers.run())
    await informers.wait_synced()
    client.fail(GONE)
    await settle()
    client.refuse(CONFIGMAPS, failure)
    client.fail(None)
    await clock.advance(20)
    assert secrets.is_connected
    await server.create(SECRETS, a_secret(a_configmap, "two"))
    await settle()
    assert names(secrets) == ["one", "two"][not has_objects :]


def a_pod(name: str):
    spec = {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


async def test_a_server_that_starts_is_asked_again_about_the_last_pod(server, client, clock, start, settle) -> None:
    """Its load balancer answers 503 for a while. To count all pods afterwards would be expensive."""
    heard: list[int] = []
    await server.create(PODS, a_pod("one"))
    stream = PodStream(
        client,
        lambda _, change: heard.append(change),
        clock=clock,
        cluster="m1",
        options=OPTIONS,
        slots=PageSlots(clock),
    )
    start(stream.run())
    await settle()
    client.fail(ServiceUnavailable("no healthy upstream"))
    await clock.advance(20)
    client.fail(None)
    await clock.advance(20)
    assert stream.is_connected
    assert heard == [0, 1]


async def test_pods_are_counted_again_when_the_server_lost_the_last_one(
    new_server, server, client, clock, start, settle
) -> None:
    heard: list[tuple[str, int]] = []
    restored = await new_server()
    await server.create(PODS, a_pod("lost"))

    def handler(pod, change: int) -> None:
        heard.append((pod["metadata"]["name"] if pod is not None else "", change))

    start(PodStream(client, handler, clock=clock, cluster="m1", options=OPTIONS, slots=PageSlots(clock)).run())
    await settle()
    assert heard == [("", 0), ("lost", 1)]
    client.fail(GONE)
    await settle()
    client.fail(None)
    await clock.advance(10)
    assert heard == [("", 0), ("lost", 1)], "the server has the pod, so the others need not be listed"
    client.fail(GONE)
    await settle()
    client.replace(restored.transport)
    for name in ("first", "second"):
        await restored.create(PODS, a_pod(name))
    client.fail(None)
    await clock.advance(20)
    assert heard[2:] == [("", 0), ("first", 1), ("second", 1)]
