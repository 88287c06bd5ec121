"""A webhook configuration reaches a member after the pods that answer it, and never waits for ever."""

from typing import Any

from tests.support.manifests import a_deployment, a_policy
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import CLUSTER_FEDERATED_OBJECTS, CLUSTER_PROPAGATION_POLICIES
from federation.apimachinery.resources import DEPLOYMENTS, SERVICES, VALIDATING_WEBHOOKS, Object
from federation.delivery.rules.names import EVENT_SERVICE_NOT_READY

RULE = {"operations": ["CREATE"], "apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"]}


def everywhere() -> Object:
    kinds = (VALIDATING_WEBHOOKS, DEPLOYMENTS, SERVICES)
    selectors = [{"apiVersion": each.api_version, "kind": each.kind} for each in kinds]
    policy = a_policy({}, name="everywhere", schedulingMode="Duplicate", resourceSelectors=selectors)
    del policy["metadata"]["namespace"]
    return {**policy, "kind": "ClusterPropagationPolicy"}


def a_service() -> Object:
    ports = [{"port": 443, "targetPort": 8443}]
    spec = {"selector": {"app": "webhook"}, "ports": ports}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "webhook", "namespace": "default"},
        "spec": spec,
    }


def checks(failure: str = "Fail") -> Object:
    """Return a webhook that must admit every new Deployment, that of its own pods among them."""
    webhook = {
        "name": "check.example.com",
        "clientConfig": {"service": {"namespace": "default", "name": "webhook"}},
        "rules": [RULE],
        "failurePolicy": failure,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    metadata = {"name": "checks"}
    return {"apiVersion": VALIDATING_WEBHOOKS.api_version, "kind": VALIDATING_WEBHOOKS.kind, "metadata": metadata} | {
        "webhooks": [webhook]
    }


async def members_with_the_webhook(world: World) -> list[str]:
    found = [(name, await each.find(VALIDATING_WEBHOOKS, "checks", "")) for name, each in world.members.items()]
    return [name for name, obj in found if obj is not None]


async def all_run(world: World) -> None:
    """Report the pod of the webhook as ready in every member."""
    counts = dict.fromkeys(("replicas", "readyReplicas", "updatedReplicas", "availableReplicas"), 1)
    for member in world.members.values():
        await member.report("webhook", **counts)
    await world.settle()


async def messages(world: World) -> dict[str, Any]:
    """Return what the configuration's federated object says about each cluster."""
    for obj in (await world.user.list(CLUSTER_FEDERATED_OBJECTS)).items:
        if obj["spec"]["template"]["metadata"]["name"] == "checks":
            conditions = (obj.get("status") or {}).get("conditions") or ()
            return {each["type"]: each.get("message", "") for each in conditions}
    return {}


async def test_a_webhook_waits_in_each_member_for_the_pods_that_answer_it() -> None:
    async with a_world(members=("east", "north"), has_workloads=False) as world:
        await world.create(CLUSTER_PROPAGATION_POLICIES, everywhere())
        await world.settle()
        # In this order a single cluster would refuse the Deployment.
        await world.create(VALIDATING_WEBHOOKS, checks())
        await world.create(SERVICES, a_service())
        await world.create(DEPLOYMENTS, a_deployment("webhook", replicas=1))
        await world.until_replicas("webhook", {"east": 1, "north": 1})
        await world.pass_time(30)
        assert await members_with_the_webhook(world) == []
        assert "waits for ready pods of Service default/webhook" in (await messages(world))[names.PROPAGATED]
        await world.members["north"].report("webhook", replicas=1, readyReplicas=1)
        await world.until_equal(lambda: members_with_the_webhook(world), ["north"])
        # Pods that are not ready any more take nothing back.
        await world.members["north"].report("webhook", replicas=1, readyReplicas=0)
        await world.pass_time(30)
        assert await members_with_the_webhook(world) == ["north"]
        await all_run(world)
        assert await members_with_the_webhook(world) == ["east", "north"]


async def test_a_webhook_whose_pods_are_never_ready_is_delivered_after_minutes_with_an_event() -> None:
    async with a_world(members=("east",), has_workloads=False) as world:
        await world.create(CLUSTER_PROPAGATION_POLICIES, everywhere())
        await world.create(SERVICES, a_service())
        await world.create(DEPLOYMENTS, a_deployment("webhook", replicas=1))
        await world.settle()
        await world.create(VALIDATING_WEBHOOKS, checks())
        await world.pass_time(280)
        assert await members_with_the_webhook(world) == []
        await world.pass_time(30)
        assert await members_with_the_webhook(world) == ["east"]
        assert EVENT_SERVICE_NOT_READY in {reason for reason, _ in await world.events()}
        await all_run(world)


async def test_webhooks_that_lock_nothing_and_those_of_foreign_services_do_not_wait_for_pods() -> None:
    async with a_world(members=("east",), has_workloads=False) as world:
        await world.create(CLUSTER_PROPAGATION_POLICIES, everywhere())
        await world.settle()
        await world.create(VALIDATING_WEBHOOKS, checks())
        await world.pass_time(10)
        assert await members_with_the_webhook(world) == ["east"], "the service is the member's own"
        await world.user.delete(VALIDATING_WEBHOOKS, "checks")
        await world.until_gone(VALIDATING_WEBHOOKS, "checks", "")
        await world.create(SERVICES, a_service())
        await world.create(DEPLOYMENTS, a_deployment("webhook", replicas=1))
        await world.settle()
        await world.create(VALIDATING_WEBHOOKS, checks("Ignore"))
        await world.settle()
        assert await members_with_the_webhook(world) == ["east"]
        await all_run(world)
