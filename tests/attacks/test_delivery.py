"""Attack: a federated object that follows from no source object reaches members, or removes what others delivered."""

from typing import Any

import pytest
from tests.support.manifests import a_deployment, a_policy
from tests.support.tenants import federated
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import CLUSTER_FEDERATED_OBJECTS, FEDERATED_OBJECTS, PROPAGATION_POLICIES
from federation.apimachinery import conditions
from federation.apimachinery.resources import DEPLOYMENTS, NAMESPACES, Object, Resource

RBAC = "rbac.authorization.k8s.io"
CLUSTER_ROLE_BINDINGS = Resource(RBAC, "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False)
CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps", namespaced=True)
BINDING: Object = {
    "apiVersion": f"{RBAC}/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "mine"},
    "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [{"kind": "User", "apiGroup": RBAC, "name": "editor"}],
}
CONFIG_MAP: Object = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "settings", "namespace": "default"},
    "data": {"a": "1"},
}


def stored(template: Object, name: str, *, namespace: str = "default", **annotations: str) -> Object:
    """Return a federated object as an installation without admission may have stored it."""
    around = federated(template, name, **annotations)
    metadata = {**around["metadata"], **({"namespace": namespace} if namespace else {})}
    return {**around, "kind": "FederatedObject" if namespace else "ClusterFederatedObject", "metadata": metadata}


async def refusal(world: World, resource: Resource, name: str, namespace: str) -> str:
    """Return the message of the condition Propagated once sync has refused the object."""

    async def look() -> Any:
        found = await world.user.get(resource, name, namespace)
        condition = conditions.find((found.get("status") or {}).get("conditions"), names.PROPAGATED)
        return condition if condition is not None and condition["reason"] == names.REASON_NO_SOURCE else None

    condition = await world.until(look, f"refusal of {name}")
    assert condition["status"] == "False"
    return str(condition["message"])


@pytest.mark.parametrize(
    ("template", "name", "namespace", "member"),
    [
        (BINDING, "mine", "default", CLUSTER_ROLE_BINDINGS),
        (BINDING, f"mine-clusterrolebindings.{RBAC}", "", CLUSTER_ROLE_BINDINGS),
        ({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "mine"}}, "mine", "default", NAMESPACES),
        (
            {**CONFIG_MAP, "metadata": {"name": "mine", "namespace": "default"}},
            "mine-configmaps",
            "default",
            CONFIG_MAPS,
        ),
        (
            {**CONFIG_MAP, "metadata": {"name": "mine", "namespace": "kube-public"}},
            "mine-configmaps",
            "default",
            CONFIG_MAPS,
        ),
    ],
)
async def test_nothing_is_delivered_without_a_source(
    template: Object, name: str, namespace: str, member: Resource
) -> None:
    async with a_world() as world:
        resource = FEDERATED_OBJECTS if namespace else CLUSTER_FEDERATED_OBJECTS
        body = stored(template, name, namespace=namespace, **{names.CONFLICT_RESOLUTION: "adopt"})
        await world.create(resource, body)
        assert await refusal(world, resource, name, namespace)
        events = [message for reason, message in await world.events() if reason == names.EVENT_NO_SOURCE]
        assert len(events) == 1
        for cluster in world.members.values():
            assert await cluster.find(member, "mine", namespace if member.namespaced else "") is None
        await world.user.delete(resource, name, namespace)

        async def gone() -> bool:
            return await world.find(resource, name, namespace) is None

        await world.until(gone)


async def test_a_hand_written_object_is_delivered_and_removed() -> None:
    async with a_world() as world:
        body = stored(CONFIG_MAP, "by-hand", **{names.HAND_WRITTEN: "true"})
        await world.create(FEDERATED_OBJECTS, body)

        async def delivered() -> bool:
            return await world.members["east"].find(CONFIG_MAPS, "settings") is not None

        async def removed() -> bool:
            return not await delivered() and await world.find(FEDERATED_OBJECTS, "by-hand") is None

        await world.until(delivered)
        await world.user.delete(FEDERATED_OBJECTS, "by-hand", "default")
        await world.until(removed)


async def test_an_object_without_source_removes_nothing_that_another_delivered() -> None:
    """The namespace of a member must survive the removal of a federated object that merely names it."""
    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=2))
        await world.until_replicas("web", {"east": 2})
        for template, name in (
            ({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}, "theirs"),
            (a_deployment("web"), "theirs-as-well"),
        ):
            await world.create(FEDERATED_OBJECTS, stored(template, name))
            await world.settle()
            await world.user.delete(FEDERATED_OBJECTS, name, "default")
            await world.settle()
            assert await world.find(FEDERATED_OBJECTS, name) is None
        assert await world.replicas("web") == {"east": 2}
        assert await world.members["east"].find(NAMESPACES, "default", "") is not None


async def test_a_mark_on_the_source_means_nothing() -> None:
    """The annotation of a source goes to members with it, not to the federated object."""
    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}))
        deployment = a_deployment("web", replicas=2)
        deployment["metadata"]["annotations"] = {names.HAND_WRITTEN: "true"}
        await world.create(DEPLOYMENTS, deployment)
        await world.until_replicas("web", {"east": 2})
        annotations = (await world.federated("web"))["metadata"]["annotations"]
        assert names.HAND_WRITTEN not in annotations
