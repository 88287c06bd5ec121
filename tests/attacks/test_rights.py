"""The tables of rights and of tenancy are current, and the API server answers as they say.

That is for every role, kind and verb, in a namespace and beyond it.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.tenants import CLUSTER_FEDERATED, FEDERATED, MERGE, RBAC, Tenants, rule, tenants
from tools import generate_tenancy as tenancy
from tools.generate_rights import ROLES, kinds, main, rights

from federation.api import agents
from federation.api.crds import crd_manifests
from federation.api.kubefedkinds import FEDERATED_KINDS, REPLICA_PREFERENCES
from federation.api.resources import FEDERATED_RESOURCE_QUOTAS, JOB_QUEUES
from federation.apimachinery.resources import Object
from federation.apiserver.auth.bootstrappolicy import ensure_default_rbac, without_retired
from federation.features.projects.rules import made_by
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


ATTACKS = Path(__file__).parent
REFUSED = (401, 403)


def test_the_page_of_tenancy_is_current() -> None:
    assert tenancy.main(["--check"]) == 0, "run make generate"


def test_what_tenants_write_is_reviewed_for_its_effect_on_others() -> None:
    """A kind that a role in a namespace may write is listed with its effect beyond the namespace, or as without one."""
    writes = {"create", "update", "patch", "delete", "deletecollection"}
    written = {
        kind.title
        for (_, kind, namespace), verbs in tenancy.rights().items()
        if namespace == tenancy.OWN and verbs & writes and not kind.subresource
    }
    reaching = {each for reach in tenancy.REACHES for each in reach.kinds}
    assert written - reaching - set(tenancy.CONTAINED) == set(), (
        "say in tools/generate_tenancy.py what it does to others"
    )
    assert (reaching | set(tenancy.CONTAINED)) - written == set(), "no tenant writes it"
    assert not reaching & set(tenancy.CONTAINED)
    assert [reach.test for reach in tenancy.REACHES if not (ATTACKS / reach.test).is_file()] == []
    assert [each.test for each in tenancy.SHARED if not (ATTACKS.parent / each.test).is_file()] == []


def test_no_party_writes_anything_beyond_its_namespace() -> None:
    """The review of the table in one place: reading the own project is all."""
    beyond = {
        (party, kind.plural): verbs
        for (party, kind, namespace), verbs in tenancy.rights().items()
        if namespace == tenancy.OTHER and verbs
    }
    reading = frozenset(("get", "list", "watch"))
    assert beyond == {("project", "federatedclusters"): reading, ("project", "projects"): reading}


@pytest.fixture
async def two_namespaces(tmp_path: Path) -> AsyncIterator[Tenants]:
    async with tenants(tmp_path) as served:
        root = await served.root()
        for namespace in (tenancy.OWN, tenancy.OTHER):
            body = {"metadata": {"name": namespace}}
            assert (await root.post("/api/v1/namespaces", json=body)).status_code == 201
        yield served


async def client_of(host: Tenants, party: str) -> httpx.AsyncClient:
    """Return a client of a party with the rights that it gets."""
    if party == "member":
        return await host.client("")
    if party == "agent":
        return await host.client(agents.agent_user("some-uid"))
    if party != "project":
        await host.bind(party, party, namespace=tenancy.OWN)
        return await host.client(party)
    root = await host.root()
    for made in made_by(tenancy.project(), [tenancy.OWN], [tenancy.CLUSTER]):
        if made.field == "spec.members" or made.resource.plural == "clusterroles":
            answer = await root.post(made.resource.path(made.obj["metadata"].get("namespace", "")), json=made.obj)
            assert answer.status_code == 201, answer.text
    bound = {(tenancy.OWN, f"project-{tenancy.PROJECT}-edit"), ("", f"federation:project:{tenancy.PROJECT}")}
    await host.until(lambda: bound <= set(host.parts.authorizer._bindings))  # no public view of the cache
    return await host.client("project")


async def send(client: httpx.AsyncClient, kind: tenancy.Kind, verb: str, namespace: str) -> int:
    """Send the request of a cell; the object does not exist, so an allowed one is answered with anything but 403."""
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    where = f"/namespaces/{namespace}" if kind.is_namespaced else ""
    collection, name = f"{root}{where}/{kind.plural}", tenancy.name_of(kind, namespace)
    item = f"{collection}/{name}{'/' + kind.subresource if kind.subresource else ''}"
    body: Object = {"metadata": {"name": name}}
    dry: dict[str, Any] = {"params": {"dryRun": "All"}}
    requests: dict[str, tuple[str, str, dict[str, Any]]] = {
        "get": ("GET", item, {}),
        "list": ("GET", collection, {"params": {"fieldSelector": f"metadata.name={name}"}}),
        "watch": ("GET", collection, {"params": {"watch": "1", "timeoutSeconds": "1"}}),
        "create": ("POST", item if kind.subresource else collection, {"json": body, **dry}),
        "update": ("PUT", item, {"json": body, **dry}),
        "patch": ("PATCH", item, {"json": {}, "headers": MERGE, **dry}),
        "delete": ("DELETE", item, dry),
        "deletecollection": ("DELETE", collection, dry),
    }
    method, path, more = requests[verb]
    return (await client.request(method, path, **more)).status_code


@pytest.mark.slow("a request for each kind, verb and namespace")
@pytest.mark.parametrize("party", tenancy.PARTIES)
async def test_the_server_answers_as_the_table_of_tenancy_says(two_namespaces: Tenants, party: str) -> None:
    client, table, wrong = await client_of(two_namespaces, party), tenancy.rights(), []
    for kind in tenancy.kinds():
        for namespace in tenancy.scopes(kind):
            allowed = table[party, kind, namespace]
            for verb in tenancy.verbs_in(kind, namespace):
                if verb == "watch" and verb in allowed:
                    continue  # it does not end; who may list may watch
                code = await send(client, kind, verb, namespace)
                if (code in REFUSED) is (verb in allowed):
                    wrong.append(f"{verb} {kind.title} in {namespace}: {code}")
    assert not wrong
