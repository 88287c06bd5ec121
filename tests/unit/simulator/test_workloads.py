"""A simulated member's controllers, on a registry in memory and a virtual clock."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from federation.apimachinery.clock import ManualClock
from federation.apimachinery.resources import DEPLOYMENTS, NODES, PODS, Object
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.client.client import PatchType
from federation.client.local import LocalClient
from federation.simulator.controllers.nodelifecycle import compute_eviction_delay_s
from federation.simulator.options import MemberOptions, NodeShape
from federation.simulator.workloads import Workloads, _to_node

OPTIONS = MemberOptions("east", (NodeShape("node-1", cpu="4", labels={"zone": "a"}),))


def a_deployment(replicas: int, cpu: str = "1") -> Object:
    container = {"name": "web", "image": "nginx:1", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}},
        },
    }


class Member:
    def __init__(self, registry: Registry, clock: ManualClock) -> None:
        self.client = LocalClient(registry, user_agent="test")
        self.clock = clock

    async def deployment(self) -> Object:
        return await self.client.get(DEPLOYMENTS, "web", "default")

    async def until(self, condition: Callable[[], Awaitable[Any]]) -> None:
        for _ in range(500):
            if await condition():
                return
            await self.clock.advance(0.05)
        raise AssertionError("the condition was not met")


@contextlib.asynccontextmanager
async def a_member() -> AsyncIterator[Member]:
    clock = ManualClock()
    registry = Registry(MemoryStore(clock=clock), clock=clock)
    await registry.start()
    workloads = Workloads(registry, OPTIONS, clock)
    await workloads.ensure_nodes()
    await workloads.ensure_nodes()  # a restart finds its nodes
    tasks = [asyncio.create_task(registry.run()), asyncio.create_task(workloads.run())]
    try:
        yield Member(registry, clock)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_nodes_are_created_with_their_capacity() -> None:
    async with a_member() as member:
        (node,) = (await member.client.list(NODES)).items

    assert node["status"]["allocatable"] == {"cpu": "4", "memory": "64Gi", "pods": "110"}
    assert node["metadata"]["labels"]["zone"] == "a"


async def test_a_deployment_gets_ready_pods() -> None:
    async with a_member() as member:
        await member.client.create(DEPLOYMENTS, a_deployment(3))

        async def is_available() -> bool:
            return ((await member.deployment()).get("status") or {}).get("availableReplicas") == 3

        await member.until(is_available)
        pods = (await member.client.list(PODS, "default")).items
        assert {pod["spec"]["nodeName"] for pod in pods} == {"node-1"}
        assert {pod["status"]["phase"] for pod in pods} == {"Running"}


async def test_unschedulable_pods_have_a_condition_and_start_on_a_new_node() -> None:
    async with a_member() as member:
        await member.client.create(DEPLOYMENTS, a_deployment(5))

        async def unschedulable() -> list[Object]:
            pods = (await member.client.list(PODS, "default")).items
            conditions = [c for pod in pods for c in (pod.get("status") or {}).get("conditions", ())]
            return [c for c in conditions if c.get("reason") == "Unschedulable"]

        await member.until(unschedulable)
        assert "Insufficient cpu" in (await unschedulable())[0]["message"]

        await member.client.create(NODES, {"apiVersion": "v1", "kind": "Node", **_NODE})

        async def is_available() -> bool:
            return (await member.deployment())["status"].get("availableReplicas") == 5

        await member.until(is_available)


async def test_pods_of_a_tainted_or_deleted_node_are_replaced() -> None:
    async with a_member() as member:
        await member.client.create(DEPLOYMENTS, a_deployment(1))

        async def nodes_of_pods() -> list[str]:
            pods = (await member.client.list(PODS, "default")).items
            return [pod["spec"].get("nodeName", "") for pod in pods]

        async def is_on(node: str) -> bool:
            return await nodes_of_pods() == [node]

        await member.until(lambda: is_on("node-1"))
        await member.client.create(NODES, {"apiVersion": "v1", "kind": "Node", **_NODE})
        taint = {"key": "broken", "effect": "NoExecute"}
        await member.client.patch(NODES, "node-1", {"spec": {"taints": [taint]}}, patch_type=PatchType.MERGE)
        await member.until(lambda: is_on("node-2"))
        await member.client.delete(NODES, "node-2")
        await member.until(lambda: is_on(""))  # no node left: the replacement is Pending
        await member.client.patch(NODES, "node-1", {"spec": {"taints": None}}, patch_type=PatchType.MERGE)
        await member.until(lambda: is_on("node-1"))


async def test_a_pod_is_evicted_after_its_toleration_seconds() -> None:
    async with a_member() as member:
        deployment = a_deployment(1)
        toleration = {"key": "slow", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
        deployment["spec"]["template"]["spec"]["tolerations"] = [toleration]
        await member.client.create(DEPLOYMENTS, deployment)

        async def names() -> list[str]:
            return [pod["metadata"]["name"] for pod in (await member.client.list(PODS, "default")).items]

        await member.until(names)
        (first,) = await names()
        taint = {"key": "slow", "effect": "NoExecute"}
        await member.client.patch(NODES, "node-1", {"spec": {"taints": [taint]}}, patch_type=PatchType.MERGE)
        for _ in range(80):
            await member.clock.advance(0.05)
        assert await names() == [first]

        async def is_replaced() -> bool:
            return first not in await names()

        await member.until(is_replaced)


def test_only_untolerated_no_execute_taints_evict_pods() -> None:
    node = {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "b", "effect": "NoExecute"}]}}
    assert compute_eviction_delay_s({}, node) == 0.0
    assert compute_eviction_delay_s({"tolerations": [{"key": "b", "operator": "Exists"}]}, node) is None
    assert (
        compute_eviction_delay_s({"tolerations": [{"key": "b", "operator": "Exists", "tolerationSeconds": 7}]}, node)
        == 7.0
    )
    assert compute_eviction_delay_s({}, {"spec": {}}) is None


_NODE: Object = {
    "metadata": {"name": "node-2"},
    "status": {
        "allocatable": {"cpu": "1", "memory": "1Gi", "pods": "10"},
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}


async def test_nodes_have_the_labels_that_a_kubelet_gives_them() -> None:
    node = _to_node(NodeShape("n1", labels={"kubernetes.io/arch": "arm64", "pool": "a"}), "2026-01-01T00:00:00Z")
    labels = node["metadata"]["labels"]
    assert labels["kubernetes.io/hostname"] == "n1"
    assert labels["kubernetes.io/os"] == node["status"]["nodeInfo"]["operatingSystem"]
    assert (labels["kubernetes.io/arch"], labels["pool"]) == ("arm64", "a")
