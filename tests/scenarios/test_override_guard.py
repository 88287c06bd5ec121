"""An override policy that would lower the replicas of many objects is held until somebody approves it."""

from typing import Any

from tests.support.manifests import a_deployment, a_policy, an_override
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import OVERRIDE_POLICIES, PLACEMENT_HOLDS, PROPAGATION_POLICIES
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.resources import DEPLOYMENTS


async def _fleet(world: World, count: int) -> None:
    await world.create(
        PROPAGATION_POLICIES, a_policy({"east": 1, "west": 1}, name="copies", schedulingMode="Duplicate")
    )
    for number in range(count):
        await world.create(DEPLOYMENTS, a_deployment(f"app-{number:02}", replicas=4))
    await world.settle()


async def _replicas(world: World, member: str) -> set[int]:
    """Return the distinct numbers of replicas of the member's Deployments."""
    return {each["spec"]["replicas"] for each in (await world.members[member].admin.list(DEPLOYMENTS)).items}


async def _holds(world: World) -> list[tuple[str, int]]:
    items = (await world.user.list(PLACEMENT_HOLDS)).items
    return [(hold["spec"]["cause"], hold["spec"]["count"]) for hold in items if not hold["spec"].get("approval")]


async def _approve(world: World) -> None:
    await world.pass_time(1)
    (hold,) = (await world.user.list(PLACEMENT_HOLDS)).items
    approval = {"reason": "planned", "by": "admin", "at": to_rfc3339(world.clock.now())}
    await world.merge(PLACEMENT_HOLDS, hold["metadata"]["name"], {"spec": {"approval": approval}}, "")


async def _set(world: World, value: Any) -> None:
    override = an_override("east", "/spec/replicas", value)
    await world.merge(OVERRIDE_POLICIES, "special", {"spec": override["spec"]})


async def test_an_override_that_would_stop_many_workloads_is_held_until_somebody_approves() -> None:
    async with a_world(members=("east", "west"), has_workloads=False) as world:
        await _fleet(world, 30)
        await world.create(OVERRIDE_POLICIES, an_override("east", "/spec/replicas", 0))
        await world.settle()
        assert await _replicas(world, "east") == {4}
        assert await _holds(world) == [("OverridePolicy default/special", 30)]
        condition = await world.condition("app-07", names.OVERRIDES_APPLIED)
        assert (condition["status"], condition["reason"]) == ("False", "Held")
        (hold,) = (await world.user.list(PLACEMENT_HOLDS)).items
        assert f"fedctl approve {hold['metadata']['name']} --reason TEXT" in condition["message"]
        reasons = [reason for reason, _ in await world.events()]
        assert {"OverridesHeld", "PlacementHeld"} <= set(reasons)

        # Updates go on.
        await world.scale("app-07", 5)
        await world.until_replicas("app-07", {"east": 5, "west": 5})

        await world.restart()
        await world.settle()
        assert await _replicas(world, "east") == {4, 5}
        assert await _holds(world) == [("OverridePolicy default/special", 30)]

        await _approve(world)
        await world.until_equal(lambda: _replicas(world, "east"), {0})
        await world.settle()
        assert await _replicas(world, "west") == {4, 5}
        assert (await world.condition("app-07", names.OVERRIDES_APPLIED))["status"] == "True"
        await world.user.delete(OVERRIDE_POLICIES, "special", "default")
        await world.until_equal(lambda: _replicas(world, "east"), {4, 5})


async def test_an_override_that_is_changed_to_fewer_replicas_is_held_and_ends_when_it_is_taken_back() -> None:
    async with a_world(members=("east", "west"), has_workloads=False) as world:
        await _fleet(world, 15)
        await world.create(OVERRIDE_POLICIES, an_override("east", "/spec/replicas", 9))
        await world.settle()
        assert await _replicas(world, "east") == {9}, "more replicas are not held"
        await _set(world, 1)
        await world.settle()
        assert await _replicas(world, "east") == {9}
        assert await _holds(world) == [("OverridePolicy default/special", 15)]
        await _set(world, 9)
        await world.settle()
        assert not await _holds(world)
        assert (await world.condition("app-07", names.OVERRIDES_APPLIED))["status"] == "True"

        await world.user.delete(OVERRIDE_POLICIES, "special", "default")
        await world.settle()
        assert await _replicas(world, "east") == {9}, "the end of a policy counts too"
        assert await _holds(world) == [("OverridePolicy default/special", 15)]
        await _approve(world)
        await world.until_equal(lambda: _replicas(world, "east"), {4})


async def test_an_override_of_few_workloads_and_of_new_ones_acts_at_once() -> None:
    async with a_world(members=("east", "west"), has_workloads=False) as world:
        await _fleet(world, 8)
        await world.create(OVERRIDE_POLICIES, an_override("east", "/spec/replicas", 1))
        await world.settle()
        assert await _replicas(world, "east") == {1}
        for number in range(8, 25):
            await world.create(DEPLOYMENTS, a_deployment(f"app-{number:02}", replicas=4))
        await world.settle()
        assert await _replicas(world, "east") == {1}
        assert not await _holds(world)
        await world.user.delete(OVERRIDE_POLICIES, "special", "default")
        await world.until_equal(lambda: _replicas(world, "east"), {4})
