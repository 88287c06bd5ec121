"""Groups of bare Pods: whole in one cluster, or nothing of them in any (docs/reference/podgroups.md)."""

from typing import Any

import pytest
from tests.scenarios.test_gangs import NODES, SIZES, a_definition, everywhere, nodes
from tests.scenarios.test_job_queues import a_cluster_queue, a_flavor, a_queue, waiting
from tests.support.manifests import a_policy
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import (
    CAPACITY_FLAVORS,
    CLUSTER_JOB_QUEUES,
    CLUSTER_PROPAGATION_POLICIES,
    FEDERATED_OBJECTS,
    FEDERATED_RESOURCE_QUOTAS,
    JOB_QUEUES,
    PROPAGATION_POLICIES,
)
from federation.apimachinery.resources import CRDS, PODS, Object, Resource
from federation.planning.podgroups import POD_GROUP, PodGroup
from federation.simulator.controllers.names import SIMULATOR_RUN_FOR

POD_GROUPS = Resource("scheduling.volcano.sh", "v1beta1", "PodGroup", "podgroups")


def a_pod(name: str, cpu: str = "6", **metadata: Any) -> Object:
    container = {"name": "work", "image": "work:1", "resources": {"requests": {"cpu": cpu}}}
    labels, annotations = metadata.get("labels") or {}, {SIMULATOR_RUN_FOR: "1h", **(metadata.get("annotations") or {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": labels, "annotations": annotations},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }


def of_group(number: int, size: int, group: str = "train", cpu: str = "6", **labels: str) -> Object:
    return a_pod(
        f"{group}-{number:02}",
        cpu,
        labels={"kueue.x-k8s.io/pod-group-name": group, **labels},
        annotations={"kueue.x-k8s.io/pod-group-total-count": str(size)},
    )


def pod_policy(**spec: Any) -> Object:
    selectors = [{"apiVersion": "v1", "kind": "Pod"}, {"apiVersion": POD_GROUPS.api_version, "kind": "PodGroup"}]
    return a_policy({}, name="pods", resourceSelectors=selectors, **{"placement": [], **spec})


def a_quota(cpu: str) -> Object:
    return {
        "apiVersion": FEDERATED_RESOURCE_QUOTAS.api_version,
        "kind": FEDERATED_RESOURCE_QUOTAS.kind,
        "metadata": {"name": "team", "namespace": "default"},
        "spec": {"overall": {"cpu": cpu}},
    }


async def running(world: World) -> dict[str, int]:
    """Return the pods of each member that has any."""
    counts = {
        name: len((await member.admin.list(PODS, namespace="default")).items) for name, member in world.members.items()
    }
    return {name: count for name, count in counts.items() if count}


async def why(world: World, name: str) -> str:
    """Return why a pod waits, "" if it does not."""
    federated = await world.find(FEDERATED_OBJECTS, f"{name}-pods")
    for condition in ((federated or {}).get("status") or {}).get("conditions") or ():
        if condition["type"] == names.SCHEDULED and condition["status"] == "False":
            return str(condition["message"])
    return ""


async def leader(world: World) -> list[str]:
    """Return the pods that lead."""
    page = await world.user.list(FEDERATED_OBJECTS, namespace="default")
    records = {each["metadata"]["name"]: POD_GROUP.of(each) for each in page.items}
    return sorted(name for name, record in records.items() if record is not None and record.leads)


@pytest.mark.slow("the first world of its kind in a worker is made from nothing")
async def test_a_group_starts_when_all_of_its_pods_exist_and_one_cluster_has_room_for_them() -> None:
    async with a_world(members=tuple(SIZES), nodes={**NODES, "huge": nodes(144)}) as world:
        await world.create(PROPAGATION_POLICIES, pod_policy())
        for number in range(19):
            await world.create(PODS, of_group(number, 20))

        async def incomplete() -> bool:
            return await why(world, "train-00") == "its pod group train is not complete: 19 of 20 pods exist"

        await world.until(incomplete)
        assert "another one of them says" in await why(world, "train-07")
        await world.create(PODS, of_group(19, 20))

        async def too_large() -> bool:
            return "needs 120 cores, the largest of 3 clusters has 96" in await why(world, "train-00")

        await world.until(too_large)
        await world.settle()
        assert await running(world) == {}

        await world.add_member("huge", {})
        await world.join("huge")
        await world.until_equal(lambda: running(world), {"huge": 20})
        assert await leader(world) == ["train-00-pods"]
        assert await why(world, "train-07") == ""


@pytest.mark.slow("minutes of a federation")
async def test_a_group_whose_member_dies_starts_whole_elsewhere_and_a_new_pod_takes_over_when_the_leader_is_gone() -> (
    None
):
    lively: dict[str, Any] = {"failover": {"mode": "Auto", "graceSeconds": 0}}
    async with a_world(members=("large", "medium"), nodes=NODES, toleration_s=5, guard_share=1) as world:
        await world.create(PROPAGATION_POLICIES, pod_policy(**lively))
        for number in range(10):
            await world.create(PODS, of_group(number, 10))
        await world.until_equal(lambda: running(world), {"large": 10})

        await world.user.delete(PODS, "train-00", "default")
        await world.until_equal(lambda: leader(world), ["train-01-pods"])
        await world.create(PODS, of_group(10, 10))  # a pod in the place of the first one joins the others
        await world.until_equal(lambda: running(world), {"large": 10})

        await world.lose("large")
        await world.pass_time(120)

        async def in_medium() -> int:
            return len((await world.members["medium"].admin.list(PODS, namespace="default")).items)

        await world.until_equal(in_medium, 10)
        await world.bring_back("large")
        await world.until_equal(lambda: running(world), {"medium": 10})


@pytest.mark.slow("a world of its own")
async def test_a_group_is_one_job_of_its_queue_and_one_entry_of_its_quota() -> None:
    async with a_world(members=tuple(SIZES), nodes=NODES) as world:
        await world.create(PROPAGATION_POLICIES, pod_policy())
        await world.create(CAPACITY_FLAVORS, a_flavor())
        await world.create(CLUSTER_JOB_QUEUES, a_cluster_queue(cores="60"))
        await world.create(JOB_QUEUES, a_queue())
        await world.create(FEDERATED_RESOURCE_QUOTAS, a_quota("48"))
        queued = {"kueue.x-k8s.io/queue-name": "team"}
        for number in range(4):
            await world.create(PODS, of_group(number, 4, "first", **queued))
        await world.until(lambda: running(world))
        await world.settle()
        assert sum((await running(world)).values()) == 4
        await world.until_equal(lambda: used(world), {"cpu": "24"})

        for number in range(8):
            await world.create(PODS, of_group(number, 8, "second", **queued))
        await world.until(lambda: waiting(world))
        await world.settle()
        [line] = await waiting(world)
        assert (line["name"], line["kind"]) == ("second-00", "Pod")
        assert line["waitsFor"] == "needs 48 cores, ClusterJobQueue ml has 36 of flavor any free"

        await world.merge(CLUSTER_JOB_QUEUES, "ml", a_cluster_queue(cores="90") | {"metadata": {}}, namespace="")

        async def exceeded() -> bool:
            return "within FederatedResourceQuota team" in await why(world, "second-00")

        await world.until(exceeded)
        await world.settle()
        assert sum((await running(world)).values()) == 4
        await world.merge(FEDERATED_RESOURCE_QUOTAS, "team", {"spec": {"overall": {"cpu": "96"}}})

        async def clusters() -> list[int]:
            return sorted((await running(world)).values())

        await world.until(lambda: _equal(clusters, [4, 8], [12]))
        await world.until_equal(lambda: used(world), {"cpu": "72"})


async def used(world: World) -> Any:
    found = await world.find(FEDERATED_RESOURCE_QUOTAS, "team")
    return ((found or {}).get("status") or {}).get("overallUsed")


async def _equal(read: Any, *wanted: Any) -> bool:
    return await read() in wanted


async def test_the_pods_of_a_pod_group_of_volcano_wait_for_it() -> None:
    async with a_world(members=("large",), nodes=NODES) as world:
        await world.create(CRDS, a_definition(POD_GROUPS))
        await world.create(CLUSTER_PROPAGATION_POLICIES, everywhere())
        await world.until(lambda: world.members["large"].find(CRDS, "podgroups.scheduling.volcano.sh", ""))
        await world.settle()
        await world.create(PROPAGATION_POLICIES, pod_policy())
        for number in range(2):
            await world.create(PODS, a_pod(f"v-{number}", annotations={"scheduling.k8s.io/group-name": "v"}))

        async def waits() -> bool:
            return "PodGroup v of scheduling.volcano.sh is not federated" in await why(world, "v-0")

        await world.until(waits)
        group = {
            "apiVersion": POD_GROUPS.api_version,
            "kind": "PodGroup",
            "metadata": {"name": "v", "namespace": "default"},
            "spec": {"minMember": 3},
        }
        await world.create(POD_GROUPS, group)

        async def incomplete() -> bool:
            return "2 of 3 pods exist" in await why(world, "v-0")

        await world.until(incomplete)
        assert await running(world) == {}
        await world.create(PODS, a_pod("v-2", annotations={"scheduling.k8s.io/group-name": "v"}))
        await world.until_equal(lambda: running(world), {"large": 3})


@pytest.mark.slow("a world of its own")
async def test_a_pod_gets_nothing_by_a_record_of_its_own_and_no_pod_joins_beyond_the_quota() -> None:
    """An attack: a small group in its quota, and then large pods with its label; and a pod that says where it goes."""
    forged = POD_GROUP.text(PodGroup("train", leader="train-00", clusters=("small",)))
    async with a_world(members=tuple(SIZES), nodes=NODES) as world:
        await world.create(PROPAGATION_POLICIES, pod_policy(clusterSelector={"size": "any"}))
        alone = of_group(0, 2, "alone")
        alone["metadata"]["annotations"][POD_GROUP.name] = forged
        await world.create(PODS, alone)

        async def incomplete() -> bool:
            return "1 of 2 pods exist" in await why(world, "alone-00")

        await world.until(incomplete)
        assert await running(world) == {}

        await world.merge(PROPAGATION_POLICIES, "pods", {"spec": {"clusterSelector": None}})
        await world.create(FEDERATED_RESOURCE_QUOTAS, a_quota("8"))
        await world.create(PODS, of_group(0, 1, "small"))
        await world.until(lambda: running(world))
        await world.create(PODS, of_group(1, 1, "small", cpu="2"))
        await world.until_equal(lambda: used(world), {"cpu": "8"})
        await world.create(PODS, of_group(2, 1, "small", cpu="20"))

        async def exceeded() -> bool:
            return "with it, its pod group is not within FederatedResourceQuota team" in await why(world, "small-02")

        await world.until(exceeded)
        assert sum((await running(world)).values()) == 2
