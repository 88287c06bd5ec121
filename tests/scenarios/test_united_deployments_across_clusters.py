"""UnitedDeployments on the host: each subset runs in its target cluster, and the total is divided over the clusters."""

import json
from collections import Counter
from typing import Any

import pytest
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import KRUISE_GROUP, PROPAGATION_POLICIES, UNITED_DEPLOYMENTS
from federation.apimachinery.conditions import find
from federation.apimachinery.resources import DEPLOYMENTS, PODS, STATEFUL_SETS, Object, Resource
from federation.features.uniteddeployment.names import RESERVED_POD_LABEL, SUBSET_REACHABLE

V1ALPHA1 = Resource(KRUISE_GROUP, "v1alpha1", "UnitedDeployment", "uniteddeployments")
LABELS = {"app": "sample"}
POLICY = {
    "apiVersion": PROPAGATION_POLICIES.api_version,
    "kind": PROPAGATION_POLICIES.kind,
    "metadata": {"name": "divide", "namespace": "default"},
    "spec": {"schedulingMode": "Divide"},
}
ADAPTIVE = {"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": 10, "unschedulableLastSeconds": 3600}}
SIZE = "10"
"""CPUs of a pod, of which a member's node has 64."""


def a_subset(name: str, cluster: str = "", **fields: Any) -> Object:
    return {"name": name, **({"targetCluster": {"name": cluster}} if cluster else {}), **fields}


def a_united(
    *subsets: Object, replicas: int, kind: str = "deploymentTemplate", cpu: str = "1", **topology: Any
) -> Object:
    containers = [{"name": "main", "image": "nginx:1.25", "resources": {"requests": {"cpu": cpu}}}]
    workload: Object = {"template": {"metadata": {"labels": LABELS}, "spec": {"containers": containers}}}
    if kind == "statefulSetTemplate":
        workload["serviceName"] = "sample"
    return {
        "apiVersion": V1ALPHA1.api_version,
        "kind": V1ALPHA1.kind,
        "metadata": {
            "name": "sample",
            "namespace": "default",
            "labels": {names.PROPAGATION_POLICY_LABEL: "divide"},
        },
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": LABELS},
            "template": {kind: {"metadata": {"labels": LABELS}, "spec": workload}},
            "topology": {"subsets": list(subsets), **topology},
        },
    }


async def start(world: World, united: Object) -> None:
    await world.create(PROPAGATION_POLICIES, POLICY)
    await world.create(V1ALPHA1, united)


async def scale(world: World, replicas: int) -> None:
    """Scale as an autoscaler does."""
    body = {"spec": {"replicas": replicas}}
    await world.user.patch(V1ALPHA1, "sample", body, namespace="default", subresource="scale")


def subset_of(obj: Object) -> str:
    return str((obj["metadata"].get("labels") or {}).get(names.SUBSET_NAME_LABEL, ""))


async def running(world: World) -> dict[tuple[str, str], int]:
    """Return the number of pods with a node by cluster and subset."""
    found: Counter[tuple[str, str]] = Counter()
    for cluster, member in world.members.items():
        pods = (await member.admin.list(PODS, "default")).items
        found.update((cluster, subset_of(pod)) for pod in pods if pod["spec"].get("nodeName"))
    return dict(found)


async def until_running(world: World, expected: dict[tuple[str, str], int]) -> None:
    await world.until_equal(lambda: running(world), expected)


async def workloads(world: World) -> dict[str, int]:
    """Return the replicas of the workloads on the host by subset."""
    return {subset_of(each): each["spec"]["replicas"] for each in (await world.user.list(DEPLOYMENTS)).items}


async def status(world: World) -> Object:
    return (await world.user.get(UNITED_DEPLOYMENTS, "sample", "default")).get("status") or {}


async def condition(world: World, subset: str, type_: str) -> dict[str, Any]:
    entries = (await status(world)).get("subsetStatuses") or ()
    held = next((entry.get("conditions") for entry in entries if entry["name"] == subset), None)
    return dict(find(held, type_) or {})


async def test_six_replicas_use_two_of_one_cluster_and_the_rest_of_another_and_leave_nothing_behind() -> None:
    async with a_world() as world:
        await start(world, a_united(a_subset("ecs", "east", maxReplicas=2), a_subset("rest", "north"), replicas=6))
        await until_running(world, {("east", "ecs"): 2, ("north", "rest"): 4})

        async def ready() -> tuple[Any, ...]:
            held = await status(world)
            return tuple(held.get(key) for key in ("replicas", "readyReplicas", "updatedReadyReplicas"))

        await world.until_equal(ready, (6, 6, 6))
        assert (await status(world))["labelSelector"] == "app=sample"
        await scale(world, 9)
        await until_running(world, {("east", "ecs"): 2, ("north", "rest"): 7})
        await scale(world, 1)
        await until_running(world, {("east", "ecs"): 1})
        await world.until_equal(ready, (1, 1, 1))

        await world.user.delete(V1ALPHA1, "sample", "default", propagation_policy="Background")
        await until_running(world, {})
        await world.until_equal(lambda: workloads(world), {})
        for member in world.members.values():
            assert not (await member.admin.list(DEPLOYMENTS, "default")).items


async def test_half_and_two_quarters_run_in_three_clusters() -> None:
    async with a_world() as world:
        subsets = [a_subset(name, name, replicas=share) for name, share in (("east", "50%"), ("north", "25%"))]
        await start(world, a_united(*subsets, a_subset("west", "west", replicas="25%"), replicas=7))
        await until_running(world, {("east", "east"): 3, ("north", "north"): 2, ("west", "west"): 2})


async def test_replicas_that_a_cluster_has_no_room_for_move_after_ten_seconds() -> None:
    async with a_world(members=("east", "north")) as world:
        subsets = a_subset("first", "east"), a_subset("second", "north")
        await start(world, a_united(*subsets, replicas=8, cpu=SIZE, scheduleStrategy=ADAPTIVE))
        await until_running(world, {("east", "first"): 6})
        await world.pass_time(5)
        assert await workloads(world) == {"first": 8, "second": 0}
        await until_running(world, {("east", "first"): 6, ("north", "second"): 2})
        assert (await condition(world, "first", names.SUBSET_SCHEDULABLE))["status"] == "False"
        await world.pass_time(60)
        await scale(world, 10)
        await until_running(world, {("east", "first"): 6, ("north", "second"): 4})
        assert await workloads(world) == {"first": 6, "second": 4}


async def test_a_lost_cluster_keeps_its_replicas_and_gets_no_substitutes() -> None:
    async with a_world(members=("east", "north")) as world:
        subsets = a_subset("first", "east", maxReplicas=2), a_subset("second", "north")
        await start(world, a_united(*subsets, replicas=5, scheduleStrategy=ADAPTIVE))
        await until_running(world, {("east", "first"): 2, ("north", "second"): 3})
        world.members["east"].line.mode = "down"
        await world.until_ready("east", status="Unknown")

        async def problem() -> str | None:
            return (await condition(world, "first", SUBSET_REACHABLE)).get("message")

        await world.until_equal(problem, "cluster east is not ready")
        await world.pass_time(30)
        assert await workloads(world) == {"first": 2, "second": 3}
        await scale(world, 7)
        await world.until_equal(lambda: workloads(world), {"first": 2, "second": 5})
        await scale(world, 1)
        await world.until_equal(lambda: workloads(world), {"first": 2, "second": 0})
        world.members["east"].line.mend()
        await world.until_ready("east")
        await until_running(world, {("east", "first"): 1})


async def test_pods_without_a_node_are_reserved_in_their_cluster_while_substitutes_run_in_another() -> None:
    adaptive = {"reserveUnschedulablePods": True, "rescheduleCriticalSeconds": 10, "unschedulableDuration": 5}
    strategy = {"type": "Adaptive", "adaptive": adaptive}
    async with a_world(members=("east", "north")) as world:
        subsets = a_subset("first", "east"), a_subset("second", "north")
        await start(world, a_united(*subsets, replicas=7, cpu=SIZE, scheduleStrategy=strategy))
        await until_running(world, {("east", "first"): 6, ("north", "second"): 1})
        pods = (await world.members["east"].admin.list(PODS, "default")).items
        reserved = [pod for pod in pods if pod["metadata"]["labels"].get(RESERVED_POD_LABEL) == "true"]
        assert [pod["spec"].get("nodeName") for pod in reserved] == [None]

        async def counts() -> tuple[Any, ...]:
            held = await status(world)
            return held.get("reservedPods"), held.get("replicas"), held.get("labelSelector")

        await world.until_equal(counts, (1, 7, f"app=sample,{RESERVED_POD_LABEL}=false"))
        await scale(world, 6)
        await until_running(world, {("east", "first"): 6})


@pytest.mark.parametrize("is_labelled", [True, False], ids=["label", "resourceSelectors"])
async def test_an_unknown_target_is_reported_and_the_policy_places_a_subset_without_one(is_labelled: bool) -> None:
    async with a_world(members=("east", "north")) as world:
        subsets = a_subset("lost", "nowhere", replicas=2), a_subset("free")
        united = a_united(*subsets, replicas=6)
        if is_labelled:
            await start(world, united)
        else:
            selectors = [{"apiVersion": "apps/v1", "kind": "Deployment"}]
            policy = {**POLICY, "spec": {"schedulingMode": "Divide", "resourceSelectors": selectors}}
            await world.create(PROPAGATION_POLICIES, policy)
            await world.create(V1ALPHA1, {**united, "metadata": {"name": "sample", "namespace": "default"}})

        async def placed() -> int:
            return sum((await running(world)).values())

        await world.until_equal(placed, 4)
        assert await running(world) == {("east", "free"): 2, ("north", "free"): 2}
        held = await condition(world, "lost", SUBSET_REACHABLE)
        assert (held["status"], held["message"]) == ("False", "cluster nowhere does not exist")


async def test_pods_of_stateful_subsets_have_unique_names_in_all_clusters() -> None:
    async with a_world(members=("east", "north")) as world:
        subsets = a_subset("a", "east"), a_subset("b", "north")
        await start(world, a_united(*subsets, replicas=4, kind="statefulSetTemplate"))
        await until_running(world, {("east", "a"): 2, ("north", "b"): 2})
        found = [pod for each in world.members.values() for pod in (await each.admin.list(PODS, "default")).items]
        assert len({pod["metadata"]["name"] for pod in found}) == 4
        for stateful_set in (await world.user.list(STATEFUL_SETS)).items:
            annotations = stateful_set["metadata"]["annotations"]
            cluster = {"a": "east", "b": "north"}[subset_of(stateful_set)]
            assert json.loads(annotations[names.PLACEMENTS]) == [{"cluster": cluster}]
