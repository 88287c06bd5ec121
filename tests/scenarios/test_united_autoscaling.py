"""A HorizontalPodAutoscaler on the host scales a UnitedDeployment by the metrics of its pods in two clusters."""

from collections.abc import Mapping
from typing import Any

import pytest
import yaml
from tests.scenarios.test_united_deployments_across_clusters import (
    V1ALPHA1,
    a_subset,
    a_united,
    running,
    start,
    until_running,
)
from tests.support.vectors import ROOT
from tests.support.world import World, a_world

from federation.api import names
from federation.apimachinery import conditions
from federation.apimachinery.resources import HORIZONTAL_POD_AUTOSCALERS, NODES, POD_METRICS, PODS, Object
from federation.features.convert.command import convert
from federation.simulator.controllers.names import SIMULATOR_CPU_LOAD

SEED = ROOT / "examples" / "seeds" / "001"
SCALERS = HORIZONTAL_POD_AUTOSCALERS
LOAD = "0s=80m 30s=80m 40s=400m 5m=400m 6m=100m"
"""The CPU use of each subset that has pods."""


def an_autoscaler(target: str = "UnitedDeployment", **spec: Any) -> Object:
    metric = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}
    return {
        "apiVersion": SCALERS.api_version,
        "kind": SCALERS.kind,
        "metadata": {"name": "sample", "namespace": "default"},
        "spec": {
            "scaleTargetRef": {"apiVersion": V1ALPHA1.api_version, "kind": target, "name": "sample"},
            "minReplicas": 2,
            "maxReplicas": 10,
            "metrics": [{"type": "Resource", "resource": metric}],
            **spec,
        },
    }


def a_loaded(load: str | None, replicas: int = 2, **strategy: Any) -> Object:
    subsets = a_subset("ecs", "east", maxReplicas=2), a_subset("rest", "north")
    united = a_united(*subsets, replicas=replicas, cpu="100m", **strategy)
    if load is not None:
        united["spec"]["template"]["deploymentTemplate"]["metadata"]["annotations"] = {SIMULATOR_CPU_LOAD: load}
    return united


async def status(world: World) -> Object:
    return (await world.user.get(SCALERS, "sample", "default")).get("status") or {}


async def condition(world: World, type_: str) -> Mapping[str, Any]:
    return conditions.find((await status(world)).get("conditions"), type_) or {}


async def total(world: World) -> int:
    return sum((await running(world)).values())


async def test_replicas_of_two_clusters_follow_the_load_of_both() -> None:
    async with a_world(members=("east", "north")) as world:
        await start(world, a_loaded(LOAD))
        await world.create(SCALERS, an_autoscaler())
        await until_running(world, {("east", "ecs"): 2})
        await world.pass_time(25)
        assert await running(world) == {("east", "ecs"): 2}

        # 400m with 2 pods is 200 %, so 8 are wanted; then both subsets have a load, and the maximum is reached.
        await until_running(world, {("east", "ecs"): 2, ("north", "rest"): 8})
        held = await status(world)
        assert held["desiredReplicas"] == 10
        assert (await condition(world, names.SCALING_LIMITED))["reason"] == "TooManyReplicas"
        await world.pass_time(30)
        (metric,) = (await status(world))["currentMetrics"]
        assert metric["resource"]["current"] == {"averageUtilization": 80, "averageValue": "80m"}
        held = await status(world)
        assert held["currentReplicas"] == 10
        assert "lastScaleTime" in held

        # 200m in total are 20 % of ten pods; the last pods to come are the first to go, after five minutes.
        await world.restart()
        await world.pass_time(300)
        assert await total(world) == 10
        await world.pass_time(420)
        await until_running(world, {("east", "ecs"): 2, ("north", "rest"): 2})


async def test_a_cluster_without_metrics_prevents_a_scale_in() -> None:
    async with a_world(members=("east", "north")) as world:
        await start(world, a_loaded("0s=100m", replicas=6))
        rules = {"stabilizationWindowSeconds": 0}
        await world.create(SCALERS, an_autoscaler(minReplicas=1, behavior={"scaleDown": rules}))
        await until_running(world, {("east", "ecs"): 2, ("north", "rest"): 2})  # 200m of 400m are 50 %
        world.members["north"].line.mode = "down"
        await world.until_ready("north", status="Unknown")

        async def message() -> bool:
            return "cluster north is not ready" in (await condition(world, names.SCALING_ACTIVE)).get("message", "")

        await world.until(message)
        await world.pass_time(60)
        united = await world.user.get(V1ALPHA1, "sample", "default")
        assert united["spec"]["replicas"] == 4, "pods without metrics count as fully used"

        # A control plane that has never seen the pods of a cluster removes none either.
        await world.restart()
        await world.pass_time(60)
        united = await world.user.get(V1ALPHA1, "sample", "default")
        assert united["spec"]["replicas"] == 4
        world.members["north"].line.mend()
        await world.until_ready("north")


@pytest.mark.slow("the first world of its kind in a worker is made from nothing")
async def test_it_says_what_is_missing() -> None:
    async with a_world(members=("east", "north")) as world:
        await world.create(SCALERS, an_autoscaler())

        async def able() -> tuple[Any, ...]:
            held = await condition(world, names.ABLE_TO_SCALE)
            return held.get("status"), held.get("reason")

        await world.until_equal(able, ("False", "FailedGetScale"))
        await start(world, a_loaded(None))
        await until_running(world, {("east", "ecs"): 2})

        async def active() -> tuple[Any, ...]:
            held = await condition(world, names.SCALING_ACTIVE)
            return held.get("status"), held.get("reason")

        await world.until_equal(active, ("False", "FailedGetResourceMetric"))
        await world.settle()
        assert "did not receive metrics" in (await condition(world, names.SCALING_ACTIVE))["message"]
        assert await running(world) == {("east", "ecs"): 2}


async def test_reserved_pods_count_for_no_metric() -> None:
    """A pod without a node is reserved; its substitute runs, and the average is that of the substitute."""
    adaptive = {"reserveUnschedulablePods": True, "rescheduleCriticalSeconds": 10, "unschedulableDuration": 5}
    async with a_world(members=("east", "north")) as world:
        united = a_loaded("0s=100m", scheduleStrategy={"type": "Adaptive", "adaptive": adaptive})
        first = united["spec"]["topology"]["subsets"][0]
        first["nodeSelectorTerm"] = {"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}
        await start(world, united)
        await until_running(world, {("north", "rest"): 2})
        await world.create(SCALERS, an_autoscaler(minReplicas=1))

        async def utilization() -> Any:
            metrics = (await status(world)).get("currentMetrics") or [{}]
            return (metrics[0].get("resource") or {}).get("current")

        await world.until_equal(utilization, {"averageUtilization": 50, "averageValue": "50m"})
        assert len((await world.members["north"].admin.list(POD_METRICS, "default")).items) == 2
        assert (await world.user.get(V1ALPHA1, "sample", "default"))["spec"]["replicas"] == 2


@pytest.mark.slow("an autoscaler that fills two clusters")
async def test_the_autoscaler_of_document_001_fills_one_cluster_and_continues_in_another() -> None:
    """The manifests of the document, with a cluster for each of the two subsets and a load that rises after a minute."""
    (united,) = yaml.safe_load_all((SEED / "serverless-when-unschedulable.yaml").read_text())
    (autoscaler,) = map(convert, yaml.safe_load_all((SEED / "autoscaler-v2beta1.yaml").read_text()))
    for obj in (united, autoscaler):
        obj["metadata"]["namespace"] = "default"
    united["metadata"]["labels"] = {names.PROPAGATION_POLICY_LABEL: "divide"}
    metadata = united["spec"]["template"]["deploymentTemplate"]["metadata"]
    metadata["annotations"] = {SIMULATOR_CPU_LOAD: "0s=200m 1m=200m 65s=2"}
    first, second = united["spec"]["topology"]["subsets"]
    first["targetCluster"], second["targetCluster"] = {"name": "east"}, {"name": "north"}
    async with a_world(members=("east", "north")) as world:
        labels = {"type": "acs-virtual-kubelet"}
        await world.members["north"].merge(NODES, "node-1", {"metadata": {"labels": labels}}, namespace="")
        await start(world, united)
        await world.create(SCALERS, autoscaler)
        await until_running(world, {("east", "ecs"): 10})
        await world.pass_time(40)
        assert await running(world) == {("east", "ecs"): 10}, "20m of 1 CPU are the target of 2 %"
        # The node of the first cluster has room for 64 pods; pods that wait for ten seconds move.
        await until_running(world, {("east", "ecs"): 64, ("north", "acs-serverless"): 36})
        pods = (await world.members["north"].admin.list(PODS, "default")).items
        modes = [{"name": "APP_RUNTIME_MODE", "value": "SERVERLESS"}]
        assert all(pod["spec"]["containers"][0]["env"] == modes for pod in pods)
        united = await world.user.get(V1ALPHA1, "elastic-app", "default")
        assert united["spec"]["replicas"] == 100
        statuses = {
            entry["name"]: entry["conditions"] for entry in united["status"]["subsetStatuses"] if "conditions" in entry
        }
        assert not conditions.is_true(statuses["ecs"], names.SUBSET_SCHEDULABLE)
