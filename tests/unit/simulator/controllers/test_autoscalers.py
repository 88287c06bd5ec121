"""HorizontalPodAutoscalers in a simulated member, and the load that they measure."""

from typing import Any

import pytest
from tests.support.simulatedmember import Member, a_member, a_template, a_workload, an_object

from federation.apimachinery.conditions import find
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.resources import DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS, Object
from federation.simulator.controllers.loads import load_at
from federation.simulator.controllers.names import SIMULATOR_CPU_LOAD
from federation.simulator.options import NodeShape

NODE = NodeShape("node-1", cpu="64")


def an_autoscaler(low: int = 2, high: int = 10, percent: int = 50, **spec: Any) -> Object:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    metric = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": percent}}
    fields = {"scaleTargetRef": target, "minReplicas": low, "maxReplicas": high}
    metrics = [{"type": "Resource", "resource": metric}]
    return an_object(HORIZONTAL_POD_AUTOSCALERS, "web", spec={**fields, "metrics": metrics, **spec})


async def create(member: Member, load: str | None, replicas: int = 2, **spec: Any) -> None:
    body = a_workload(DEPLOYMENTS, replicas=replicas, template=a_template(cpu="100m"))
    if load is not None:
        body["metadata"]["annotations"] = {SIMULATOR_CPU_LOAD: load}
    await member.create(DEPLOYMENTS, body)
    await member.create(HORIZONTAL_POD_AUTOSCALERS, an_autoscaler(**spec))


async def replicas(member: Member) -> int:
    return int((await member.get(DEPLOYMENTS, "web"))["spec"]["replicas"])


async def condition(member: Member, type_: str) -> tuple[str, str]:
    found = find((await member.status(HORIZONTAL_POD_AUTOSCALERS, "web")).get("conditions"), type_) or {}
    return str(found.get("status")), str(found.get("reason"))


async def test_replicas_follow_the_load_up_and_after_five_minutes_down() -> None:
    async with a_member([NODE]) as member:
        await create(member, "0s=100m 1m=100m 2m=400m 10m=400m 11m=100m")
        await member.pass_time(60, step_s=1)
        assert await replicas(member) == 2
        await member.pass_time(120, step_s=1)
        assert await replicas(member) == 8
        status = await member.status(HORIZONTAL_POD_AUTOSCALERS, "web")
        assert (status["currentReplicas"], status["desiredReplicas"]) == (8, 8)
        current = {"averageUtilization": 50, "averageValue": "50m"}
        assert status["currentMetrics"] == [{"type": "Resource", "resource": {"name": "cpu", "current": current}}]
        assert "lastScaleTime" in status
        await member.pass_time(13 * 60 - 180, step_s=1)
        assert await replicas(member) == 8
        assert await condition(member, "AbleToScale") == ("True", "ScaleDownStabilized")
        await member.pass_time(5 * 60, step_s=1)
        assert await replicas(member) == 2


async def test_bounds_hold_and_are_reported() -> None:
    async with a_member([NODE]) as member:
        await create(member, "0s=5", high=5, replicas=1)
        await member.pass_time(60, step_s=1)
        assert await replicas(member) == 5
        assert await condition(member, "ScalingLimited") == ("True", "TooManyReplicas")


async def test_a_missing_or_malformed_load_is_reported() -> None:
    async with a_member([NODE]) as member:
        await create(member, None)
        await member.pass_time(20, step_s=1)
        assert await condition(member, "ScalingActive") == ("False", "FailedGetResourceMetric")
        assert await replicas(member) == 2
        await member.merge(DEPLOYMENTS, "web", {"metadata": {"annotations": {SIMULATOR_CPU_LOAD: "much"}}})
        await member.pass_time(20, step_s=1)
        assert await condition(member, "ScalingActive") == ("False", "FailedGetResourceMetric")
        await member.delete(DEPLOYMENTS, "web")
        await member.pass_time(20, step_s=1)
        assert await condition(member, "AbleToScale") == ("False", "FailedGetScale")


async def test_a_workload_at_zero_is_left_alone() -> None:
    async with a_member([NODE]) as member:
        await create(member, "0s=5", replicas=0)
        await member.pass_time(20, step_s=1)
        assert await replicas(member) == 0
        assert await condition(member, "ScalingActive") == ("False", "ScalingDisabled")


@pytest.mark.parametrize(
    ("elapsed_s", "expected"), [(0, 1000), (30, 2500), (60, 4000), (90, 2250), (120, 500), (9999, 500)]
)
def test_a_load_is_straight_between_its_points(elapsed_s: float, expected: float) -> None:
    assert load_at("0s=1, 1m=4, 2m=500m", elapsed_s) == expected


@pytest.mark.parametrize("text", ["", "5", "x=1", "1m=", "1m=lots"])
def test_a_malformed_load_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        load_at(text, 0)
