"""Decisions that are made between two reports of a member see what each other has given out."""

from collections.abc import AsyncIterator

import orjson
import pytest
from tests.support.schedule_world import World, schedule_world

from federation.api.resources import FEDERATED_CLUSTERS, FEDERATED_OBJECTS


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with schedule_world() as world:
        for name in ("east", "west"):
            await world.cluster(name)
            await report(world, name, free_m=400)
        await world.policy("anywhere", schedulingMode="Divide")
        await world.policy("east", schedulingMode="Divide", placement=[{"cluster": "east"}])
        yield world


async def report(world: World, name: str, *, free_m: int) -> None:
    """Let a member of one node report so much free cpu."""
    free = {"cpu": f"{free_m}m", "memory": "1Gi", "pods": "100"}
    node_class = {"nodes": 1, "largest": {"cpu": "4", "memory": "1Gi"}, "free": [{"nodes": 1, "resources": free}]}
    sums = {"cpu": f"{free_m}m", "memory": "1Gi"}
    resources = {"allocatable": {"cpu": "4", "memory": "1Gi"}, "available": sums, "nodeClasses": [node_class]}
    await world.patch(FEDERATED_CLUSTERS, name, {"status": {"resources": resources}}, subresource="status")
    await world.idle()


async def test_room_that_was_given_out_is_not_given_out_again(world: World) -> None:
    await world.deployment("first", replicas=4, policy="east")
    await world.becomes({"east": 4}, "first")
    await world.deployment("second", replicas=4, policy="anywhere")
    await world.becomes({"west": 4}, "second")
    (decision,) = await world.journaled("second")
    assert orjson.loads(decision.explanation)["division"]["room"] == {
        "replicas": {"east": 4, "west": 4},
        "promised": {"east": 4},
    }


async def test_a_report_takes_the_place_of_the_promise(world: World) -> None:
    await world.deployment("first", replicas=3, policy="east")
    await world.becomes({"east": 3}, "first")
    await report(world, "east", free_m=100)
    await world.deployment("second", replicas=5, policy="anywhere")
    await world.becomes({"east": 1, "west": 4}, "second")


async def test_an_object_that_goes_gives_its_promise_back(world: World) -> None:
    await world.deployment("first", replicas=4, policy="east")
    await world.becomes({"east": 4}, "first")
    await world.client.delete(FEDERATED_OBJECTS, "first-deployments.apps", "default")
    await world.idle()
    await world.deployment("second", replicas=8, policy="anywhere")
    await world.becomes({"east": 4, "west": 4}, "second")
