"""The history of pod templates on the host: written when a template changes, and neither federated nor counted."""

import pytest
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world

from federation.api.resources import FEDERATED_OBJECTS, PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS, REPLICA_SETS
from federation.apimachinery.wellknown import DEPLOYMENT_REVISION


async def history(world: World) -> dict[str, str]:
    """Return the images of the recorded templates by revision."""
    found = {}
    for entry in (await world.user.list(REPLICA_SETS, "default")).items:
        assert entry["spec"]["replicas"] == 0
        image = entry["spec"]["template"]["spec"]["containers"][0]["image"]
        found[entry["metadata"]["annotations"][DEPLOYMENT_REVISION]] = image
    return found


async def set_image(world: World, image: str) -> None:
    template = {"spec": {"containers": [{"name": "web", "image": image}]}}
    await world.merge(DEPLOYMENTS, "web", {"spec": {"template": template}})


@pytest.mark.slow("several rolling updates")
async def test_templates_are_recorded_when_they_change_and_deleted_with_the_deployment() -> None:
    async with a_world() as world:
        policy = a_policy({"east": 2, "north": 1, "west": 1})
        policy["spec"]["resourceSelectors"].append({"apiVersion": "apps/v1", "kind": "ReplicaSet"})
        await world.create(PROPAGATION_POLICIES, policy)
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=4))
        await world.until_available("web", 4)
        await world.scale("web", 8)
        await world.until_available("web", 8)
        assert await history(world) == {}
        await set_image(world, "nginx:2")
        await world.until_available("web", 8)
        assert await history(world) == {"1": "nginx:1.27", "2": "nginx:2"}
        await set_image(world, "nginx:1.27")
        await world.until_available("web", 8)
        await world.settle()
        assert await history(world) == {"2": "nginx:2", "3": "nginx:1.27"}
        federated = (await world.user.list(FEDERATED_OBJECTS)).items
        assert [found["spec"]["template"]["kind"] for found in federated] == ["Deployment"]
        assert (await world.status("web"))["replicas"] == 8
        await world.user.delete(DEPLOYMENTS, "web", "default")
        await world.until_gone(DEPLOYMENTS, "web")
        await world.until_equal(lambda: history(world), {})


async def test_a_template_that_changed_while_the_control_plane_was_down_is_recorded() -> None:
    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 2, "north": 1, "west": 1}))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=4))
        await world.until_available("web", 4)
        await world.stop()
        await set_image(world, "nginx:2")
        await world.restart()
        await world.until_equal(lambda: history(world), {"1": "nginx:1.27", "2": "nginx:2"})
        await world.until_available("web", 4)
