"""Attack: a tenant uses KubeFed's kinds to write, with the control plane's rights, what the native kinds refuse to him."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.tenants import Tenants, rule, tenants

from federation.api.kubefedkinds import FEDERATED_KINDS, REPLICA_PREFERENCES, SCHEDULING_GROUP, TYPES_GROUP
from federation.apimachinery.resources import Object

CONTAINERS = [{"name": "web", "image": "nginx"}]
LABELS = {"app": "web"}
TEMPLATE = {
    "spec": {
        "selector": {"matchLabels": LABELS},
        "template": {"metadata": {"labels": LABELS}, "spec": {"containers": CONTAINERS}},
    }
}
EVERYWHERE = {"clusterSelector": {}}


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Tenants]:
    async with tenants(tmp_path) as served:
        kinds = rule("create,update,patch", "federateddeployments,federatedsecrets,federatednamespaces", TYPES_GROUP)
        preferences = rule("create,update,patch", REPLICA_PREFERENCES.plural, SCHEDULING_GROUP)
        await served.grant("newcomer", kinds, preferences)
        yield served


def federated(kind: str, name: str = "web", template: Any = None, **spec: Any) -> Object:
    return {
        "apiVersion": f"{TYPES_GROUP}/v1beta1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": {"template": TEMPLATE if template is None else template, "placement": EVERYWHERE, **spec},
    }


def path(kind: str, namespace: str = "default") -> str:
    resource = FEDERATED_KINDS[kind].resource
    return resource.path(namespace if resource.namespaced else "")


async def post(host: Tenants, user: str, obj: Object, *groups: str, namespace: str = "default") -> tuple[int, str]:
    client = await host.client(user, *groups)
    url = path(obj["kind"], namespace) if obj["kind"] in FEDERATED_KINDS else REPLICA_PREFERENCES.path(namespace)
    answer = await client.post(url, json=obj)
    return answer.status_code, str(answer.json().get("message"))


async def test_an_editor_may_use_the_kinds_in_his_namespace(host: Tenants) -> None:
    assert await post(host, "editor", federated("FederatedDeployment", "mine")) == (201, "None")
    preference = {
        "apiVersion": REPLICA_PREFERENCES.api_version,
        "kind": REPLICA_PREFERENCES.kind,
        "metadata": {"name": "mine"},
        "spec": {"targetKind": "FederatedDeployment", "totalReplicas": 3},
    }
    assert await post(host, "editor", preference) == (201, "None")
    code, message = await post(host, "newcomer", {**preference, "metadata": {"name": "other"}})
    assert (code, "cannot update deployments.apps" in message) == (403, True), message


async def test_the_native_rights_are_needed_too(host: Tenants) -> None:
    code, message = await post(host, "newcomer", federated("FederatedDeployment"))
    assert code == 403
    assert 'User "newcomer" cannot create deployments.apps "web" in the namespace "default"' in message
    code, message = await post(host, "newcomer", federated("FederatedSecret", template={"data": {}}))
    assert (code, 'cannot create secrets "web"' in message) == (403, True), message


async def test_the_rights_on_policies_are_needed_too(host: Tenants) -> None:
    await host.grant(
        "workloads-only", rule("*", "deployments", "apps"), rule("create", "federateddeployments", TYPES_GROUP)
    )
    code, message = await post(host, "workloads-only", federated("FederatedDeployment"))
    assert (code, "cannot create propagationpolicies.core.kubeadmiral.io" in message) == (403, True), message


async def test_a_namespace_is_labelled_by_those_who_may_update_it(host: Tenants) -> None:
    privileged = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}}
    code, message = await post(host, "editor", federated("FederatedNamespace", "default", privileged))
    assert (code, 'cannot update namespaces "default" at the cluster scope' in message) == (403, True), message
    code, message = await post(host, "root", federated("FederatedNamespace", "other", {}), "system:masters")
    assert (code, 'must be "default", the namespace that it is in' in message) == (422, True), message


async def test_a_role_gives_no_rights_that_its_author_lacks(host: Tenants) -> None:
    rules = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]
    role = federated("FederatedClusterRole", "all", {"rules": rules})
    await host.grant(
        "role-author",
        rule("create,update", "clusterroles", "rbac.authorization.k8s.io"),
        rule("create,update", "clusterpropagationpolicies"),
        rule("create", "federatedclusterroles", TYPES_GROUP),
        namespace="",
    )
    code, message = await post(host, "role-author", role)
    assert (code, 'cannot escalate clusterroles.rbac.authorization.k8s.io "all"' in message) == (403, True), message


async def test_viewers_read_no_secrets_in_templates(host: Tenants) -> None:
    client = await host.client("viewer")
    assert (await client.get(path("FederatedSecret"))).status_code == 403
    assert (await client.get(path("FederatedDeployment"))).status_code == 200


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"template": {"spec": {"replicas": "two"}}}, "spec.template: Invalid value: Deployment in version"),
        ({"template": {"spec": {}}}, "spec.template.spec.selector: Required value"),
        (
            {"overrides": [{"clusterName": "east", "clusterOverrides": [{"path": "/metadata/name", "value": "x"}]}]},
            "spec.overrides[0].clusterOverrides[0].path: Invalid value",
        ),
        (
            {"overrides": [{"clusterName": "east", "clusterOverrides": [{"path": "metadata.name", "value": "x"}]}]},
            "spec.overrides[0].clusterOverrides[0].path: Invalid value",
        ),
        (
            {"overrides": [{"clusterName": "east", "clusterOverrides": [{"path": "spec..replicas"}]}]},
            "spec.overrides[0].clusterOverrides[0].path",
        ),
        ({"overrides": [{"clusterName": "east"}, {"clusterName": "east"}]}, "Duplicate value"),
        ({"placement": {"clusters": [{}]}}, "spec.placement.clusters[0].name: Required value"),
    ],
)
async def test_what_cannot_work_is_refused_with_its_field(host: Tenants, spec: Object, message: str) -> None:
    code, text = await post(host, "editor", federated("FederatedDeployment", "bad", **spec))
    assert (code, message in text) == (422, True), text
