"""A changed placement leaves no objects behind, even across a restart or in a cluster that was unreachable."""

import orjson
import pytest
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world_without_pods

from federation.api import names
from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS


async def _departed(world: World) -> list[str]:
    annotations = (await world.federated("web"))["metadata"].get("annotations") or {}
    found: list[str] = orjson.loads(annotations.get(names.DEPARTED_CLUSTERS, "[]"))
    return found


async def _in_east(world: World) -> None:
    await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}))
    await world.create(DEPLOYMENTS, a_deployment("web", replicas=3))
    await world.until_replicas("web", {"east": 3})
    await world.until_available("web", 3)


async def _move_to_north(world: World) -> None:
    placement = [{"cluster": "north", "preferences": {"weight": 1}}]
    await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"placement": placement}})


async def test_a_moved_object_is_deleted_in_its_former_cluster() -> None:
    async with a_world_without_pods() as world:
        await _in_east(world)
        await _move_to_north(world)
        await world.until_replicas("web", {"north": 3})
        await world.until_equal(lambda: _departed(world), [])
        await world.until_available("web", 3)


@pytest.mark.parametrize("mode", ["down", "hang"])
async def test_an_unreachable_former_cluster_is_cleaned_up_later_also_across_restarts(mode: str) -> None:
    async with a_world_without_pods() as world:
        await _in_east(world)
        world.members["east"].line.mode = mode
        await _move_to_north(world)
        await world.until_replicas("web", {"east": 3, "north": 3})
        await world.until_equal(lambda: _departed(world), ["east"])

        for _ in range(2):
            await world.restart()
            await world.pass_time(60)  # long enough for the condition Ready=False
            assert await _departed(world) == ["east"]
            assert await world.replicas("web") == {"east": 3, "north": 3}

        world.members["east"].line.mend()
        await world.until_replicas("web", {"north": 3})
        await world.until_equal(lambda: _departed(world), [])


async def test_cleanup_continues_after_a_restart_right_after_the_decision() -> None:
    async with a_world_without_pods() as world:
        await _in_east(world)
        # East does not respond to the deletion before the control plane stops.
        world.members["east"].line.mode = "hang"
        await _move_to_north(world)
        await world.until_equal(lambda: _departed(world), ["east"])
        await world.stop()
        world.members["east"].line.mend()
        assert (await world.replicas("web"))["east"] == 3

        await world.restart()

        await world.until_replicas("web", {"north": 3})


@pytest.mark.parametrize("waited_s", [0.5, 15.0], ids=["under way", "given up"])
async def test_a_member_object_created_by_a_late_request_is_deleted(waited_s: float) -> None:
    """A create request hangs, the placement changes, then the request takes effect: the object is deleted anyway."""
    async with a_world_without_pods() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}))
        await world.create(DEPLOYMENTS, a_deployment("earlier", replicas=1))  # starts the informers for Deployments
        await world.until_available("earlier", 1)
        east = world.members["east"]
        east.line.mode, east.line.is_late = "hang", True
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=3))

        async def is_asked() -> bool:
            return ("patch", "deployments", "web") in east.line.calls

        await world.until(is_asked)
        await world.pass_time(waited_s)
        await _move_to_north(world)
        await world.until_replicas("web", {"north": 3})
        await world.pass_time(5)
        assert await _departed(world) == ["east"]

        revision = await east.store.revision()
        east.line.mend()
        await world.until_equal(lambda: _departed(world), [])
        await world.settle()
        assert await east.store.revision() > revision  # the late request created it
        assert await world.replicas("web") == {"north": 3}


async def test_a_move_back_before_the_cleanup_keeps_the_member_object() -> None:
    async with a_world_without_pods() as world:
        await _in_east(world)
        east = world.members["east"]
        uid = (await east.admin.get(DEPLOYMENTS, "web", "default"))["metadata"]["uid"]
        east.line.mode = "down"
        await _move_to_north(world)
        await world.until_replicas("web", {"east": 3, "north": 1})  # maxSurge is 1
        placement = [{"cluster": "east", "preferences": {"weight": 1}}]
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"placement": placement}})
        await world.until_replicas("web", {"east": 3})
        east.line.mend()
        await world.settle()

        assert (await east.admin.get(DEPLOYMENTS, "web", "default"))["metadata"]["uid"] == uid


async def test_a_deleted_object_leaves_a_record_for_an_unreachable_former_cluster() -> None:
    async with a_world_without_pods() as world:
        await _in_east(world)
        world.members["east"].line.mode = "down"
        await _move_to_north(world)
        await world.until_replicas("web", {"east": 3, "north": 3})
        await world.user.delete(DEPLOYMENTS, "web", "default")
        await world.until_replicas("web", {"east": 3})
        await world.until_gone(DEPLOYMENTS, "web")
        await world.restart()
        await world.pass_time(30)
        assert await world.replicas("web") == {"east": 3}

        world.members["east"].line.mend()
        await world.until_replicas("web", {})
