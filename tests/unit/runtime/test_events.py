"""Events that users see: aggregated, on the source too, and never in anybody's way."""

import pytest

from federation.apimachinery.errors import ClusterUnreachable
from federation.apimachinery.resources import EVENTS
from federation.runtime.events import NORMAL, WARNING, EventOptions, EventRecorder, source_of

WEB = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default", "uid": "u1"}}
MEMBER = {"apiVersion": "core.kubeadmiral.io/v1alpha1", "kind": "FederatedCluster", "metadata": {"name": "m1"}}
FEDERATED = {
    "apiVersion": "core.kubeadmiral.io/v1alpha1",
    "kind": "FederatedObject",
    "metadata": {
        "name": "web-deployments.apps",
        "namespace": "default",
        "uid": "u2",
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": "u3", "controller": False},
            {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u1", "controller": True},
        ],
    },
    "spec": {"template": {"apiVersion": "apps/v1", "kind": "Deployment"}},
}


@pytest.fixture
def recorder(client, clock) -> EventRecorder:
    return EventRecorder(client, component="scheduler", clock=clock)


async def events(server) -> list[dict]:
    return (await server.list(EVENTS)).items


async def test_an_event_has_object_reason_message_and_times(recorder, server, start) -> None:
    start(recorder.run())
    recorder.event(WEB, WARNING, "NoFit", "no cluster has room")
    await recorder.wait_idle()
    (event,) = await events(server)
    assert event["involvedObject"] == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": "web",
        "namespace": "default",
        "uid": "u1",
    }
    assert (event["type"], event["reason"], event["message"]) == (WARNING, "NoFit", "no cluster has room")
    assert (event["source"], event["count"]) == ({"component": "scheduler"}, 1)
    assert event["firstTimestamp"] == event["lastTimestamp"] == "2026-01-01T00:00:00Z"


async def test_a_repeated_report_raises_the_count(recorder, server, client, clock, start) -> None:
    start(recorder.run())
    for _ in range(3):
        recorder.event(WEB, WARNING, "NoFit", "no cluster has room")
        await recorder.wait_idle()
        await clock.advance(60)
    recorder.event(WEB, WARNING, "NoFit", "no cluster has room")
    recorder.event(WEB, WARNING, "NoFit", "no cluster has room")
    await recorder.wait_idle()
    (event,) = await events(server)
    assert (event["count"], event["lastTimestamp"]) == (5, "2026-01-01T00:03:00Z")
    assert client.calls == ["create", "patch", "patch", "patch"]


async def test_another_message_or_a_long_pause_creates_another_event(recorder, server, clock, start) -> None:
    start(recorder.run())
    recorder.event(WEB, NORMAL, "Scheduled", "to m1")
    recorder.event(WEB, NORMAL, "Scheduled", "to m2")
    await recorder.wait_idle()
    await clock.advance(601)
    recorder.event(WEB, NORMAL, "Scheduled", "to m1")
    await recorder.wait_idle()
    assert len(await events(server)) == 3


async def test_an_event_that_expired_on_the_server_is_created_again(recorder, server, start) -> None:
    start(recorder.run())
    recorder.event(WEB, NORMAL, "Scheduled", "to m1")
    await recorder.wait_idle()
    (event,) = await events(server)
    await server.delete(EVENTS, event["metadata"]["name"], "default")
    recorder.event(WEB, NORMAL, "Scheduled", "to m1")
    await recorder.wait_idle()
    assert [found["count"] for found in await events(server)] == [1]


async def test_events_of_a_federated_object_are_written_for_its_source_too(recorder, server, start) -> None:
    start(recorder.run())
    recorder.event(FEDERATED, WARNING, "NoFeasibleCluster", "0/3 clusters are available")
    await recorder.wait_idle()
    involved = {(e["involvedObject"]["kind"], e["involvedObject"]["name"]) for e in await events(server)}
    assert involved == {("FederatedObject", "web-deployments.apps"), ("Deployment", "web")}


async def test_normal_events_are_written_for_the_source_only(recorder, server, start) -> None:
    start(recorder.run())
    recorder.event(FEDERATED, NORMAL, "Scheduled", "to m1")
    await recorder.wait_idle()
    (event,) = await events(server)
    assert event["involvedObject"]["kind"] == "Deployment"


async def test_a_cluster_scoped_object_has_its_events_in_default(recorder, server, start) -> None:
    start(recorder.run())
    recorder.event(MEMBER, WARNING, "Unreachable", "x" * 5000)
    await recorder.wait_idle()
    (event,) = await events(server)
    assert event["metadata"]["namespace"] == "default"
    assert len(event["message"]) == 1024


async def test_reporting_never_raises(client, clock, server, start) -> None:
    recorder = EventRecorder(client, clock=clock, options=EventOptions(queue_max=2))
    for number in range(5):
        recorder.event(WEB, NORMAL, "Many", f"number {number}")
    client.fail(ClusterUnreachable("no route"))
    start(recorder.run())
    await recorder.wait_idle()
    client.fail(None)
    recorder.event(WEB, NORMAL, "Many", "later")
    await recorder.wait_idle()
    assert [event["message"] for event in await events(server)] == ["later"]


async def test_more_reports_than_are_written_at_once_all_arrive_once(client, clock, server, start) -> None:
    recorder = EventRecorder(client, clock=clock, options=EventOptions(writes_max=3))
    objects = [{**WEB, "metadata": {**WEB["metadata"], "name": f"web-{number}"}} for number in range(10)]
    start(recorder.run())
    for obj in objects * 2:
        recorder.event(obj, NORMAL, "Scheduled", "east 1")
    await recorder.wait_idle()
    counts = [(event["involvedObject"]["name"], event["count"]) for event in await events(server)]
    assert sorted(counts) == [(f"web-{number}", 2) for number in range(10)]


async def test_memory_of_written_events_is_bounded(client, clock, server, start) -> None:
    recorder = EventRecorder(client, clock=clock, options=EventOptions(remembered_max=1))
    start(recorder.run())
    for message in ("one", "two", "one"):
        recorder.event(WEB, NORMAL, "Many", message)
        await recorder.wait_idle()
    assert sorted(event["message"] for event in await events(server)) == ["one", "one", "two"]


def test_only_a_controlling_owner_of_the_templates_kind_is_the_source() -> None:
    assert source_of(FEDERATED)["name"] == "web"
    other = {**FEDERATED, "spec": {"template": {"apiVersion": "batch/v1", "kind": "Job"}}}
    assert source_of(other) is None
    assert source_of({"metadata": {}}) is None


async def test_many_messages_are_combined_into_one_event(recorder, server, start) -> None:
    start(recorder.run())
    for number in range(15):
        recorder.event(WEB, WARNING, "NoFit", f"attempt {number}")
        await recorder.wait_idle()
    recorder.event(WEB, WARNING, "Other", "is counted by itself")
    await recorder.wait_idle()
    found = {event["message"]: event["count"] for event in await events(server)}
    alone = {f"attempt {number}": 1 for number in range(10)}
    combined = {"(combined from similar events): attempt 14": 5}
    assert found == alone | combined | {"is counted by itself": 1}
