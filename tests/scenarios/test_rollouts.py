"""One budget for every move of a divided Deployment: image changes, weights, drains, pauses, and a control plane killed.

`watching` counts the pods of all members with every write of theirs, and fails when fewer are ready, or more exist, than
the strategy of the Deployment allows.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery import conditions
from federation.apimachinery.resources import DEPLOYMENTS, PODS, REPLICA_SETS, STATEFUL_SETS, Object
from federation.client.client import PatchType
from federation.simulator.controllers.names import SIMULATOR_READY

EVEN = {"east": 1, "north": 1, "west": 1}
_STATEFUL_SETS = [{"apiVersion": "apps/v1", "kind": "StatefulSet"}]


class Watch:
    """Ready and existing pods of all members by ReplicaSet, and their extremes."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], tuple[int, int]] = {}
        self.ready_min, self.pods_max = 10**6, 0

    def record(self, cluster: str, replica_set: Object, *, is_deleted: bool = False) -> None:
        status = {} if is_deleted else replica_set.get("status") or {}
        counts = status.get("readyReplicas", 0), status.get("replicas", 0)
        self._counts[cluster, replica_set["metadata"]["name"]] = counts

    def measure(self) -> None:
        ready, pods = (sum(counts) for counts in zip(*self._counts.values(), strict=True))
        self.ready_min, self.pods_max = min(self.ready_min, ready), max(self.pods_max, pods)


@contextlib.asynccontextmanager
async def watching(world: World, *, ready_min: int, pods_max: int) -> AsyncIterator[None]:
    """Fail if fewer pods are ready, or more exist, after any write of a member during the block."""
    watch, since = Watch(), {}
    for name, member in world.members.items():
        for replica_set in (await member.admin.list(REPLICA_SETS, "default")).items:
            watch.record(name, replica_set)
        since[name] = await member.store.revision()

    async def follow(name: str) -> None:
        async for batch in world.members[name].store.watch("", since[name]):
            for event in batch:
                obj = orjson.loads(event.value)
                if obj.get("kind") == "ReplicaSet":
                    watch.record(name, obj, is_deleted=event.type.value == "DELETED")
                    watch.measure()

    tasks = [asyncio.create_task(follow(name)) for name in world.members]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    assert ready_min <= watch.ready_min
    assert watch.pods_max <= pods_max


async def running(world: World, weights: dict[str, int], **strategy: Any) -> None:
    """Run twelve replicas, divided by weights."""
    await world.create(PROPAGATION_POLICIES, a_policy(weights))
    deployment = a_deployment("web", replicas=12)
    deployment["spec"]["strategy"] = {"rollingUpdate": strategy}
    await world.create(DEPLOYMENTS, deployment)
    await world.until_available("web", 12)
    await world.settle()


async def set_image(world: World, image: str) -> None:
    containers = {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": image}]}}}}
    await world.user.patch(DEPLOYMENTS, "web", containers, patch_type=PatchType.STRATEGIC, namespace="default")


async def images(world: World) -> dict[str, str]:
    found = {name: await member.find(DEPLOYMENTS, "web") for name, member in world.members.items()}
    return {
        name: obj["spec"]["template"]["spec"]["containers"][0]["image"]
        for name, obj in found.items()
        if obj is not None
    }


async def is_rolled_out(world: World) -> bool:
    """Return what `kubectl rollout status` waits for."""
    deployment = await world.user.get(DEPLOYMENTS, "web", "default")
    spec, status = deployment["spec"], deployment.get("status") or {}
    if status.get("observedGeneration", 0) < deployment["metadata"]["generation"]:
        return False
    updated = status.get("updatedReplicas", 0)
    return bool(spec["replicas"] <= updated and status.get("replicas", 0) <= updated <= status["availableReplicas"])


async def until_rolled_out(world: World, image: str) -> None:
    """Wait for the end of the rollout; before, the host's status must not report it."""
    while set((await images(world)).values()) != {image}:
        assert not await is_rolled_out(world)
        await world.pass_time(0.1)
    await world.until_equal(lambda: is_rolled_out(world), True)


@pytest.mark.parametrize(
    ("strategy", "ready_min", "pods_max"),
    [
        ({}, 9, 15),
        ({"maxSurge": 1, "maxUnavailable": 0}, 12, 13),
        ({"maxSurge": 0, "maxUnavailable": 1}, 11, 12),
    ],
    ids=["default", "surge only", "unavailable only"],
)
async def test_an_image_change_over_three_clusters_keeps_one_budget(
    strategy: dict[str, Any], ready_min: int, pods_max: int
) -> None:
    async with a_world() as world:
        await running(world, EVEN, **strategy)
        async with watching(world, ready_min=ready_min, pods_max=pods_max):
            await set_image(world, "nginx:2")
            await until_rolled_out(world, "nginx:2")
        await world.settle()
        status = await world.status("web")
        assert status["updatedReplicas"] == 12
        progressing = conditions.find(status["conditions"], names.DEPLOYMENT_PROGRESSING)
        assert progressing is not None
        assert progressing["reason"] == "NewReplicaSetAvailable"


async def test_a_change_of_weights_moves_replicas_within_the_budget() -> None:
    async with a_world() as world:
        await running(world, EVEN)
        async with watching(world, ready_min=9, pods_max=15):
            placement = [
                {"cluster": name, "preferences": {"weight": weight}}
                for name, weight in {"east": 10, "north": 2}.items()
            ]
            rescheduling = {"replicaRescheduling": {"avoidDisruption": False}}
            spec = {"placement": placement, "reschedulePolicy": rescheduling}
            await world.merge(PROPAGATION_POLICIES, "divide", {"spec": spec})
            await world.until_replicas("web", {"east": 10, "north": 2})
            await world.until_available("web", 12)


@pytest.mark.parametrize("kills", [0, 6], ids=["undisturbed", "with a control plane that is killed"])
async def test_a_drained_cluster_keeps_pods_until_others_run(kills: int) -> None:
    async with a_world() as world:
        await running(world, {"east": 10, "north": 2}, maxSurge=2, maxUnavailable=0)
        async with watching(world, ready_min=12, pods_max=14):
            placement = [{"cluster": "north"}, {"cluster": "west"}]
            await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"placement": placement}})
            seen = set()
            for _ in range(kills):
                await world.pass_time(0.7)
                seen.add((await world.replicas("web")).get("east", 0))
                world.kill()
                await world.restart()
            await world.until_replicas("web", {"north": 6, "west": 6})
            await world.until_available("web", 12)
        assert not kills or len(seen) > 1, "the control plane was killed before or after the moves"


@pytest.mark.slow("many restarts")
async def test_an_image_change_ends_when_the_control_plane_is_killed_again_and_again() -> None:
    async with a_world() as world:
        await running(world, EVEN, maxSurge=1, maxUnavailable=0)
        async with watching(world, ready_min=12, pods_max=13):
            await set_image(world, "nginx:2")
            for _ in range(8):
                await world.pass_time(0.9)
                world.kill()
                await world.restart()
            await until_rolled_out(world, "nginx:2")


async def test_a_paused_deployment_is_scaled_and_not_updated() -> None:
    async with a_world() as world:
        await running(world, EVEN)
        await world.merge(DEPLOYMENTS, "web", {"spec": {"paused": True}})
        await set_image(world, "nginx:2")
        await world.scale("web", 15)
        await world.until_replicas("web", {"east": 5, "north": 5, "west": 5})
        await world.settle()
        assert set((await images(world)).values()) == {"nginx:1.27"}
        status = await world.status("web")
        assert (status["availableReplicas"], status.get("updatedReplicas", 0)) == (15, 0)
        async with watching(world, ready_min=12, pods_max=19):
            await world.merge(DEPLOYMENTS, "web", {"spec": {"paused": None}})
            await until_rolled_out(world, "nginx:2")


async def test_a_broken_image_stops_in_the_first_clusters_and_is_replaced() -> None:
    async with a_world() as world:
        await running(world, EVEN, maxSurge=1, maxUnavailable=1)
        broken = {"metadata": {"annotations": {SIMULATOR_READY: "false"}}}
        async with watching(world, ready_min=11, pods_max=13):
            await world.merge(DEPLOYMENTS, "web", {"spec": {"template": broken}})
            await world.pass_time(60)
            assert not await is_rolled_out(world)
            mended = {"metadata": {"annotations": {SIMULATOR_READY: None}}}
            await world.merge(DEPLOYMENTS, "web", {"spec": {"template": mended}})
            await set_image(world, "nginx:2")
            await until_rolled_out(world, "nginx:2")


async def test_a_deleted_deployment_leaves_no_pods_behind() -> None:
    async with a_world() as world:
        await running(world, EVEN, maxSurge=1, maxUnavailable=0)
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"placement": [{"cluster": "north"}]}})
        await world.pass_time(1)
        await world.user.delete(DEPLOYMENTS, "web", "default")
        await world.until_replicas("web", {})


async def test_a_stateful_set_moves_with_unique_ordinals() -> None:
    labels = {"app": "db"}
    containers = [{"name": "db", "image": "db:1"}]
    stateful_set: Object = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db", "namespace": "default"},
        "spec": {
            "replicas": 4,
            "serviceName": "db",
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": containers}},
        },
    }

    async def pods(world: World) -> list[str]:
        found = [await member.admin.list(PODS, "default") for member in world.members.values()]
        return sorted(pod["metadata"]["name"] for page in found for pod in page.items)

    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}, resourceSelectors=_STATEFUL_SETS))
        await world.create(STATEFUL_SETS, stateful_set)
        await world.until_equal(lambda: pods(world), ["db-0", "db-1", "db-2", "db-3"])
        await world.settle()
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"placement": [{"cluster": "north"}]}})
        moved = ["db-1000", "db-1001", "db-1002", "db-1003"]
        while (found := await pods(world)) != moved:
            assert len(set(found)) == len(found) >= 3
            await world.pass_time(0.1)


async def test_creation_scaling_and_a_small_update_write_each_member_once() -> None:
    async with a_world() as world:

        async def counted() -> dict[str, int]:
            await world.settle()
            found = {}
            for name, member in world.members.items():
                found[name] = sum(call[:2] == ("patch", "deployments") for call in member.line.calls)
                member.line.calls.clear()
            return found

        await running(world, EVEN)
        once = dict.fromkeys(world.members, 1)
        assert await counted() == once
        for replicas in (15, 6, 12):
            await world.scale("web", replicas)
            assert await counted() == once, replicas
        await set_image(world, "nginx:2")
        assert await counted() == once, "the updates of all three clusters fit into 25 %"
