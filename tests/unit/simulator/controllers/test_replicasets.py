"""Which pods simulated ReplicaSets delete when they are scaled in, and names of pods that are taken."""

import random
from typing import Any

import pytest
from tests.support.simulatedmember import Member, a_member, a_template, a_workload, an_object

from federation.api.crds import crd_manifests
from federation.api.names import POD_DELETION_COST
from federation.api.resources import CLONE_SETS
from federation.apimachinery.resources import DAEMON_SETS, JOBS, PODS, REPLICA_SETS, Resource
from federation.simulator.controllers.pods import NameSuffixes


@pytest.mark.parametrize(
    ("costs", "kept"),
    [
        pytest.param(["1", "-100", "200", None], "200", id="the highest cost stays"),
    ],
)
async def test_pods_of_lower_deletion_cost_are_deleted_first(costs: list[str | None], kept: str) -> None:
    async with a_member() as member:
        await member.create(REPLICA_SETS, a_workload(REPLICA_SETS, replicas=4))
        await member.until_equal(lambda: _count(member), 4)
        for name, cost in zip(await member.ready_pods(), costs, strict=True):
            if cost is not None:
                await member.merge(PODS, name, {"metadata": {"annotations": {POD_DELETION_COST: cost}}})
        await member.merge(REPLICA_SETS, "web", {"spec": {"replicas": 1}})
        await member.until_equal(lambda: _count(member), 1)
        (left,) = await member.ready_pods()
        assert (await member.get(PODS, left))["metadata"]["annotations"][POD_DELETION_COST] == kept


async def test_a_pod_that_is_not_ready_goes_before_one_of_lower_cost() -> None:
    async with a_member() as member:
        await member.create(REPLICA_SETS, a_workload(REPLICA_SETS, replicas=2))
        await member.until_equal(lambda: _count(member), 2)
        first, second = await member.ready_pods()
        await member.merge(PODS, first, {"metadata": {"annotations": {POD_DELETION_COST: "-100"}}})
        unready = {"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        await member.client.patch(
            PODS, second, {"status": {"conditions": [unready]}}, namespace="default", subresource="status"
        )
        await member.merge(REPLICA_SETS, "web", {"spec": {"replicas": 1}})
        await member.until_equal(lambda: member.names(PODS), [first])


@pytest.mark.parametrize("resource", [REPLICA_SETS, DAEMON_SETS, JOBS, CLONE_SETS], ids=lambda each: each.kind)
async def test_names_that_are_taken_are_replaced_by_others(resource: Resource) -> None:
    """A simulated member draws the same names after each restart, so those of its earlier pods come again."""
    async with a_member() as member:
        await member.registry.install_crds(
            [crd for crd in crd_manifests() if crd["metadata"]["name"] == CLONE_SETS.group_resource]
        )
        names = NameSuffixes(random.Random("east"))  # as a member called "east" draws them
        for _ in range(3):
            await member.create(PODS, an_object(PODS, f"web-{names.new()}", spec=a_template()["spec"]))
        workload = a_workload(resource)
        if resource == JOBS:
            del workload["spec"]["selector"]
            workload["spec"]["template"]["spec"]["restartPolicy"] = "Never"
        await member.create(resource, workload)
        await member.until_equal(lambda: _owned(member), 1)


async def _owned(member: Member) -> int:
    return sum("ownerReferences" in pod["metadata"] for pod in await member.all(PODS))


async def _count(member: Any) -> int:
    return len(await member.ready_pods())
