"""Scaling to zero: the object stays in its clusters with zero replicas and scales up there again."""

from tests.support.manifests import a_deployment, a_policy
from tests.support.world import a_world

from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS, PODS


async def test_scaling_to_zero_keeps_the_object_in_all_clusters() -> None:
    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 2, "north": 1, "west": 1}))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=4))
        await world.until_available("web", 4)
        uids = {
            name: (await m.admin.get(DEPLOYMENTS, "web", "default"))["metadata"]["uid"]
            for name, m in world.members.items()
        }

        await world.scale("web", 0)
        await world.until_replicas("web", {"east": 0, "north": 0, "west": 0})
        await world.until_available("web", 0)

        async def pods() -> int:
            return sum([len((await m.admin.list(PODS, "default")).items) for m in world.members.values()])

        await world.until_equal(pods, 0)
        status = await world.status("web")
        assert status.get("replicas", 0) == 0
        conditions = {c["type"]: c["status"] for c in status["conditions"]}
        assert conditions["Available"] == "True"

        await world.restart()
        await world.settle()
        assert await world.replicas("web") == {"east": 0, "north": 0, "west": 0}

        await world.scale("web", 4)
        await world.until_replicas("web", {"east": 2, "north": 1, "west": 1})
        await world.until_available("web", 4)
        again = {
            name: (await m.admin.get(DEPLOYMENTS, "web", "default"))["metadata"]["uid"]
            for name, m in world.members.items()
        }
        assert again == uids


async def test_a_new_object_with_zero_replicas_is_placed() -> None:
    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "north": 1, "west": 1}))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=0))
        await world.until_replicas("web", {"east": 0, "north": 0, "west": 0})
        await world.scale("web", 3)
        await world.until_available("web", 3)
