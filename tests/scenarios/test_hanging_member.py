"""A member accepts connections and never responds: the other members are not affected, and it catches up later.

Asserted by counting: writes to the other members and their virtual time (the same as without the hang), writes to the
unresponsive one, concurrent calls that wait for it, and the number of retries.
"""

import pytest
from tests.support.manifests import a_deployment, a_policy
from tests.support.reconciles import reconciles
from tests.support.world import World, a_world_without_pods

from federation.api import names
from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS
from federation.controllers.schedule.names import EVENT_SCHEDULED
from federation.delivery.rules.names import EVENT_ENSURE_DELETION_FAILED, REASON_ENSURE_DELETION_FAILED

COUNT = 30
IN_FLIGHT_MAX = 4
DEPLOYMENTS_ALL = {f"web-{number}" for number in range(COUNT)}


async def _held(world: World, member: str) -> set[str]:
    found = (await world.members[member].admin.list(DEPLOYMENTS, "default")).items
    return {deployment["metadata"]["name"] for deployment in found}


async def _roll_out(world: World) -> float:
    """Create all Deployments; return the virtual seconds until east and north have all of them."""
    started_s = world.clock.monotonic()
    for name in sorted(DEPLOYMENTS_ALL):
        await world.create(DEPLOYMENTS, a_deployment(name, replicas=3))

    async def others() -> tuple[set[str], set[str]]:
        return await _held(world, "east"), await _held(world, "north")

    await world.until_equal(others, (DEPLOYMENTS_ALL, DEPLOYMENTS_ALL))
    return world.clock.monotonic() - started_s


async def _complaints(world: World) -> int:
    """Return the number of events other than those about placements."""
    return sum(reason != EVENT_SCHEDULED for reason, _ in await world.events())


async def test_an_unresponsive_member_does_not_delay_the_others_and_catches_up() -> None:
    async with a_world_without_pods(in_flight_max=IN_FLIGHT_MAX) as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "north": 1, "west": 1}))
        undisturbed_s = await _roll_out(world)
        for name in DEPLOYMENTS_ALL:
            await world.user.delete(DEPLOYMENTS, name, "default")
        for name in DEPLOYMENTS_ALL:
            await world.until_gone(DEPLOYMENTS, name)
        await world.settle()

        west = world.members["west"]
        before, synced = await west.store.revision(), reconciles(controller="sync")
        events = await _complaints(world)
        west.line.in_flight_seen_max = 0
        west.line.calls.clear()
        west.line.mode = "hang"
        disturbed_s = await _roll_out(world)

        assert disturbed_s <= 1.2 * undisturbed_s + 0.1  # one clock step
        assert await west.store.revision() == before
        await world.pass_time(20)
        assert await west.store.revision() == before
        assert await _held(world, "west") == set()
        assert 0 < west.line.in_flight_seen_max <= IN_FLIGHT_MAX
        # The unresponsive member gets few calls, and each object few reconciles.
        assert len(west.line.writes("deployments")) <= 3 * IN_FLIGHT_MAX
        assert reconciles(controller="sync") - synced <= 12 * COUNT
        # There is no event per object, which would load the host.
        assert await _complaints(world) - events <= 2 * IN_FLIGHT_MAX
        message = (await world.condition("web-0", names.PROPAGATED))["message"]
        assert "west" in message
        assert "east" not in message

        west.line.mend()
        await world.until_equal(lambda: _held(world, "west"), DEPLOYMENTS_ALL)
        for name in DEPLOYMENTS_ALL:
            await world.until_available(name, 3)
        assert (await world.condition("web-0", names.PROPAGATED))["status"] == "True"


async def test_deletion_waits_for_the_unresponsive_member_and_names_it() -> None:
    async with a_world_without_pods(health_threshold_s=30.0) as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "north": 1, "west": 1}))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=3))
        await world.until_available("web", 3)
        world.members["west"].line.mode = "hang"

        await world.user.delete(DEPLOYMENTS, "web", "default")
        await world.until_replicas("web", {"west": 1})

        async def waits() -> bool:
            condition = await world.condition("web", names.PROPAGATED)
            is_named = condition.get("message", "").startswith("deletion waits for clusters [west]")
            return is_named and condition["reason"] == REASON_ENSURE_DELETION_FAILED

        await world.until(waits)
        assert await world.find(DEPLOYMENTS, "web") is not None
        warned = [message for reason, message in await world.events() if reason == EVENT_ENSURE_DELETION_FAILED]
        assert warned
        assert "[west]" in warned[0]

        world.members["west"].line.mend()
        await world.until_gone(DEPLOYMENTS, "web")
        assert await world.replicas("web") == {}


@pytest.mark.parametrize("waited_s", [0.5, 15.0], ids=["under way", "given up"])
async def test_an_object_deleted_while_its_creation_hangs_is_removed_everywhere(waited_s: float) -> None:
    async with a_world_without_pods(health_threshold_s=30.0) as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "west": 1}))
        await world.create(DEPLOYMENTS, a_deployment("earlier", replicas=2))  # starts the informers for Deployments
        await world.until_available("earlier", 2)
        west = world.members["west"]
        west.line.mode, west.line.is_late = "hang", True
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=2))
        await world.until_replicas("web", {"east": 1})
        assert ("patch", "deployments", "web") in west.line.calls
        await world.pass_time(waited_s)

        await world.user.delete(DEPLOYMENTS, "web", "default")
        await world.until_replicas("web", {})
        await world.pass_time(2)  # with the 0.5 s before, shorter than the deadline of a write
        assert await world.find(DEPLOYMENTS, "web") is not None  # its deletion waits for west

        west.line.mend()
        await world.until_gone(DEPLOYMENTS, "web")
        await world.settle()
        assert await world.replicas("web") == {}


async def test_a_restart_does_not_wait_for_an_unresponsive_member() -> None:
    async with a_world_without_pods() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "north": 1, "west": 1}))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=3))
        await world.until_available("web", 3)
        world.members["west"].line.mode = "hang"

        await world.restart()
        await world.create(DEPLOYMENTS, a_deployment("late", replicas=2))
        await world.scale("web", 6)

        await world.until_equal(lambda: world.replicas("web"), {"east": 2, "north": 2, "west": 1})

        async def late() -> set[str]:
            return set(await world.replicas("late"))

        await world.until(late)
        world.members["west"].line.mend()
        await world.until_replicas("web", {"east": 2, "north": 2, "west": 2})
