"""KubeFed's manifests are applied as they are, and in their native form, on simulated members with pods."""

from typing import Any

import yaml
from tests.support.vectors import ROOT
from tests.support.world import NAMES, World, a_base, a_world

from federation.api.kubefedkinds import FEDERATED_KINDS, REPLICA_PREFERENCES
from federation.api.resources import FEDERATED_CLUSTERS, OVERRIDE_POLICIES, PROPAGATION_POLICIES
from federation.apimachinery.resources import CONFIGMAPS, DEPLOYMENTS, NAMESPACES, PODS, Object, Resource
from federation.client.client import PatchType
from federation.features.convert.rules.kubefed import convert

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

        for manifest in sorted(manifests(), key=lambda each: each["kind"] == REPLICA_PREFERENCES.kind):
            await apply(world, manifest)
            await world.settle()
        await world.until_equal(lambda: propagation(world), ("True", ""))
        assert await pods(world) == before
        (owner,) = (await world.user.get(DEPLOYMENTS, "web", "shop"))["metadata"]["ownerReferences"]
        assert owner["kind"] == "FederatedDeployment"

        await world.user.delete(FEDERATED_DEPLOYMENTS, "web", "shop", propagation_policy="Background")
        await world.until_equal(lambda: replicas(world), {})


def federated(kind: str, name: str = "web", template: Any = None, **spec: Any) -> Object:
    resource = FEDERATED_KINDS[kind].resource
    return {
        "apiVersion": resource.api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"template": {"data": {"a": "b"}} if template is None else template, **spec},
    }


def a_workload(replicas: int = 2) -> Object:
    labels = {"app": "web"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "web", "image": "nginx"}]}}
    return {"spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": pod}}


def a_preference(**spec: Any) -> Object:
    return {
        "apiVersion": REPLICA_PREFERENCES.api_version,
        "kind": REPLICA_PREFERENCES.kind,
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"targetKind": "FederatedDeployment", "totalReplicas": 10, **spec},
    }


async def holders(world: World, name: str) -> list[str]:
    """Return the members that have the ConfigMap."""
    return [each.name for each in world.members.values() if await each.find(CONFIGMAPS, name) is not None]


async def test_objects_go_where_their_placement_and_that_of_their_namespace_say() -> None:
    async with a_world(base=await a_base(*NAMES), has_workloads=False) as world:
        resource = FEDERATED_KINDS["FederatedConfigMap"].resource

        async def state() -> tuple[list[str], tuple[str, str]]:
            held = await world.user.get(resource, "web", "default")
            (condition,) = (held.get("status") or {}).get("conditions") or [{}]
            return await holders(world, "web"), (condition.get("status", ""), condition.get("reason", ""))

        await apply(world, federated("FederatedConfigMap"))
        await world.until_equal(state, ([], ("False", "ComputePlacementFailed")))
        await apply(
            world, federated("FederatedConfigMap", placement={"clusters": [{"name": "east"}, {"name": "west"}]})
        )
        await world.until_equal(state, (["east", "west"], ("True", "")))
        await apply(world, federated("FederatedConfigMap", placement={}))
        await world.until_equal(state, (["east", "west"], ("False", "ComputePlacementFailed")))
        by_label = {"clusterSelector": {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}}
        await world.merge(FEDERATED_CLUSTERS, "north", {"metadata": {"labels": {"zone": "a"}}}, "")
        await apply(world, federated("FederatedConfigMap", placement=by_label))
        await world.until_equal(state, (["north"], ("True", "")))
        await world.merge(FEDERATED_CLUSTERS, "east", {"metadata": {"labels": {"zone": "a"}}}, "")
        await world.until_equal(state, (["east", "north"], ("True", "")))
        restricted = {"clusters": [{"name": "east"}]}
        await apply(world, federated("FederatedNamespace", "default", {}, placement=restricted))
        await world.until_equal(state, (["east"], ("True", "")))
        await apply(world, federated("FederatedConfigMap", placement={"clusters": []}))
        await world.until_equal(lambda: holders(world, "web"), [])
        assert await world.find(CONFIGMAPS, "web") is None


async def test_a_preference_divides_moves_and_leaves_the_replicas_in_place() -> None:
    async with a_world(base=await a_base(*NAMES), has_workloads=False, has_reports=True) as world:
        limits = {
            "east": {"weight": 3, "maxReplicas": 4},
            "north": {"weight": 1, "minReplicas": 3},
            "west": {"weight": 1},
        }
        await apply(world, a_preference(clusters=limits), federated("FederatedDeployment", template=a_workload()))
        await world.until_replicas("web", {"east": 4, "north": 3, "west": 3})
        await world.settle()
        limits = {name: {"weight": weight} for name, weight in (("east", 1), ("north", 1), ("west", 3))}
        await apply(world, a_preference(clusters=limits))
        await world.settle()
        assert await world.replicas("web") == {"east": 4, "north": 3, "west": 3}, "running replicas stay"
        await apply(world, a_preference(clusters=limits, rebalance=True))
        await world.until_replicas("web", {"east": 2, "north": 2, "west": 6})

        await world.user.delete(REPLICA_PREFERENCES, "web", "default")
        await world.settle()
        assert await world.replicas("web") == {"east": 2, "north": 2, "west": 6}
        held = await world.user.get(FEDERATED_DEPLOYMENTS, "web", "default")
        assert "the 10 replicas stay divided as they are" in held["status"]["conditions"][0]["message"]
        await apply(world, federated("FederatedDeployment", template=a_workload(), placement={"clusterSelector": {}}))
        await world.user.delete(PROPAGATION_POLICIES, "web-deployment", "default")
        await world.until_replicas("web", {"east": 2, "north": 2, "west": 2})


async def test_what_another_owner_controls_is_left_alone() -> None:
    async with a_world(base=await a_base(*NAMES), has_workloads=False) as world:
        owner = {"apiVersion": "example.com/v1", "kind": "App", "name": "app", "uid": "1", "controller": True}
        metadata = {"name": "web", "namespace": "default", "ownerReferences": [owner]}
        await world.create(
            CONFIGMAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "theirs"}}
        )
        await apply(world, federated("FederatedConfigMap", placement={"clusterSelector": {}}))
        resource = FEDERATED_KINDS["FederatedConfigMap"].resource

        async def reason() -> str:
            status = (await world.user.get(resource, "web", "default")).get("status") or {}
            return str((status.get("conditions") or [{}])[0].get("reason"))

        await world.until_equal(reason, "TemplateRefused")
        await apply(world, federated("FederatedConfigMap", placement={"clusters": []}))
        await world.settle()
        assert (await world.user.get(CONFIGMAPS, "web", "default"))["data"] == {"a": "theirs"}
