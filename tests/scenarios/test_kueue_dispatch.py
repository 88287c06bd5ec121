"""Workloads of a manager cluster get the worker that the scheduler chooses (docs/reference/kueue.md).

Kueue's definitions accept any field here, and its controller's writes are made by the tests; the real ones are in
tests/kubernetes/test_kueue.py.
"""

import re
from typing import Any

import pytest
import yaml
from tests.scenarios.test_gangs import a_definition, a_job, job_policy, nodes
from tests.support.vectors import ROOT
from tests.support.world import World, a_world

from federation.api.resources import FEDERATED_CLUSTERS, OVERRIDE_POLICIES, PROPAGATION_POLICIES
from federation.apimachinery.resources import CRDS, JOBS, Object, Resource
from federation.features.kueue.names import (
    ADMISSION_CHECKS,
    CLUSTER_QUEUES,
    DISPATCHES,
    LOCAL_QUEUES,
    MULTI_KUEUE_CONFIGS,
    WORKLOADS,
)

MEMBERS = {"small": nodes(48), "large": nodes(96), "huge": nodes(192)}
KINDS = (WORKLOADS, ADMISSION_CHECKS, MULTI_KUEUE_CONFIGS, CLUSTER_QUEUES, LOCAL_QUEUES)


def of_kind(resource: Resource, name: str, **fields: Any) -> Object:
    metadata: Object = {"name": name} | ({"namespace": "default"} if resource.namespaced else {})
    labels = fields.pop("labels", None)
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": metadata | ({"labels": labels} if labels else {}),
        **fields,
    }


def definition(resource: Resource) -> Object:
    found = a_definition(resource)
    found["spec"]["scope"] = "Namespaced" if resource.namespaced else "Cluster"
    found["spec"]["versions"][0]["subresources"] = {"status": {}}
    return found


def a_workload(name: str, pods: int, cpu: str = "2", **status: Any) -> Object:
    container = {"name": "work", "image": "work:1", "resources": {"requests": {"cpu": cpu}}}
    pod_set = {"name": "main", "count": pods, "template": {"spec": {"containers": [container]}}}
    return of_kind(WORKLOADS, name, spec={"queueName": "team", "podSets": [pod_set]})


WAITS = {
    "conditions": [{"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": ""}],
    "admissionChecks": [{"name": "workers", "state": "Pending", "message": ""}],
}


def check_and_config(*clusters: str) -> tuple[Object, Object]:
    """Return the check `workers` and its MultiKueueConfig."""
    parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": "fleet"}
    check = {"controllerName": "kueue.x-k8s.io/multikueue", "parameters": parameters}
    listed = {"clusters": sorted(clusters)}
    return (
        of_kind(ADMISSION_CHECKS, "workers", spec=check),
        of_kind(MULTI_KUEUE_CONFIGS, "fleet", spec=listed, labels={DISPATCHES: "true"}),
    )


async def with_kueue(world: World, quota: str = "1000", settings: tuple[Object, Object] | None = None) -> None:
    """Install Kueue's kinds, a check for all members, and a queue with so many cores in each member."""
    for resource in KINDS:
        await world.create(CRDS, definition(resource))
    check, config = settings or check_and_config(*world.members)
    await world.create(ADMISSION_CHECKS, check)
    await world.create(MULTI_KUEUE_CONFIGS, config)
    resources = [{"name": "cpu", "nominalQuota": quota}]
    group = {"coveredResources": ["cpu"], "flavors": [{"name": "default", "resources": resources}]}
    for member in world.members.values():
        for resource in (WORKLOADS, CLUSTER_QUEUES, LOCAL_QUEUES):
            await member.admin.create(CRDS, definition(resource))
        await member.admin.create(CLUSTER_QUEUES, of_kind(CLUSTER_QUEUES, "all", spec={"resourceGroups": [group]}))
        await member.admin.create(LOCAL_QUEUES, of_kind(LOCAL_QUEUES, "team", spec={"clusterQueue": "all"}))

    async def served() -> int:
        found = (await world.user.list(FEDERATED_CLUSTERS)).items
        return sum(
            any(kind["kind"] == "Workload" for kind in (cluster.get("status") or {}).get("apiResourceTypes") or ())
            for cluster in found
        )

    await world.until_equal(served, len(world.members))
    await world.settle()


async def submit(world: World, workload: Object, **status: Any) -> None:
    """Create a Workload, and reserve quota for it as Kueue does."""
    created = await world.create(WORKLOADS, workload)
    await world.user.patch_status(WORKLOADS, created, {**WAITS, **status}, field_manager="kueue-admission")


async def nominated(world: World, name: str) -> Any:
    found = await world.find(WORKLOADS, name)
    return ((found or {}).get("status") or {}).get("nominatedClusterNames")


async def events(world: World) -> str:
    return "\n".join(f"{reason}: {message}" for reason, message in await world.events())


@pytest.mark.slow("the first world of its kind in a worker is made from nothing")
async def test_a_workload_is_nominated_where_all_of_its_pods_fit() -> None:
    async with a_world(members=tuple(MEMBERS), nodes=MEMBERS) as world:
        await with_kueue(world, quota="100")
        await submit(world, a_workload("fits", pods=40))

        async def is_large_enough() -> bool:
            return await nominated(world, "fits") in (["large"], ["huge"])

        await world.until(is_large_enough)

        # The quota of the queues of workers is smaller than their nodes.
        await submit(world, a_workload("wide", pods=60))

        async def is_told() -> bool:
            return "huge: its queue has 100 of 120 cores free" in await events(world)

        await world.until(is_told)
        assert await nominated(world, "wide") is None


async def test_a_forged_nomination_is_replaced_and_a_checkless_workload_ignored() -> None:
    async with a_world(members=("small", "large"), nodes=MEMBERS) as world:
        await with_kueue(world)
        await submit(world, a_workload("forged", pods=40), nominatedClusterNames=["elsewhere", "small"])
        await world.until_equal(lambda: nominated(world, "forged"), ["large"])
        odd = a_workload("odd", pods=1)
        odd["spec"]["podSets"] = [{"count": 10**18, "template": "nonsense"}]
        await submit(world, odd)
        await submit(world, a_workload("ready", pods=1), admissionChecks=[{"name": "workers", "state": "Ready"}])
        await submit(world, a_workload("placed", pods=1), clusterName="small")
        await world.settle()
        assert [await nominated(world, name) for name in ("odd", "ready", "placed")] == [None] * 3


async def test_the_queue_of_a_job_is_another_one_where_the_override_of_the_page_says_so() -> None:
    page = (ROOT / "docs" / "reference" / "kueue.md").read_text()
    [override] = map(yaml.safe_load, re.findall(r"^```yaml\n(.*?)^```", page, re.DOTALL | re.MULTILINE))
    async with a_world(members=("east", "west")) as world:
        await world.create(OVERRIDE_POLICIES, override)
        await world.create(PROPAGATION_POLICIES, job_policy(schedulingMode="Duplicate"))
        job = a_job(pods=1, mode="NonIndexed")
        job["metadata"]["labels"] = {
            "kueue.x-k8s.io/queue-name": "team",
            "kubeadmiral.io/override-policy-name": override["metadata"]["name"],
        }
        await world.create(JOBS, job)

        async def queues() -> list[str | None]:
            found = [await world.members[name].find(JOBS, "train") for name in ("east", "west")]
            return [
                (each or {"metadata": {}})["metadata"].get("labels", {}).get("kueue.x-k8s.io/queue-name")
                for each in found
            ]

        await world.until_equal(queues, ["gpu-team", "team"])
