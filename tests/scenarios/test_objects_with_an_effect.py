"""Objects that act on an API server: data on the host once a policy selects them, in force in members."""

from typing import Any

import pytest
from tests.support.manifests import a_policy
from tests.support.world import World, a_world

from federation.api import names
from federation.api.resources import CLUSTER_FEDERATED_OBJECTS, CLUSTER_PROPAGATION_POLICIES
from federation.apimachinery.errors import ApiError
from federation.apimachinery.resources import (
    ADMISSION_POLICIES,
    ADMISSION_POLICY_BINDINGS,
    API_SERVICES,
    CONFIGMAPS,
    FLOW_SCHEMAS,
    INGRESS_CLASSES,
    PRIORITY_LEVELS,
    ROLE_BINDINGS,
    VALIDATING_WEBHOOKS,
    Object,
    Resource,
)

LABELLED = {names.CLUSTER_PROPAGATION_POLICY_LABEL: "operators"}
BY_LABEL = (
    VALIDATING_WEBHOOKS,
    ADMISSION_POLICIES,
    ADMISSION_POLICY_BINDINGS,
    API_SERVICES,
    INGRESS_CLASSES,
)


def operators(*selected: Resource) -> Object:
    policy = a_policy({}, name="operators", resourceSelectors=[_selector(each) for each in selected])
    del policy["metadata"]["namespace"]
    return {**policy, "kind": "ClusterPropagationPolicy"}


def _selector(resource: Resource) -> Object:
    return {"apiVersion": resource.api_version, "kind": resource.kind}


def an_object(resource: Resource, name: str, labels: dict[str, str] | None = None, **fields: Any) -> Object:
    metadata = {"name": name, **({"labels": labels} if labels else {})}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **fields}


def webhooks(labels: dict[str, str] | None = None, **client_config: Any) -> Object:
    """Return webhooks that must admit every new ConfigMap."""
    rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    webhook = {
        "name": "check.example.com",
        "clientConfig": client_config or {"service": {"namespace": "operator", "name": "webhook"}},
        "rules": [rule],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }
    return an_object(VALIDATING_WEBHOOKS, "checks", labels, webhooks=[webhook])


def no_config_maps(labels: dict[str, str] | None = None) -> tuple[Object, Object]:
    """Return an admission policy that refuses every new ConfigMap named `refused`, and its binding."""
    rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "object.metadata.name != 'refused'"}],
    }
    policy = an_object(ADMISSION_POLICIES, "no-config-maps", labels, spec=spec)
    bound = {"policyName": "no-config-maps", "validationActions": ["Deny"]}
    return policy, an_object(ADMISSION_POLICY_BINDINGS, "no-config-maps", labels, spec=bound)


async def apply_policy(world: World, labels: dict[str, str] | None = None) -> None:
    policy, binding = no_config_maps(labels)
    await world.create(ADMISSION_POLICIES, policy)
    await world.create(ADMISSION_POLICY_BINDINGS, binding)


def a_config_map(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}}


async def refusal(world: World, name: str = "refused") -> str:
    """Return why the host refuses a new ConfigMap, "" if it accepts it."""
    try:
        await world.user.create(CONFIGMAPS, a_config_map(name))
    except ApiError as error:
        return error.message
    return ""


async def test_webhooks_with_a_service_do_not_act_on_the_host_and_reach_every_member() -> None:
    async with a_world(members=("east", "north", "west")) as world:
        await world.create(VALIDATING_WEBHOOKS, webhooks())
        assert not await refusal(world, "before-the-policy")
        await world.create(CLUSTER_PROPAGATION_POLICIES, operators(VALIDATING_WEBHOOKS))
        await world.settle()
        assert not await refusal(world, "after-the-policy")
        for member in world.members.values():
            assert await member.find(VALIDATING_WEBHOOKS, "checks", "") is not None


async def test_a_label_lets_webhooks_act_on_the_host_or_not() -> None:
    async with a_world(members=("east",)) as world:
        await world.create(VALIDATING_WEBHOOKS, webhooks({names.ACTS_ON_HOST: "true"}))
        assert "check.example.com" in await refusal(world)
        labels = {"metadata": {"labels": {names.ACTS_ON_HOST: "false"}}}
        await world.user.patch(VALIDATING_WEBHOOKS, "checks", labels)
        assert not await refusal(world)


async def test_webhooks_with_a_url_act_on_the_host_until_a_policy_selects_them() -> None:
    async with a_world(members=("east",)) as world:
        await world.create(VALIDATING_WEBHOOKS, webhooks(url="https://127.0.0.1:1/"))
        assert "check.example.com" in await refusal(world)
        await world.create(CLUSTER_PROPAGATION_POLICIES, operators(VALIDATING_WEBHOOKS))
        await world.settle()
        assert not await refusal(world)


@pytest.mark.parametrize("labels", [None, LABELLED], ids=["selected", "labelled"])
async def test_a_selected_admission_policy_acts_in_members_only(labels: dict[str, str] | None) -> None:
    selected = () if labels else (ADMISSION_POLICIES, ADMISSION_POLICY_BINDINGS)
    async with a_world(members=("east", "north")) as world:
        await world.create(CLUSTER_PROPAGATION_POLICIES, operators(*selected))
        await world.settle()
        await apply_policy(world, labels)
        await world.settle()
        assert not await refusal(world)
        for member in world.members.values():
            with pytest.raises(ApiError, match="no-config-maps"):
                await member.admin.create(CONFIGMAPS, a_config_map("refused"))


async def test_an_admission_policy_without_a_policy_acts_on_the_host_as_in_kubernetes() -> None:
    async with a_world(members=("east",)) as world:
        await apply_policy(world)
        assert "no-config-maps" in await refusal(world)


async def test_an_admission_policy_with_the_label_acts_on_the_host_and_in_members() -> None:
    async with a_world(members=("east",)) as world:
        await world.create(CLUSTER_PROPAGATION_POLICIES, operators(ADMISSION_POLICIES, ADMISSION_POLICY_BINDINGS))
        await world.settle()
        await apply_policy(world, {names.ACTS_ON_HOST: "true"})
        await world.settle()
        assert "no-config-maps" in await refusal(world)
        assert await world.members["east"].find(ADMISSION_POLICY_BINDINGS, "no-config-maps", "") is not None


async def test_a_restart_and_the_end_of_the_policy_do_not_bring_the_effect_back() -> None:
    async with a_world(members=("east",)) as world:
        await world.create(CLUSTER_PROPAGATION_POLICIES, operators(ADMISSION_POLICIES, ADMISSION_POLICY_BINDINGS))
        await world.settle()
        await apply_policy(world)
        await world.settle()
        await world.restart()
        assert not await refusal(world)


async def test_flow_schemas_and_api_services_of_members_leave_the_host_alone() -> None:
    async with a_world(members=("east",)) as world:
        await world.create(
            CLUSTER_PROPAGATION_POLICIES, operators(API_SERVICES, FLOW_SCHEMAS, PRIORITY_LEVELS, INGRESS_CLASSES)
        )
        await world.settle()
        service = {"namespace": "operator", "name": "metrics"}
        api = {"group": "external.metrics.k8s.io", "version": "v1beta1", "service": service, "versionPriority": 1}
        api |= {"groupPriorityMinimum": 100, "insecureSkipTLSVerify": True}
        await world.create(API_SERVICES, an_object(API_SERVICES, "v1beta1.external.metrics.k8s.io", spec=api))
        await world.create(
            INGRESS_CLASSES, an_object(INGRESS_CLASSES, "nginx", spec={"controller": "example.com/nginx"})
        )
        level = {"type": "Limited", "limited": {"nominalConcurrencyShares": 1, "limitResponse": {"type": "Reject"}}}
        await world.create(PRIORITY_LEVELS, an_object(PRIORITY_LEVELS, "slow", spec=level))
        await world.settle()
        assert ("external.metrics.k8s.io", "v1beta1") not in world.registry.apis.remote
        member = world.members["east"]
        for resource, name in (
            (API_SERVICES, "v1beta1.external.metrics.k8s.io"),
            (INGRESS_CLASSES, "nginx"),
            (PRIORITY_LEVELS, "slow"),
        ):
            assert await member.find(resource, name, "") is not None, name
        # What every API server makes for itself is not delivered.
        federated = (await world.user.list(CLUSTER_FEDERATED_OBJECTS)).items
        delivered = {obj["spec"]["template"]["metadata"]["name"] for obj in federated}
        assert {"v1beta1.external.metrics.k8s.io", "nginx", "slow"} <= delivered
        assert not delivered & {"v1.apps", "exempt", "catch-all", "system"}


def a_binding(name: str, **labels: str) -> Object:
    """Return a binding in `kube-system`, such as operators bring to read the authentication configuration."""
    subject = {"kind": "ServiceAccount", "name": "operator", "namespace": "default"}
    return {
        "apiVersion": ROLE_BINDINGS.api_version,
        "kind": ROLE_BINDINGS.kind,
        "metadata": {"name": name, "namespace": "kube-system", "labels": labels},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "operator"},
        "subjects": [subject],
    }


async def test_in_system_namespaces_only_what_names_a_policy_is_delivered() -> None:
    async with a_world(members=("east",)) as world:
        await world.create(CLUSTER_PROPAGATION_POLICIES, operators(ROLE_BINDINGS))
        await world.settle()
        await world.create(ROLE_BINDINGS, a_binding("chosen", **LABELLED))
        await world.create(ROLE_BINDINGS, a_binding("selected"))
        await world.settle()
        east = world.members["east"]
        assert await east.find(ROLE_BINDINGS, "chosen", "kube-system") is not None
        assert await east.find(ROLE_BINDINGS, "selected", "kube-system") is None


async def test_what_an_operator_writes_into_its_webhooks_in_a_member_stays() -> None:
    """Knative fills rules, selectors and certificates of webhooks that its manifest leaves open."""
    async with a_world(members=("east",)) as world:
        await world.create(CLUSTER_PROPAGATION_POLICIES, operators(VALIDATING_WEBHOOKS))
        await world.settle()
        opened = webhooks()
        rules = opened["webhooks"][0].pop("rules")
        await world.create(VALIDATING_WEBHOOKS, opened)
        await world.settle()
        east = world.members["east"]
        selector = {"matchExpressions": [{"key": "operator", "operator": "Exists"}]}
        own = {"rules": rules, "namespaceSelector": selector, "objectSelector": selector}
        live = await east.find(VALIDATING_WEBHOOKS, "checks", "")
        assert live is not None
        config = {**live["webhooks"][0]["clientConfig"], "caBundle": "Y2VydGlmaWNhdGU="}
        filled = {**live["webhooks"][0], **own, "clientConfig": config}
        await east.merge(VALIDATING_WEBHOOKS, "checks", {"webhooks": [filled]}, "")
        await world.settle()
        longer = {"webhooks": [{**opened["webhooks"][0], "timeoutSeconds": 7}]}
        await world.merge(VALIDATING_WEBHOOKS, "checks", longer, "")
        await world.settle()
        live = await east.find(VALIDATING_WEBHOOKS, "checks", "")
        assert live is not None
        webhook = live["webhooks"][0]
        assert webhook["timeoutSeconds"] == 7
        assert (webhook["namespaceSelector"], webhook["objectSelector"]) == (selector, selector)
        assert webhook["rules"][0]["resources"] == ["configmaps"]
        assert webhook["clientConfig"]["caBundle"] == "Y2VydGlmaWNhdGU="


async def test_a_configuration_in_a_federated_object_by_hand_exists_in_members_only() -> None:
    """What another API server as host must not call is written so."""
    async with a_world(members=("east", "north")) as world:
        annotations = {names.HAND_WRITTEN: "true", names.PENDING_CONTROLLERS: "[]"}
        body = {
            "apiVersion": CLUSTER_FEDERATED_OBJECTS.api_version,
            "kind": CLUSTER_FEDERATED_OBJECTS.kind,
            "metadata": {"name": "checks", "annotations": annotations},
            "spec": {
                "template": webhooks(),
                "placements": [{"controller": "by-hand", "placement": [{"cluster": "east"}, {"cluster": "north"}]}],
            },
        }
        await world.create(CLUSTER_FEDERATED_OBJECTS, body)
        await world.settle()
        assert await world.find(VALIDATING_WEBHOOKS, "checks", "") is None
        for member in world.members.values():
            assert await member.find(VALIDATING_WEBHOOKS, "checks", "") is not None
