"""What a workload's pods need goes with the workload: there before it, and away after it."""

from collections.abc import Mapping
from typing import Any

from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world

from federation.api.resources import (
    CONFIGMAPS,
    DEPLOYMENTS,
    PROPAGATION_POLICIES,
    SECRETS,
    SERVICE_ACCOUNTS,
    Object,
    Resource,
)

NEEDS = ((CONFIGMAPS, "settings"), (SECRETS, "password"), (SERVICE_ACCOUNTS, "runner"))


def _object(resource: Resource, name: str, **content: Any) -> Object:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name, "namespace": "default"},
        **content,
    }


def _needy_deployment(name: str = "web", replicas: int = 3, config: str = "settings") -> Object:
    deployment = a_deployment(name, replicas)
    pod = deployment["spec"]["template"]["spec"]
    pod["serviceAccountName"] = "runner"
    pod["volumes"] = [{"name": "config", "configMap": {"name": config}}]
    pod["containers"][0]["env"] = [
        {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "password", "key": "password"}}}
    ]
    return deployment


async def _create_needs(world: World) -> None:
    await world.create(CONFIGMAPS, _object(CONFIGMAPS, "settings", data={"colour": "blue"}))
    await world.create(SECRETS, _object(SECRETS, "password", data={"password": "c2VjcmV0"}))
    await world.create(SERVICE_ACCOUNTS, _object(SERVICE_ACCOUNTS, "runner"))


async def _holders(world: World, resource: Resource, name: str) -> set[str]:
    """Return the members that have the object."""
    return {member.name for member in world.members.values() if await member.find(resource, name) is not None}


async def _whereabouts(world: World) -> Mapping[str, set[str]]:
    return {name: await _holders(world, resource, name) for resource, name in (*NEEDS, (DEPLOYMENTS, "web"))}


async def _until_everything_is_in(world: World, *clusters: str) -> None:
    where = {name: set(clusters) for name in ("settings", "password", "runner", "web")}
    await world.until_equal(lambda: _whereabouts(world), where)


async def test_what_a_deployment_needs_goes_with_it_and_leaves_with_it() -> None:
    async with a_world() as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "north": 1}))
        await _create_needs(world)
        await world.create(DEPLOYMENTS, _needy_deployment())
        await _until_everything_is_in(world, "east", "north")

        placement = [{"cluster": "west", "preferences": {"weight": 1}}]
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"placement": placement}})
        await _until_everything_is_in(world, "west")

        await world.user.delete(DEPLOYMENTS, "web", "default")
        await world.until_gone(DEPLOYMENTS, "web")
        await _until_everything_is_in(world)
        assert await world.find(CONFIGMAPS, "settings") is not None
