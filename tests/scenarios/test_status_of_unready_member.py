"""The last known status of an unreachable member still counts: a lost connection is not a lost workload."""

from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world

from federation.api.resources import COLLECTED_STATUSES, PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS
from federation.planning.federatedobject.naming import federated_object_name


async def _collected(world: World) -> dict[str, int]:
    name = federated_object_name("web", "deployments.apps")
    found = await world.find(COLLECTED_STATUSES, name) or {"clusters": []}
    return {
        entry["cluster"]: entry["collectedFields"]["status"].get("availableReplicas", 0) for entry in found["clusters"]
    }


async def test_the_last_known_status_counts_while_the_member_is_unreachable() -> None:
    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 2, "north": 1, "west": 1}))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=4))
        await world.until_available("web", 4)
        await world.until_equal(lambda: _collected(world), {"east": 2, "north": 1, "west": 1})

        world.members["west"].line.mode = "down"
        await world.until_ready("west", status="Unknown")
        await world.pass_time(30)
        assert (await world.status("web"))["availableReplicas"] == 4
        assert await _collected(world) == {"east": 2, "north": 1, "west": 1}

        # A restarted control plane has never reached the member and uses the stored status.
        await world.restart()
        await world.pass_time(60)
        assert (await world.status("web"))["availableReplicas"] == 4
        assert await _collected(world) == {"east": 2, "north": 1, "west": 1}

        # Changes in other members are still merged, and the workload stays in this one.
        await world.scale("web", 8)
        await world.until_equal(lambda: world.replicas("web"), {"east": 4, "north": 2, "west": 1})

        async def available() -> int:
            return int((await world.status("web")).get("availableReplicas", 0))

        await world.until_equal(available, 4 + 2 + 1)

        world.members["west"].line.mend()
        await world.until_ready("west")
        await world.until_replicas("web", {"east": 4, "north": 2, "west": 2})
        await world.until_available("web", 8)


async def test_changes_in_an_unreachable_member_are_collected_when_it_responds() -> None:
    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "north": 1, "west": 1}))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=3))
        await world.until_available("web", 3)
        west = world.members["west"]
        west.line.mode = "down"
        await world.until_ready("west", status="Unknown")
        await west.merge(DEPLOYMENTS, "web", {"spec": {"replicas": 5}})  # a manual change
        await world.pass_time(10)
        assert (await world.status("web"))["availableReplicas"] == 3

        west.line.mend()
        await world.until_ready("west")
        await world.until_replicas("web", {"east": 1, "north": 1, "west": 1})
        await world.until_available("web", 3)
