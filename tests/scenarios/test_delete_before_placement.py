"""Our finalizer holds what is or will be placed; a deletion that races with the first placement leaves no copy."""

import asyncio
from itertools import product

import pytest
from tests.support.generated import nightly_unless
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world_without_pods

from federation.api import names
from federation.api.resources import FEDERATED_OBJECTS, PROPAGATION_POLICIES
from federation.apimachinery.resources import CONFIGMAPS, DEPLOYMENTS, Object

CLUSTERS = {"east": 1, "north": 1, "west": 1}


def a_config(name: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"},
        "data": {"colour": "blue"},
    }


def selecting(name: str) -> Object:
    """Return a policy for one Deployment."""
    selector = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    return a_policy(CLUSTERS, name=name, resourceSelectors=[selector])


def is_held(obj: Object | None) -> bool:
    return obj is not None and names.FEDERATE_FINALIZER in (obj["metadata"].get("finalizers") or ())


async def copies(world: World) -> list[str]:
    """Return the Deployments and ConfigMaps of users in the members."""
    found = []
    for member in world.members.values():
        for resource in (DEPLOYMENTS, CONFIGMAPS):
            found += [obj["metadata"]["name"] for obj in (await member.admin.list(resource, "default")).items]
    return found


async def federated_names(world: World) -> list[str]:
    return [obj["metadata"]["name"] for obj in (await world.user.list(FEDERATED_OBJECTS, "default")).items]


async def test_an_object_without_a_policy_is_deleted_at_once() -> None:
    async with a_world_without_pods() as world:
        for resource, obj in ((CONFIGMAPS, a_config("settings")), (DEPLOYMENTS, a_deployment("web"))):
            name = obj["metadata"]["name"]
            assert not is_held(await world.create(resource, obj))
            await world.settle()
            assert not is_held(await world.find(resource, name))
            await world.user.delete(resource, name, "default")
            assert await world.find(resource, name) is None, "nothing waits for a controller"
        await world.until_equal(lambda: federated_names(world), [])


async def test_an_orphaning_deletion_without_a_policy_leaves_no_federated_object() -> None:
    async with a_world_without_pods() as world:
        await world.create(DEPLOYMENTS, a_deployment("web"))
        await world.settle()
        await world.user.delete(DEPLOYMENTS, "web", "default", propagation_policy="Orphan")
        await world.until_gone(DEPLOYMENTS, "web")
        await world.until_equal(lambda: federated_names(world), [])


async def test_a_policy_that_comes_later_lets_our_finalizer_hold_the_object() -> None:
    async with a_world_without_pods() as world:
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=3))
        await world.settle()
        await world.create(PROPAGATION_POLICIES, selecting("web"))
        await world.until_replicas("web", CLUSTERS)
        await world.settle()
        assert is_held(await world.find(DEPLOYMENTS, "web"))
        await world.user.delete(DEPLOYMENTS, "web", "default")
        assert await world.find(DEPLOYMENTS, "web") is not None, "it waits for the members"
        await world.until_gone(DEPLOYMENTS, "web")
        assert await copies(world) == []


async def test_followers_are_held_once_they_are_placed() -> None:
    async with a_world_without_pods() as world:
        await world.create(CONFIGMAPS, a_config("settings"))
        await world.settle()
        assert not is_held(await world.find(CONFIGMAPS, "settings"))
        await world.create(PROPAGATION_POLICIES, selecting("web"))
        await world.settle()
        leader = a_deployment("web", replicas=3)
        volume = {"name": "config", "configMap": {"name": "settings"}}
        leader["spec"]["template"]["spec"]["volumes"] = [volume]
        assert is_held(await world.create(DEPLOYMENTS, leader)), "its policy exists"
        await world.until_replicas("web", CLUSTERS)
        await world.settle()
        assert is_held(await world.find(CONFIGMAPS, "settings"))


async def test_a_restart_lets_our_finalizer_hold_what_was_placed_before() -> None:
    async with a_world_without_pods() as world:
        await world.create(PROPAGATION_POLICIES, selecting("web"))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=3))
        await world.until_replicas("web", CLUSTERS)
        await world.settle()
        await world.user.delete(PROPAGATION_POLICIES, "web", "default")
        await world.stop()
        await world.merge(DEPLOYMENTS, "web", {"metadata": {"finalizers": None}})
        await world.restart()
        await world.settle()
        assert is_held(await world.find(DEPLOYMENTS, "web"))


async def test_an_orphaning_deletion_during_the_first_placement_leaves_no_managed_copy() -> None:
    async with a_world_without_pods() as world:
        for steps in range(20):
            name = f"web-{steps}"
            await world.create(DEPLOYMENTS, a_deployment(name))
            await world.until(lambda: federated_names(world))
            await world.create(PROPAGATION_POLICIES, selecting(name))
            for _ in range(steps):
                await asyncio.sleep(0)
            await world.user.delete(DEPLOYMENTS, name, "default", propagation_policy="Orphan")
            await world.until_gone(DEPLOYMENTS, name)
            await world.until_equal(lambda: federated_names(world), [])
            await world.user.delete(PROPAGATION_POLICIES, name, "default")
        await world.settle()
        for member in world.members.values():
            for copy in (await member.admin.list(DEPLOYMENTS, "default")).items:
                assert names.MANAGED_LABEL not in (copy["metadata"].get("labels") or {})


@pytest.mark.parametrize(
    ("is_selected_first", "propagation"),
    nightly_unless([(True, "Background"), (False, "Foreground")], product((True, False), ("Background", "Foreground"))),
)
async def test_a_deletion_during_the_first_placement_leaves_nothing_behind(
    is_selected_first: bool, propagation: str
) -> None:
    """The deletion comes after any number of steps of the event loop, until the copies exist, and later."""
    outcomes = set()
    async with a_world_without_pods() as world:
        for steps in (*range(20), 50, 100, 200, 400):
            name = f"web-{steps}"
            if not is_selected_first:
                await world.create(DEPLOYMENTS, a_deployment(name))
                await world.until(lambda: federated_names(world))
            await world.create(PROPAGATION_POLICIES, selecting(name))
            if is_selected_first:
                await world.create(DEPLOYMENTS, a_deployment(name))
            for _ in range(steps):
                await asyncio.sleep(0)
            outcomes.add((is_held(await world.find(DEPLOYMENTS, name)), bool(await copies(world))))
            await world.user.delete(DEPLOYMENTS, name, "default", propagation_policy=propagation)
            await world.until_gone(DEPLOYMENTS, name)
            await world.until_equal(lambda: federated_names(world), [])
            assert await copies(world) == [], f"after {steps} steps"
            await world.user.delete(PROPAGATION_POLICIES, name, "default")
        await world.settle()
        assert await copies(world) == []
    assert outcomes >= {(False, False), (True, True)}, "deletions come before and after the placement"


async def test_a_deletion_while_the_control_plane_is_down_leaves_nothing_behind() -> None:
    """It stops in the middle of the first placement, before or after our finalizer; the garbage collector runs on."""
    outcomes = set()
    async with a_world_without_pods() as world:
        for steps in range(12):
            name = f"web-{steps}"
            await world.create(DEPLOYMENTS, a_deployment(name))
            await world.until(lambda: federated_names(world))
            await world.create(PROPAGATION_POLICIES, selecting(name))
            for _ in range(steps):
                await asyncio.sleep(0)
            await world.stop()
            placed = bool((await world.federated(name))["spec"].get("placements"))
            outcomes.add((is_held(await world.find(DEPLOYMENTS, name)), placed, bool(await copies(world))))
            await world.user.delete(DEPLOYMENTS, name, "default", propagation_policy="Background")
            await world.user.delete(PROPAGATION_POLICIES, name, "default")
            await world.restart()
            await world.until_gone(DEPLOYMENTS, name)
            await world.settle()
            assert await federated_names(world) == []
            assert await copies(world) == [], f"after {steps} steps"
    assert outcomes >= {(False, True, False), (True, True, True)}, "placed without our finalizer, and with it"
