"""The status of other kinds than workloads reaches the host: claims, budgets, autoscalers, CronJobs, custom resources."""

from typing import Any

from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import CLUSTER_PROPAGATION_POLICIES, FEDERATED_TYPE_CONFIGS, PROPAGATION_POLICIES
from federation.apimachinery import conditions
from federation.apimachinery.resources import CRDS, CRON_JOBS, DEPLOYMENTS, Object, Resource
from federation.client.client import PatchType

CLAIMS = Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
BUDGETS = Resource("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
AUTOSCALERS = Resource("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")
WIDGETS = Resource("example.com", "v1", "Widget", "widgets")


def _object(resource: Resource, name: str, spec: Object, **more: Any) -> Object:
    metadata = {"name": name, **({"namespace": "default"} if resource.namespaced else {}), **more}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, "spec": spec}


def _selectors(*resources: Resource) -> list[Object]:
    return [{"apiVersion": resource.api_version, "kind": resource.kind} for resource in resources]


async def _status(world: World, resource: Resource, name: str) -> Any:
    return (await world.user.get(resource, name, "default")).get("status") or {}


def _field(world: World, resource: Resource, name: str, field: str) -> Any:
    async def look() -> Any:
        return (await _status(world, resource, name)).get(field)

    return look


async def test_what_members_report_of_other_built_in_kinds_reaches_the_host() -> None:
    async with a_world(members=("east", "north")) as world:
        policy = a_policy({"east": 1, "north": 1}, resourceSelectors=_selectors(DEPLOYMENTS))
        await world.create(PROPAGATION_POLICIES, policy)
        kinds = _selectors(CLAIMS, BUDGETS, AUTOSCALERS, CRON_JOBS)
        everywhere = a_policy({}, name="copies", resourceSelectors=kinds, schedulingMode="Duplicate")
        await world.create(PROPAGATION_POLICIES, everywhere)
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=4))
        selector = {"matchLabels": {"app": "web"}}
        await world.create(BUDGETS, _object(BUDGETS, "web", {"minAvailable": 1, "selector": selector}))
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        metric = {
            "type": "Resource",
            "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}},
        }
        scaler = {"scaleTargetRef": target, "minReplicas": 2, "maxReplicas": 4, "metrics": [metric]}
        await world.create(AUTOSCALERS, _object(AUTOSCALERS, "web", scaler))
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        await world.create(CLAIMS, _object(CLAIMS, "data", claim))
        pod = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "job:1"}]}}
        cron = {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": pod}}}
        await world.create(CRON_JOBS, _object(CRON_JOBS, "tick", cron))

        await world.until_available("web", 4)
        await world.until_equal(_field(world, BUDGETS, "web", "expectedPods"), 4)
        await world.until_equal(_field(world, BUDGETS, "web", "disruptionsAllowed"), 2)
        await world.until_equal(_field(world, AUTOSCALERS, "web", "currentReplicas"), 4)
        await world.until_equal(_field(world, CLAIMS, "data", "phase"), "Bound")
        await world.until_equal(_field(world, CLAIMS, "data", "capacity"), {"storage": "1Gi"})
        await world.until(_field(world, CRON_JOBS, "tick", "lastSuccessfulTime"))
        await world.user.delete(CRON_JOBS, "tick", "default")
        await world.until_gone(CRON_JOBS, "tick")


def _definition() -> Object:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    spec = {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
        "versions": [version],
    }
    return _object(CRDS, "widgets.example.com", spec)


async def test_the_conditions_of_a_custom_resource_reach_the_host() -> None:
    async with a_world(members=("east", "north")) as world:
        policy = a_policy(
            {},
            name="all",
            resourceSelectors=_selectors(CRDS, WIDGETS),
            schedulingMode="Duplicate",
        )
        del policy["metadata"]["namespace"]
        await world.create(CLUSTER_PROPAGATION_POLICIES, {**policy, "kind": "ClusterPropagationPolicy"})
        await world.create(CRDS, _definition())
        source = {"group": "example.com", "version": "v1", "kind": "Widget", "pluralName": "widgets"}
        stages = [[names.GLOBAL_SCHEDULER], [names.OVERRIDE_CONTROLLER]]
        spec = {"sourceType": {**source, "scope": "Namespaced"}, "controllers": stages}
        await world.create(FEDERATED_TYPE_CONFIGS, _object(FEDERATED_TYPE_CONFIGS, "widgets.example.com", spec))

        async def is_served() -> bool:
            return await world.find(CRDS, "widgets.example.com") is not None

        await world.until(is_served)
        await world.create(WIDGETS, _object(WIDGETS, "one", {"size": 1}))

        async def holders() -> set[str]:
            found = set()
            for name, member in world.members.items():
                if await member.find(CRDS, "widgets.example.com", "") is not None:
                    found |= {name} if await member.find(WIDGETS, "one") is not None else set()
            return found

        await world.until_equal(holders, {"east", "north"})

        async def report(cluster: str, status: str) -> None:
            body = {"status": {"phase": "Up", "conditions": [{"type": "Ready", "status": status, "reason": "Tested"}]}}
            admin = world.members[cluster].admin
            await admin.patch(
                WIDGETS, "one", body, patch_type=PatchType.MERGE, namespace="default", subresource="status"
            )

        async def ready() -> Any:
            found = conditions.find((await _status(world, WIDGETS, "one")).get("conditions"), "Ready") or {}
            return found.get("status")

        await report("east", "True")
        await world.until_equal(ready, "Unknown")
        await report("north", "True")
        await world.until_equal(ready, "True")
        await report("north", "False")
        await world.until_equal(ready, "False")
        # The host's own definition keeps the host's status.
        definition = await world.user.get(CRDS, "widgets.example.com")
        assert conditions.is_true(definition["status"]["conditions"], "Established")
