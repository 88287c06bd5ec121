"""CronFederatedHPAs scale workloads and move the limits of autoscalers at their times."""

from typing import Any

import pytest
from tests.scenarios.test_host_autoscaling import SCALERS, an_autoscaler
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world, a_world_without_pods

from federation.api.resources import CRON_AUTOSCALERS, PROPAGATION_POLICIES
from federation.apimachinery.errors import Invalid
from federation.apimachinery.resources import DEPLOYMENTS, Object
from federation.features.cronfederatedhpa import names


def a_cron(*rules: Object, target: str = "Deployment", name: str = "web") -> Object:
    version = SCALERS.api_version if target == SCALERS.kind else "apps/v1"
    return {
        "apiVersion": CRON_AUTOSCALERS.api_version,
        "kind": CRON_AUTOSCALERS.kind,
        "metadata": {"name": "times", "namespace": "default"},
        "spec": {"scaleTargetRef": {"apiVersion": version, "kind": target, "name": name}, "rules": list(rules)},
    }


async def begin(world: World) -> None:
    await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "west": 1}))
    await world.create(DEPLOYMENTS, a_deployment("web", replicas=2))
    await world.until_replicas("web", {"east": 1, "west": 1})


async def histories(world: World) -> list[Any]:
    found = await world.user.get(CRON_AUTOSCALERS, "times", "default")
    return (found.get("status") or {}).get("executionHistories") or []


async def test_a_workload_is_scaled_at_the_time_and_the_scheduler_divides_it() -> None:
    async with a_world_without_pods(members=("east", "west")) as world:
        await begin(world)
        rules = (
            {"name": "peak", "schedule": "10 0 * * *", "targetReplicas": 6},
            {"name": "night", "schedule": "0 20 * * *", "targetReplicas": 2, "suspend": True},
        )
        await world.create(CRON_AUTOSCALERS, a_cron(*rules))
        await world.pass_time(5)
        assert [entry.get("nextExecutionTime") for entry in await histories(world)] == ["2026-01-01T00:10:00Z", None]
        await world.pass_time(540)
        assert await world.replicas("web") == {"east": 1, "west": 1}
        await world.until_replicas("web", {"east": 3, "west": 3})
        (peak, _) = await histories(world)
        (run,) = peak["successfulExecutions"]
        assert (run["scheduleTime"], run["appliedReplicas"]) == ("2026-01-01T00:10:00Z", 6)
        assert peak["nextExecutionTime"] == "2026-01-02T00:10:00Z"
        assert (names.EVENT_CRON_RULE_APPLIED, "rule peak has set Replicas 6") in await world.events()


async def test_one_that_is_being_deleted_scales_nothing_any_more() -> None:
    async with a_world_without_pods(members=("east", "west")) as world:
        await begin(world)
        cron = a_cron({"name": "hourly", "schedule": "0 * * * *", "targetReplicas": 4})
        cron["metadata"]["finalizers"] = ["example.com/audit"]
        await world.create(CRON_AUTOSCALERS, cron)
        await world.pass_time(5)
        await world.user.delete(CRON_AUTOSCALERS, "times", "default")
        await world.pass_time(3600)
        assert await world.replicas("web") == {"east": 1, "west": 1}
        assert ["successfulExecutions" in entry for entry in await histories(world)] == [False]
        await world.merge(CRON_AUTOSCALERS, "times", {"metadata": {"finalizers": None}})


async def test_a_time_that_a_restart_missed_is_made_up_for_once() -> None:
    async with a_world_without_pods(members=("east", "west")) as world:
        await begin(world)
        await world.create(CRON_AUTOSCALERS, a_cron({"name": "hourly", "schedule": "0 * * * *", "targetReplicas": 4}))
        await world.pass_time(5)
        await world.stop()
        await world.clock.advance(3 * 3600)
        await world.restart()
        await world.until_replicas("web", {"east": 2, "west": 2})
        (entry,) = await histories(world)
        assert [run["scheduleTime"] for run in entry["successfulExecutions"]] == ["2026-01-01T03:00:00Z"]


async def test_the_limits_of_an_autoscaler_are_moved_and_a_failure_is_kept() -> None:
    async with a_world_without_pods(members=("east", "west")) as world:
        await begin(world)
        rules = (
            {"name": "limits", "schedule": "* * * * *", "targetMinReplicas": 4, "targetMaxReplicas": 8},
            {"name": "wrong", "schedule": "* * * * *", "targetReplicas": 4},
        )
        await world.create(CRON_AUTOSCALERS, a_cron(*rules, target=SCALERS.kind))
        await world.pass_time(70)
        limits, wrong = await histories(world)
        assert limits["failedExecutions"][0]["message"] == 'horizontalpodautoscalers.autoscaling "web" not found'
        assert "targetReplicas is for workloads" in wrong["failedExecutions"][0]["message"]
        await world.create(SCALERS, an_autoscaler())
        await world.pass_time(70)
        spec = (await world.user.get(SCALERS, "web", "default"))["spec"]
        assert (spec["minReplicas"], spec["maxReplicas"]) == (4, 8)
        await world.until_replicas("web", {"east": 2, "west": 2})
        await world.user.delete(CRON_AUTOSCALERS, "times", "default")


async def test_a_rule_without_a_clear_target_is_refused() -> None:
    unclear = (
        {},
        {"targetReplicas": 1, "targetMinReplicas": 1},
        {"targetMinReplicas": 5, "targetMaxReplicas": 4},
        {"targetReplicas": -1},
    )
    async with a_world(members=()) as world:
        for target in unclear:
            with pytest.raises(Invalid, match=r"spec\.rules\[0\]"):
                await world.create(CRON_AUTOSCALERS, a_cron({"name": "a", "schedule": "* * * * *", **target}))
