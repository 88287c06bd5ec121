"""Namespaces are propagated to every cluster automatically, before their objects, and deleted after them."""

from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import CLUSTER_FEDERATED_OBJECTS, PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS, NAMESPACES, Object


def a_namespace(name: str, **annotations: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "annotations": annotations}}


async def _holders(world: World, namespace: str) -> set[str]:
    return {m.name for m in world.members.values() if await m.find(NAMESPACES, namespace) is not None}


def _in(namespace: str, obj: Object) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "namespace": namespace}}


async def test_a_namespace_is_propagated_with_its_objects_and_deleted() -> None:
    async with a_world() as world:
        # Created together: members reject the Deployment until they have the namespace.
        await world.create(NAMESPACES, a_namespace("shop"))
        await world.create(PROPAGATION_POLICIES, _in("shop", a_policy({"east": 1, "west": 1})))
        await world.create(DEPLOYMENTS, _in("shop", a_deployment("web", replicas=2)))

        await world.until_equal(lambda: _holders(world, "shop"), {"east", "north", "west"})

        async def ready() -> int:
            deployment = await world.user.get(DEPLOYMENTS, "web", "shop")
            return int((deployment.get("status") or {}).get("availableReplicas", 0))

        await world.until_equal(ready, 2)

        await world.user.delete(NAMESPACES, "shop")
        await world.until_gone(NAMESPACES, "shop", "")
        assert await _holders(world, "shop") == set()


async def test_a_namespace_that_every_cluster_has_by_itself_is_reported_as_there() -> None:
    async with a_world(members=("east",)) as world:

        async def statuses() -> list[tuple[str, str]]:
            federated = await world.user.get(CLUSTER_FEDERATED_OBJECTS, "default-namespaces")
            entries = (federated.get("status") or {}).get("clusters") or ()
            return [(entry["cluster"], entry["status"]) for entry in entries]

        await world.until_equal(statuses, [("east", "OK")])
        await world.add_member("south", {})
        await world.join("south")
        await world.until_equal(statuses, [("east", "OK"), ("south", "OK")])


async def test_a_new_cluster_gets_the_existing_namespaces() -> None:
    async with a_world(members=("east",)) as world:
        await world.create(NAMESPACES, a_namespace("shop"))
        await world.until_equal(lambda: _holders(world, "shop"), {"east"})

        await world.add_member("south", {})
        await world.join("south")

        await world.until_equal(lambda: _holders(world, "shop"), {"east", "south"})


async def test_a_namespace_that_existed_in_a_member_is_adopted_and_not_deleted() -> None:
    async with a_world(members=("east", "west")) as world:
        await world.members["west"].admin.create(NAMESPACES, a_namespace("shop", owner="team blue"))
        await world.create(NAMESPACES, a_namespace("shop"))

        async def is_managed() -> bool:
            found = await world.members["west"].find(NAMESPACES, "shop")
            assert found is not None
            return (found["metadata"].get("labels") or {}).get(names.MANAGED_LABEL) == "true"

        await world.until(is_managed)
        found = await world.members["west"].find(NAMESPACES, "shop")
        assert found is not None
        assert found["metadata"]["annotations"]["owner"] == "team blue"

        # An adopted object is released, not deleted.
        await world.user.delete(NAMESPACES, "shop")
        await world.until_gone(NAMESPACES, "shop", "")
        assert await _holders(world, "shop") == {"west"}


async def test_annotated_and_system_namespaces_are_not_propagated() -> None:
    async with a_world(members=("east",)) as world:
        await world.create(NAMESPACES, a_namespace("private", **{names.NO_AUTO_PROPAGATION: "true"}))
        await world.create(NAMESPACES, a_namespace("public"))
        await world.until_equal(lambda: _holders(world, "public"), {"east"})
        await world.settle()
        assert await _holders(world, "private") == set()
        found = await world.members["east"].find(NAMESPACES, "kube-system")
        assert found is not None
        assert names.MANAGED_LABEL not in (found["metadata"].get("labels") or {})
