"""Seed 003's table, and what follows it: replicas that a member cannot run move on, and come back when it can.

Six replicas, three members of equal weight: 2,2,2. When the third member cannot run its two they go to the others,
3,3,0; when it has room again they come back, at most a batch at a time, and nobody loses a replica before its
replacement runs.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.support.manifests import a_deployment, a_policy, an_override
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import (
    DEPLOYMENTS,
    FEDERATED_TYPE_CONFIGS,
    NODES,
    OVERRIDE_POLICIES,
    PODS,
    PROPAGATION_POLICIES,
    Object,
)

FAST = {"when": {"podUnschedulableFor": "10s"}, "failback": {"stableFor": "20s", "batchSize": 1}}
WEIGHTS = {"east": 1, "north": 1, "west": 1}
EVEN = {"east": 2, "north": 2, "west": 2}
AWAY = {"east": 3, "north": 3}


@asynccontextmanager
async def a_migrating_world(**migration: Any) -> AsyncIterator[World]:
    """Run six replicas, two in each of three members; `migration` overrides what the policy says of auto-migration."""
    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, a_policy(WEIGHTS, autoMigration={**FAST, **migration}))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=6))
        await world.until_available("web", 6)
        assert await world.replicas("web") == EVEN
        yield world


async def lose_node(world: World, cluster: str) -> None:
    """Take the member's only node out of service: what ran there is gone and cannot be scheduled again."""
    await world.members[cluster].merge(NODES, "node-1", {"spec": {"unschedulable": True}})
    for pod in (await world.members[cluster].admin.list(PODS, "default")).items:
        await world.members[cluster].admin.delete(PODS, pod["metadata"]["name"], "default")


async def regain_node(world: World, cluster: str) -> None:
    """Put the member's node back into service."""
    await world.members[cluster].merge(NODES, "node-1", {"spec": {"unschedulable": None}})


async def running(world: World) -> int:
    """Return how many of the workload's pods are ready in all members."""
    ready = 0
    for member in world.members.values():
        copy = await member.find(DEPLOYMENTS, "web")
        ready += ((copy or {}).get("status") or {}).get("readyReplicas", 0)
    return ready


async def info(world: World) -> dict[str, Any]:
    """Return what is believed about the workload."""
    annotations = (await world.federated("web"))["metadata"]["annotations"]
    return json.loads(annotations.get(names.AUTO_MIGRATION_INFO, "{}"))


async def follow(world: World, expected: dict[str, int]) -> list[dict[str, int]]:
    """Move the clock until the members are told this; return the divisions on the way, all with six replicas running."""
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
    """Let somebody else take this much of the member's node."""
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


async def test_replicas_that_cannot_be_scheduled_move_and_come_back_in_batches() -> None:
    async with a_migrating_world() as world:
        await lose_node(world, "west")
        await world.until_replicas("web", AWAY)
        await world.until_available("web", 6)
        assert (await info(world))["estimatedCapacity"] == {"west": 0}

        # Without new capacity it stays so, however long it takes.
        await world.pass_time(120)
        assert await world.replicas("web") == AWAY

        await regain_node(world, "west")
        seen = await follow(world, EVEN)
        assert all(sum(division.values()) in (6, 7) for division in seen), seen
        assert {"east": 3, "north": 3, "west": 1} in seen
        await world.settle()
        assert await world.replicas("web") == EVEN
        assert "estimatedCapacity" not in await info(world)


async def test_replicas_that_cannot_be_scheduled_are_kept_besides_their_replacements_when_the_policy_says_so() -> None:
    async with a_migrating_world(keepUnschedulableReplicas=True) as world:
        await lose_node(world, "west")
        await world.until_replicas("web", {**AWAY, "west": 2})
        await world.until_available("web", 6)
        await world.pass_time(60)
        assert await world.replicas("web") == {**AWAY, "west": 2}

        # Those that wait are the probe: they run, for long enough, and then the others are too many.
        await regain_node(world, "west")
        seen = await follow(world, EVEN)
        assert len(seen) == 2, seen
        await world.settle()
        assert await world.replicas("web") == EVEN


async def test_capacity_is_exhausted_everywhere_and_freed_in_one_member() -> None:
    """Nodes have 64 cores: 20 for each of three replicas; others take what is left, and leave again."""
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
        # What fits nowhere waits in every member that might free something, and nothing moves meanwhile.
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


async def test_a_pod_on_its_way_out_frees_its_room_when_it_has_gone() -> None:
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


async def test_replicas_that_no_node_suits_wait_for_a_node_that_does() -> None:
    """In one member the copy asks for a disk that no node has; what the nodes have free otherwise does not matter."""
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


async def test_auto_migration_that_is_switched_off_leaves_nothing_behind() -> None:
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


async def test_a_control_plane_that_starts_again_knows_what_a_member_cannot_run() -> None:
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


async def test_a_member_that_is_cut_off_is_not_judged() -> None:
    """Its pods waited when the line broke; whether they still do nobody knows."""
    async with a_migrating_world(when={"podUnschedulableFor": "60s"}) as world:
        await lose_node(world, "west")
        await world.pass_time(5)
        world.members["west"].line.mode = "down"
        await world.pass_time(90)
        assert await world.replicas("web") == EVEN
        world.members["west"].line.mend()
        await world.until_replicas("web", AWAY)
        await world.settle()


async def test_replicas_go_where_they_fit_also_when_the_clusters_reports_do_not_show_that_room() -> None:
    """Nodes' own names are left out of what clusters report, so the scheduler sees no room for who asks for one."""
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
