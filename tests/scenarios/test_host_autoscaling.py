"""A plain HorizontalPodAutoscaler on the host scales the total of a divided Deployment by the metrics of all members."""

from collections.abc import Mapping
from typing import Any

from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import PROPAGATION_POLICIES
from federation.apimachinery import conditions
from federation.apimachinery.resources import DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS, Object
from federation.features.autoscaling.names import (
    CENTRALIZED_HPA_ENABLED,
    EVENT_CENTRALIZED_HPA_NOT_WORK,
    FED_HPA_NOT_WORK_REASON,
    REASON_FEDERATED_WORKLOAD,
)
from federation.simulator.controllers.names import SIMULATOR_CPU_LOAD

SCALERS = HORIZONTAL_POD_AUTOSCALERS


def a_loaded(load: str, replicas: int = 2) -> Object:
    """Return a Deployment whose pods request 100m; each member has the load."""
    deployment = a_deployment("web", replicas=replicas)
    deployment["metadata"]["annotations"] = {SIMULATOR_CPU_LOAD: load}
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    container["resources"] = {"requests": {"cpu": "100m"}}
    return deployment


def an_autoscaler(**spec: Any) -> Object:
    target = {"type": "Utilization", "averageUtilization": 50}
    return {
        "apiVersion": SCALERS.api_version,
        "kind": SCALERS.kind,
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": 2,
            "maxReplicas": 20,
            "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}],
            **spec,
        },
    }


async def condition(world: World, type_: str) -> Mapping[str, Any]:
    held = (await world.user.get(SCALERS, "web", "default")).get("status") or {}
    return conditions.find(held.get("conditions"), type_) or {}


async def total(world: World) -> int:
    return int((await world.user.get(DEPLOYMENTS, "web", "default"))["spec"]["replicas"])


async def test_the_total_follows_the_load_of_all_members_and_the_scheduler_divides_it() -> None:
    async with a_world(members=("east", "west")) as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "west": 1}))
        # 50m in each member are 50 % of one pod; 200m in each member need 8 pods.
        await world.create(DEPLOYMENTS, a_loaded("0s=50m 60s=50m 70s=200m 10m=200m 11m=50m"))
        await world.create(SCALERS, an_autoscaler())
        await world.until_replicas("web", {"east": 1, "west": 1})
        await world.pass_time(40)
        assert await total(world) == 2
        assert (await condition(world, names.SCALING_ACTIVE))["reason"] == "ValidMetricFound"
        await world.until_replicas("web", {"east": 4, "west": 4})
        await world.pass_time(420)
        assert await total(world) == 8
        await world.pass_time(300)
        await world.until_replicas("web", {"east": 1, "west": 1})  # five minutes after the load has gone
        (metric,) = (await world.user.get(SCALERS, "web", "default"))["status"]["currentMetrics"]
        assert metric["resource"]["name"] == "cpu"


async def test_a_member_that_dies_at_the_peak_loses_its_replicas_to_the_others_and_none_is_scaled_in() -> None:
    async with a_world(members=("east", "north", "west"), toleration_s=30, guard_share=1.0) as world:
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "north": 1, "west": 1}))
        await world.create(DEPLOYMENTS, a_loaded("0s=150m", replicas=3))
        await world.create(SCALERS, an_autoscaler())
        await world.until_replicas("web", {"east": 3, "north": 3, "west": 3})
        world.members["east"].line.mode = "down"
        await world.until_ready("east", status="Unknown")

        async def message() -> bool:
            return "the pods of cluster east are not known" in (await condition(world, names.SCALING_ACTIVE)).get(
                "message", ""
            )

        await world.until(message)
        assert await total(world) == 9

        async def spread() -> int:
            found = await world.replicas("web")
            return found["north"] + found["west"]

        await world.until_equal(spread, 9)
        world.members["east"].line.mode = "up"
        await world.until_ready("east")
        await world.until_equal(lambda: world.replicas("web"), {"north": 5, "west": 4})


async def test_a_duplicated_workload_and_the_label_distributed_are_left_alone() -> None:
    async with a_world(members=("east",)) as world:
        await world.create(PROPAGATION_POLICIES, a_policy({}, schedulingMode="Duplicate"))
        await world.create(DEPLOYMENTS, a_loaded("0s=500m"))
        await world.create(SCALERS, an_autoscaler())
        await world.until_replicas("web", {"east": 2})

        async def reason() -> str:
            return str((await condition(world, names.SCALING_ACTIVE)).get("reason", ""))

        await world.until_equal(reason, REASON_FEDERATED_WORKLOAD)
        await world.pass_time(60)
        assert await total(world) == 2
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"schedulingMode": "Divide"}})
        await world.merge(SCALERS, "web", {"metadata": {"labels": {names.HPA_MODE: "distributed"}}})
        await world.pass_time(60)
        assert await total(world) == 2
        await world.merge(SCALERS, "web", {"metadata": {"labels": {names.HPA_MODE: "centralized"}}})
        await world.until_equal(lambda: total(world), 10)


async def test_an_autoscaler_with_a_mode_says_why_it_does_not_work() -> None:
    async with a_world(members=("east",)) as world:
        await world.create(PROPAGATION_POLICIES, a_policy({}, schedulingMode="Duplicate"))
        await world.create(DEPLOYMENTS, a_loaded("0s=50m"))
        scaler = an_autoscaler()
        scaler["metadata"]["labels"] = {names.HPA_MODE: "centralized"}
        await world.create(SCALERS, scaler)

        async def marks() -> tuple[Any, Any]:
            metadata = (await world.user.get(SCALERS, "web", "default"))["metadata"]
            reason = (metadata.get("annotations") or {}).get(FED_HPA_NOT_WORK_REASON)
            return (metadata.get("labels") or {}).get(CENTRALIZED_HPA_ENABLED), reason

        reason = "[The PropagationPolicy divide bound to the workload is not Divided mode.]"
        await world.until_equal(marks, (None, reason))
        assert (EVENT_CENTRALIZED_HPA_NOT_WORK, reason) in await world.events()
        await world.merge(PROPAGATION_POLICIES, "divide", {"spec": {"schedulingMode": "Divide"}})
        await world.until_equal(marks, ("true", None))
        await world.merge(SCALERS, "web", {"metadata": {"labels": {names.HPA_MODE: "distributed"}}})
        reason = (
            "[The workload is not enabled for retain replicas. The hpa is not follow the workload."
            " The PropagationPolicy divide bound to the workload is not Duplicate mode.]"
        )
        await world.until_equal(marks, (None, reason))
        await world.merge(SCALERS, "web", {"metadata": {"labels": {names.HPA_MODE: None}}})
        await world.until_equal(marks, (None, None))
