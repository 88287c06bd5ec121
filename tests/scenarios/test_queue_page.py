"""The manifests of docs/reference/queues.md, applied to a fleet with A100 nodes, do what the page says."""

import re
from typing import Any

import pytest
import yaml
from tests.scenarios.test_gangs import job_policy, nodes
from tests.scenarios.test_job_queues import a_queued_job, placed
from tests.support.vectors import ROOT
from tests.support.world import World, a_world

from federation.api.resources import (
    CAPACITY_FLAVORS,
    CLUSTER_JOB_QUEUES,
    FEDERATED_OBJECTS,
    JOB_QUEUES,
    PROPAGATION_POLICIES,
)
from federation.apimachinery.resources import JOBS, NAMESPACES, Object, Resource
from federation.scheduling.jobqueues import ADMISSION
from federation.simulator.options import NodeShape

KINDS: dict[str, Resource] = {each.kind: each for each in (CAPACITY_FLAVORS, CLUSTER_JOB_QUEUES, JOB_QUEUES)}
GPU = "nvidia.com/gpu"


def manifests() -> list[Object]:
    page = (ROOT / "docs" / "reference" / "queues.md").read_text()
    found = re.findall(r"^```yaml\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    return [manifest for text in found for manifest in yaml.safe_load_all(text)]


async def holds(world: World, name: str) -> dict[str, dict[str, int]]:
    admission = ADMISSION.of(await world.find(FEDERATED_OBJECTS, f"{name}-jobs.batch") or {})
    return {} if admission is None else admission.holds


def on_gpus(job: Object) -> Object:
    pod: dict[str, Any] = job["spec"]["template"]["spec"]
    pod["nodeSelector"] = {"gpu": "a100"}
    pod["containers"][0]["resources"]["limits"] = {GPU: "1"}
    return job


@pytest.mark.slow("a world of its own")
async def test_jobs_use_the_flavors_that_the_page_describes() -> None:
    a100 = [
        NodeShape(f"gpu-{n}", cpu="32", memory="128Gi", extended={GPU: "8"}, labels={"gpu": "a100"}) for n in (1, 2)
    ]
    members = {"batch": {"tier": "batch"}, "web": {"tier": "web"}}
    async with a_world(members=tuple(members), labels=members, nodes={"batch": a100, "web": nodes(48)}) as world:
        await world.create(PROPAGATION_POLICIES, job_policy())
        for manifest in manifests():
            await world.create(KINDS[manifest["kind"]], manifest)
        await world.create(JOBS, a_queued_job("plain", 10, cpu="2"))
        await world.create(JOBS, on_gpus(a_queued_job("gpus", 12, cpu="2")))
        await world.settle()
        assert (await placed(world, "plain"), await placed(world, "gpus")) == ([], []), "the namespace has no label"

        await world.merge(NAMESPACES, "default", {"metadata": {"labels": {"team": "research"}}}, namespace="")

        await world.until_equal(lambda: placed(world, "gpus"), ["batch"])
        await world.until_equal(lambda: holds(world, "gpus"), {"a100": {"cpu": 24_000, GPU: 12}})
        await world.until_equal(lambda: holds(world, "plain"), {"any": {"cpu": 20_000}})
