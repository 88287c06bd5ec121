"""Attack: a user has the control plane write what the host's quotas and admission refuse to him.

Limits of the namespace and policies about certain users hold when the wish is written, and when it is carried out.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.manifests import a_deployment, a_policy, an_override
from tests.support.tenants import Tenants, federated, rule, tenants
from tests.support.world import World, a_world

from federation.api import names
from federation.api.kubefedkinds import FEDERATED_KINDS, TYPES_GROUP
from federation.api.resources import (
    CORE_GROUP,
    CRON_AUTOSCALERS,
    FEDERATED_OBJECTS,
    KRUISE_GROUP,
    OVERRIDE_POLICIES,
    PROPAGATION_POLICIES,
    UNITED_DEPLOYMENTS,
)
from federation.apimachinery.resources import (
    ADMISSION_POLICIES,
    ADMISSION_POLICY_BINDINGS,
    DEPLOYMENTS,
    LIMIT_RANGES,
    PERSISTENT_VOLUME_CLAIMS,
    RESOURCE_QUOTAS,
    SERVICES,
    Object,
    Resource,
)
from federation.features.kubefed.names import REASON_TEMPLATE_REFUSED
from federation.planning.federatedobject.naming import federated_object_name

TENANT = ("editor", "tenants")
"""A user with the role `edit` in the namespace `default`, and his group."""
LABELS = {"app": "web"}
PODS = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "web", "image": "nginx"}]}}
TEMPLATES: dict[str, Object] = {
    "FederatedDeployment": {"spec": {"selector": {"matchLabels": LABELS}, "template": PODS}},
    "FederatedService": {"spec": {"type": "LoadBalancer", "selector": LABELS, "ports": [{"port": 80}]}},
    "FederatedPersistentVolumeClaim": {
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    },
}
NOTHING = {"count/deployments.apps": "0", "services.loadbalancers": "0", "persistentvolumeclaims": "0"}


class Host:
    """A running federation, and clients of its users."""

    def __init__(self, world: World, served: Tenants) -> None:
        self.world = world
        self.served = served

    async def post(self, resource: Resource, obj: Object, *user: str) -> httpx.Response:
        """Create an object in the namespace `default`, as the tenant if no user is given."""
        client = await self.served.client(*(user or TENANT))
        body = {"apiVersion": resource.api_version, "kind": resource.kind, **obj}
        return await client.post(resource.path("default"), json=body)

    async def merge(self, resource: Resource, name: str, patch: Object, *user: str) -> httpx.Response:
        """Patch an object in the namespace `default`, as the tenant if no user is given."""
        client = await self.served.client(*(user or TENANT), **{"content-type": "application/merge-patch+json"})
        return await client.patch(resource.path("default", name), json=patch)

    async def limit(self, hard: Object) -> None:
        quota = Resource("", "v1", "ResourceQuota", "resourcequotas")
        answer = await self.post(
            quota, {"metadata": {"name": "none"}, "spec": {"hard": hard}}, "root", "system:masters"
        )
        assert answer.status_code == 201, answer.text

    async def forbid_host_pid(self) -> None:
        """Refuse hostPID in Deployments to the group of tenants."""
        rules = [{"operations": ["*"], "apiGroups": ["apps"], "apiVersions": ["*"], "resources": ["deployments"]}]
        spec = {
            "matchConstraints": {"resourceRules": rules},
            "matchConditions": [{"name": "tenants", "expression": "'tenants' in request.userInfo.groups"}],
            "validations": [
                {"expression": "!has(object.spec.template.spec.hostPID)", "message": "tenants may not set hostPID"}
            ],
        }
        binding = {"policyName": "tenants", "validationActions": ["Deny"]}
        await self.world.create(ADMISSION_POLICIES, {"metadata": {"name": "tenants"}, "spec": spec})
        await self.world.create(ADMISSION_POLICY_BINDINGS, {"metadata": {"name": "tenants"}, "spec": binding})
        await self.world.settle()

    async def in_member(self, resource: Resource, name: str = "web", cluster: str = "east") -> Object | None:
        return await self.world.members[cluster].find(resource, name)


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Host]:
    async with a_world() as world, tenants(tmp_path, world.registry) as served:
        yield Host(world, served)
        # What is held arrives once nothing forbids it: the world converges.
        for binding in (await world.user.list(ADMISSION_POLICY_BINDINGS)).items:
            await world.user.delete(ADMISSION_POLICY_BINDINGS, binding["metadata"]["name"])


def a_federated(kind: str, **spec: Any) -> Object:
    return {
        "apiVersion": f"{TYPES_GROUP}/v1beta1",
        "kind": kind,
        "metadata": {"name": "web"},
        "spec": {"template": TEMPLATES[kind], "placement": {"clusterSelector": {}}, **spec},
    }


def with_host_pid() -> Object:
    spec = TEMPLATES["FederatedDeployment"]["spec"]
    return {"spec": {**spec, "template": {**PODS, "spec": {**PODS["spec"], "hostPID": True}}}}


@pytest.mark.parametrize("kind", sorted(TEMPLATES))
async def test_a_quota_of_nothing_is_nothing_for_kubefeds_kinds(host: Host, kind: str) -> None:
    await host.limit(NOTHING)
    answer = await host.post(FEDERATED_KINDS[kind].resource, a_federated(kind))
    assert (answer.status_code, "exceeded quota: none" in answer.text) == (403, True), answer.text
    await host.world.settle()
    assert await host.in_member(FEDERATED_KINDS[kind].target) is None


@pytest.mark.parametrize("kind", sorted(TEMPLATES))
async def test_a_quota_holds_when_the_wish_is_carried_out(host: Host, kind: str) -> None:
    """The quota shrinks between both: what the control plane writes is charged as the user's."""
    world, target = host.world, FEDERATED_KINDS[kind].target
    world.host_line.cable.mode = "down"
    answer = await host.post(FEDERATED_KINDS[kind].resource, a_federated(kind))
    assert answer.status_code == 201, answer.text
    await host.limit(NOTHING)
    world.host_line.cable.mode = "up"
    await world.pass_time(60)
    assert await world.find(target, "web") is None
    assert await host.in_member(target) is None
    stored = await world.user.get(FEDERATED_KINDS[kind].resource, "web", "default")
    (condition,) = stored["status"]["conditions"]
    assert condition["reason"] == REASON_TEMPLATE_REFUSED
    assert "exceeded quota: none" in condition["message"]


async def test_a_limit_range_holds_for_kubefeds_kinds(host: Host) -> None:
    limits = {"limits": [{"type": "PersistentVolumeClaim", "max": {"storage": "512Mi"}}]}
    await host.post(LIMIT_RANGES, {"metadata": {"name": "small"}, "spec": limits}, "root", "system:masters")
    kind = FEDERATED_KINDS["FederatedPersistentVolumeClaim"].resource
    answer = await host.post(kind, a_federated(kind.kind))
    message = "maximum storage usage per PersistentVolumeClaim is 512Mi"
    assert (answer.status_code, message in answer.text) == (403, True), answer.text


async def test_a_policy_about_tenants_holds_for_a_federated_deployment(host: Host) -> None:
    await host.forbid_host_pid()
    kind = FEDERATED_KINDS["FederatedDeployment"].resource
    answer = await host.post(kind, a_federated(kind.kind, template=with_host_pid()))
    assert (answer.status_code, "tenants may not set hostPID" in answer.text) == (422, True), answer.text
    answer = await host.post(kind, a_federated(kind.kind))
    assert answer.status_code == 201, answer.text
    answer = await host.merge(kind, "web", {"spec": {"template": with_host_pid()}})
    assert (answer.status_code, "tenants may not set hostPID" in answer.text) == (422, True), answer.text


async def test_a_policy_about_tenants_holds_for_an_override_of_kubefed(host: Host) -> None:
    await host.forbid_host_pid()
    kind = FEDERATED_KINDS["FederatedDeployment"].resource
    patch = {"path": "/spec/template/spec/hostPID", "op": "add", "value": True}
    overrides = [{"clusterName": "east", "clusterOverrides": [patch]}]
    answer = await host.post(kind, a_federated(kind.kind, overrides=overrides))
    assert answer.status_code == 201, answer.text
    await host.world.until(lambda: host.in_member(DEPLOYMENTS, cluster="west"), "the cluster without an override")
    await host.world.settle()
    assert await host.in_member(DEPLOYMENTS) is None


async def test_a_policy_about_tenants_holds_for_an_override_policy(host: Host) -> None:
    world = host.world
    await host.forbid_host_pid()
    policy = a_policy({"east": 1, "west": 1}, schedulingMode="Duplicate")
    assert (await host.post(PROPAGATION_POLICIES, policy)).status_code == 201
    override = an_override("east", "/spec/template/spec/hostPID", value=True)
    assert (await host.post(OVERRIDE_POLICIES, override)).status_code == 201
    assert (await host.post(DEPLOYMENTS, a_deployment("web"))).status_code == 201
    await world.until(lambda: host.in_member(DEPLOYMENTS, cluster="west"), "the cluster without an override")
    await world.settle()
    assert await host.in_member(DEPLOYMENTS) is None
    condition = await world.condition("web", names.ADMITTED)
    assert (condition["status"], "tenants may not set hostPID" in condition["message"]) == ("False", True)


async def test_who_extends_an_override_policy_does_not_vouch_for_what_a_tenant_wrote_in_it(host: Host) -> None:
    world = host.world
    await host.forbid_host_pid()
    assert (await host.post(PROPAGATION_POLICIES, a_policy({"east": 1}, schedulingMode="Duplicate"))).status_code == 201
    policy = an_override("east", "/spec/template/spec/hostPID", value=True)
    assert (await host.post(OVERRIDE_POLICIES, policy)).status_code == 201
    rules = [
        *policy["spec"]["overrideRules"],
        *an_override("east", "/spec/minReadySeconds", 5)["spec"]["overrideRules"],
    ]
    root = ("root", "system:masters")
    answer = await host.merge(OVERRIDE_POLICIES, "special", {"spec": {"overrideRules": rules}}, *root)
    assert answer.status_code == 200, answer.text
    forged = {"metadata": {"annotations": {names.AUTHORS: None}}}
    assert (await host.merge(OVERRIDE_POLICIES, "special", forged)).status_code == 200
    assert (await host.post(DEPLOYMENTS, a_deployment("web"))).status_code == 201
    await world.until(lambda: held(world), "the verdict")
    assert await host.in_member(DEPLOYMENTS) is None


async def held(world: World) -> bool:
    found = await world.find(FEDERATED_OBJECTS, federated_object_name("web", "deployments.apps"))
    return found is not None and (await world.condition("web", names.ADMITTED)).get("status") == "False"


async def test_a_policy_about_tenants_holds_for_what_they_write_by_hand(host: Host) -> None:
    await host.forbid_host_pid()
    rights = (rule("federate", "deployments", "apps"), rule("create", "federatedobjects", CORE_GROUP))
    await host.served.grant(TENANT[0], *rights)
    template = {**a_deployment("web"), "spec": {"replicas": 1, **with_host_pid()["spec"]}}
    answer = await host.post(FEDERATED_OBJECTS, federated(template, federated_object_name("web", "deployments.apps")))
    assert answer.status_code == 201, answer.text
    await host.world.until(lambda: held(host.world), "the verdict")
    assert await host.in_member(DEPLOYMENTS) is None


def a_service(**spec: Any) -> Object:
    ports = [{"port": 80, "protocol": "TCP"}]
    return {"metadata": {"name": "web", "namespace": "default"}, "spec": {"selector": LABELS, "ports": ports, **spec}}


def of(kind: Resource, obj: Object) -> Object:
    """Return a policy that selects the kind instead of Deployments."""
    selectors = [{"apiVersion": kind.api_version, "kind": kind.kind}]
    return {**obj, "spec": {**obj["spec"], "resourceSelectors": selectors}}


async def refused(host: Host, kind: Resource) -> str:
    """Return why the object is held from its cluster, "" if it is not."""
    type_name = kind.group_resource
    found = await host.world.find(FEDERATED_OBJECTS, federated_object_name("web", type_name))
    held_by = [
        each for each in (found or {}).get("status", {}).get("conditions") or () if each["type"] == names.ADMITTED
    ]
    return str(held_by[0]["message"]) if held_by and held_by[0]["status"] == "False" else ""


async def test_an_override_takes_nothing_that_a_quota_refuses(host: Host) -> None:
    await host.limit({"services.loadbalancers": "0", "services": "1"})
    placement = of(SERVICES, a_policy({"east": 1, "west": 1}, schedulingMode="Duplicate"))
    assert (await host.post(PROPAGATION_POLICIES, placement)).status_code == 201
    override = of(SERVICES, an_override("east", "/spec/type", "LoadBalancer"))
    assert (await host.post(OVERRIDE_POLICIES, override)).status_code == 201
    assert (await host.post(SERVICES, a_service())).status_code == 201
    message = await host.world.until(lambda: refused(host, SERVICES), "the verdict")
    assert "exceeded quota: none, requested: services.loadbalancers=1" in message
    await host.world.until(lambda: host.in_member(SERVICES, cluster="west"), "the cluster without an override")
    assert await host.in_member(SERVICES) is None
    await host.merge(
        OVERRIDE_POLICIES, "special", of(SERVICES, an_override("east", "/spec/sessionAffinity", "ClientIP"))
    )
    await host.world.until(lambda: host.in_member(SERVICES), "an override within the quota")


async def test_an_override_takes_nothing_that_a_limit_range_refuses(host: Host) -> None:
    kind = PERSISTENT_VOLUME_CLAIMS
    limits = {"limits": [{"type": "PersistentVolumeClaim", "max": {"storage": "2Gi"}}]}
    await host.post(LIMIT_RANGES, {"metadata": {"name": "small"}, "spec": limits}, "root", "system:masters")
    placement = of(kind, a_policy({"east": 1}, schedulingMode="Duplicate"))
    assert (await host.post(PROPAGATION_POLICIES, placement)).status_code == 201
    override = of(kind, an_override("east", "/spec/resources/requests/storage", "9Gi"))
    assert (await host.post(OVERRIDE_POLICIES, override)).status_code == 201
    claim = {"metadata": {"name": "web"}, **TEMPLATES["FederatedPersistentVolumeClaim"]}
    assert (await host.post(kind, claim)).status_code == 201
    message = await host.world.until(lambda: refused(host, kind), "the verdict")
    assert "maximum storage usage per PersistentVolumeClaim is 2Gi" in message
    assert await host.in_member(kind) is None
    await host.world.user.delete(LIMIT_RANGES, "small", "default")
    await host.world.until(lambda: host.in_member(kind), "what nothing limits any more")


async def test_what_is_written_by_hand_takes_nothing_that_a_quota_refuses(host: Host) -> None:
    await host.limit(NOTHING)
    await host.served.grant(TENANT[0], rule("federate", "services", ""), rule("create", "federatedobjects", CORE_GROUP))
    template = {"apiVersion": "v1", "kind": "Service", **a_service(type="LoadBalancer")}
    answer = await host.post(FEDERATED_OBJECTS, federated(template, federated_object_name("web", "services")))
    assert answer.status_code == 201, answer.text
    message = await host.world.until(lambda: refused(host, SERVICES), "the verdict")
    assert "exceeded quota: none" in message
    assert await host.in_member(SERVICES) is None
    await host.world.user.delete(RESOURCE_QUOTAS, "none", "default")
    await host.world.until(lambda: host.in_member(SERVICES), "what nothing limits any more")


def a_united(template: Object) -> Object:
    deployment = {"metadata": {"labels": LABELS}, "spec": template["spec"]}
    spec = {"replicas": 1, "selector": {"matchLabels": LABELS}, "topology": {"subsets": [{"name": "one"}]}}
    return {"metadata": {"name": "web"}, "spec": {**spec, "template": {"deploymentTemplate": deployment}}}


async def test_limits_and_policies_hold_for_the_subsets_of_a_united_deployment(host: Host) -> None:
    world = host.world
    await host.forbid_host_pid()
    await host.served.grant(TENANT[0], rule("create,update,patch", "uniteddeployments", KRUISE_GROUP))
    answer = await host.post(UNITED_DEPLOYMENTS, a_united(with_host_pid()))
    assert (answer.status_code, "tenants may not set hostPID" in answer.text) == (422, True), answer.text
    harmless = a_united(TEMPLATES["FederatedDeployment"])
    world.host_line.cable.mode = "down"
    answer = await host.post(UNITED_DEPLOYMENTS, harmless)
    assert answer.status_code == 201, answer.text
    await host.limit(NOTHING)
    answer = await host.post(UNITED_DEPLOYMENTS, {**harmless, "metadata": {"name": "other"}})
    assert (answer.status_code, "exceeded quota: none" in answer.text) == (403, True), answer.text
    world.host_line.cable.mode = "up"
    await world.pass_time(30)
    assert (await world.user.list(DEPLOYMENTS, "default")).items == []
    stored = await world.user.get(UNITED_DEPLOYMENTS, "web", "default")
    assert "exceeded quota: none" in str(stored["status"]["conditions"])
    await world.user.delete(UNITED_DEPLOYMENTS, "web", "default")


async def test_the_author_of_subsets_needs_the_rights_of_their_workloads(host: Host) -> None:
    await host.served.grant("newcomer", rule("create", "uniteddeployments", KRUISE_GROUP))
    answer = await host.post(UNITED_DEPLOYMENTS, a_united(TEMPLATES["FederatedDeployment"]), "newcomer")
    assert (answer.status_code, "cannot create deployments.apps" in answer.text) == (403, True), answer.text


async def test_a_schedule_scales_only_while_its_author_may(host: Host) -> None:
    world = host.world
    assert (await host.post(DEPLOYMENTS, a_deployment("web", replicas=2))).status_code == 201
    await host.served.grant("newcomer", rule("create", "cronfederatedhpas", CORE_GROUP))
    rules = [{"name": "often", "schedule": "* * * * *", "targetReplicas": 50}]
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    cron = {"metadata": {"name": "often"}, "spec": {"scaleTargetRef": target, "rules": rules}}
    answer = await host.post(CRON_AUTOSCALERS, cron, "newcomer")
    message = 'User \\"newcomer\\" cannot patch deployments/scale'
    assert (answer.status_code, message in answer.text) == (403, True), answer.text
    assert (await host.post(CRON_AUTOSCALERS, cron, "editor")).status_code == 201
    bindings = Resource("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings")
    await world.user.delete(bindings, "editor-edit", "default")
    await world.pass_time(90)
    (history,) = (await world.user.get(CRON_AUTOSCALERS, "often", "default"))["status"]["executionHistories"]
    assert 'User "editor" cannot patch resource "deployments/scale"' in str(history)
    assert (await world.user.get(DEPLOYMENTS, "web", "default"))["spec"]["replicas"] == 2


@pytest.mark.parametrize("change", ["a label at the creation", "a label later", "a record of his own"])
async def test_a_tenant_chooses_no_override_by_label_that_the_host_refuses_to_him(host: Host, change: str) -> None:
    """An administrator wrote the policy for his own workloads; it selects nothing."""
    world = host.world
    await host.forbid_host_pid()
    assert (await host.post(PROPAGATION_POLICIES, a_policy({"east": 1}, schedulingMode="Duplicate"))).status_code == 201
    policy = an_override("east", "/spec/template/spec/hostPID", value=True)
    policy["spec"]["resourceSelectors"] = []
    assert (await host.post(OVERRIDE_POLICIES, policy, "root", "system:masters")).status_code == 201
    chosen = {"labels": {names.OVERRIDE_POLICY_LABEL: "special"}}
    if change == "a record of his own":
        chosen["annotations"] = {names.AUTHORS: '[{"user":{"username":"root","groups":["system:masters"]},"wrote":[]}]'}
    deployment = a_deployment("web")
    if change != "a label later":
        deployment["metadata"] |= chosen
    assert (await host.post(DEPLOYMENTS, deployment)).status_code == 201
    if change == "a label later":
        await world.until(lambda: host.in_member(DEPLOYMENTS), "the Deployment")
        assert (await host.merge(DEPLOYMENTS, "web", {"metadata": chosen})).status_code == 200
    await world.until(lambda: held(world), "the verdict")
    found = await host.in_member(DEPLOYMENTS)
    assert found is None or "hostPID" not in found["spec"]["template"]["spec"]
