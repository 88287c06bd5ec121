"""UnitedDeployments on the host: template kinds, customised pods, updates with partitions, and recovery times."""

import copy
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
import yaml
from tests.scenarios.test_united_deployments_across_clusters import (
    ADAPTIVE,
    SIZE,
    V1ALPHA1,
    a_subset,
    a_united,
    condition,
    running,
    scale,
    start,
    status,
    subset_of,
    until_running,
)
from tests.support.manifests import a_policy
from tests.support.vectors import ROOT
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import (
    ADVANCED_STATEFUL_SETS,
    CLONE_SETS,
    CLUSTER_PROPAGATION_POLICIES,
)
from federation.apimachinery.quantity import to_milli
from federation.apimachinery.resources import CRDS, DEPLOYMENTS, NODES, PODS, STATEFUL_SETS, Object

KINDS = {
    "deploymentTemplate": DEPLOYMENTS,
    "statefulSetTemplate": STATEFUL_SETS,
    "cloneSetTemplate": CLONE_SETS,
    "advancedStatefulSetTemplate": ADVANCED_STATEFUL_SETS,
}


async def deliver_definitions(world: World) -> None:
    """Send the definitions of OpenKruise's workloads to every member."""
    selectors = [
        {"apiVersion": CRDS.api_version, "kind": CRDS.kind, "name": kind.group_resource}
        for kind in (CLONE_SETS, ADVANCED_STATEFUL_SETS)
    ]
    policy = a_policy({}, name="kinds", resourceSelectors=selectors, schedulingMode="Duplicate")
    del policy["metadata"]["namespace"]
    await world.create(CLUSTER_PROPAGATION_POLICIES, {**policy, "kind": CLUSTER_PROPAGATION_POLICIES.kind})


async def edit(world: World, **spec: Any) -> None:
    await world.merge(V1ALPHA1, "sample", {"spec": spec})


async def live_pods(world: World) -> list[tuple[str, Object]]:
    """Return cluster and pod for each pod that is not being deleted."""
    return [
        (cluster, pod)
        for cluster, member in world.members.items()
        for pod in (await member.admin.list(PODS, "default")).items
        if not pod["metadata"].get("deletionTimestamp")
    ]


def a_template(kind: str, image: str) -> Object:
    """Return the change of `spec.template` to another image."""
    united = a_united(replicas=0, kind=kind)
    template = copy.deepcopy(united["spec"]["template"])
    template[kind]["spec"]["template"]["spec"]["containers"][0]["image"] = image
    return dict(template)


async def images(world: World) -> Counter[tuple[str, str]]:
    """Return the number of running pods by subset and image of their container."""
    found: Counter[tuple[str, str]] = Counter()
    for _, pod in await live_pods(world):
        statuses = (pod.get("status") or {}).get("containerStatuses") or ()
        found.update((subset_of(pod), each["image"]) for each in statuses)
    return found


def amounts(resources: Mapping[str, str]) -> dict[str, int]:
    return {name: to_milli(text) for name, text in resources.items()}


async def counts(world: World) -> tuple[Any, ...]:
    held = await status(world)
    return tuple(held.get(key) for key in ("replicas", "readyReplicas", "updatedReplicas", "updatedReadyReplicas"))


@pytest.mark.parametrize("kind", KINDS)
async def test_every_kind_runs_in_its_clusters_and_is_updated_scaled_and_divided_evenly(kind: str) -> None:
    async with a_world(members=("east", "north")) as world:
        await deliver_definitions(world)
        subsets = a_subset("a", "east"), a_subset("b", "north")
        await start(world, a_united(*subsets, replicas=4, kind=kind))
        await until_running(world, {("east", "a"): 2, ("north", "b"): 2})
        await world.until_equal(lambda: counts(world), (4, 4, 4, 4))
        for workload in (await world.user.list(KINDS[kind])).items:
            assert workload["metadata"]["name"].startswith(f"sample-{subset_of(workload)}-")
        for cluster, subset in (("east", "a"), ("north", "b")):
            (found,) = (await world.members[cluster].admin.list(KINDS[kind], "default")).items
            assert found["metadata"]["name"].startswith(f"sample-{subset}-")

        first = (await status(world))["currentRevision"]
        await edit(world, template=a_template(kind, "nginx:2"))
        await world.until_equal(lambda: images(world), Counter({("a", "nginx:2"): 2, ("b", "nginx:2"): 2}))
        await world.until_equal(lambda: counts(world), (4, 4, 4, 4))
        held = await status(world)
        assert held["currentRevision"] == held["updatedRevision"] != first
        await scale(world, 7)  # the last name gets the remainder when both have the same size
        await until_running(world, {("east", "a"): 3, ("north", "b"): 4})


async def test_another_kind_of_template_replaces_the_workloads_in_every_cluster() -> None:
    async with a_world(members=("east", "north")) as world:
        subsets = a_subset("a", "east"), a_subset("b", "north")
        await start(world, a_united(*subsets, replicas=2))
        await until_running(world, {("east", "a"): 1, ("north", "b"): 1})
        template = a_template("statefulSetTemplate", "nginx:1.25")
        await edit(world, template={"deploymentTemplate": None, **template})

        async def kinds() -> tuple[int, ...]:
            lists = [
                (await member.admin.list(kind, "default")).items
                for kind in (DEPLOYMENTS, STATEFUL_SETS)
                for member in world.members.values()
            ]
            return tuple(map(len, lists))

        await world.until_equal(kinds, (0, 0, 1, 1))
        await until_running(world, {("east", "a"): 1, ("north", "b"): 1})


@pytest.mark.parametrize("kind", ["cloneSetTemplate", "statefulSetTemplate"])
async def test_partitions_keep_old_pods_in_each_cluster(kind: str) -> None:
    """Half of the pods of every subset is a canary: 4, 2 and 2 replicas with partitions 2, 1 and 1."""
    async with a_world() as world:
        await deliver_definitions(world)
        shares = (("a", "east", "50%", 2), ("b", "north", "25%", 1), ("c", "west", "25%", 1))
        subsets = [a_subset(name, cluster, replicas=share) for name, cluster, share, _ in shares]
        await start(world, a_united(*subsets, replicas=8, kind=kind))
        await world.until_equal(lambda: counts(world), (8, 8, 8, 8))
        manual = {"type": "Manual", "manualUpdate": {"partitions": {name: kept for name, _, _, kept in shares}}}
        await edit(world, template=a_template(kind, "nginx:2"), updateStrategy=manual)
        half = {(name, image): kept for name, _, _, kept in shares for image in ("nginx:1.25", "nginx:2")}
        await world.until_equal(lambda: images(world), Counter(half))
        await world.until_equal(lambda: counts(world), (8, 8, 4, 4))
        held = await status(world)
        assert held["updateStatus"]["currentPartitions"] == {"a": 2, "b": 1, "c": 1}
        assert held["currentRevision"] != held["updatedRevision"]

        await world.restart()
        await edit(world, updateStrategy={"manualUpdate": {"partitions": {"a": 0, "b": 0}}})
        await world.until_equal(
            lambda: images(world),
            Counter({("a", "nginx:2"): 4, ("b", "nginx:2"): 2, ("c", "nginx:1.25"): 1, ("c", "nginx:2"): 1}),
        )
        await edit(world, updateStrategy={"manualUpdate": {"partitions": None}})
        await world.until_equal(lambda: counts(world), (8, 8, 8, 8))
        held = await status(world)
        assert held["currentRevision"] == held["updatedRevision"]


async def test_clone_sets_are_updated_in_place_in_every_cluster() -> None:
    async with a_world(members=("east", "north")) as world:
        await deliver_definitions(world)
        united = a_united(a_subset("a", "east"), a_subset("b", "north"), replicas=4, kind="cloneSetTemplate")
        in_place = {"type": "InPlaceOnly", "maxUnavailable": 1}
        united["spec"]["template"]["cloneSetTemplate"]["spec"]["updateStrategy"] = in_place
        await start(world, united)
        await world.until_equal(lambda: counts(world), (4, 4, 4, 4))
        before = {pod["metadata"]["uid"] for _, pod in await live_pods(world)}
        template = a_template("cloneSetTemplate", "nginx:2")
        template["cloneSetTemplate"]["spec"]["template"]["metadata"] = {"annotations": {"release": "2"}}
        await edit(world, template=template)
        await world.until_equal(lambda: images(world), Counter({("a", "nginx:2"): 2, ("b", "nginx:2"): 2}))
        await world.until_equal(lambda: counts(world), (4, 4, 4, 4))
        after = await live_pods(world)
        assert {pod["metadata"]["uid"] for _, pod in after} == before
        assert {pod["metadata"]["annotations"]["release"] for _, pod in after} == {"2"}
        held = await status(world)
        assert held["currentRevision"] == held["updatedRevision"]


async def test_the_platforms_of_document_001_have_resources_and_images_of_their_own() -> None:
    """The manifest as it is written, with a cluster of nodes for each platform, and another image on one of them."""
    (united,) = yaml.safe_load_all((ROOT / "examples" / "seeds" / "001" / "platforms-with-resources.yaml").read_text())
    clusters = {"intel": "east", "amd64": "north", "yitian-arm": "west"}
    metadata = {"name": "sample", "namespace": "default", "labels": {names.PROPAGATION_POLICY_LABEL: "divide"}}
    united["metadata"] |= metadata
    patched: dict[str, Object] = {}
    for subset in united["spec"]["topology"]["subsets"]:
        subset["targetCluster"] = {"name": clusters[subset["name"]]}
        (container,) = subset["patch"]["spec"]["containers"]
        if subset["name"] == "yitian-arm":
            container["image"] = "nginx:1.25-arm64"
        patched[subset["name"]] = container
    async with a_world() as world:
        for subset in united["spec"]["topology"]["subsets"]:
            member = world.members[clusters[subset["name"]]]
            (expression,) = subset["nodeSelectorTerm"]["matchExpressions"]
            labels = {expression["key"]: expression["values"][0]}
            await member.merge(NODES, "node-1", {"metadata": {"labels": labels}}, namespace="")
        await start(world, united)
        await until_running(world, {("east", "intel"): 2, ("north", "amd64"): 1, ("west", "yitian-arm"): 1})
        for _, pod in await live_pods(world):
            container, wanted = pod["spec"]["containers"][0], patched[subset_of(pod)]
            assert amounts(container["resources"]["limits"]) == amounts(wanted["resources"]["limits"])
            assert container["image"].endswith("-arm64") is (subset_of(pod) == "yitian-arm")
        patches = [
            {**subset, "patch": {"spec": {"containers": [{**patched[subset["name"]], "image": "nginx:2"}]}}}
            for subset in united["spec"]["topology"]["subsets"]
        ]
        await edit(world, topology={"subsets": patches})
        expected = {("intel", "nginx:2"): 2, ("amd64", "nginx:2"): 1, ("yitian-arm", "nginx:2"): 1}
        await world.until_equal(lambda: images(world), Counter(expected))


async def test_a_cluster_without_room_gets_no_replicas_for_an_hour_and_some_again_after_it() -> None:
    """Document 001: ten seconds until replicas move, 3,600 seconds until the first cluster is used again."""
    async with a_world(members=("east", "north")) as world:
        subsets = a_subset("first", "east"), a_subset("second", "north")
        await start(world, a_united(*subsets, replicas=8, cpu=SIZE, scheduleStrategy=ADAPTIVE))
        await until_running(world, {("east", "first"): 6, ("north", "second"): 2})
        marked = await condition(world, "first", names.SUBSET_SCHEDULABLE)
        assert marked["status"] == "False"
        east = world.members["east"].admin
        node = await east.get(NODES, "node-1")
        await east.create(NODES, {**node, "metadata": {"name": "node-2"}})

        await world.pass_time(3500)
        await scale(world, 9)
        await until_running(world, {("east", "first"): 6, ("north", "second"): 3})
        await world.restart()
        await world.pass_time(30)
        assert (await condition(world, "first", names.SUBSET_SCHEDULABLE)) == marked

        async def is_schedulable() -> bool:
            return bool((await condition(world, "first", names.SUBSET_SCHEDULABLE))["status"] == "True")

        await world.until(is_schedulable)
        assert await running(world) == {("east", "first"): 6, ("north", "second"): 3}  # healthy pods stay
        await scale(world, 11)
        await until_running(world, {("east", "first"): 8, ("north", "second"): 3})
        await world.until_equal(lambda: counts(world), (11, 11, 11, 11))
        await scale(world, 7)
        await until_running(world, {("east", "first"): 7})
