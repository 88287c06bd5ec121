"""A Deployment of higher priority that finds no room in full members gets it, slowly and within the budgets of others."""

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import orjson
from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world

from federation.api.resources import CLUSTER_PROPAGATION_POLICIES, PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS, POD_DISRUPTION_BUDGETS, PRIORITY_CLASSES, Object
from federation.features.preemption.names import EVENT_GIVES_WAY, EVENT_PREEMPTS, GAVE_WAY
from federation.journal.decisions import DecisionFilter

CLASSES_EVERYWHERE: Object = {
    "apiVersion": CLUSTER_PROPAGATION_POLICIES.api_version,
    "kind": "ClusterPropagationPolicy",
    "metadata": {"name": "classes"},
    "spec": {
        "schedulingMode": "Duplicate",
        "resourceSelectors": [{"apiVersion": PRIORITY_CLASSES.api_version, "kind": "PriorityClass"}],
    },
}


def a_class(name: str, value: int, **more: Any) -> Object:
    return {
        "apiVersion": PRIORITY_CLASSES.api_version,
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": value,
        **more,
    }


def a_web(name: str, replicas: int, cpu: str, priority: str = "", unavailable: int = 1) -> Object:
    """Return a Deployment; the nodes of a member have 64 CPUs together."""
    deployment = a_deployment(name, replicas)
    deployment["spec"]["strategy"] = {"rollingUpdate": {"maxUnavailable": unavailable, "maxSurge": 0}}
    spec = deployment["spec"]["template"]["spec"]
    spec["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    if priority:
        spec["priorityClassName"] = priority
    return deployment


@contextlib.asynccontextmanager
async def a_full_world(interval_s: float = 10.0, unavailable: int = 1) -> AsyncIterator[World]:
    """Run a world in which `batch` fills both members with four replicas each, so that nothing else fits."""
    async with a_world(members=("east", "west"), preemption_interval_s=interval_s) as world:
        for each in (a_class("high", 1000), a_class("low", 10), a_class("patient", 2000, preemptionPolicy="Never")):
            await world.create(PRIORITY_CLASSES, each)
        # Members refuse pods of a class that they do not have.
        await world.create(CLUSTER_PROPAGATION_POLICIES, CLASSES_EVERYWHERE)
        migration = {"when": {"podUnschedulableFor": "10s"}, "keepUnschedulableReplicas": True}
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1, "west": 1}, autoMigration=migration))
        await world.create(DEPLOYMENTS, a_web("batch", 8, "16", "low", unavailable))
        await world.until_available("batch", 8)
        yield world


async def available(world: World, name: str) -> int:
    return int((await world.status(name)).get("availableReplicas") or 0)


async def running(world: World, name: str) -> int:
    """Return the available replicas in the members, which the merged status follows."""
    copies = [await member.find(DEPLOYMENTS, name) for member in world.members.values()]
    return sum(((copy or {}).get("status") or {}).get("availableReplicas", 0) for copy in copies)


async def test_lower_replicas_give_way_within_their_budget_and_return() -> None:
    async with a_full_world() as world:
        await world.create(DEPLOYMENTS, a_web("shop", 2, "16", "high"))
        least = 8

        async def gets_room() -> int:
            nonlocal least
            least = min(least, await running(world, "batch"))
            return await available(world, "shop")

        await world.until_equal(gets_room, 1)
        await world.pass_time(60)
        assert least == 7, "one of eight may be unavailable"
        assert (await running(world, "batch"), await running(world, "shop")) == (7, 1)

        condition = await world.condition("batch", GAVE_WAY)
        assert condition["status"] == "True"
        assert condition["message"] in [f"1 replica in {name} to Deployment default/shop" for name in world.members]
        events = dict(await world.events())
        assert "give way to Deployment default/shop, which has a higher priority" in events[EVENT_GIVES_WAY]
        assert "1 replica of Deployment default/batch give way in" in events[EVENT_PREEMPTS]
        told = [orjson.loads(r.explanation) for r in await world.journal.query(DecisionFilter(name="shop"), limit=50)]
        preempts = next(each for each in told if each["outcome"] == EVENT_PREEMPTS)
        assert preempts["reason"].endswith("replicas of lower priority give way: 1 replica of Deployment default/batch")
        assert sum(preempts["placements"].values()) == 2
        told = [orjson.loads(r.explanation) for r in await world.journal.query(DecisionFilter(name="batch"), limit=50)]
        assert [each for each in told if "givesWay" in each]

        await world.restart()
        await world.pass_time(60)
        assert (await running(world, "batch"), await running(world, "shop")) == (7, 1), "a restart changes nothing"

        await world.user.delete(DEPLOYMENTS, "shop", "default")
        await world.until_available("batch", 8)
        assert (await world.condition("batch", GAVE_WAY))["status"] == "False"


async def test_no_more_give_way_than_the_other_workload_needs() -> None:
    async with a_full_world(unavailable=8) as world:
        await world.create(DEPLOYMENTS, a_web("shop", 1, "20", "high"))
        await world.until_available("shop", 1)
        await world.pass_time(60)
        assert await running(world, "batch") == 6, "two with 16 CPUs make room for one with 20"


async def test_a_pod_disruption_budget_protects_a_workload() -> None:
    async with a_full_world(unavailable=8) as world:
        budget = {
            "apiVersion": POD_DISRUPTION_BUDGETS.api_version,
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "batch", "namespace": "default"},
            "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "batch"}}},
        }
        kinds = [{"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}]
        policy = a_policy({"east": 1}, name="budgets", resourceSelectors=kinds, schedulingMode="Duplicate")
        await world.create(PROPAGATION_POLICIES, policy)
        await world.create(POD_DISRUPTION_BUDGETS, budget)
        await world.create(DEPLOYMENTS, a_web("shop", 1, "16", "high"))
        await world.pass_time(60)
        assert await running(world, "batch") == 8
        await world.merge(POD_DISRUPTION_BUDGETS, "batch", {"spec": {"maxUnavailable": 1}})
        await world.until_available("shop", 1)
        assert await running(world, "batch") == 7


async def test_equals_unknown_classes_and_those_that_never_preempt_wait() -> None:
    async with a_full_world(unavailable=8) as world:
        for name, priority in (("equal", "low"), ("patient", "patient"), ("unknown", "no-such-class"), ("none", "")):
            await world.create(DEPLOYMENTS, a_web(name, 1, "16", priority))
        await world.pass_time(60)
        assert await running(world, "batch") == 8


async def test_without_an_interval_nobody_gives_way() -> None:
    async with a_full_world(interval_s=0.0, unavailable=8) as world:
        await world.create(DEPLOYMENTS, a_web("shop", 1, "16", "high"))
        await world.pass_time(60)
        assert await running(world, "batch") == 8
