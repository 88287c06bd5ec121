"""An override that fails in one cluster holds the object in that cluster only."""

from typing import Any

from tests.support.manifests import a_deployment, a_policy, an_override
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import OVERRIDE_POLICIES, PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS, RESOURCE_QUOTAS

BAD_PATH = "/spec/missing/parent/field"


async def _statuses(world: World) -> dict[str, str]:
    status = (await world.federated("web")).get("status") or {}
    return {entry["cluster"]: entry["status"] for entry in status.get("clusters") or ()}


async def _image(world: World, member: str) -> Any:
    deployment = await world.members[member].admin.get(DEPLOYMENTS, "web", "default")
    return deployment["spec"]["template"]["spec"]["containers"][0]["image"]


async def _set_image(world: World, image: str) -> None:
    containers = [{"name": "web", "image": image}]
    await world.merge(DEPLOYMENTS, "web", {"spec": {"template": {"spec": {"containers": containers}}}})


async def test_a_bad_patch_holds_one_cluster_and_the_others_get_every_change() -> None:
    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "north": 1, "west": 1}))
        await world.create(OVERRIDE_POLICIES, an_override("east", BAD_PATH, 1))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=3))
        await world.until_replicas("web", {"north": 1, "west": 1})
        held = {"east": "ApplyOverridesFailed", "north": "OK", "west": "OK"}
        await world.until_equal(lambda: _statuses(world), held)
        condition = await world.condition("web", names.OVERRIDES_APPLIED)
        assert condition["status"] == "False"
        assert condition["message"].startswith('OverridePolicy "default/special": spec.overrideRules[0]')
        assert condition["message"].endswith("in clusters [east]")
        propagated = await world.condition("web", names.PROPAGATED)
        assert "east: ApplyOverridesFailed" in propagated["message"]

        await _set_image(world, "nginx:2")
        await world.until_equal(lambda: _image(world, "north"), "nginx:2")
        await world.until_equal(lambda: _image(world, "west"), "nginx:2")
        assert await world.members["east"].find(DEPLOYMENTS, "web") is None

        await world.merge(OVERRIDE_POLICIES, "special", an_override("east", "/spec/paused", False))
        await world.until_replicas("web", {"east": 1, "north": 1, "west": 1})
        await world.until_available("web", 3)
        assert (await world.condition("web", names.OVERRIDES_APPLIED))["status"] == "True"


async def test_a_policy_that_becomes_bad_leaves_the_running_copy_as_it_is() -> None:
    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "north": 1}))
        await world.create(OVERRIDE_POLICIES, an_override("east", "/spec/minReadySeconds", 1))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=2))
        await world.until_available("web", 2)
        await world.settle()

        await world.merge(OVERRIDE_POLICIES, "special", an_override("east", BAD_PATH, 1))
        await _set_image(world, "nginx:2")
        await world.until_equal(lambda: _image(world, "north"), "nginx:2")
        await world.settle()
        assert await _image(world, "east") == "nginx:1.27"
        assert await world.replicas("web") == {"east": 1, "north": 1}

        await world.restart()
        await world.pass_time(10)
        assert await _image(world, "east") == "nginx:1.27"

        await world.user.delete(DEPLOYMENTS, "web", "default")  # held objects are deleted as all others
        await world.until_gone(DEPLOYMENTS, "web")
        assert await world.replicas("web") == {}


async def test_overrides_do_not_grow_in_a_full_namespace_and_are_applied_when_there_is_room() -> None:
    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "north": 1}))
        quota = {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "full", "namespace": "default"},
            "spec": {"hard": {"bytes": 1}},
        }
        await world.create(RESOURCE_QUOTAS, quota)
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=2))
        await world.until_available("web", 2)
        await world.create(OVERRIDE_POLICIES, an_override("east", "/spec/minReadySeconds", 1))
        await world.until_equal(lambda: _statuses(world), {"east": "ApplyOverridesFailed", "north": "OK"})
        message = (await world.condition("web", names.OVERRIDES_APPLIED))["message"]
        assert message.startswith(
            'OverridePolicy "default/special": spec.overrideRules: the namespace stores more bytes'
        )
        assert await world.replicas("web") == {"east": 1, "north": 1}

        await world.user.delete(RESOURCE_QUOTAS, "full", "default")
        await world.pass_time(61)
        await world.until_equal(lambda: _statuses(world), {"east": "OK", "north": "OK"})
        deployment = await world.members["east"].admin.get(DEPLOYMENTS, "web", "default")
        assert deployment["spec"]["minReadySeconds"] == 1
