"""Gangs: the pods of an object start together in one cluster, or none of them is in any member (docs/batch.md)."""

from collections.abc import Sequence
from typing import Any

import pytest
from tests.support.manifests import a_policy
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import CLUSTER_PROPAGATION_POLICIES, FEDERATED_OBJECTS, PROPAGATION_POLICIES
from federation.apimachinery.resources import CRDS, JOBS, PODS, Object, Resource
from federation.controllers.schedule.names import EVENT_SCHEDULED
from federation.simulator.controllers.names import SIMULATOR_RUN_FOR
from federation.simulator.options import NodeShape

RAY_JOBS = Resource("ray.io", "v1", "RayJob", "rayjobs")
NODE_CORES = 24


def nodes(cores: int, node_cores: int = NODE_CORES) -> Sequence[NodeShape]:
    return [NodeShape(f"node-{n}", cpu=str(node_cores), memory="256Gi") for n in range(cores // node_cores)]


SIZES = {"small": 48, "medium": 72, "large": 96}
NODES = {name: nodes(cores) for name, cores in SIZES.items()}


def a_job(name: str = "train", pods: int = 60, cpu: str = "2", mode: str = "Indexed", **annotations: str) -> Object:
    container = {"name": "work", "image": "work:1", "resources": {"requests": {"cpu": cpu}}}
    spec = {"restartPolicy": "Never", "containers": [container]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {
            "completionMode": mode,
            "parallelism": pods,
            "completions": pods,
            "template": {"metadata": {"annotations": {SIMULATOR_RUN_FOR: "1h"}}, "spec": spec},
        },
    }


def job_policy(**spec: Any) -> Object:
    return a_policy(
        {}, name="batch", resourceSelectors=[{"apiVersion": "batch/v1", "kind": "Job"}], **{"placement": [], **spec}
    )


async def pods(world: World, *members: str) -> dict[str, int]:
    """Return the pods of each member that has any."""
    counts = {}
    for name in members or world.members:
        page = await world.members[name].admin.list(PODS, namespace="default")
        counts[name] = len(page.items)
    return {name: count for name, count in counts.items() if count}


async def waits(world: World, name: str = "train", kind: str = "jobs.batch") -> str:
    """Return the message of the object that waits, "" if it does not."""
    federated = await world.find(FEDERATED_OBJECTS, f"{name}-{kind}")
    for condition in ((federated or {}).get("status") or {}).get("conditions") or ():
        if condition["type"] == names.SCHEDULED and condition["status"] == "False":
            return str(condition["message"])
    return ""


@pytest.mark.slow("the first world of its kind in a worker is made from nothing")
async def test_a_job_that_fits_nowhere_waits_whole_and_starts_when_a_cluster_that_holds_it_joins() -> None:
    async with a_world(members=tuple(SIZES), nodes={**NODES, "huge": nodes(144)}) as world:
        await world.create(PROPAGATION_POLICIES, job_policy())
        await world.create(JOBS, a_job())

        message = await world.until(lambda: waits(world))
        await world.settle()

        assert "needs 120 cores, the largest of 3 clusters has 96" in message
        assert await pods(world) == {}
        assert [await member.find(JOBS, "train") for member in world.members.values()] == [None] * 3

        await world.add_member("huge", {})
        await world.join("huge")
        await world.until_ready("huge")
        ready_at = world.clock.monotonic()

        async def is_delivered() -> Any:
            return await world.members["huge"].find(JOBS, "train")

        await world.until(is_delivered)
        assert world.clock.monotonic() - ready_at <= 1.0
        await world.until_equal(lambda: pods(world), {"huge": 60})
        assert await waits(world) == ""


def a_definition(resource: Resource) -> Object:
    """Return the definition of a kind with any fields, which acts in members only."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": resource.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    kind = {"plural": resource.plural, "singular": resource.kind.lower(), "kind": resource.kind}
    return {
        "apiVersion": CRDS.api_version,
        "kind": CRDS.kind,
        "metadata": {"name": resource.group_resource},
        "spec": {"group": resource.group, "scope": "Namespaced", "names": kind, "versions": [version]},
    }


def a_ray_job(workers: int, cpu: str = "8") -> Object:
    def template(cores: str) -> Object:
        return {"spec": {"containers": [{"name": "ray", "image": "ray:2", "resources": {"requests": {"cpu": cores}}}]}}

    group = {"groupName": "workers", "replicas": workers, "minReplicas": workers, "template": template(cpu)}
    cluster = {"headGroupSpec": {"template": template("4")}, "workerGroupSpecs": [group]}
    return {
        "apiVersion": RAY_JOBS.api_version,
        "kind": "RayJob",
        "metadata": {"name": "tune", "namespace": "default"},
        "spec": {"entrypoint": "python tune.py", "submissionMode": "HTTPMode", "rayClusterSpec": cluster},
    }


def everywhere() -> Object:
    """Return a policy that places definitions in all members, also in those that join."""
    policy = a_policy(
        {},
        name="definitions",
        resourceSelectors=[{"apiVersion": CRDS.api_version, "kind": CRDS.kind}],
        placement=[],
        schedulingMode="Duplicate",
        reschedulePolicy={"rescheduleWhen": {"clusterJoined": True}},
    )
    del policy["metadata"]["namespace"]
    return {**policy, "kind": "ClusterPropagationPolicy"}


@pytest.mark.slow("the first world of its kind in a worker is made from nothing")
async def test_a_ray_job_of_84_cores_goes_to_the_cluster_of_96_and_never_to_48() -> None:
    async with a_world(members=tuple(SIZES), nodes=NODES) as world:
        await world.create(CRDS, a_definition(RAY_JOBS))
        await world.create(CLUSTER_PROPAGATION_POLICIES, everywhere())
        selectors = [{"apiVersion": RAY_JOBS.api_version, "kind": "RayJob"}]
        await world.create(PROPAGATION_POLICIES, a_policy({}, name="ray", resourceSelectors=selectors, placement=[]))

        async def defined() -> bool:
            return all([await member.find(CRDS, "rayjobs.ray.io", "") for member in world.members.values()])

        await world.until(defined)
        await world.settle()
        await world.create(RAY_JOBS, a_ray_job(10))

        async def clusters() -> list[str]:
            return [name for name, member in world.members.items() if await member.find(RAY_JOBS, "tune")]

        await world.until_equal(clusters, ["large"])
        placed = next(each for each in await world.events() if each[0] == EVENT_SCHEDULED and "large" in each[1])
        assert placed
        # 13 workers would need more than any member has: what runs stays, and is not started elsewhere.
        await world.merge(RAY_JOBS, "tune", {"spec": a_ray_job(13)["spec"]})
        await world.settle()
        assert await clusters() == ["large"]


async def test_two_gangs_are_not_started_in_the_room_of_one() -> None:
    async with a_world(members=tuple(SIZES), nodes=NODES) as world:
        await world.create(PROPAGATION_POLICIES, job_policy())
        for name in ("one", "two", "three"):
            await world.create(
                JOBS, a_job(name, pods=13, cpu="4")
            )  # 52 cores each: one fits into medium, one into large

        await world.until_equal(lambda: pods(world), {"medium": 13, "large": 13})
        await world.settle()
        assert await pods(world) == {"medium": 13, "large": 13}
        waiting = [text for name in ("one", "two", "three") if (text := await waits(world, name))]
        assert len(waiting) == 1
        assert "needs 52 cores, the freest of 3 clusters has 48 free" in waiting[0]

        (first,) = await jobs(world, "large")
        await world.user.delete(JOBS, first, "default", propagation_policy="Background")
        await world.until_equal(lambda: pods(world), {"medium": 13, "large": 13})


@pytest.mark.slow("the first world of its kind in a worker is made from nothing")
async def test_a_gang_that_waits_still_waits_after_a_restart_and_starts_when_there_is_room() -> None:
    async with a_world(members=tuple(SIZES), nodes={**NODES, "huge": nodes(144)}) as world:
        await world.create(PROPAGATION_POLICIES, job_policy())
        await world.create(JOBS, a_job())
        await world.until(lambda: waits(world))
        await world.restart()
        await world.settle()
        assert await pods(world) == {}
        assert "needs 120 cores" in await waits(world)
        await world.add_member("huge", {})
        await world.join("huge")
        await world.until_equal(lambda: pods(world), {"huge": 60})


@pytest.mark.slow("minutes of a federation")
async def test_a_restart_does_not_give_away_the_room_of_a_gang_whose_pods_do_not_exist_yet() -> None:
    """Nothing runs the RayJob, so no report ever shows its pods."""
    async with a_world(members=("large",), nodes=NODES) as world:
        await world.create(CRDS, a_definition(RAY_JOBS))
        await world.create(CLUSTER_PROPAGATION_POLICIES, everywhere())
        selectors = [{"apiVersion": RAY_JOBS.api_version, "kind": "RayJob"}, {"apiVersion": "batch/v1", "kind": "Job"}]
        await world.create(PROPAGATION_POLICIES, a_policy({}, name="all", resourceSelectors=selectors, placement=[]))
        await world.until(lambda: world.members["large"].find(CRDS, "rayjobs.ray.io", ""))
        await world.settle()
        await world.create(RAY_JOBS, a_ray_job(10))
        await world.until(lambda: world.members["large"].find(RAY_JOBS, "tune"))
        await world.create(JOBS, a_job(pods=13, cpu="4"))

        assert "recent decisions may use the room" in await world.until(lambda: waits(world))
        await world.restart()
        await world.pass_time(60)
        assert await pods(world) == {}
        await world.pass_time(300)
        await world.until_equal(lambda: pods(world), {"large": 13})


@pytest.mark.slow("the first world of its kind in a worker is made from nothing")
async def test_a_gang_whose_member_dies_starts_whole_elsewhere_or_not_at_all() -> None:
    lively: dict[str, Any] = {"failover": {"mode": "Auto", "graceSeconds": 0}}
    async with a_world(members=("large", "medium"), nodes=NODES, toleration_s=5, guard_share=1) as world:
        await world.create(PROPAGATION_POLICIES, job_policy(**lively))
        await world.create(JOBS, a_job("large-only", pods=14, cpu="6"))  # 84 cores
        await world.settle()
        await world.create(JOBS, a_job("fits", pods=10, cpu="6"))  # 60 cores
        await world.settle()
        before = {name: sorted(await jobs(world, name)) for name in world.members}
        assert before == {"large": ["large-only"], "medium": ["fits"]}
        await world.lose("large")
        await world.pass_time(60)
        assert await jobs(world, "medium") == {"fits": 10}, "the other gang does not start there in part"
        assert "needs 84 cores" in await waits(world, "large-only")
        await world.bring_back("large")
        await world.settle()
        await world.lose("medium")
        await world.pass_time(60)
        assert await jobs(world, "large") == {"large-only": 14}
        await world.user.delete(JOBS, "large-only", "default", propagation_policy="Background")
        await world.until_equal(lambda: jobs(world, "large"), {"fits": 10})
        await world.bring_back("medium")
        await world.until_equal(lambda: jobs(world, "medium"), {})


async def jobs(world: World, member: str) -> dict[str, int]:
    """Return the pods by Job of a member."""
    page = await world.members[member].admin.list(PODS, namespace="default")
    counts: dict[str, int] = {}
    for pod in page.items:
        owner = pod["metadata"]["ownerReferences"][0]["name"]
        counts[owner] = counts.get(owner, 0) + 1
    return counts


@pytest.mark.parametrize(
    ("job", "spec"),
    [
        (a_job(pods=20, cpu="6", mode="NonIndexed"), {}),
        (a_job(pods=20, cpu="6", **{names.GANG: "Never"}), {"maxClusters": 1}),
        (a_job(pods=20, cpu="6"), {"gang": "Never", "maxClusters": 1}),
    ],
    ids=["a plain Job", "an annotation", "a policy"],
)
async def test_a_job_that_is_no_gang_starts_with_what_there_is_room_for(job: Object, spec: Object) -> None:
    async with a_world(members=tuple(SIZES), nodes=NODES) as world:
        await world.create(PROPAGATION_POLICIES, job_policy(**spec))
        await world.create(JOBS, job)

        async def total() -> int:
            return sum((await pods(world)).values())

        await world.until_equal(total, 20)
        assert await waits(world) == ""


async def test_a_plain_job_becomes_a_gang_by_its_policy() -> None:
    async with a_world(members=tuple(SIZES), nodes=NODES) as world:
        await world.create(PROPAGATION_POLICIES, job_policy(gang="Always"))
        await world.create(JOBS, a_job(mode="NonIndexed"))
        assert "needs 120 cores" in await world.until(lambda: waits(world))
        assert await pods(world) == {}
