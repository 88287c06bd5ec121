"""An autoscaler on the host that targets a federated workload reports that it does not act, and conflicts with no other controller."""

from collections.abc import Mapping
from typing import Any

from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import FEDERATED_TYPE_CONFIGS, PROPAGATION_POLICIES
from federation.apimachinery import conditions
from federation.apimachinery.resources import DEPLOYMENTS, HORIZONTAL_POD_AUTOSCALERS, Object
from federation.features.autoscaling.names import REASON_FEDERATED_WORKLOAD

SCALERS = HORIZONTAL_POD_AUTOSCALERS
KEY = "horizontalpodautoscalers/default/web"


def _a_scaler() -> Object:
    return {
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "maxReplicas": 5,
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
                }
            ],
        },
    }


async def _condition(world: World) -> Mapping[str, Any]:
    scaler = await world.user.get(SCALERS, "web", "default")
    return conditions.find((scaler.get("status") or {}).get("conditions"), names.SCALING_ACTIVE) or {}


async def _reason(world: World) -> str | None:
    return (await _condition(world)).get("reason")


async def _begin(world: World) -> None:
    await world.create(PROPAGATION_POLICIES, a_policy({}, schedulingMode="Duplicate"))
    await world.create(DEPLOYMENTS, a_deployment("web", replicas=2))
    await world.create(SCALERS, _a_scaler())


async def test_it_says_so_once_until_the_workload_is_not_federated_any_more() -> None:
    async with a_world(members=("east",)) as world:
        await _begin(world)
        await world.until_equal(lambda: _reason(world), REASON_FEDERATED_WORKLOAD)
        condition = await _condition(world)
        assert condition["status"] == "False"
        assert condition["message"].startswith("Deployment web is federated and runs no pods on the host; ")
        await world.settle()
        settled = await world.revisions()
        await world.restart()
        await world.pass_time(20)
        assert await world.revisions() == settled

        target = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "other"}}
        await world.merge(SCALERS, "web", {"spec": target})
        await world.until_equal(lambda: _reason(world), None)
        target["scaleTargetRef"]["name"] = "web"
        await world.merge(SCALERS, "web", {"spec": target})
        await world.until_equal(lambda: _reason(world), REASON_FEDERATED_WORKLOAD)
        await world.merge(
            FEDERATED_TYPE_CONFIGS, "deployments.apps", {"metadata": {"annotations": {names.ORPHAN: "all"}}}
        )
        await world.user.delete(FEDERATED_TYPE_CONFIGS, "deployments.apps")
        await world.until_equal(lambda: _reason(world), None)
        await world.user.delete(DEPLOYMENTS, "web", "default")


async def test_one_that_is_delivered_shows_what_its_members_report() -> None:
    async with a_world(members=("east",)) as world:
        await _begin(world)
        await world.until_equal(lambda: _reason(world), REASON_FEDERATED_WORKLOAD)
        selector = [{"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}]
        policy = a_policy({}, name="scalers", schedulingMode="Duplicate", resourceSelectors=selector)
        await world.create(PROPAGATION_POLICIES, policy)

        async def is_of_the_member() -> bool:
            found = await _condition(world)
            return bool(found) and found["reason"] != REASON_FEDERATED_WORKLOAD

        await world.until(is_of_the_member)
        await world.settle()
        assert await is_of_the_member()


async def test_one_that_comes_with_its_policy_never_has_the_condition() -> None:
    async with a_world(members=("east",)) as world:
        since = await world.store.revision()
        await _begin(world)
        await world.pass_time(1)
        selector = [{"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler"}]
        policy = a_policy({}, name="scalers", schedulingMode="Duplicate", resourceSelectors=selector)
        await world.create(PROPAGATION_POLICIES, policy)
        await world.pass_time(10)
        written = [text for text in world.changes("", since) if REASON_FEDERATED_WORKLOAD in text]
        assert written == []


async def test_a_controller_of_the_host_that_writes_the_condition_is_left_alone() -> None:
    async with a_world(members=("east",)) as world:
        await _begin(world)
        await world.until_equal(lambda: _reason(world), REASON_FEDERATED_WORKLOAD)
        since = await world.store.revision()
        for _ in range(8):  # as a kube-controller-manager does: every 15 s, whatever is there
            held = ((await world.user.get(SCALERS, "web", "default")).get("status") or {}).get("conditions")
            wanted = conditions.set_condition(
                held,
                type_=names.SCALING_ACTIVE,
                status="False",
                reason="FailedGetResourceMetric",
                message="no metrics",
                now=world.clock.now(),
            )
            await world.user.patch(
                SCALERS, "web", {"status": {"conditions": wanted}}, namespace="default", subresource="status"
            )
            await world.pass_time(15)
        assert await _reason(world) == "FailedGetResourceMetric"
        writes = [text for text in world.changes("", since) if KEY in text]
        assert len(writes) == 1, writes
