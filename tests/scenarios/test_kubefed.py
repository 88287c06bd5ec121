"""KubeFed's manifests are applied as they are, and in their native form, on simulated members with pods."""

import yaml
from tests.support.vectors import ROOT
from tests.support.world import World, a_world

from federation.api.kubefedkinds import FEDERATED_KINDS, REPLICA_PREFERENCES
from federation.api.resources import OVERRIDE_POLICIES, PROPAGATION_POLICIES
from federation.apimachinery.resources import CONFIGMAPS, DEPLOYMENTS, NAMESPACES, PODS, Object, Resource
from federation.client.client import PatchType
from federation.planning.convert.kubefed import convert

LABELS = {name: {"shop": "yes"} for name in ("east", "north", "west")}
FEDERATED_DEPLOYMENTS = FEDERATED_KINDS["FederatedDeployment"].resource
_RESOURCES = {
    (each.api_version, each.kind): each
    for each in (
        *(kind.resource for kind in FEDERATED_KINDS.values()),
        REPLICA_PREFERENCES,
        NAMESPACES,
        DEPLOYMENTS,
        CONFIGMAPS,
        PROPAGATION_POLICIES,
        OVERRIDE_POLICIES,
    )
}


def manifests() -> list[Object]:
    return list(yaml.safe_load_all((ROOT / "examples" / "kubefed" / "web.yaml").read_text()))


async def apply(world: World, *objects: Object) -> None:
    """Apply as `kubectl apply --server-side --force-conflicts` does."""
    for obj in objects:
        resource = _RESOURCES[obj["apiVersion"], obj["kind"]]
        await world.user.patch(
            resource,
            obj["metadata"]["name"],
            obj,
            patch_type=PatchType.APPLY,
            namespace=obj["metadata"].get("namespace", ""),
            field_manager="kubectl",
            force=True,
        )


async def pods(world: World) -> dict[str, set[str]]:
    """Return the uids of the pods by member."""
    return {
        name: {pod["metadata"]["uid"] for pod in (await member.admin.list(PODS, "shop")).items}
        for name, member in world.members.items()
    }


async def replicas(world: World) -> dict[str, int]:
    found = {name: await member.find(DEPLOYMENTS, "web", "shop") for name, member in world.members.items()}
    return {name: each["spec"]["replicas"] for name, each in found.items() if each is not None}


async def image(world: World, cluster: str) -> str:
    deployment = await world.members[cluster].find(DEPLOYMENTS, "web", "shop")
    assert deployment is not None
    return str(deployment["spec"]["template"]["spec"]["containers"][0]["image"])


async def status(world: World, resource: Resource = FEDERATED_DEPLOYMENTS, name: str = "web") -> Object:
    return (await world.user.get(resource, name, "shop")).get("status") or {}


async def propagation(world: World, resource: Resource = FEDERATED_DEPLOYMENTS, name: str = "web") -> tuple[str, str]:
    (condition,) = (await status(world, resource, name)).get("conditions") or [{}]
    return condition.get("status", ""), condition.get("reason", "")


async def test_a_manifest_set_works_as_it_is_and_its_native_form_restarts_nothing() -> None:
    async with a_world(labels=LABELS) as world:
        await apply(world, *manifests())
        await world.until_equal(lambda: replicas(world), {"east": 5, "north": 2, "west": 2})
        await world.until_equal(lambda: propagation(world), ("True", ""))
        assert (await status(world))["clusters"] == [{"name": "east"}, {"name": "north"}, {"name": "west"}]
        await world.settle()
        assert await image(world, "west") == "registry.west.example.com/nginx:1.25"
        assert await image(world, "east") == "nginx:1.25"
        settings = await world.members["west"].find(CONFIGMAPS, "settings", "shop")
        assert settings is not None
        assert settings["data"] == {"currency": "USD", "tax": "none"}
        before = await pods(world)
        assert sorted(map(len, before.values())) == [2, 2, 5]

        converted = convert(manifests())
        await apply(world, *converted.objects)
        for resource in (FEDERATED_DEPLOYMENTS, FEDERATED_KINDS["FederatedConfigMap"].resource):
            for federated in (await world.user.list(resource, "shop")).items:
                await world.user.delete(resource, federated["metadata"]["name"], "shop", propagation_policy="Orphan")
        await world.user.delete(REPLICA_PREFERENCES, "web", "shop")
        await world.settle()
        assert not (await world.user.list(FEDERATED_DEPLOYMENTS, "shop")).items
        assert "ownerReferences" not in (await world.user.get(DEPLOYMENTS, "web", "shop"))["metadata"]
        assert await pods(world) == before

        await apply(world, *manifests())
        await world.until_equal(lambda: propagation(world), ("True", ""))
        await world.settle()
        assert await pods(world) == before
        (owner,) = (await world.user.get(DEPLOYMENTS, "web", "shop"))["metadata"]["ownerReferences"]
        assert owner["kind"] == "FederatedDeployment"

        await world.user.delete(FEDERATED_DEPLOYMENTS, "web", "shop", propagation_policy="Background")
        await world.until_equal(lambda: replicas(world), {})
