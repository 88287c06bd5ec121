"""Devices of members: pods that claim them go where they are, take their claims along, and wait where there are none."""

from typing import Any

import pytest
from tests.scenarios.test_gangs import a_job, job_policy, waits
from tests.support.devices import DRIVER, LARGE, a_claim_template, exactly
from tests.support.world import World, a_world

from federation.api.resources import FEDERATED_CLUSTERS, FEDERATED_RESOURCE_QUOTAS, PROPAGATION_POLICIES
from federation.apimachinery.resources import JOBS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS, Object
from federation.planning.clusters.deviceinventory import class_resource
from federation.simulator.options import NodeDevices, NodeShape

NODES = {
    "small": [NodeShape("node-1", devices=NodeDevices(4, "l4", "24Gi"))],
    "large": [NodeShape(f"node-{at}", devices=NodeDevices(4)) for at in range(2)],
    "plain": [NodeShape("node-1")],
}


def a_gpu_job(pods: int, name: str = "train", template: str = "gpus") -> Object:
    job = a_job(name, pods=pods, cpu="1")
    spec = job["spec"]["template"]["spec"]
    spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": template}]
    spec["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
    return job


async def allocated(world: World, member: str) -> int:
    """Return the devices that pods have in a member."""
    claims = (await world.members[member].admin.list(RESOURCE_CLAIMS, namespace="default")).items
    return sum(
        len(((claim.get("status") or {}).get("allocation") or {}).get("devices", {}).get("results", ()))
        for claim in claims
    )


async def free(world: World, member: str) -> Any:
    """Return the free devices of a member as it reports them."""
    cluster = await world.find(FEDERATED_CLUSTERS, member, "")
    return ((cluster or {})["status"].get("resources") or {}).get("available", {}).get(class_resource(DRIVER))


@pytest.mark.slow("the first world of its kind in a worker is made from nothing")
async def test_a_job_gets_the_devices_that_its_selectors_ask_for_or_waits() -> None:
    async with a_world(members=tuple(NODES), nodes=NODES) as world:
        await world.create(PROPAGATION_POLICIES, job_policy())
        await world.create(JOBS, a_gpu_job(3))
        waiting = await world.until(lambda: waits(world))
        assert "ResourceClaimTemplate gpus does not exist in namespace default; create it" in waiting

        await world.create(RESOURCE_CLAIM_TEMPLATES, a_claim_template("gpus", exactly(2, LARGE)))

        async def has_devices() -> int:
            return await allocated(world, "large")

        await world.until_equal(has_devices, 6)
        assert await allocated(world, "small") == 0
        assert await world.members["large"].find(RESOURCE_CLAIM_TEMPLATES, "gpus") is not None
        assert await world.members["plain"].find(RESOURCE_CLAIM_TEMPLATES, "gpus") is None

        async def reported() -> Any:
            return await free(world, "large")

        await world.until_equal(reported, "2")

        await world.create(JOBS, a_gpu_job(2, "second"))
        message = await world.until(lambda: waits(world, "second"))
        assert "needs 4 devices of class gpu.example.com with memory >= 40Gi" in message

        await world.create(RESOURCE_CLAIM_TEMPLATES, a_claim_template("many", exactly(5)))
        await world.create(JOBS, a_gpu_job(1, "third", "many"))
        message = await world.until(lambda: waits(world, "third"))
        assert "each pod of pods needs 5 devices of class gpu.example.com on one node" in message
        assert "the best of 3 clusters has 4" in message
        assert await allocated(world, "small") == 0


async def test_quotas_count_devices_by_class() -> None:
    async with a_world(members=tuple(NODES), nodes=NODES) as world:
        quota = {
            "apiVersion": "core.kubeadmiral.io/v1alpha1",
            "kind": "FederatedResourceQuota",
            "metadata": {"name": "gpus", "namespace": "default"},
            "spec": {"overall": {class_resource(DRIVER): 3}},
        }
        await world.create(FEDERATED_RESOURCE_QUOTAS, quota)
        await world.create(PROPAGATION_POLICIES, job_policy())
        await world.create(RESOURCE_CLAIM_TEMPLATES, a_claim_template("gpus", exactly(2)))
        await world.create(JOBS, a_gpu_job(2))

        async def is_refused() -> bool:
            return "quota" in (await waits(world)).lower()

        await world.until(is_refused)
