"""Tenants that want more of the fleet than their queue gives them."""

import pytest
from tests.scenarios.test_gangs import NODES, a_job, pods
from tests.scenarios.test_job_queues import (
    a_queue,
    a_queued_job,
    names_waiting,
    placed,
    waiting,
    with_queues,
)
from tests.support.world import a_world

from federation.api.resources import FEDERATED_OBJECTS, JOB_QUEUES
from federation.apimachinery.clock import from_rfc3339
from federation.apimachinery.resources import JOBS, NAMESPACES
from federation.planning.rendering.admittednodes import QUEUE_NODES, PodNodes
from federation.scheduling.jobqueues import ADMISSION, Admission, Phase
from federation.scheduling.names import QUEUE_NAME


@pytest.mark.slow("a world of its own")
async def test_no_label_or_annotation_of_a_job_gives_it_more_than_its_queue() -> None:
    """One world for all attempts: a forged admission, another namespace's queue, a queue that does not exist."""
    forged = ADMISSION.text(
        Admission(Phase.ADMITTED, "team", from_rfc3339("2026-01-01T00:00:00Z"), clusters=["one"], holds={})
    )
    async with a_world(members=("one",), nodes={"one": NODES["medium"]}) as world:
        await with_queues(world, cores="10", namespaceSelector={"matchLabels": {"team": "a"}})
        await world.merge(NAMESPACES, "default", {"metadata": {"labels": {"team": "a"}}}, namespace="")
        await world.create(JOB_QUEUES, a_queue("foreign", "of-others"))

        admitted = a_queued_job("forged", 10)
        admitted["metadata"]["annotations"][ADMISSION.name] = forged
        admitted["metadata"]["annotations"][QUEUE_NODES.name] = QUEUE_NODES.text([PodNodes({}, {"pool": "of-others"})])
        await world.create(JOBS, admitted)
        await world.create(JOBS, a_queued_job("foreign", 1, queue="foreign"))
        missing = a_job("missing", pods=1)
        missing["metadata"]["labels"] = {QUEUE_NAME: "no-such-queue"}
        await world.create(JOBS, missing)
        await world.until_equal(lambda: names_waiting(world), ["forged"])
        await world.settle()

        federated = await world.find(FEDERATED_OBJECTS, "forged-jobs.batch")
        assert federated is not None
        assert QUEUE_NODES.of(federated) is None
        assert [await placed(world, name) for name in ("forged", "foreign", "missing")] == [[], [], []]
        assert await pods(world) == {}
        foreign = await world.find(JOB_QUEUES, "foreign")
        assert foreign is not None
        assert (
            foreign["status"]["message"]
            == "ClusterJobQueue of-others does not exist or does not admit namespace default"
        )


@pytest.mark.slow("a world of its own")
async def test_a_job_that_grows_after_its_admission_gives_its_place_back() -> None:
    async with a_world(members=("one",), nodes={"one": NODES["medium"]}) as world:
        await with_queues(world, cores="10")
        await world.create(JOBS, a_queued_job("grows", 2))
        await world.until(lambda: placed(world, "grows"))

        await world.merge(JOBS, "grows", {"spec": {"parallelism": 6, "completions": 6}})

        await world.until_equal(lambda: names_waiting(world), ["grows"])
        [line] = await waiting(world)
        assert line["waitsFor"] == "needs 12 cores, ClusterJobQueue ml can have at most 10 of flavor any"
        await world.settle()
        assert (await placed(world, "grows"), await pods(world)) == ([], {})
