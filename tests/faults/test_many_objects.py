"""Many objects at once, with a member that is lost, slow or hangs: all arrive, all go, and the other members do not wait.

`FAULT_OBJECTS=5000` enlarges the largest history, which has 600 objects.
"""

import os

import pytest
from tests.support.invariants import violations_meanwhile
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import NAMES, World, a_world_without_pods

from federation.api.resources import LEFTOVERS, PROPAGATION_POLICIES
from federation.apimachinery.resources import CONFIGMAPS, DEPLOYMENTS, NAMESPACES, Object

COUNT = int(os.environ.get("FAULT_OBJECTS", "600"))
pytestmark = [pytest.mark.nightly, pytest.mark.timeout(300 + COUNT)]


async def _namespace(world: World, name: str, kind: Object) -> None:
    await world.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    policy = a_policy(dict.fromkeys(NAMES, 1), schedulingMode="Duplicate", resourceSelectors=[kind])
    policy["metadata"]["namespace"] = name
    await world.create(PROPAGATION_POLICIES, policy)


async def _deployments(world: World, member: str, namespace: str) -> int:
    return len((await world.members[member].admin.list(DEPLOYMENTS, namespace)).items)


async def _settings(world: World, member: str, namespace: str) -> int:
    found = (await world.members[member].admin.list(CONFIGMAPS, namespace)).items
    return sum(obj["metadata"]["name"].startswith("cm-") for obj in found)


@pytest.mark.parametrize("fault", ["", "down", "hang", "slow"], ids=["well", "down", "hang", "slow"])
async def test_a_namespace_with_a_hundred_objects_is_deleted_everywhere(fault: str) -> None:
    async with a_world_without_pods() as world:
        await _namespace(world, "shop", {"apiVersion": "apps/v1", "kind": "Deployment"})
        for number in range(100):
            deployment = a_deployment(f"app-{number}", replicas=1)
            deployment["metadata"]["namespace"] = "shop"
            await world.create(DEPLOYMENTS, deployment)
        for member in NAMES:
            await world.until_equal(lambda name=member: _deployments(world, name, "shop"), 100)
        await world.settle()
        line = world.members["east"].line
        if fault == "slow":
            line.delays_s = dict.fromkeys(("get", "list", "create", "patch", "delete", "watch", "raw"), 2.0)
        elif fault:
            line.mode = fault
        await world.user.delete(NAMESPACES, "shop", "")
        for member in NAMES if not fault else ("north", "west"):
            await world.until_equal(lambda name=member: _deployments(world, name, "shop"), 0)
        if fault in ("down", "hang"):
            await world.until_gone(NAMESPACES, "shop", "")
            assert await _deployments(world, "east", "shop") == 100
        line.heal()
        await world.until_gone(NAMESPACES, "shop", "")
        await world.until_equal(lambda: _deployments(world, "east", "shop"), 0)
        for member in world.members.values():
            await world.until_equal(lambda admin=member: admin.find(NAMESPACES, "shop", ""), None)

        async def left() -> int:
            return len((await world.user.list(LEFTOVERS)).items)

        await world.until_equal(left, 0)


async def test_many_objects_at_once_reach_all_members_although_one_is_slow_and_flaps() -> None:
    async with a_world_without_pods() as world:
        await _namespace(world, "shop", {"apiVersion": "v1", "kind": "ConfigMap"})
        line = world.members["east"].line
        line.delays_s = dict.fromkeys(("patch", "create"), 0.5)
        for number in range(COUNT):
            metadata = {"name": f"cm-{number}", "namespace": "shop"}
            await world.create(CONFIGMAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        started_s = world.clock.monotonic()
        while min([await _settings(world, name, "shop") for name in ("north", "west")]) < COUNT:
            await world.pass_time(1)
            assert world.clock.monotonic() - started_s < 30, "the others wait for the slow one"
        for _ in range(4):
            line.mode = "down"
            await world.pass_time(20)
            line.mode = "up"
            await world.pass_time(20)
            assert not await violations_meanwhile(world, {})
        line.heal()
        while await _settings(world, "east", "shop") < COUNT:
            await world.pass_time(5)
            assert world.clock.monotonic() - started_s < 1800, f"{await _settings(world, 'east', 'shop')} of {COUNT}"
        await world.until_ready(*NAMES)
