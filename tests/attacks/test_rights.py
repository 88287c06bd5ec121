"""The table of rights is current, and the API server answers as it says, for every role, kind and verb."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.tenants import CLUSTER_FEDERATED, FEDERATED, MERGE, RBAC, Tenants, rule, tenants
from tools.generate_rights import ROLES, kinds, main, rights

from federation.api.crds import crd_manifests
from federation.api.kubefedkinds import FEDERATED_KINDS, REPLICA_PREFERENCES
from federation.api.resources import FEDERATED_RESOURCE_QUOTAS, JOB_QUEUES
from federation.apimachinery.resources import Object
from federation.apiserver.auth.bootstrappolicy import ensure_default_rbac, without_retired
from federation.hosting.roles import HOST_RBAC

READING = frozenset(("get", "list", "watch"))
CRDS = {crd["metadata"]["name"]: crd for crd in crd_manifests()}


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Tenants]:
    async with tenants(tmp_path) as served:
        yield served


def test_the_page_is_current() -> None:
    assert main(["--check"]) == 0, "run make generate"


def test_tenants_write_policies_and_workloads_and_nothing_else() -> None:
    """The review of the table: what the namespaced roles allow, in one place."""
    allowed = {key: verbs for key, verbs in rights().items() if key[0] != "cluster-admin" and verbs}
    # A user who may change a workload may also pause, approve and abort its rollout.
    # One who may create a HorizontalPodAutoscaler may as well scale at set times.
    # One who may change a workload may also suspend its delivery.
    plurals = (
        "deliverysuspensions",
        "overridepolicies",
        "propagationpolicies",
        "federatedrollouts",
        "cronfederatedhpas",
    )
    policies = {f"{plural}.core.kubeadmiral.io" for plural in plurals}
    workloads = {"clonesets.apps.kruise.io", "statefulsets.apps.kruise.io"}
    # KubeFed's kinds need the rights on the native kinds besides (tests/attacks/test_kubefed.py).
    kubefed = [REPLICA_PREFERENCES, *(kind.resource for kind in FEDERATED_KINDS.values() if kind.resource.namespaced)]
    limits = {FEDERATED_RESOURCE_QUOTAS.group_resource, JOB_QUEUES.group_resource}
    written = policies | workloads | {each.group_resource for each in kubefed}
    assert {resource for _, resource in allowed} == written | limits
    assert {verbs for (_, resource), verbs in allowed.items() if resource in limits} == {READING}
    assert {verbs for (role, _), verbs in allowed.items() if role == "view"} == {READING}


async def _send(client: httpx.AsyncClient, resource: str, verb: str) -> int:
    name, _, subresource = resource.partition("/")
    spec = CRDS[name]["spec"]
    version = spec["versions"][0]["name"]
    scope = "namespaces/default/" if spec["scope"] == "Namespaced" else ""
    collection = f"/apis/{spec['group']}/{version}/{scope}{spec['names']['plural']}"
    item = f"{collection}/a{'/' + subresource if subresource else ''}"
    body: Object = {
        "apiVersion": f"{spec['group']}/{version}",
        "kind": spec["names"]["kind"],
        "metadata": {"name": "a"},
    }
    requests: dict[str, tuple[str, str, dict[str, Any]]] = {
        "get": ("GET", item, {}),
        "list": ("GET", collection, {}),
        "watch": ("GET", collection, {"params": {"watch": "1", "timeoutSeconds": "1", "resourceVersion": "999999"}}),
        "create": ("POST", collection, {"json": body, "params": {"dryRun": "All"}}),
        "update": ("PUT", item, {"json": {**body, "metadata": {"name": "a", "resourceVersion": "1"}}}),
        "patch": ("PATCH", item, {"json": {}, "headers": MERGE}),
        "delete": ("DELETE", item, {}),
        "deletecollection": ("DELETE", collection, {}),
    }
    method, path, more = requests[verb]
    return (await client.request(method, path, **more)).status_code


@pytest.mark.parametrize("role", ROLES)
async def test_the_server_answers_as_the_table_says(host: Tenants, role: str) -> None:
    """The objects do not exist, so an allowed request is answered with anything but 403."""
    await host.bind("somebody", role)
    if role == "cluster-admin":
        await host.bind("somebody", role, namespace="")
    client, table = await host.client("somebody"), rights()
    wrong = []
    for resource, verbs in kinds().items():
        for verb in verbs:
            is_admissions = role == "cluster-admin" and verb in ("create", "update", "patch")
            if is_admissions or (verb == "watch" and verb in table[role, resource]):
                continue  # admission's refusals are in test_federatedobjects.py; an allowed watch does not end
            code = await _send(client, resource, verb)
            if (code == 403) is (verb in table[role, resource]):
                wrong.append(f"{verb} {resource}: {code}")
    assert not wrong


OLD = ["collectedstatuses", "federatedobjects", "overridepolicies", "propagatedversions", "propagationpolicies"]


async def test_old_roles_are_corrected_at_start(host: Tenants) -> None:
    """An installation of an older version holds roles that grant federated objects."""
    root, registry = await host.root(), host.parts.registry
    own = rule("get", "federatedobjects")
    for name in ("system:aggregate-to-view", "system:aggregate-to-edit", "edit"):
        role = (await root.get(f"{RBAC}/clusterroles/{name}")).json()
        role["rules"] = [*(role["rules"] or []), rule("get,list,watch,create,update,patch,delete", ",".join(OLD))]
        assert (await root.put(f"{RBAC}/clusterroles/{name}", json=role)).status_code == 200
    custom = {"metadata": {"name": "ours", "labels": {"example.com/mine": "true"}}, "rules": [own]}
    assert (await root.post(f"{RBAC}/clusterroles", json=custom)).status_code == 201
    viewer, editor = await host.client("viewer"), await host.client("editor")

    await ensure_default_rbac(registry, HOST_RBAC)

    for name in ("system:aggregate-to-view", "system:aggregate-to-edit", "edit"):
        rules = (await root.get(f"{RBAC}/clusterroles/{name}")).json()["rules"]
        granted = {resource for entry in rules for resource in entry.get("resources") or ()}
        assert not granted & {"collectedstatuses", "federatedobjects", "propagatedversions"}
    assert (await root.get(f"{RBAC}/clusterroles/ours")).json()["rules"] == [own]
    for client in (viewer, editor):

        async def is_refused(client: httpx.AsyncClient = client) -> bool:
            return (await client.get(FEDERATED)).status_code == 403

        async with asyncio.timeout(60):
            while not await is_refused():  # noqa: ASYNC110  # the authorizer follows the roles by watch
                await asyncio.sleep(0)
        assert (await client.get(CLUSTER_FEDERATED)).status_code == 403
        policies = "/apis/core.kubeadmiral.io/v1alpha1/namespaces/default/propagationpolicies"
        assert (await client.get(policies)).status_code == 200


def test_only_retired_resources_leave_a_rule() -> None:
    retired = HOST_RBAC.retired
    ours, apps = "core.kubeadmiral.io", "apps"
    mixed = {"verbs": ["get"], "apiGroups": [apps, ours], "resources": ["deployments", "federatedobjects/status"]}
    wildcard = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    paths = {"verbs": ["get"], "nonResourceURLs": ["/metrics"]}
    gone = {"verbs": ["get"], "apiGroups": [ours], "resources": ["federatedobjects"]}
    assert without_retired([mixed, wildcard, paths, gone], retired) == [
        {"verbs": ["get"], "apiGroups": [ours], "resources": ["deployments"]},
        {"verbs": ["get"], "apiGroups": [apps], "resources": ["deployments", "federatedobjects/status"]},
        wildcard,
        paths,
    ]
