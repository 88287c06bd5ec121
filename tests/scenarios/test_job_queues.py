"""Queues over the whole fleet: what waits holds nothing, and starts in order (docs/reference/queues.md)."""

from typing import Any

import pytest
from tests.scenarios.test_gangs import NODES, SIZES, a_job, job_policy, pods, waits
from tests.support.world import World, a_world

from federation.api.resources import (
    CAPACITY_FLAVORS,
    CLUSTER_JOB_QUEUES,
    CORE_GROUP,
    FEDERATED_OBJECTS,
    JOB_QUEUES,
    PROPAGATION_POLICIES,
)
from federation.apimachinery.resources import JOBS, Object
from federation.scheduling.jobqueues import ADMISSION, Phase

API = f"{CORE_GROUP}/v1alpha1"


def a_flavor(name: str = "any", **spec: Any) -> Object:
    return {"apiVersion": API, "kind": "CapacityFlavor", "metadata": {"name": name}, "spec": spec}


def a_cluster_queue(name: str = "ml", cores: str = "100", flavor: str = "any", **spec: Any) -> Object:
    quota = {"name": flavor, "resources": [{"name": "cpu", "nominalQuota": cores}]}
    body = {"flavors": [quota], "namespaceSelector": {}, **spec}
    return {"apiVersion": API, "kind": "ClusterJobQueue", "metadata": {"name": name}, "spec": body}


def a_queue(name: str = "team", target: str = "ml") -> Object:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": API, "kind": "JobQueue", "metadata": metadata, "spec": {"clusterJobQueue": target}}


def a_queued_job(name: str, pods_: int, cpu: str = "2", queue: str = "team", **labels: str) -> Object:
    job = a_job(name, pods=pods_, cpu=cpu)
    job["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": queue, **labels}
    return job


async def with_queues(world: World, **queue: Any) -> None:
    await world.create(PROPAGATION_POLICIES, job_policy())
    await world.create(CAPACITY_FLAVORS, a_flavor())
    await world.create(CLUSTER_JOB_QUEUES, a_cluster_queue(**queue))
    await world.create(JOB_QUEUES, a_queue())


async def placed(world: World, name: str) -> list[str]:
    federated = await world.find(FEDERATED_OBJECTS, f"{name}-jobs.batch")
    entries = ((federated or {}).get("spec") or {}).get("placements") or ()
    return sorted(item["cluster"] for entry in entries for item in entry["placement"])


async def waiting(world: World) -> list[Object]:
    queue = await world.find(JOB_QUEUES, "team")
    found: list[Object] = ((queue or {}).get("status") or {}).get("waiting") or []
    return found


async def names_waiting(world: World) -> list[str]:
    return [each["name"] for each in await waiting(world)]


@pytest.mark.slow("the first world of its kind in a worker is made from nothing")
async def test_a_job_above_the_quota_waits_with_nothing_in_members_and_starts_when_another_has_ended() -> None:
    async with a_world(members=tuple(SIZES), nodes=NODES) as world:
        await with_queues(world, cores="60")
        await world.create(JOBS, a_queued_job("first", 24))
        await world.until(lambda: placed(world, "first"))
        await world.create(JOBS, a_queued_job("second", 24))

        await world.until_equal(lambda: names_waiting(world), ["second"])
        await world.settle()

        [line] = await waiting(world)
        assert line["position"] == 1
        assert line["waitsFor"] == "needs 48 cores, ClusterJobQueue ml has 12 of flavor any free"
        assert await waits(world, "second") == "waits in JobQueue team"
        assert await placed(world, "second") == []
        assert sum((await pods(world)).values()) == 24

        await world.user.delete(JOBS, "first", namespace="default")

        await world.until(lambda: placed(world, "second"))
        federated = await world.find(FEDERATED_OBJECTS, "second-jobs.batch")
        admission = ADMISSION.of(federated or {})
        assert admission is not None
        assert (admission.phase, admission.holds) == (Phase.ADMITTED, {"any": {"cpu": 48_000}})
