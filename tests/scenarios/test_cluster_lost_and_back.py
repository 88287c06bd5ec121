"""A member is lost and recovers: replicas stay until a taint moves them; leftovers are cleaned up afterwards."""

from tests.support.manifests import a_deployment, a_policy
from tests.support.world import a_world

from federation.api.resources import FEDERATED_CLUSTERS, PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS

LOST = {"taints": [{"key": "lost", "effect": "NoExecute"}]}


async def test_a_lost_cluster_keeps_its_replicas_until_it_is_tainted() -> None:
    async with a_world() as world:
        east = world.members["east"]
        await world.create(PROPAGATION_POLICIES, a_policy({}))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=6))
        await world.until_replicas("web", {"east": 2, "north": 2, "west": 2})
        await world.until_available("web", 6)

        east.line.mode = "down"
        await world.until_ready("east", status="Unknown")
        await world.create(DEPLOYMENTS, a_deployment("new", replicas=4))
        await world.until_replicas("new", {"north": 2, "west": 2})
        await world.pass_time(60)
        assert await world.replicas("web") == {"east": 2, "north": 2, "west": 2}

        await world.merge(FEDERATED_CLUSTERS, "east", {"spec": LOST})
        await world.until_replicas("web", {"east": 2, "north": 3, "west": 3})
        await world.pass_time(60)
        assert await east.replicas("web") == 2  # unreachable, so not cleaned up yet

        east.line.mode = "up"
        await world.until_ready("east")
        await world.until_replicas("web", {"north": 3, "west": 3})

        await world.merge(FEDERATED_CLUSTERS, "east", {"spec": {"taints": None}})
        await world.pass_time(20)
        assert await world.replicas("web") == {"north": 3, "west": 3}  # running replicas are not moved
        await world.scale("web", 9)
        await world.until_replicas("web", {"east": 3, "north": 3, "west": 3})
        await world.until_available("web", 9)
