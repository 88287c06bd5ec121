"""Attack: an OverridePolicy brings into members what the host's admission refuses to the user who wrote the policy."""

import asyncio
import base64
import json
from collections.abc import Mapping
from typing import Any

import pytest
from tests.support.manifests import a_deployment, a_policy, an_override
from tests.support.tenants import federated
from tests.support.world import World, a_world

from federation.api import names
from federation.api.federatedtype import default_type_configs, from_config
from federation.api.resources import (
    CLUSTER_FEDERATED_OBJECTS,
    CLUSTER_OVERRIDE_POLICIES,
    CLUSTER_PROPAGATION_POLICIES,
    FEDERATED_OBJECTS,
    OVERRIDE_POLICIES,
    PROPAGATION_POLICIES,
)
from federation.apimachinery.errors import WebhookFailed
from federation.apimachinery.resources import (
    ADMISSION_POLICIES,
    ADMISSION_POLICY_BINDINGS,
    DEPLOYMENTS,
    MUTATING_POLICIES,
    MUTATING_POLICY_BINDINGS,
    MUTATING_WEBHOOKS,
    SERVICES,
    VALIDATING_WEBHOOKS,
    Object,
)
from federation.planning.federatedobject.naming import federated_object_name
from federation.planning.rendering.names import REASON_ADMISSION_FAILED, REASON_ADMISSION_REFUSED, REASON_ADMITTED

HOST_PID = "/spec/template/spec/hostPID"
SERVICE_TYPE: Object = {"selector": {"app": "web"}, "type": "NodePort", "ports": [{"port": 80, "protocol": "TCP"}]}


class Desk:
    """The network to webhooks: answers are by URL, and nobody answers at other URLs."""

    def __init__(self) -> None:
        self.answers: dict[str, Object] = {}
        self.asked: list[Object] = []
        self.is_open = asyncio.Event()
        """Whether the webhooks answer."""
        self.is_open.set()

    async def call(self, client_config: Mapping[str, Any], review: Object, *, timeout_s: float) -> Any:
        del timeout_s
        request = review["request"]
        if request["name"] != "web":
            return _reviewed(request)  # other objects are not the attacker's
        self.asked.append(request)
        await self.is_open.wait()
        if client_config["url"] not in self.answers:
            raise WebhookFailed("nobody is there")
        return _reviewed(request, **self.answers[client_config["url"]])

    def judged(self) -> list[Object]:
        """Return the dry runs: the questions of the federation."""
        return [request for request in self.asked if request["dryRun"]]


def _reviewed(request: Object, **answer: Any) -> Object:
    response = {"uid": request["uid"], "allowed": True, **answer}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}


def rules(plural: str = "deployments", group: str = "apps") -> list[Object]:
    return [{"operations": ["*"], "apiGroups": [group], "apiVersions": ["v1"], "resources": [plural]}]


async def forbid(
    world: World,
    expression: str = "!has(object.spec.template.spec.hostPID)",
    message: str = "hostPID is forbidden",
    *,
    match: list[Object] | None = None,
    conditions: list[Object] | None = None,
) -> None:
    """Create a ValidatingAdmissionPolicy with its binding."""
    spec = {
        "matchConstraints": {"resourceRules": match or rules()},
        "validations": [{"expression": expression, "message": message}],
        **({"matchConditions": conditions} if conditions else {}),
    }
    await world.create(ADMISSION_POLICIES, {**named(ADMISSION_POLICIES.kind, "guard"), "spec": spec})
    binding = {"policyName": "guard", "validationActions": ["Deny"]}
    await world.create(ADMISSION_POLICY_BINDINGS, {**named(ADMISSION_POLICY_BINDINGS.kind, "guard"), "spec": binding})


def named(kind: str, name: str) -> Object:
    return {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}}


def a_webhook(kind: str = "ValidatingWebhookConfiguration", **fields: Any) -> Object:
    webhook = {
        "name": "guard.example.com",
        "clientConfig": {"url": "https://guard"},
        "rules": rules(),
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **fields,
    }
    return {**named(kind, "guard"), "webhooks": [webhook]}


def nobody(name: str) -> Object:
    return {"username": name, "groups": ["system:authenticated"]}


async def begin(world: World, *clusters: str, override: Object | None = None) -> None:
    """Create a Deployment that goes to all clusters and what a tenant overrides in it."""
    policy = a_policy(dict.fromkeys(clusters or ("east", "west"), 1), schedulingMode="Duplicate")
    await world.create(PROPAGATION_POLICIES, policy)
    if override is not None:
        await world.create(OVERRIDE_POLICIES, override)
    await world.create(DEPLOYMENTS, a_deployment("web", replicas=2))


async def until_admitted(world: World, reason: str, name: str = "web") -> str:
    """Wait for the reason of the condition Admitted and return its message."""

    async def look() -> Any:
        if await world.find(FEDERATED_OBJECTS, federated_object_name(name, "deployments.apps")) is None:
            return None
        condition = await world.condition(name, names.ADMITTED)
        return condition if condition.get("reason") == reason else None

    condition = await world.until(look, f"{reason} of {name}")
    assert condition["status"] == ("True" if reason == REASON_ADMITTED else "False")
    return str(condition.get("message", ""))


async def host_pid(world: World, cluster: str) -> Any:
    found = await world.members[cluster].find(DEPLOYMENTS, "web")
    return None if found is None else found["spec"]["template"]["spec"].get("hostPID", False)


async def status_in(world: World, cluster: str) -> str:
    """Return the cluster's status in the federated object of the Deployment."""
    entries = ((await world.federated("web")).get("status") or {}).get("clusters") or ()
    return next((entry["status"] for entry in entries if entry["cluster"] == cluster), "")


async def test_what_the_host_refuses_does_not_reach_a_member() -> None:
    async with a_world() as world:
        await forbid(world)
        await begin(world, override=an_override("east", HOST_PID, value=True))
        message = await until_admitted(world, REASON_ADMISSION_REFUSED)
        assert "east" in message
        assert "west" not in message
        assert "ValidatingAdmissionPolicy 'guard'" in message
        assert "hostPID is forbidden" in message
        assert 'OverridePolicy "default/special"' in message
        await world.until_equal(lambda: host_pid(world, "west"), False)
        await world.until_equal(lambda: status_in(world, "west"), "OK")
        assert await status_in(world, "east") == "AdmissionRefused"
        assert await host_pid(world, "east") is None
        events = [text for reason, text in await world.events() if reason == REASON_ADMISSION_REFUSED]
        assert len(events) == 2, events  # one for the federated object, one for the user's Deployment
        assert all("hostPID is forbidden" in text for text in events)
        # Another look at the same object asks nothing, and the refusal costs no further writes.
        await world.settle()
        asked, before = len(world.host_line.reviews), await world.federated("web")
        assert asked == 1
        await world.pass_time(30)
        assert len(world.host_line.reviews) == asked
        assert await world.federated("web") == before
        # Once the host's policy is gone, the object is judged again at once.
        await world.user.delete(ADMISSION_POLICY_BINDINGS, "guard")
        await world.until_equal(lambda: host_pid(world, "east"), True)
        await until_admitted(world, REASON_ADMITTED)


async def test_the_previous_object_stays_and_the_next_good_override_goes_out() -> None:
    async with a_world() as world:
        await begin(world, override=an_override("east", "/spec/minReadySeconds", 5))
        await world.until_replicas("web", {"east": 2, "west": 2})
        await forbid(world)
        await world.merge(OVERRIDE_POLICIES, "special", an_override("east", HOST_PID, value=True))
        await until_admitted(world, REASON_ADMISSION_REFUSED)
        found = await world.members["east"].find(DEPLOYMENTS, "web")
        assert found is not None
        assert found["spec"]["minReadySeconds"] == 5
        assert "hostPID" not in found["spec"]["template"]["spec"]
        await world.merge(OVERRIDE_POLICIES, "special", an_override("east", "/spec/minReadySeconds", 7))
        await until_admitted(world, REASON_ADMITTED)
        await world.settle()
        found = await world.members["east"].find(DEPLOYMENTS, "web")
        assert found is not None
        assert found["spec"]["minReadySeconds"] == 7


async def test_a_new_policy_holds_further_writes_of_what_is_there() -> None:
    """As in Kubernetes, an object that exists stays; its next version is judged, and so is the repair of drift."""
    async with a_world() as world:
        await begin(world, override=an_override("east", HOST_PID, value=True))
        await world.until_equal(lambda: host_pid(world, "east"), True)
        await forbid(world)
        await world.settle()
        assert world.host_line.reviews == []
        await world.merge(DEPLOYMENTS, "web", {"spec": {"template": {"spec": {"hostPID": None}}, "minReadySeconds": 3}})
        await until_admitted(world, REASON_ADMISSION_REFUSED)
        await world.until_equal(lambda: status_in(world, "west"), "OK")
        await world.user.delete(OVERRIDE_POLICIES, "special", "default")
        await until_admitted(world, REASON_ADMITTED)
        await world.until_equal(lambda: host_pid(world, "east"), False)


async def test_policies_see_a_user_without_any_group_of_administrators() -> None:
    """A policy that exempts administrators does not exempt the federation's delivery of what a tenant wrote."""
    exempt = [{"name": "users", "expression": "!('system:masters' in request.userInfo.groups)"}]
    async with a_world() as world:
        await forbid(world, conditions=exempt)
        await begin(world, override=an_override("east", HOST_PID, value=True))
        await until_admitted(world, REASON_ADMISSION_REFUSED)
        assert [request.user for request in world.host_line.reviews] == [nobody(names.OVERRIDE_POLICY_USER)]
        await world.user.delete(OVERRIDE_POLICIES, "special", "default")
        await until_admitted(world, REASON_ADMITTED)


async def test_a_cluster_wide_override_is_judged_as_a_user_of_its_own() -> None:
    user = f"request.userInfo.username != '{names.CLUSTER_OVERRIDE_POLICY_USER}'"
    async with a_world() as world:
        await forbid(world, conditions=[{"name": "administrators", "expression": user}])
        override = an_override("east", HOST_PID, value=True)
        override |= {"kind": "ClusterOverridePolicy", "metadata": {"name": "site"}}
        await world.create(CLUSTER_OVERRIDE_POLICIES, override)
        await begin(world)
        await world.until_equal(lambda: host_pid(world, "east"), True)
        assert [request.user for request in world.host_line.reviews] == [nobody(names.CLUSTER_OVERRIDE_POLICY_USER)]
        # A tenant's policy for the same object takes the exemption away.
        await world.create(OVERRIDE_POLICIES, an_override("east", "/spec/minReadySeconds", 5, name="mine"))
        message = await until_admitted(world, REASON_ADMISSION_REFUSED)
        assert 'ClusterOverridePolicy "site", OverridePolicy "default/mine"' in message
        await world.user.delete(OVERRIDE_POLICIES, "mine", "default")
        await until_admitted(world, REASON_ADMITTED)


async def test_what_was_written_by_hand_is_judged_as_a_whole() -> None:
    async with a_world() as world:
        await forbid(world)
        template = a_deployment("web")
        template["spec"]["template"]["spec"]["hostPID"] = True
        body = federated(template, federated_object_name("web", "deployments.apps"), **{names.HAND_WRITTEN: "true"})
        await world.create(FEDERATED_OBJECTS, body)
        await until_admitted(world, REASON_ADMISSION_REFUSED)
        assert await host_pid(world, "east") is None
        await world.user.delete(FEDERATED_OBJECTS, body["metadata"]["name"], "default")
        await world.until_gone(FEDERATED_OBJECTS, body["metadata"]["name"])


@pytest.mark.parametrize("configured", ["nothing", "another kind", "a policy without a binding"])
async def test_without_admission_of_the_kind_the_host_is_asked_nothing(configured: str) -> None:
    async with a_world() as world:
        if configured == "another kind":
            await forbid(world, match=rules("statefulsets"))
        elif configured == "a policy without a binding":
            await forbid(world)
            await world.user.delete(ADMISSION_POLICY_BINDINGS, "guard")
        await world.settle()
        await begin(world, override=an_override("east", HOST_PID, value=True))
        await world.until_equal(lambda: host_pid(world, "east"), True)
        assert world.host_line.reviews == []


async def test_what_is_not_overridden_asks_nothing() -> None:
    """The scheduler's replicas are not a user's."""
    async with a_world() as world:
        await forbid(world)
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 2, "west": 1}))
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=3))
        await world.until_replicas("web", {"east": 2, "west": 1})
        assert world.host_line.reviews == []


@pytest.mark.slow("a world of fifty clusters")
async def test_a_webhook_is_asked_once_for_fifty_clusters() -> None:
    clusters = [f"m{number:02}" for number in range(50)]
    desk = Desk()
    desk.answers["https://guard"] = {}
    override = an_override("", HOST_PID, value=True)
    override["spec"]["overrideRules"][0]["targetClusters"] = {}
    async with a_world(members=clusters, webhooks=desk, has_workloads=False) as world:
        await world.create(VALIDATING_WEBHOOKS, a_webhook())
        await world.create(
            PROPAGATION_POLICIES, a_policy({name: 1 + number % 3 for number, name in enumerate(clusters)})
        )
        await world.create(OVERRIDE_POLICIES, override)
        await world.create(DEPLOYMENTS, a_deployment("web", replicas=1980))
        await world.until_equal(lambda: host_pid(world, "m49"), True)
        await world.settle()
        assert all([await host_pid(world, cluster) for cluster in clusters])
        (judged,) = desk.judged()
        assert judged["userInfo"] == nobody(names.OVERRIDE_POLICY_USER)
        assert (judged["operation"], judged["name"], judged["namespace"]) == ("CREATE", "web", "default")
        assert judged["object"]["spec"]["template"]["spec"]["hostPID"] is True


@pytest.mark.parametrize("failure_policy", ["Fail", "Ignore"])
async def test_a_webhook_that_cannot_be_reached_holds_or_passes(failure_policy: str) -> None:
    desk = Desk()
    async with a_world(webhooks=desk) as world:
        await begin(world)
        await world.until_replicas("web", {"east": 2, "west": 2})
        await world.create(VALIDATING_WEBHOOKS, a_webhook(failurePolicy=failure_policy))
        await world.create(OVERRIDE_POLICIES, an_override("east", HOST_PID, value=True))
        if failure_policy == "Fail":
            message = await until_admitted(world, REASON_ADMISSION_FAILED)
            assert 'failed calling webhook "guard.example.com"' in message
            assert await host_pid(world, "east") is False
            await world.pass_time(30)
            assert 4 <= len(desk.judged()) <= 6  # after 1, 2, 4, 8, 16 seconds
            desk.answers["https://guard"] = {}
        await world.until_equal(lambda: host_pid(world, "east"), True)


async def test_a_webhook_that_hangs_delays_nothing_else() -> None:
    desk = Desk()
    async with a_world(webhooks=desk) as world:
        await begin(world)
        await world.until_replicas("web", {"east": 2, "west": 2})
        desk.answers["https://guard"] = {}
        desk.is_open.clear()
        await world.create(VALIDATING_WEBHOOKS, a_webhook())
        await world.create(OVERRIDE_POLICIES, an_override("east", HOST_PID, value=True))
        await world.until_equal(lambda: status_in(world, "east"), "AdmissionPending")
        assert await status_in(world, "west") == "OK"
        await world.create(DEPLOYMENTS, a_deployment("other"))
        await world.until_replicas("other", {"east": 3, "west": 3})
        assert await host_pid(world, "east") is False
        await world.pass_time(20)
        assert len(desk.judged()) == 1
        desk.is_open.set()
        await world.until_equal(lambda: host_pid(world, "east"), True)


async def test_a_denial_that_looks_like_a_taken_name_is_a_denial() -> None:
    """A dry run under the object's own name is admitted if the name is taken; a webhook may answer with that reason."""
    desk = Desk()
    status = {"code": 409, "reason": "AlreadyExists", "message": 'deployments.apps "web" already exists'}
    async with a_world(webhooks=desk) as world:
        await begin(world)
        await world.until_replicas("web", {"east": 2, "west": 2})
        desk.answers["https://guard"] = {"allowed": False, "status": status}
        await world.create(VALIDATING_WEBHOOKS, a_webhook())
        await world.create(OVERRIDE_POLICIES, an_override("east", HOST_PID, value=True))
        await until_admitted(world, REASON_ADMISSION_REFUSED)
        await world.user.delete(VALIDATING_WEBHOOKS, "guard")
        await until_admitted(world, REASON_ADMITTED)


async def test_a_denial_by_a_mutating_webhook_counts_and_its_changes_do_not() -> None:
    desk = Desk()
    async with a_world(webhooks=desk) as world:
        await begin(world)
        await world.until_replicas("web", {"east": 2, "west": 2})
        desk.answers["https://guard"] = {"allowed": False, "status": {"message": "no"}}
        await world.create(MUTATING_WEBHOOKS, a_webhook(MUTATING_WEBHOOKS.kind))
        await world.create(OVERRIDE_POLICIES, an_override("east", HOST_PID, value=True))
        await until_admitted(world, REASON_ADMISSION_REFUSED)
        await world.user.delete(MUTATING_WEBHOOKS, "guard")
        await until_admitted(world, REASON_ADMITTED)


@pytest.mark.parametrize("change", ["sets another value", "removes it", "adds a sidecar"])
async def test_an_override_that_a_mutating_webhook_takes_back_is_refused(change: str) -> None:
    desk = Desk()
    operation = {"op": "replace", "path": HOST_PID, "value": False}
    if change == "removes it":
        operation = {"op": "remove", "path": HOST_PID}
    elif change == "adds a sidecar":
        operation = {"op": "add", "path": "/spec/template/spec/containers/0", "value": {"name": "car", "image": "car"}}
    async with a_world(webhooks=desk) as world:
        await begin(world)
        await world.until_replicas("web", {"east": 2, "west": 2})
        patch = base64.b64encode(json.dumps([operation]).encode()).decode()
        desk.answers["https://guard"] = {"patchType": "JSONPatch", "patch": patch}
        await world.create(MUTATING_WEBHOOKS, a_webhook(MUTATING_WEBHOOKS.kind))
        await world.create(OVERRIDE_POLICIES, an_override("east", HOST_PID, value=True))
        if change != "adds a sidecar":
            message = await until_admitted(world, REASON_ADMISSION_REFUSED)
            assert "the host's mutating admission takes the override back of spec.template.spec.hostPID" in message
            await world.user.delete(MUTATING_WEBHOOKS, "guard")
        await world.until_equal(lambda: host_pid(world, "east"), True)
        found = await world.members["east"].find(DEPLOYMENTS, "web")
        assert found is not None
        assert [container["name"] for container in found["spec"]["template"]["spec"]["containers"]] == ["web"]


async def test_an_override_that_a_mutating_policy_takes_back_is_refused() -> None:
    async with a_world() as world:
        await begin(world)
        await world.until_replicas("web", {"east": 2, "west": 2})
        patch = f'[JSONPatch{{op: "add", path: "{HOST_PID}", value: false}}]'
        spec = {
            "matchConstraints": {"resourceRules": rules()},
            "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
            "reinvocationPolicy": "Never",
        }
        await world.create(MUTATING_POLICIES, {**named(MUTATING_POLICIES.kind, "guard"), "spec": spec})
        binding = {**named(MUTATING_POLICY_BINDINGS.kind, "guard"), "spec": {"policyName": "guard"}}
        await world.create(MUTATING_POLICY_BINDINGS, binding)
        await world.create(OVERRIDE_POLICIES, an_override("east", HOST_PID, value=True))
        message = await until_admitted(world, REASON_ADMISSION_REFUSED)
        assert "the host's mutating admission takes the override back of spec.template.spec.hostPID" in message
        await world.user.delete(MUTATING_POLICY_BINDINGS, "guard")
        await world.until_equal(lambda: host_pid(world, "east"), True)


POD = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
SELECTOR = {"matchLabels": {"app": "a"}}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
VOLUME = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
RBAC = "rbac.authorization.k8s.io"
ONCE = {"template": {**POD, "spec": {**POD["spec"], "restartPolicy": "Never"}}}
WIDGETS = {
    "group": "example.com",
    "scope": "Namespaced",
    "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
    "versions": [
        {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}},
    ],
}
SCALED = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}, "maxReplicas": 3}
KINDS: list[tuple[str, str, Object]] = [
    ("v1", "ConfigMap", {"data": {"a": "1"}}),
    ("v1", "Secret", {"data": {"a": "YQ=="}}),
    ("v1", "ServiceAccount", {}),
    ("v1", "Service", {"spec": {"selector": {"app": "a"}, "ports": [{"port": 80}]}}),
    ("v1", "PersistentVolumeClaim", {"spec": CLAIM}),
    ("v1", "PersistentVolume", {"spec": VOLUME}),
    ("v1", "LimitRange", {"spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}}),
    ("v1", "ResourceQuota", {"spec": {"hard": {"pods": "9"}}}),
    ("apps/v1", "StatefulSet", {"spec": {"selector": SELECTOR, "template": POD, "serviceName": "a"}}),
    ("apps/v1", "DaemonSet", {"spec": {"selector": SELECTOR, "template": POD}}),
    ("batch/v1", "Job", {"spec": ONCE}),
    ("batch/v1", "CronJob", {"spec": {"schedule": "0 0 * * *", "jobTemplate": {"spec": ONCE}}}),
    (
        "networking.k8s.io/v1",
        "Ingress",
        {"spec": {"defaultBackend": {"service": {"name": "a", "port": {"number": 1}}}}},
    ),
    ("autoscaling/v2", "HorizontalPodAutoscaler", {"spec": SCALED}),
    ("storage.k8s.io/v1", "StorageClass", {"provisioner": "a"}),
    (f"{RBAC}/v1", "Role", {"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]}),
    (f"{RBAC}/v1", "ClusterRole", {"rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]}),
    (f"{RBAC}/v1", "RoleBinding", {"roleRef": {"apiGroup": RBAC, "kind": "Role", "name": "a"}}),
    (f"{RBAC}/v1", "ClusterRoleBinding", {"roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "a"}}),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition", {"spec": WIDGETS}),
]


async def test_the_host_admits_a_harmless_override_of_every_kind_beside_its_source() -> None:
    types = {
        (type_.resource.api_version, type_.resource.kind): type_ for type_ in map(from_config, default_type_configs())
    }
    selectors = [{"apiVersion": api_version, "kind": kind} for api_version, kind, _ in KINDS]
    override = an_override("east", "/metadata/annotations/harmless", "yes")
    override |= {"kind": "ClusterOverridePolicy", "metadata": {"name": "site"}}
    override["spec"]["resourceSelectors"] = selectors
    placement = a_policy({"east": 1}, resourceSelectors=selectors, schedulingMode="Duplicate")
    placement |= {"kind": "ClusterPropagationPolicy", "metadata": {"name": "everything"}}
    async with a_world(has_workloads=False) as world:
        await forbid(world, "true", match=rules("*", "*"))
        await world.create(CLUSTER_OVERRIDE_POLICIES, override)
        await world.create(CLUSTER_PROPAGATION_POLICIES, placement)
        for api_version, kind, content in KINDS:
            resource = types[api_version, kind].resource
            name = "widgets.example.com" if kind == "CustomResourceDefinition" else "web"
            metadata = {"name": name, **({"namespace": "default"} if resource.namespaced else {})}
            await world.create(resource, {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content})

        async def look() -> dict[str, Any]:
            found: dict[str, Any] = {}
            for federated_resource in (FEDERATED_OBJECTS, CLUSTER_FEDERATED_OBJECTS):
                for obj in (await world.user.list(federated_resource)).items:
                    clusters = (obj.get("status") or {}).get("clusters") or [{}]
                    if names.OVERRIDE_POLICIES in obj["metadata"]["annotations"] and clusters[0].get("status") == "OK":
                        found[obj["spec"]["template"]["kind"]] = "OK"
            return found

        await world.until_equal(look, {kind: "OK" for _, kind, _ in KINDS})
        assert {request.resource.kind for request in world.host_line.reviews} == {kind for _, kind, _ in KINDS}


async def test_a_service_is_judged_beside_the_one_that_holds_its_ports() -> None:
    async with a_world() as world:
        await forbid(world, "object.spec.type != 'LoadBalancer'", "no", match=rules("services", ""))
        policy = a_policy({"east": 1}, resourceSelectors=[{"apiVersion": "v1", "kind": "Service"}])
        await world.create(PROPAGATION_POLICIES, policy | {"spec": {**policy["spec"], "schedulingMode": "Duplicate"}})
        override = an_override("east", "/spec/sessionAffinity", "ClientIP")
        override["spec"]["resourceSelectors"] = [{"apiVersion": "v1", "kind": "Service"}]
        await world.create(OVERRIDE_POLICIES, override)
        service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "default"}}
        await world.create(SERVICES, {**service, "spec": SERVICE_TYPE})

        async def affinity() -> Any:
            found = await world.members["east"].find(SERVICES, "web")
            return None if found is None else found["spec"]["sessionAffinity"]

        await world.until_equal(affinity, "ClientIP")
        assert len(world.host_line.reviews) == 1
