"""Pods of a member are counted while they use a node; only those without a node are cached."""

import orjson
import pytest

from federation.apimachinery.resources import PODS, Object
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.apiserver.verbs.requestoptions import WriteOptions
from federation.client.local import LocalClient
from federation.runtime.informer import Informer, InformerOptions
from federation.runtime.pageslots import PageSlots
from federation.runtime.podstream import WITHOUT_NODE, PodStream, is_of_no_account, is_resizing


def a_pod(name: str, node: str = "") -> Object:
    spec: Object = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}
    if node:
        spec["nodeName"] = node
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def a_stream(client, clock, heard: list[tuple[str, int]]) -> PodStream:
    def handler(pod: Object | None, change: int) -> None:
        heard.append((pod["metadata"]["name"] if pod is not None else "", change))

    return PodStream(client, handler, clock=clock, cluster="m1", options=InformerOptions(), slots=PageSlots(clock))


async def bind(registry: Registry, name: str, node: str) -> None:
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
    info = registry.kinds.lookup(PODS.group, PODS.version, PODS.plural)
    await registry.create(info, "default", binding, WriteOptions(), name=name, subresource="binding")


async def test_a_pod_is_counted_from_its_node_to_its_end_and_never_cached(clock, start, settle) -> None:
    store = MemoryStore(clock=clock)
    start(store.run())
    registry = Registry(store, clock=clock)
    await registry.start()
    client = LocalClient(registry)
    heard: list[tuple[str, int]] = []
    await client.create(PODS, a_pod("bound", "n1"))
    await client.create(PODS, a_pod("waiting"))
    waiting = Informer(client, PODS, field_selector=WITHOUT_NODE, clock=clock)
    stream = a_stream(client, clock, heard)
    start(stream.run())
    start(waiting.run())
    await settle()
    assert heard == [("", 0), ("bound", 1)]
    assert [pod["metadata"]["name"] for pod in waiting.list()] == ["waiting"]
    await bind(registry, "waiting", "n1")
    await settle()
    assert heard[2:] == [("waiting", 1)]
    assert waiting.list() == []
    for _ in range(2):
        await client.patch(PODS, "bound", {"status": {"phase": "Succeeded"}}, namespace="default", subresource="status")
    await client.delete(PODS, "bound", "default", grace_period_s=0)
    await client.delete(PODS, "waiting", "default", grace_period_s=0)
    await settle()
    assert heard[3:] == [("bound", -1), ("waiting", -1)]
    assert len(stream) == 0


async def test_all_pods_are_counted_again_after_one_was_resized(client, clock, start, settle) -> None:
    heard: list[tuple[str, int]] = []
    await client.create(PODS, a_pod("bound", "n1"))
    start(a_stream(client, clock, heard).run())
    await settle()
    resizing = {"status": {"conditions": [{"type": "PodResizeInProgress", "status": "True"}]}}
    await client.patch(PODS, "bound", resizing, namespace="default", subresource="status")
    await settle()
    assert heard == [("", 0), ("bound", 1)]
    await clock.advance(301)
    await settle()
    assert heard == [("", 0), ("bound", 1)] * 2


def test_a_malformed_status_is_no_resize() -> None:
    assert not is_resizing({"status": {"conditions": [3]}})
    assert not is_resizing({"status": "text"})
    assert is_resizing({"status": {"resize": "Deferred"}})


def an_event(type_: str, status: Object) -> bytes:
    return orjson.dumps({"type": type_, "object": {**a_pod("bound", "n1"), "status": status}})


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (an_event("MODIFIED", {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}), True),
        (an_event("MODIFIED", {"conditions": [{"type": "PodResizePending", "status": "True"}]}), False),
        (an_event("MODIFIED", {"conditions": [{"type": "PodResizeInProgress", "status": "True"}]}), False),
        (an_event("MODIFIED", {"resize": "Deferred"}), False),
        (an_event("ADDED", {"phase": "Running"}), False),
        (an_event("DELETED", {"phase": "Running"}), False),
        (b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}', False),
        (b'{ "object": {}, "type": "MODIFIED" }', False),
        (b'{"type":"ERROR","object":{"code":410}}', False),
    ],
    ids=["status", "resize waits", "resize", "resize of old servers", "added", "gone", "bookmark", "spaces", "error"],
)
def test_only_the_statuses_of_a_running_pod_are_left_unread(line: bytes, expected: bool) -> None:
    assert is_of_no_account(line) is expected
