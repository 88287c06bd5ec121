"""What one mistake can delete or move: a deleted federated object restarts no pod."""

from collections.abc import Mapping

import pytest
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world

from federation.api.resources import FEDERATED_OBJECTS, PROPAGATION_POLICIES
from federation.apimachinery.resources import CONFIGMAPS, DEPLOYMENTS, NAMESPACES, Object
from federation.planning.federatedobject.placements import effective_placement

EVERYWHERE = {"east": 1, "north": 1, "west": 1}
FEDERATED = "web-deployments.apps"


async def _member_uids(world: World) -> dict[str, str]:
    """Return the uids of the members' Deployment web and of its ConfigMap, by member and name."""
    found = {}
    for member in world.members.values():
        for resource, name in ((DEPLOYMENTS, "web"), (CONFIGMAPS, "settings")):
            obj = await member.find(resource, name)
            if obj is not None:
                found[f"{member.name} {name}"] = obj["metadata"]["uid"]
    return found


def _with_settings(deployment: Object) -> Object:
    """Return the Deployment with a reference to the ConfigMap settings."""
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    container["envFrom"] = [{"configMapRef": {"name": "settings"}}]
    return deployment


async def _running(world: World, weights: Mapping[str, int] = EVERYWHERE) -> None:
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "default"}}
    await world.create(CONFIGMAPS, settings)
    await world.create(PROPAGATION_POLICIES, a_policy(weights))
    await world.create(DEPLOYMENTS, _with_settings(a_deployment("web", replicas=6)))
    await world.until_available("web", 6)
    await world.settle()


async def _replacement(world: World, uid: str) -> Object | None:
    found = await world.find(FEDERATED_OBJECTS, FEDERATED)
    return found if found is not None and found["metadata"]["uid"] != uid else None


@pytest.mark.parametrize("cascade", ["Background", "Foreground", "Orphan"])
async def test_a_deleted_federated_object_is_written_again_and_restarts_no_pod(cascade: str) -> None:
    async with a_world() as world:
        await _running(world)
        before, uids = await world.federated("web"), await _member_uids(world)
        assert len(uids) == 6
        for member in world.members.values():
            member.line.calls.clear()

        await world.user.delete(FEDERATED_OBJECTS, FEDERATED, "default", propagation_policy=cascade)
        after = await world.until(lambda: _replacement(world, before["metadata"]["uid"]))
        assert after["spec"]["placements"] == before["spec"]["placements"]
        assert after["spec"]["overrides"] == before["spec"]["overrides"]
        await world.settle()
        assert await _member_uids(world) == uids
        assert not [
            call for member in world.members.values() for call in member.line.calls if call[0] in ("delete", "apply")
        ]
        assert "FederatedObjectWrittenAgain" in [reason for reason, _ in await world.events()]
        assert (await world.condition("web", "Propagated"))["status"] == "True"


async def test_the_replacement_keeps_a_placement_that_the_policy_would_not_choose_today() -> None:
    async with a_world() as world:
        await _running(world, {"east": 1})
        policy = a_policy({"west": 1}, reschedulePolicy={"rescheduleWhen": {"policyContentChanged": False}})
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": policy["spec"]})
        await world.settle()
        before, uids = await world.federated("web"), await _member_uids(world)
        assert effective_placement(before) == {"east"}

        await world.user.delete(FEDERATED_OBJECTS, FEDERATED, "default")
        await world.until(lambda: _replacement(world, before["metadata"]["uid"]))
        await world.settle()
        assert await world.replicas("web") == {"east": 6}
        assert await _member_uids(world) == uids


async def test_a_federated_object_that_is_deleted_just_before_a_restart_is_written_again() -> None:
    async with a_world() as world:
        await _running(world)
        before, uids = await world.federated("web"), await _member_uids(world)
        await world.stop()
        await world.user.delete(FEDERATED_OBJECTS, FEDERATED, "default")
        await world.restart()
        await world.until(lambda: _replacement(world, before["metadata"]["uid"]))
        await world.settle()
        assert await _member_uids(world) == uids


async def test_a_source_that_is_deleted_after_its_federated_object_leaves_no_member_object() -> None:
    async with a_world() as world:
        await _running(world)
        await world.user.delete(FEDERATED_OBJECTS, FEDERATED, "default")
        await world.user.delete(DEPLOYMENTS, "web", "default")
        await world.until_gone(DEPLOYMENTS, "web")
        await world.settle()
        assert await world.replicas("web") == {}


async def test_the_deletion_of_a_namespace_deletes_what_is_in_it() -> None:
    async with a_world() as world:
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}
        await world.create(NAMESPACES, namespace)
        policy = a_policy(EVERYWHERE)
        policy["metadata"]["namespace"] = "shop"
        await world.create(PROPAGATION_POLICIES, policy)
        web = a_deployment("web", replicas=3)
        web["metadata"]["namespace"] = "shop"
        await world.create(DEPLOYMENTS, web)
        east = world.members["east"]
        await world.until(lambda: east.find(DEPLOYMENTS, "web", "shop"))
        await world.settle()

        await world.user.delete(NAMESPACES, "shop", "")
        await world.until_gone(NAMESPACES, "shop", "")
        await world.settle()
        for member in world.members.values():
            assert await member.find(DEPLOYMENTS, "web", "shop") is None


async def test_a_source_that_is_excluded_first_leaves_the_members_with_its_federated_object() -> None:
    async with a_world() as world:
        await _running(world)
        excluded = {"metadata": {"annotations": {"kubeadmiral.io/no-federated-resource": "true"}}}
        await world.merge(DEPLOYMENTS, "web", excluded)
        await world.settle()
        await world.user.delete(FEDERATED_OBJECTS, FEDERATED, "default")
        await world.until_gone(FEDERATED_OBJECTS, FEDERATED)
        assert await world.replicas("web") == {}
        await world.user.delete(DEPLOYMENTS, "web", "default")
        await world.until_gone(DEPLOYMENTS, "web")
