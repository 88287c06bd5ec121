"""Attack: a tenant runs more pods than the quota of his namespace allows, with templates that no pod follows."""

from typing import Any

import pytest
from tests.scenarios.test_job_queues import a_cluster_queue, a_flavor, a_queue
from tests.scenarios.test_quotas import a_quota, a_web
from tests.support.manifests import a_policy
from tests.support.world import World, a_world

from federation.api.resources import (
    CAPACITY_FLAVORS,
    CLUSTER_JOB_QUEUES,
    FEDERATED_RESOURCE_QUOTAS,
    JOB_QUEUES,
    PROPAGATION_POLICIES,
)
from federation.apimachinery.quantity import to_milli
from federation.apimachinery.resources import (
    DEPLOYMENTS,
    PODS,
    REPLICA_SETS,
    REPLICATION_CONTROLLERS,
    Object,
    Resource,
)
from federation.scheduling.names import QUEUE_NAME


async def milli_cpu(world: World, member: str = "east") -> int:
    """Return what all pods of a member request that have not ended."""
    pods = (await world.members[member].admin.list(PODS)).items
    return sum(
        to_milli(container["resources"]["requests"]["cpu"])
        for pod in pods
        for container in pod["spec"]["containers"]
        if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed")
    )


def with_template(cpu: str, image: str, **spec: Any) -> Object:
    containers = [{"name": "web", "image": image, "resources": {"requests": {"cpu": cpu}}}]
    return {"spec": {**spec, "template": {"spec": {"containers": containers}}}}


@pytest.mark.parametrize("spec", [{}, {"paused": True}], ids=["pods that never start", "a paused update"])
async def test_pods_that_a_smaller_template_has_not_replaced_count(spec: Object) -> None:
    async with a_world(members=("east",)) as world:
        await world.create(FEDERATED_RESOURCE_QUOTAS, a_quota(cpu="1100m"))
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}))
        await world.create(DEPLOYMENTS, a_web("web", 2))
        await world.until_replicas("web", {"east": 2})
        await world.settle()
        await world.merge(DEPLOYMENTS, "web", with_template("10m", "registry.invalid/web:2", **spec))
        await world.pass_time(30)
        await world.create(DEPLOYMENTS, a_web("other", 2))
        await world.pass_time(120)
        assert 1000 <= await milli_cpu(world) <= 1100
        await world.restart()
        await world.pass_time(60)
        assert 1000 <= await milli_cpu(world) <= 1100, "a restart forgets nothing"

        await world.merge(DEPLOYMENTS, "web", with_template("10m", "nginx:2", paused=False))
        await world.until_replicas("other", {"east": 2})
        await world.pass_time(60)
        assert await milli_cpu(world) == 1020, "what has been replaced is free"


async def test_a_queue_keeps_what_pods_of_an_earlier_template_hold() -> None:
    async with a_world(members=("east",)) as world:
        await world.create(CAPACITY_FLAVORS, a_flavor())
        await world.create(CLUSTER_JOB_QUEUES, a_cluster_queue(cores="1100m"))
        await world.create(JOB_QUEUES, a_queue())
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}))
        for name in ("web", "other"):
            workload = a_web(name, 2)
            workload["metadata"]["labels"] = {QUEUE_NAME: "team"}
            await world.create(DEPLOYMENTS, workload)
            await world.pass_time(60)
        assert await milli_cpu(world) == 1000
        await world.merge(DEPLOYMENTS, "web", with_template("10m", "registry.invalid/web:2"))
        await world.pass_time(120)
        assert 1000 <= await milli_cpu(world) <= 1020, "the second one waits"
        await world.merge(DEPLOYMENTS, "web", {"spec": {"replicas": 0}})
        await world.until_replicas("other", {"east": 2})


@pytest.mark.parametrize("resource", [REPLICA_SETS, REPLICATION_CONTROLLERS], ids=lambda each: each.kind)
async def test_pods_of_kinds_that_keep_them_count_as_they_were_created(resource: Resource) -> None:
    async with a_world(members=("east",), is_judged=False) as world:
        await world.create(FEDERATED_RESOURCE_QUOTAS, a_quota(cpu="1100m"))
        selectors = [{"apiVersion": resource.api_version, "kind": resource.kind}]
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}, resourceSelectors=selectors))
        for name, replicas in (("web", 2), ("more", 2)):
            workload = {**a_web(name, replicas), "apiVersion": resource.api_version, "kind": resource.kind}
            spec = {key: workload["spec"][key] for key in ("replicas", "selector", "template")}
            if resource is REPLICATION_CONTROLLERS:
                spec["selector"] = spec["selector"]["matchLabels"]
            await world.create(resource, {**workload, "spec": spec})
            await world.pass_time(60)
        assert await milli_cpu(world) == 1000, "the second one waits"
        await world.merge(resource, "web", with_template("10m", "nginx:2"))
        await world.pass_time(60)
        assert await milli_cpu(world) == 1000, "its pods stay as they are, and count"
        await world.merge(resource, "web", {"spec": {"replicas": 0}})
        await world.pass_time(60)
        assert await milli_cpu(world) == 1000, "the second one runs now"
