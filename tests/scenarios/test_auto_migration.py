"""Seed 003's table, and what follows it: replicas that a member cannot run move on, and come back when it can.

Six replicas, three members of equal weight: 2,2,2. When the third member cannot run its two they go to the others,
3,3,0; when it has room again they come back, at most a batch at a time, and nobody loses a replica before its
replacement runs.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import DEPLOYMENTS, NODES, PODS, PROPAGATION_POLICIES

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
