"""Attack: a user with edit or admin in one namespace writes what sync delivers with the federation's rights."""

import importlib
import pkgutil
from collections.abc import AsyncIterator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.tenants import (
    CLUSTER_FEDERATED,
    FEDERATED,
    MERGE,
    OURS,
    RBAC,
    Tenants,
    admitted_by_hand,
    federated,
    rule,
    tenants,
)

import federation
from federation.admission.federatedobjects import FederatedObjectAdmission
from federation.api import names
from federation.api.federatedtype import default_type_configs, parse_configs, template_problem
from federation.api.resources import FEDERATED_OBJECTS
from federation.apimachinery.errors import Forbidden
from federation.apimachinery.resources import Object, Resource
from federation.apiserver.admission.requests import CREATE, AdmissionRequest
from federation.apiserver.semantics.cel.authorizer import AccessCheck, AccessDecision
from federation.planning.accounts.claim import CLAIM
from federation.planning.federatedobject.builder import build
from federation.planning.federatedobject.federatedtemplate import FEDERATED_ANNOTATIONS
from federation.planning.federatedobject.names import OBSERVED_ANNOTATIONS

CONFIG_MAP: Object = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "settings", "namespace": "default"},
    "data": {"a": "1"},
}
CLUSTER_ADMIN: Object = {
    "apiVersion": "rbac.authorization.k8s.io/v1",
    "kind": "ClusterRoleBinding",
    "metadata": {"name": "mine"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "editor"}],
}
NAMESPACE: Object = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "prod"}}
ROLE_BINDING: Object = {**CLUSTER_ADMIN, "kind": "RoleBinding", "metadata": {"name": "mine", "namespace": "default"}}
EVERYTHING_OF_OURS = [
    rule("*", "federatedobjects,federatedobjects/status,collectedstatuses,propagatedversions"),
    rule("get,list,watch", "secrets", ""),
]


def smuggled(template: Object) -> Object:
    """Return a FederatedObject in the tenant's namespace around a template of another scope or namespace."""
    inside = federated({**template, "metadata": {**template["metadata"], "namespace": "default"}}, "smuggled")
    return {**inside, "spec": {**inside["spec"], "template": template}}


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Tenants]:
    async with tenants(tmp_path) as served:
        yield served


@pytest.mark.parametrize("user", ["viewer", "editor", "administrator"])
async def test_default_roles_do_not_write_federated_objects(host: Tenants, user: str) -> None:
    client = await host.client(user)
    for body in (federated(CONFIG_MAP, "settings-configmaps"), smuggled(CLUSTER_ADMIN), federated(ROLE_BINDING, "x")):
        assert (await client.post(FEDERATED, json=body)).status_code == 403
    assert (await client.post(CLUSTER_FEDERATED, json=federated(CLUSTER_ADMIN, "x"))).status_code == 403
    for plural in ("collectedstatuses", "propagatedversions"):
        assert (await client.post(f"{OURS}/namespaces/default/{plural}", json={})).status_code == 403


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(smuggled(CLUSTER_ADMIN), id="cluster role binding"),
        pytest.param(smuggled(NAMESPACE), id="namespace"),
        pytest.param(
            {
                **smuggled(NAMESPACE),
                "metadata": {
                    **smuggled(NAMESPACE)["metadata"],
                    "annotations": {names.CONFLICT_RESOLUTION: "adopt", names.PENDING_CONTROLLERS: "[]"},
                },
            },
            id="adopted namespace",
        ),
        pytest.param(federated(ROLE_BINDING, "mine-rolebindings"), id="role binding"),
        pytest.param(federated(CONFIG_MAP, "settings-configmaps"), id="config map"),
        pytest.param(
            smuggled({**CONFIG_MAP, "metadata": {"name": "settings", "namespace": "kube-system"}}),
            id="another namespace",
        ),
    ],
)
@pytest.mark.parametrize("query", ["", "?dryRun=All"])
async def test_the_right_to_create_federated_objects_is_not_enough(host: Tenants, body: Object, query: str) -> None:
    await host.grant("editor", *EVERYTHING_OF_OURS)
    client = await host.client("editor")
    answer = await client.post(FEDERATED + query, json=body)
    assert answer.status_code in (403, 422), answer.text
    assert answer.json()["details"]["causes"][0]["field"].startswith("spec.template")
    applied = await client.patch(
        f"{FEDERATED}/{body['metadata']['name']}?fieldManager=me",
        json=body,
        headers={"content-type": "application/apply-patch+yaml"},
    )
    assert applied.status_code in (403, 422), applied.text


async def test_a_template_of_another_scope_or_namespace_is_invalid_for_everybody(host: Tenants) -> None:
    root = await host.root()
    other = smuggled({**CONFIG_MAP, "metadata": {"name": "settings", "namespace": "kube-system"}})
    for body, field in (
        (smuggled(CLUSTER_ADMIN), "spec.template.kind"),
        (other, "spec.template.metadata.namespace"),
        (smuggled({**NAMESPACE, "kind": "Nothing"}), "spec.template.kind"),
        (smuggled({**CONFIG_MAP, "metadata": {}}), "spec.template"),
    ):
        answer = await root.post(FEDERATED, json=body)
        assert answer.status_code == 422, answer.text
        assert [cause["field"] for cause in answer.json()["details"]["causes"]] == [field]


@pytest.mark.parametrize("name", ["..", ".", "../../namespaces/prod", "a/status", "a%2fb"])
async def test_a_name_that_is_a_path_is_invalid_for_everybody(host: Tenants, name: str) -> None:
    """Sync writes `…/configmaps/NAME` in members; `..` would be the namespace itself."""
    body = smuggled({**CONFIG_MAP, "metadata": {"name": name, "namespace": "default"}})
    answer = await (await host.root()).post(FEDERATED, json=body)
    assert answer.status_code == 422, answer.text
    assert "spec.template.metadata.name" in answer.json()["message"]
    assert template_problem(body)


async def test_a_webhook_cannot_remove_the_mark() -> None:
    """Sync would refuse the object without it, and its writer would not learn why."""
    body = federated(CONFIG_MAP, "by-hand")
    request = AdmissionRequest(
        uid="u",
        operation=CREATE,
        resource=FEDERATED_OBJECTS,
        versions=("v1alpha1",),
        subresource="",
        namespace="default",
        name="by-hand",
        user={"username": "root"},
        dry_run=False,
        obj=body,
        old=None,
        namespace_labels={},
    )
    admission = FederatedObjectAdmission(
        lambda _api_version, _kind: Resource("", "v1", "ConfigMap", "configmaps", True)
    )

    def everything(_check: AccessCheck) -> AccessDecision:
        return AccessDecision(is_allowed=True)

    await admission.validate(replace(request, obj=admission.mutate(replace(request, obj=deepcopy(body)))), everything)
    with pytest.raises(Forbidden, match="a webhook removed the annotation"):
        await admission.validate(request, everything)


async def created(host: Tenants) -> str:
    """Return the path of a federated object that the control plane made from a ConfigMap."""
    registry = host.parts.registry
    body = federated(CONFIG_MAP, "settings-configmaps")
    info = registry.kinds.by_kind("core.kubeadmiral.io", "v1alpha1", "FederatedObject")
    from federation.client.local import LocalClient

    await LocalClient(registry).create(info.resource, body)
    return f"{FEDERATED}/settings-configmaps"


@pytest.mark.parametrize(
    "patch",
    [
        {"spec": {"template": CLUSTER_ADMIN}},
        {"spec": {"placements": []}},
        {"spec": {"overrides": [{"controller": "x", "clusters": []}]}},
        {"metadata": {"annotations": {names.CONFLICT_RESOLUTION: "adopt"}}},
        {"metadata": {"annotations": {names.PENDING_CONTROLLERS: "[]", names.HAND_WRITTEN: "true"}}},
        {"metadata": {"labels": {names.CLUSTER_PROPAGATION_POLICY_LABEL: "everywhere"}}},
        {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "a", "uid": "b"}]}},
        {"metadata": {"finalizers": ["example.com/mine"]}},
    ],
)
async def test_no_user_can_change_the_federated_object_of_a_source(host: Tenants, patch: Object) -> None:
    path = await created(host)
    await host.grant("editor", *EVERYTHING_OF_OURS)
    answer = await (await host.client("editor")).patch(path, json=patch, headers=MERGE)
    assert answer.status_code in (403, 422), answer.text


async def test_only_the_control_plane_writes_status_and_reports(host: Tenants) -> None:
    path = await created(host)
    await host.grant("editor", *EVERYTHING_OF_OURS)
    for client in (await host.client("editor"), await host.root()):
        status: Any = {"status": {"conditions": [{"type": "Propagated", "status": "True"}]}}
        assert (await client.patch(f"{path}/status", json=status, headers=MERGE)).status_code == 403
        report = {
            "apiVersion": "core.kubeadmiral.io/v1alpha1",
            "kind": "CollectedStatus",
            "metadata": {"name": "a"},
            "clusters": [],
            "lastUpdateTime": "2026-01-01T00:00:00Z",
        }
        answer = await client.post(f"{OURS}/namespaces/default/collectedstatuses", json=report)
        assert answer.status_code == 403, answer.text


async def test_an_administrator_with_the_verb_federate_writes_and_is_marked(host: Tenants) -> None:
    await host.grant("editor", *EVERYTHING_OF_OURS, rule("federate", "configmaps", ""))
    client = await host.client("editor")
    answer = await client.post(FEDERATED, json=federated(CONFIG_MAP, "by-hand"))
    assert answer.status_code == 201, answer.text
    assert answer.json()["metadata"]["annotations"][names.HAND_WRITTEN] == "true"
    patch: Object = {"metadata": {"annotations": {names.HAND_WRITTEN: None}}, "spec": {"placements": []}}
    changed = await client.patch(f"{FEDERATED}/by-hand", json=patch, headers=MERGE)
    assert changed.json()["metadata"]["annotations"][names.HAND_WRITTEN] == "true"
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": CONFIG_MAP["metadata"]}
    refused = await client.patch(f"{FEDERATED}/by-hand", json={"spec": {"template": secret}}, headers=MERGE)
    assert refused.status_code == 403
    assert 'cannot federate resource "secrets"' in refused.json()["message"]


@pytest.mark.parametrize("name", [names.APPROVED_REVISIONS, names.OVERRIDE_AUTHORS, names.HELD_PLACEMENT])
async def test_every_write_keeps_the_records_of_the_control_plane(host: Tenants, name: str) -> None:
    await host.grant("editor", *EVERYTHING_OF_OURS, rule("federate", "configmaps", ""))
    client = await host.client("editor")
    body = federated(CONFIG_MAP, "by-hand")
    forged = {**body, "metadata": {**body["metadata"], "annotations": {name: "forged"}}}
    answer = await client.post(FEDERATED, json=forged)
    assert f"{name}]: only the control plane writes it" in answer.headers["Warning"]
    url, patch = f"{FEDERATED}/by-hand", {"metadata": {"annotations": {name: "forged"}}}
    answers = [answer, await client.patch(url, json=patch, headers=MERGE)]
    stored = {**answer.json()["metadata"], **patch["metadata"]}
    version = answers[-1].json()["metadata"]["resourceVersion"]
    answers.append(await client.put(url, json={**answer.json(), "metadata": {**stored, "resourceVersion": version}}))
    apply = {"Content-Type": "application/apply-patch+yaml"}
    answers.append(await client.patch(f"{url}?fieldManager=me&force=true", json=forged, headers=apply))
    for each in answers:
        assert each.status_code in (200, 201), each.text
        assert name not in each.json()["metadata"]["annotations"]


async def test_the_permission_covers_the_template_that_is_replaced(host: Tenants) -> None:
    root = await host.root()
    assert (await root.post(FEDERATED, json=federated(ROLE_BINDING, "by-hand"))).status_code == 201
    await host.grant("editor", *EVERYTHING_OF_OURS, rule("federate", "configmaps", ""))
    patch = {"spec": {"template": {**CONFIG_MAP, "roleRef": None, "subjects": None}}}
    answer = await (await host.client("editor")).patch(f"{FEDERATED}/by-hand", json=patch, headers=MERGE)
    assert answer.status_code == 403
    assert "rolebindings" in answer.json()["message"]


async def test_impersonated_users_are_judged_as_themselves(host: Tenants) -> None:
    await host.grant("editor", *EVERYTHING_OF_OURS)
    posing = await host.client("root", "system:masters", **{"impersonate-user": "editor"})
    assert (await posing.post(FEDERATED, json=federated(CONFIG_MAP, "x"))).status_code == 403
    await host.grant("system:apiserver", *EVERYTHING_OF_OURS)
    named_like_us = await host.client("system:apiserver")
    assert (await named_like_us.post(FEDERATED, json=federated(CONFIG_MAP, "x"))).status_code == 403


async def test_roles_cannot_be_raised_by_those_who_hold_only_edit(host: Tenants) -> None:
    client = await host.client("administrator")
    role = {"metadata": {"name": "mine"}, "rules": [rule("create", "federatedobjects")]}
    assert (await client.post(f"{RBAC}/namespaces/default/roles", json=role)).status_code == 403


def own_names() -> list[str]:
    """Return the annotations and labels of ours that any `names.py` defines."""
    found: set[str] = set()
    for module in pkgutil.walk_packages(federation.__path__, "federation."):
        if module.name.endswith(".names"):
            values = vars(importlib.import_module(module.name)).values()
            found.update(value for value in values if isinstance(value, str) and names.DOMAIN in value)
    assert len(found) > 150
    return sorted(value for value in found if not value.endswith("/") and "{" not in value)


WISHES = {
    *FEDERATED_ANNOTATIONS - {names.AUTHORS, names.WRITTEN_ALLOCATIONS},
    names.INTERNAL_ORPHAN,
    names.INTERNAL_CONFLICT_RESOLUTION,
    names.INTERNAL_CLUSTERS_TO_ADOPT,
    names.ENABLE_FOLLOWER_SCHEDULING,
    names.POD_UNSCHEDULABLE_THRESHOLD,
    names.PENDING_CONTROLLERS,
}
BOOKKEEPING = {OBSERVED_ANNOTATIONS, names.TEMPLATE_GENERATOR_MERGE_PATCH}
"""They describe the source, so they differ with it."""
RECORDED = {names.ORDINAL_STARTS, names.AUTHORS}
"""The ordinals of its own pods are the source's to remember; authors are replaced when the source is written."""
OF_MEMBER_OBJECTS = {names.ADOPTED, names.TEMPLATE_HASH, names.TEMPLATE_REVISION, names.SOURCE_GENERATION}


def test_no_record_of_the_control_plane_comes_from_a_source() -> None:
    """A user of a namespace writes any annotation on a Deployment; wishes are read, and nothing else is believed."""
    source: Object = {**CONFIG_MAP, "metadata": {**CONFIG_MAP["metadata"], "uid": "u", "resourceVersion": "1"}}
    type_ = next(each for each in parse_configs(default_type_configs()) if each.resource.kind == "ConfigMap")
    plain = build(source, type_)["metadata"]["annotations"]
    for name in own_names():
        forged = {**source, "metadata": {**source["metadata"], "annotations": {name: "forged"}}}
        built = build(forged, type_)
        annotations = built["metadata"]["annotations"]
        if name == names.PENDING_CONTROLLERS or name not in WISHES | BOOKKEEPING | RECORDED:
            assert annotations.get(name) == plain.get(name), name
        assert "forged" not in {annotations.get(key) for key in BOOKKEEPING}
        if name in OF_MEMBER_OBJECTS:
            assert name not in built["spec"]["template"]["metadata"]["annotations"], name


@pytest.mark.parametrize("name", sorted(set(own_names()) - WISHES - {names.HAND_WRITTEN}))
def test_a_record_of_the_control_plane_is_not_written_by_hand(name: str) -> None:
    """Otherwise its author would run more than quotas and queues admit, or what waves, guard and reviews have not."""

    def written(annotations: dict[str, str], old: dict[str, str] | None) -> str | None:
        def stored(values: dict[str, str]) -> Object:
            body = federated(CONFIG_MAP, "by-hand")
            return {**body, "metadata": {**body["metadata"], "annotations": values}}

        obj = admitted_by_hand(stored(annotations), None if old is None else stored(old))
        found: str | None = obj["metadata"]["annotations"].get(name)
        return found

    nothing = '{"may":{}}' if name == CLAIM.name else None
    assert written({name: "mine"}, None) == nothing
    assert written({name: "mine"}, {name: "stored"}) == "stored"
    assert written({}, {name: "stored"}) == "stored", "nor is it removed"
    assert written({name: "mine"}, {}) == nothing
    assert written({name: "mine"}, {names.HAND_WRITTEN: "true"}) is None, "it ran before a quota came"
