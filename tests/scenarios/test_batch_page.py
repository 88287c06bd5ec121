"""The manifests of docs/batch.md, applied to members of 48, 72 and 96 cores, do what the page says."""

import copy
import re
from functools import cache
from typing import Any

import pytest
import yaml
from tests.scenarios.test_divided_groups import SETS, a_scaled_definition, groups
from tests.scenarios.test_gangs import NODES, SIZES, a_definition, everywhere, waits
from tests.scenarios.test_kueue_dispatch import a_workload, nominated, submit, with_kueue
from tests.support.vectors import ROOT
from tests.support.world import World, a_world

from federation.api.resources import (
    CLUSTER_PROPAGATION_POLICIES,
    FEDERATED_CLUSTERS,
    FEDERATED_TYPE_CONFIGS,
    PROPAGATION_POLICIES,
)
from federation.apimachinery.resources import CRDS, JOBS, PODS, RESOURCE_CLAIM_TEMPLATES, Object, Resource
from federation.simulator.options import NodeDevices, NodeShape

RAY_JOBS = Resource("ray.io", "v1", "RayJob", "rayjobs")
PYTORCH_JOBS = Resource("kubeflow.org", "v1", "PyTorchJob", "pytorchjobs")
GPUS = {"nvidia.com/gpu": "4"}
TAINT = {"key": "nvidia.com/gpu", "value": "", "effect": "NoSchedule"}


@cache
def manifests() -> dict[str, Object]:
    """Return the manifests of the page by kind."""
    page = (ROOT / "docs" / "batch.md").read_text()
    found = [yaml.safe_load(text) for text in re.findall(r"^```yaml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)]
    return {manifest["kind"]: manifest for manifest in found}


def gpu_node(name: str) -> NodeShape:
    return NodeShape(name, cpu="32", extended=GPUS, labels={"pool": "gpu"}, taints=(TAINT,))


async def clusters_with(world: World, resource: Resource, name: str) -> list[str]:
    return [cluster for cluster, member in world.members.items() if await member.find(resource, name)]


@pytest.mark.slow("definitions in four members, and a world of its own")
async def test_the_objects_of_the_page_go_where_the_page_says() -> None:
    nodes = {**NODES, "medium": [*NODES["medium"], gpu_node("gpu-1")], "huge": [gpu_node("gpu-1"), gpu_node("gpu-2")]}
    async with a_world(members=tuple(SIZES), nodes=nodes) as world:
        for resource in (RAY_JOBS, PYTORCH_JOBS):
            await world.create(CRDS, a_definition(resource))
        await world.create(CLUSTER_PROPAGATION_POLICIES, everywhere())
        await world.create(PROPAGATION_POLICIES, manifests()["PropagationPolicy"])

        async def served() -> set[str]:
            found = (await world.user.list(FEDERATED_CLUSTERS)).items
            kinds = {kind["kind"] for c in found for kind in (c.get("status") or {}).get("apiResourceTypes") or ()}
            return kinds & {"RayJob", "PyTorchJob"}

        await world.until_equal(served, {"RayJob", "PyTorchJob"})
        await world.settle()
        await world.create(RAY_JOBS, manifests()["RayJob"])
        await world.create(PYTORCH_JOBS, manifests()["PyTorchJob"])

        await world.until_equal(lambda: clusters_with(world, RAY_JOBS, "tune"), ["large"])
        message = await world.until(lambda: waits(world, "train", "pytorchjobs.kubeflow.org"))
        assert "needs 8 nvidia.com/gpu, the largest of 3 clusters has 4" in message

        await world.add_member("huge", {})
        await world.join("huge")
        await world.until_equal(lambda: clusters_with(world, PYTORCH_JOBS, "train"), ["huge"])


async def test_the_configuration_of_the_page_is_accepted() -> None:
    config: dict[str, Any] = manifests()["FederatedTypeConfig"]
    async with a_world(members=()) as world:
        created = await world.create(FEDERATED_TYPE_CONFIGS, config)
        assert created["spec"]["components"] == config["spec"]["components"]


async def test_the_claims_of_the_page_go_where_the_page_says() -> None:
    def gpus(count: int) -> list[NodeShape]:
        return [NodeShape(f"node-{at}", devices=NodeDevices(2)) for at in range(count)]

    async with a_world(members=("two",), nodes={"two": gpus(2), "three": gpus(3)}) as world:
        await world.create(PROPAGATION_POLICIES, manifests()["PropagationPolicy"])
        await world.create(RESOURCE_CLAIM_TEMPLATES, manifests()["ResourceClaimTemplate"])
        await world.create(JOBS, manifests()["Job"])

        async def has_too_few() -> bool:
            return "needs 6 devices of class gpu.example.com with memory >= 40Gi" in await waits(world, "render")

        await world.until(has_too_few)
        await world.add_member("three", {})
        await world.join("three")
        await world.until_equal(lambda: clusters_with(world, JOBS, "render"), ["three"])
        await world.until_equal(lambda: clusters_with(world, RESOURCE_CLAIM_TEMPLATES, "large-gpus"), ["three"])


async def test_the_dispatcher_of_the_page_nominates_as_the_page_says() -> None:
    async with a_world(members=("medium", "large"), nodes=NODES) as world:
        await with_kueue(world, settings=(manifests()["AdmissionCheck"], manifests()["MultiKueueConfig"]))
        await submit(world, a_workload("fits", pods=40))
        await submit(world, a_workload("wide", pods=60))
        await world.until_equal(lambda: nominated(world, "fits"), ["large"])
        await world.settle()
        assert await nominated(world, "wide") is None


async def test_the_pods_of_the_group_on_the_page_start_together() -> None:
    async with a_world(members=tuple(SIZES), nodes=NODES) as world:
        await world.create(PROPAGATION_POLICIES, manifests()["PropagationPolicy"])
        pod = manifests()["Pod"]

        async def create(*numbers: int) -> None:
            for number in numbers:
                metadata = {**pod["metadata"], "name": f"loader-{number}"}
                await world.create(PODS, {**copy.deepcopy(pod), "metadata": metadata})

        await create(*range(7))
        incomplete = "its pod group loader is not complete: 7 of 8 pods exist"
        await world.until_equal(lambda: waits(world, "loader-0", "pods"), incomplete)
        assert [await clusters_with(world, PODS, f"loader-{number}") for number in range(7)] == [[]] * 7
        await create(7)
        for number in range(8):
            name = f"loader-{number}"
            await world.until_equal(lambda name=name: clusters_with(world, PODS, name), ["large"])


@pytest.mark.slow("definitions in three members, and a world of its own")
async def test_the_groups_of_the_page_are_divided_whole() -> None:
    async with a_world(members=tuple(SIZES), nodes=NODES) as world:
        await world.create(CRDS, a_scaled_definition())
        await world.create(CLUSTER_PROPAGATION_POLICIES, everywhere())
        await world.until(lambda: world.members["small"].find(CRDS, SETS.group_resource, ""))
        await world.settle()
        policy = copy.deepcopy(manifests()["PropagationPolicy"])
        policy["spec"]["resourceSelectors"] = [{"apiVersion": SETS.api_version, "kind": SETS.kind}]
        await world.create(PROPAGATION_POLICIES, policy)
        await world.create(SETS, manifests()["LeaderWorkerSet"])

        async def placed() -> int:
            return sum((await groups(world)).values())

        await world.until_equal(placed, 3)
        await world.merge(SETS, "serve", {"spec": {"replicas": 5}})
        await world.settle()
        assert await groups(world) == {"small": 1, "medium": 1, "large": 2}
