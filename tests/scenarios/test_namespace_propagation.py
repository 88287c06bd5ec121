"""Namespaces go to every cluster by themselves, before what is in them, and leave after it."""

from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import DEPLOYMENTS, NAMESPACES, PROPAGATION_POLICIES, Object


def a_namespace(name: str, **annotations: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "annotations": annotations}}


async def _holders(world: World, namespace: str) -> set[str]:
    return {m.name for m in world.members.values() if await m.find(NAMESPACES, namespace) is not None}


def _in(namespace: str, obj: Object) -> Object:
    return {**obj, "metadata": {**obj["metadata"], "namespace": namespace}}


async def test_a_namespace_appears_everywhere_with_what_is_put_in_it_and_vanishes_again() -> None:
    async with a_world() as world:
        # All at once: members refuse the Deployment until they have the namespace.
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


async def test_a_cluster_that_joins_later_gets_the_namespaces_that_are_there() -> None:
    async with a_world(members=("east",)) as world:
        await world.create(NAMESPACES, a_namespace("shop"))
        await world.until_equal(lambda: _holders(world, "shop"), {"east"})

        await world.add_member("south", {})
        await world.join("south")

        await world.until_equal(lambda: _holders(world, "shop"), {"east", "south"})


async def test_a_namespace_that_a_member_has_already_is_taken_over_and_survives_its_end() -> None:
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

        # What was there before the federation is released, not deleted.
        await world.user.delete(NAMESPACES, "shop")
        await world.until_gone(NAMESPACES, "shop", "")
        assert await _holders(world, "shop") == {"west"}


async def test_namespaces_stay_on_the_host_when_told_and_system_namespaces_always() -> None:
    async with a_world(members=("east",)) as world:
        await world.create(NAMESPACES, a_namespace("private", **{names.NO_AUTO_PROPAGATION: "true"}))
        await world.create(NAMESPACES, a_namespace("public"))
        await world.until_equal(lambda: _holders(world, "public"), {"east"})
        await world.settle()
        assert await _holders(world, "private") == set()
        found = await world.members["east"].find(NAMESPACES, "kube-system")
        assert found is not None
        assert names.MANAGED_LABEL not in (found["metadata"].get("labels") or {})
