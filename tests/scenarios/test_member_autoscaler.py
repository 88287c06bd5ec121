"""An autoscaler in the members owns the replicas: the federation never writes them, and the total follows."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from tests.support.manifests import a_deployment, a_policy, an_override
from tests.support.world import World, a_world
from tests.support.worldmember import Member

from federation.api import names
from federation.api.resources import OVERRIDE_POLICIES, PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS, Object
from federation.client.client import PatchType
from federation.simulator.controllers.names import SIMULATOR_CPU_LOAD

LOADS = {"east": "0s=200m 5m=200m 15m=800m 30m=800m 35m=300m", "west": "0s=300m 20m=300m 40m=600m"}
"""The CPU use of the workload over the hour, by member."""
SCALER = "kube-controller-manager"


def an_autoscaler() -> Object:
    metric = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    return {
        "apiVersion": HORIZONTAL_POD_AUTOSCALERS.api_version,
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": 2,
            "maxReplicas": 20,
            "metrics": [{"type": "Resource", "resource": metric}],
        },
    }


def a_scaled_deployment(*, is_retained: bool) -> Object:
    deployment = a_deployment("web", replicas=3)
    if is_retained:
        deployment["metadata"]["annotations"] = {names.RETAIN_REPLICAS: "true"}
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = {"requests": {"cpu": "100m"}}
    return deployment


@dataclass
class Recording:
    """Every replica count that a member's Deployment had, and everybody who owned it."""

    replicas: list[int] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)
    """Managers other than the autoscaler that owned the replicas."""


@contextlib.asynccontextmanager
async def recording(member: Member) -> AsyncIterator[Recording]:
    """Watch the member's Deployment during the block."""
    found = Recording()

    async def watch() -> None:
        start = (await member.admin.list(DEPLOYMENTS, "default")).resource_version
        async for batch in member.admin.watch(DEPLOYMENTS, "default", resource_version=start):
            for event in batch:
                if event.object["kind"] != "Deployment" or "spec" not in event.object:
                    continue
                count = event.object["spec"]["replicas"]
                if not found.replicas or found.replicas[-1] != count:
                    found.replicas.append(count)
                owners = owners_of_replicas(event.object)
                found.strangers += [each for each in owners if each != SCALER]

    task = asyncio.create_task(watch())
    try:
        yield found
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def owners_of_replicas(deployment: Object) -> list[str]:
    return [
        entry["manager"]
        for entry in deployment["metadata"].get("managedFields") or ()
        if "f:replicas" in entry["fieldsV1"].get("f:spec", {}) and entry.get("subresource") != "status"
    ]


async def minutes(world: World, count: float) -> None:
    for _ in range(round(count * 60)):
        await world.clock.advance(1)


async def begin(world: World, *, is_retained: bool = False) -> None:
    """Federate the Deployment, put an autoscaler into each member and wait until it owns the replicas."""
    await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "west": 1}, schedulingMode="Duplicate"))
    await world.create(DEPLOYMENTS, a_scaled_deployment(is_retained=is_retained))
    await world.until_available("web", 6)
    for name, load in LOADS.items():
        member = world.members[name]
        await member.merge(DEPLOYMENTS, "web", {"metadata": {"annotations": {SIMULATOR_CPU_LOAD: load}}})
        await member.admin.create(HORIZONTAL_POD_AUTOSCALERS, an_autoscaler())


@pytest.mark.slow("an hour with pods")
@pytest.mark.parametrize("is_retained", [True, False], ids=["by annotation", "by itself"])
async def test_an_autoscaler_scales_for_an_hour_while_template_override_and_policy_change(is_retained: bool) -> None:
    async with a_world(members=("east", "north", "west")) as world:
        await begin(world, is_retained=is_retained)
        await minutes(world, 2)
        async with recording(world.members["east"]) as east, recording(world.members["west"]) as west:
            await world.scale("web", 5)  # the template's number: no member has to follow it
            await minutes(world, 8)
            await follows(world)
            image = {"spec": {"template": {"spec": {"containers": [{"name": "web", "image": "nginx:1.28"}]}}}}
            await world.user.patch(DEPLOYMENTS, "web", image, patch_type=PatchType.STRATEGIC, namespace="default")
            await minutes(world, 10)
            await follows(world)
            override = an_override("east", "/spec/minReadySeconds", 5)
            override["spec"]["overrideRules"][0]["overriders"]["jsonpatch"][0]["operator"] = "add"
            await world.create(OVERRIDE_POLICIES, override)
            await minutes(world, 10)
            await world.restart()
            await minutes(world, 10)
            await follows(world)
            placement = [{"cluster": name} for name in ("east", "north", "west")]
            await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"placement": placement}})
            await minutes(world, 20)
            await follows(world)

        assert (east.strangers, west.strangers) == ([], [])
        # 800m and 600m at 50m a pod, within the autoscaler's tolerance of a tenth.
        assert max(east.replicas) in (15, 16)
        assert max(west.replicas) in (11, 12)
        # A write of the template's number would show as a dip on the way up, or a jump on the way down.
        assert east.replicas == climbs_and_falls(east.replicas)
        assert west.replicas == climbs_and_falls(west.replicas)
        assert await world.replicas("web") == {"east": 6, "north": 5, "west": max(west.replicas)}
        copy = await world.members["east"].admin.get(DEPLOYMENTS, "web", "default")
        assert copy["spec"]["minReadySeconds"] == 5
        assert copy["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx:1.28"


async def follows(world: World) -> None:
    """Wait until the host's status counts the replicas that the members have."""

    async def look() -> bool:
        return (await world.status("web")).get("replicas") == sum((await world.replicas("web")).values())

    await world.until(look, "the host's status has the members' total")


def climbs_and_falls(counts: list[int]) -> list[int]:
    """Return the counts sorted up to the largest and down from there."""
    peak = counts.index(max(counts))
    return sorted(counts[: peak + 1]) + sorted(counts[peak + 1 :], reverse=True)
