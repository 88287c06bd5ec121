"""Claims, volumes, CustomResourceDefinitions and namespaces: deleted only with their source, and not many at a time."""

from typing import Any

from tests.support.manifests import a_policy
from tests.support.world import World, a_world_without_pods

from federation.api import names
from federation.api.resources import FEDERATED_OBJECTS, PLACEMENT_HOLDS, PROPAGATION_POLICIES
from federation.apimachinery import conditions
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.resources import NAMESPACES, Object, Resource

CLAIMS = Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")


async def _shop(world: World, count: int, namespace: str = "shop") -> None:
    """Create a namespace with claims that are in both members."""
    await world.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    policy = a_policy({"east": 1, "west": 1}, name="claims", schedulingMode="Duplicate")
    policy["metadata"]["namespace"] = namespace
    policy["spec"]["resourceSelectors"] = [{"apiVersion": "v1", "kind": "PersistentVolumeClaim"}]
    await world.create(PROPAGATION_POLICIES, policy)
    for number in range(count):
        claim: Object = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": f"data-{number:02}", "namespace": namespace},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }
        await world.create(CLAIMS, claim)
    await world.until_equal(lambda: _claims(world, namespace), {"east": count, "west": count})
    await world.settle()


async def _claims(world: World, namespace: str = "shop") -> dict[str, int]:
    """Return how many claims each member has in the namespace."""
    return {name: len((await member.admin.list(CLAIMS, namespace)).items) for name, member in world.members.items()}


async def _holds(world: World) -> list[tuple[str, int]]:
    items = (await world.user.list(PLACEMENT_HOLDS)).items
    return sorted((hold["spec"]["cause"], hold["spec"]["count"]) for hold in items if not hold["spec"].get("approval"))


async def _approve_all(world: World) -> None:
    """Approve as `fedctl approve` does; the API server's stamp is added here, as no API server runs."""
    await world.pass_time(1)
    approval = {"reason": "planned", "by": "admin", "at": to_rfc3339(world.clock.now())}
    for hold in (await world.user.list(PLACEMENT_HOLDS)).items:
        await world.merge(PLACEMENT_HOLDS, hold["metadata"]["name"], {"spec": {"approval": approval}}, "")


async def _propagated(world: World, name: str) -> Any:
    federated = await world.user.get(FEDERATED_OBJECTS, f"{name}-persistentvolumeclaims", "shop")
    return conditions.find(federated["status"]["conditions"], names.PROPAGATED)


async def test_a_deleted_namespace_keeps_its_claims_in_the_members_until_somebody_approves() -> None:
    async with a_world_without_pods(members=("east", "west"), has_workloads=False) as world:
        await _shop(world, 15)
        await world.user.delete(NAMESPACES, "shop", "")
        await world.pass_time(60)
        assert await _claims(world) == {"east": 15, "west": 15}
        assert await _holds(world) == [("Deletion shop/PersistentVolumeClaim", 15)]
        condition = await _propagated(world, "data-03")
        assert condition["reason"] == "Held"
        (hold,) = (await world.user.list(PLACEMENT_HOLDS)).items
        assert f"fedctl approve {hold['metadata']['name']} --reason TEXT" in condition["message"]
        events = await world.events()
        assert any(reason == "DeletionHeld" and "claims in it" in text for reason, text in events)
        assert any(reason == "PlacementHeld" and "would be deleted" in text for reason, text in events)

        await world.restart()
        await world.pass_time(60)
        assert await _claims(world) == {"east": 15, "west": 15}
        assert await world.find(NAMESPACES, "shop", "") is not None

        await _approve_all(world)
        await world.until_gone(NAMESPACES, "shop", "")
        await world.settle()
        assert await _claims(world) == {"east": 0, "west": 0}
        for member in world.members.values():
            assert await member.find(NAMESPACES, "shop", "") is None


async def test_an_approval_while_the_control_plane_is_down_counts() -> None:
    async with a_world_without_pods(members=("east", "west"), has_workloads=False) as world:
        await _shop(world, 12)
        await world.user.delete(NAMESPACES, "shop", "")
        await world.until_equal(lambda: _holds(world), [("Deletion shop/PersistentVolumeClaim", 12)])
        await world.stop()
        await _approve_all(world)
        await world.restart()
        await world.until_gone(NAMESPACES, "shop", "")


async def test_few_claims_are_deleted_at_once_and_count_for_later_ones() -> None:
    async with a_world_without_pods(members=("east", "west"), has_workloads=False) as world:
        await _shop(world, 20)
        await _shop(world, 4, "other")
        for number in range(8):
            await world.user.delete(CLAIMS, f"data-{number:02}", "shop")
        await world.until_equal(lambda: _claims(world), {"east": 12, "west": 12})
        assert not await _holds(world)
        for number in range(8, 12):
            await world.user.delete(CLAIMS, f"data-{number:02}", "shop")
        await world.pass_time(30)
        assert await _claims(world) == {"east": 12, "west": 12}
        assert await _holds(world) == [("Deletion shop/PersistentVolumeClaim", 4)]

        # What is held in one namespace holds nothing up in another one.
        await world.user.delete(NAMESPACES, "other", "")
        await world.until_gone(NAMESPACES, "other", "")
        # The window passes, and what is held stays held.
        await world.pass_time(700)
        assert await _claims(world) == {"east": 12, "west": 12}
        await _approve_all(world)
        await world.until_equal(lambda: _claims(world), {"east": 8, "west": 8})


async def test_many_namespaces_that_are_deleted_at_a_time_are_held() -> None:
    async with a_world_without_pods(members=("east", "west"), has_workloads=False) as world:
        every = [f"team-{number:02}" for number in range(14)]
        for name in every:
            await world.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        east = world.members["east"]

        async def present() -> set[str]:
            return {ns["metadata"]["name"] for ns in (await east.admin.list(NAMESPACES)).items} & set(every)

        await world.until_equal(present, set(every))
        await world.settle()
        for name in every[:12]:
            await world.user.delete(NAMESPACES, name, "")
        await world.pass_time(30)
        assert await present() == set(every)
        assert await _holds(world) == [("Deletion Namespace", 12)]
        await _approve_all(world)
        await world.until_equal(present, set(every[12:]))


async def test_a_claim_with_a_source_is_released_when_its_federation_is_ended_by_hand() -> None:
    async with a_world_without_pods(members=("east", "west"), has_workloads=False) as world:
        await _shop(world, 1)
        excluded = {"metadata": {"annotations": {names.NO_FEDERATED_RESOURCE: "true"}}}
        await world.merge(CLAIMS, "data-00", excluded, "shop")
        await world.settle()
        await world.user.delete(FEDERATED_OBJECTS, "data-00-persistentvolumeclaims", "shop")
        await world.until_gone(FEDERATED_OBJECTS, "data-00-persistentvolumeclaims", "shop")
        await world.settle()
        assert await _claims(world) == {"east": 1, "west": 1}
        for member in world.members.values():
            claim = await member.admin.get(CLAIMS, "data-00", "shop")
            assert names.MANAGED_LABEL not in (claim["metadata"].get("labels") or {})
        await world.user.delete(CLAIMS, "data-00", "shop")
        await world.until_gone(CLAIMS, "data-00", "shop")
        await world.settle()
        assert await _claims(world) == {"east": 1, "west": 1}
