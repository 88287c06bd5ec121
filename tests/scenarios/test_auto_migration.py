"""Auto-migration, from document 003's table: replicas that a member cannot run move, and return when it can.

Six replicas, three members of equal weight: 2,2,2. When the third member cannot run its two they go to the others,
3,3,0; when it has capacity again they return, at most one batch at a time, and no replica is removed before its
replacement runs.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.support.manifests import a_deployment, a_policy, an_override
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import FEDERATED_TYPE_CONFIGS, OVERRIDE_POLICIES, PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS, NODES, PODS, Object

FAST = {"when": {"podUnschedulableFor": "10s"}, "failback": {"stableFor": "20s", "batchSize": 1}}
WEIGHTS = {"east": 1, "north": 1, "west": 1}
EVEN = {"east": 2, "north": 2, "west": 2}
AWAY = {"east": 3, "north": 3}


@asynccontextmanager
async def a_migrating_world(**migration: Any) -> AsyncIterator[World]:
    """Run six replicas, two in each of three members; `migration` overrides the policy's `autoMigration`."""
    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, a_policy(WEIGHTS, autoMigration={**FAST, **migration}))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=6))
        await world.until_available("web", 6)
        assert await world.replicas("web") == EVEN
        yield world


async def lose_node(world: World, cluster: str) -> None:
    """Cordon and drain the member's only node: its pods are deleted and their replacements are unschedulable."""
    await world.members[cluster].merge(NODES, "node-1", {"spec": {"unschedulable": True}})
    for pod in (await world.members[cluster].admin.list(PODS, "default")).items:
        await world.members[cluster].admin.delete(PODS, pod["metadata"]["name"], "default")


async def regain_node(world: World, cluster: str) -> None:
    """Uncordon the member's node."""
    await world.members[cluster].merge(NODES, "node-1", {"spec": {"unschedulable": None}})


async def running(world: World) -> int:
    """Return the number of ready pods of the workload in all members."""
    ready = 0
    for member in world.members.values():
        copy = await member.find(DEPLOYMENTS, "web")
        ready += ((copy or {}).get("status") or {}).get("readyReplicas", 0)
    return ready


async def info(world: World) -> dict[str, Any]:
    """Return the auto-migration estimates about the workload."""
    annotations = (await world.federated("web"))["metadata"]["annotations"]
    return json.loads(annotations.get(names.AUTO_MIGRATION_INFO, "{}"))


async def follow(world: World, expected: dict[str, int]) -> list[dict[str, int]]:
    """Advance the clock until the members have this division; return the divisions before, all with six running pods."""
    seen: list[dict[str, int]] = []

    async def look() -> dict[str, int]:
        division = await world.replicas("web")
        if not seen or seen[-1] != division:
            seen.append(division)
        assert await running(world) >= 6, seen
        return division

    await world.until_equal(look, expected)
    return seen


async def fill(world: World, cluster: str, cpu: str, **metadata: Any) -> None:
    """Create a foreign pod that requests this much of the member's node."""
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "greedy", "namespace": "default", **metadata},
        "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]},
    }
    member = world.members[cluster]
    await member.admin.create(PODS, pod)

    async def runs() -> bool:
        return ((await member.admin.get(PODS, "greedy", "default")).get("status") or {}).get("phase") == "Running"

    await world.until(runs)


def with_cpu(cpu: str, replicas: int = 6) -> Object:
    """Return the Deployment with a CPU request per replica."""
    deployment = a_deployment("web", replicas=replicas)
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = {"requests": {"cpu": cpu}}
    return deployment


async def test_unschedulable_replicas_migrate_and_return_in_batches() -> None:
    async with a_migrating_world() as world:
        await lose_node(world, "west")
        await world.until_replicas("web", AWAY)
        await world.until_available("web", 6)
        assert (await info(world))["estimatedCapacity"] == {"west": 0}

        # Without new capacity nothing changes.
        await world.pass_time(120)
        assert await world.replicas("web") == AWAY

        await regain_node(world, "west")
        seen = await follow(world, EVEN)
        assert all(sum(division.values()) in (6, 7) for division in seen), seen
        assert {"east": 3, "north": 3, "west": 1} in seen
        await world.settle()
        assert await world.replicas("web") == EVEN
        assert "estimatedCapacity" not in await info(world)


async def test_unschedulable_replicas_are_kept_if_the_policy_requires_it() -> None:
    async with a_migrating_world(keepUnschedulableReplicas=True) as world:
        await lose_node(world, "west")
        await world.until_replicas("web", {**AWAY, "west": 2})
        await world.until_available("web", 6)
        await world.pass_time(60)
        assert await world.replicas("web") == {**AWAY, "west": 2}

        # The pending replicas are the probe: when they have run for long enough, the others are surplus.
        await regain_node(world, "west")
        seen = await follow(world, EVEN)
        assert len(seen) == 2, seen
        await world.settle()
        assert await world.replicas("web") == EVEN


async def test_replicas_migrate_when_one_of_the_full_members_has_capacity_again() -> None:
    """Nodes have 64 cores; three replicas take 20 each. Foreign pods take the remaining cores and are deleted later."""
    async with a_world() as world:
        for cluster in WEIGHTS:
            await fill(world, cluster, "24")
        await world.create(PROPAGATION_POLICIES, a_policy(WEIGHTS, autoMigration=FAST))
        await world.create(DEPLOYMENTS, with_cpu("20"))
        await world.until_available("web", 6)
        assert await world.replicas("web") == EVEN

        await lose_node(world, "west")
        await world.until_available("web", 4)
        await world.pass_time(60)
        # Replicas that fit nowhere stay pending in every member, and nothing moves meanwhile.
        exhausted = await world.replicas("web")
        assert all(count >= 2 for count in exhausted.values()), exhausted
        await world.pass_time(100)
        assert await world.replicas("web") == exhausted

        await world.members["east"].admin.delete(PODS, "greedy", "default")
        await world.until_available("web", 5)
        await world.members["north"].admin.delete(PODS, "greedy", "default")
        await world.until_available("web", 6)
        await world.until_replicas("web", AWAY)

        await regain_node(world, "west")
        await world.until_replicas("web", EVEN)
        await world.until_available("web", 6)

        async def is_forgotten() -> bool:
            return "estimatedCapacity" not in await info(world)

        await world.until(is_forgotten)


async def test_a_terminating_pod_uses_capacity_until_it_is_deleted() -> None:
    async with a_world() as world:
        west = world.members["west"]
        await world.create(PROPAGATION_POLICIES, a_policy(WEIGHTS, autoMigration=FAST))
        await world.create(DEPLOYMENTS, with_cpu("20"))
        await world.until_available("web", 6)
        await lose_node(world, "west")
        await world.until_replicas("web", AWAY)

        await regain_node(world, "west")
        await fill(world, "west", "50", finalizers=["example.com/slow"])
        await world.pass_time(60)
        await west.admin.delete(PODS, "greedy", "default")
        await world.pass_time(60)
        assert await world.replicas("web") == AWAY

        await west.merge(PODS, "greedy", {"metadata": {"finalizers": None}})
        await world.until_replicas("web", EVEN)


async def test_replicas_without_a_suitable_node_wait_for_one() -> None:
    """In one member an override requests a disk that no node has; its other free resources do not matter."""
    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, a_policy(WEIGHTS, autoMigration=FAST))
        override = an_override("west", "/spec/template/spec/nodeSelector", {"disk": "ssd"})
        await world.create(OVERRIDE_POLICIES, override)
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=6))
        await world.until_replicas("web", AWAY)
        await world.until_available("web", 6)
        for _ in range(100):
            await world.pass_time(1)
            assert await world.replicas("web") == AWAY
        await world.members["west"].merge(NODES, "node-1", {"metadata": {"labels": {"disk": "ssd"}}})
        await follow(world, EVEN)


async def test_disabling_auto_migration_removes_its_annotation() -> None:
    async with a_migrating_world() as world:
        await lose_node(world, "west")
        await world.until_replicas("web", AWAY)
        config = await world.user.get(FEDERATED_TYPE_CONFIGS, "deployments.apps")
        await world.merge(FEDERATED_TYPE_CONFIGS, config["metadata"]["name"], {"spec": {"autoMigration": None}}, "")
        await world.until_equal(lambda: info(world), {})
        await world.merge(
            FEDERATED_TYPE_CONFIGS, config["metadata"]["name"], {"spec": {"autoMigration": {"enabled": True}}}, ""
        )
        await world.until(lambda: info(world))
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"autoMigration": None}})
        await world.until_equal(lambda: info(world), {})
        annotations = (await world.federated("web"))["metadata"]["annotations"]
        assert names.POD_UNSCHEDULABLE_THRESHOLD not in annotations
        assert await world.replicas("web") == AWAY


async def test_a_restarted_control_plane_keeps_its_capacity_estimates() -> None:
    async with a_migrating_world() as world:
        await lose_node(world, "west")
        await world.until_replicas("web", AWAY)
        await world.settle()
        await world.restart()
        await world.pass_time(60)
        assert (await info(world))["estimatedCapacity"] == {"west": 0}
        assert await world.replicas("web") == AWAY
        await regain_node(world, "west")
        await follow(world, EVEN)


async def test_an_unreachable_member_is_not_migrated_from() -> None:
    """Its pods were pending when the connection broke; their present state is unknown."""
    async with a_migrating_world(when={"podUnschedulableFor": "60s"}) as world:
        await lose_node(world, "west")
        await world.pass_time(5)
        world.members["west"].line.mode = "down"
        await world.pass_time(90)
        assert await world.replicas("web") == EVEN
        world.members["west"].line.mend()
        await world.until_replicas("web", AWAY)
        await world.settle()


async def test_replicas_migrate_to_capacity_that_rounded_reports_do_not_show() -> None:
    """Reports omit labels with node names, so the scheduler sees no capacity for a pod that selects one node."""
    async with a_world() as world:
        deployment = with_cpu("20")
        named = deployment["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "node-1"}
        for cluster in WEIGHTS:
            await world.members[cluster].merge(NODES, "node-1", {"metadata": {"labels": named}})
        await world.create(PROPAGATION_POLICIES, a_policy({}, autoMigration=FAST))
        await world.create(DEPLOYMENTS, deployment)
        await world.until_available("web", 6)
        assert await world.replicas("web") == EVEN

        await lose_node(world, "west")
        await world.until_replicas("web", AWAY)
        await world.until_available("web", 6)
