"""Attack: a federated object that follows from no source object reaches members, or removes what others delivered."""

from typing import Any

import pytest
from tests.support.manifests import a_deployment, a_policy
from tests.support.tenants import federated
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import CLUSTER_FEDERATED_OBJECTS, FEDERATED_OBJECTS, PROPAGATION_POLICIES
from federation.apimachinery import conditions
from federation.apimachinery.ownerreferences import controller_reference
from federation.apimachinery.resources import DEPLOYMENTS, NAMESPACES, Object, Resource
from federation.delivery.rules.names import EVENT_NO_SOURCE

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
    metadata = {**around["metadata"], "namespace": namespace}
    if not namespace:
        del metadata["namespace"]
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
        events = [message for reason, message in await world.events() if reason == EVENT_NO_SOURCE]
        assert len(events) == 1
        for cluster in world.members.values():
            assert await cluster.find(member, "mine", namespace if member.namespaced else "") is None
        await world.user.delete(resource, name, namespace)

        async def gone() -> bool:
            return await world.find(resource, name, namespace) is None

        await world.until(gone)


@pytest.mark.parametrize(
    ("name", "is_owned"), [("mine-configmaps", False), ("other", True)], ids=["no owner", "another name"]
)
async def test_a_source_vouches_only_for_the_federated_object_that_it_controls(name: str, is_owned: bool) -> None:
    """The host accepted a ConfigMap of this name; what is delivered under it is another content."""
    async with a_world() as world:
        own = {**CONFIG_MAP, "metadata": {"name": "mine", "namespace": "default"}}
        annotations = {names.NO_FEDERATED_RESOURCE: "true"}
        source = await world.create(CONFIG_MAPS, {**own, "metadata": {**own["metadata"], "annotations": annotations}})
        body = stored({**own, "data": {"a": "smuggled"}}, name)
        if is_owned:
            body["metadata"]["ownerReferences"] = [controller_reference(source, "v1", "ConfigMap")]
        await world.create(FEDERATED_OBJECTS, body)
        assert await refusal(world, FEDERATED_OBJECTS, name, "default")
        for cluster in world.members.values():
            assert await cluster.find(CONFIG_MAPS, "mine") is None
        await world.user.delete(FEDERATED_OBJECTS, name, "default")
        await world.settle()


@pytest.mark.parametrize(
    ("template", "member"),
    [
        (BINDING, CLUSTER_ROLE_BINDINGS),
        ({**BINDING, "metadata": {"name": "mine", "namespace": "default"}}, CLUSTER_ROLE_BINDINGS),
        ({**CONFIG_MAP, "metadata": {"name": "mine", "namespace": "kube-public"}}, CONFIG_MAPS),
        ({**CONFIG_MAP, "metadata": {"name": "mine"}}, CONFIG_MAPS),
    ],
    ids=["scope", "scope with a namespace", "namespace", "no namespace"],
)
async def test_a_mark_allows_neither_another_scope_nor_another_namespace(template: Object, member: Resource) -> None:
    """Admission refuses such an object; one that was stored by other means is not delivered either."""
    async with a_world() as world:
        body = stored(template, "by-hand", **{names.HAND_WRITTEN: "true"})
        await world.create(FEDERATED_OBJECTS, body)
        assert await refusal(world, FEDERATED_OBJECTS, "by-hand", "default")
        for cluster in world.members.values():
            for namespace in ("default", "kube-public") if member.namespaced else ("",):
                assert await cluster.find(member, "mine", namespace) is None
        await world.user.delete(FEDERATED_OBJECTS, "by-hand", "default")
        await world.settle()


@pytest.mark.parametrize("name", ["kube-system", "kube-public", "default", names.SYSTEM_NAMESPACE])
async def test_system_namespaces_of_members_stay_as_they_are(name: str) -> None:
    async with a_world() as world:
        before = {cluster.name: await cluster.find(NAMESPACES, name, "") for cluster in world.members.values()}
        template = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {"team": "a"}}}
        annotations = {names.HAND_WRITTEN: "true", names.CONFLICT_RESOLUTION: "adopt"}
        annotations[names.CLUSTERS_TO_ADOPT] = '{"regexp": ".*"}'
        body = stored(template, "by-hand", namespace="", **annotations)
        body["metadata"]["finalizers"] = [names.SYNC_FINALIZER]
        await world.create(CLUSTER_FEDERATED_OBJECTS, body)
        await world.settle()
        await world.user.delete(CLUSTER_FEDERATED_OBJECTS, "by-hand", "")
        await world.settle()
        assert await world.find(CLUSTER_FEDERATED_OBJECTS, "by-hand", "") is None
        after = {cluster.name: await cluster.find(NAMESPACES, name, "") for cluster in world.members.values()}
        assert after == before


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
        east = world.members["east"]

        async def identities() -> list[Any]:
            found = [await east.find(DEPLOYMENTS, "web"), await east.find(NAMESPACES, "default", "")]
            return [obj and obj["metadata"]["uid"] for obj in found]

        before = await identities()
        for template, name, namespace in (
            ({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}, "theirs", "default"),
            (a_deployment("web"), "theirs-as-well", "default"),
            (a_deployment("web"), "theirs-everywhere", ""),
        ):
            resource = FEDERATED_OBJECTS if namespace else CLUSTER_FEDERATED_OBJECTS
            body = stored(template, name, namespace=namespace)
            # With it, the object stays until sync has cleaned the clusters that it names.
            body["metadata"]["finalizers"] = [names.SYNC_FINALIZER]
            await world.create(resource, body)
            await world.settle()
            await world.user.delete(resource, name, namespace)
            await world.settle()
            assert await world.find(resource, name, namespace) is None
            assert await identities() == before
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
