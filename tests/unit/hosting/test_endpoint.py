"""Reviews, delegated authentication and delegated authorization, with a real API server as the host."""

import base64
import uuid
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
from tests.support.apiserver import Parts, api_server

from federation.api import names
from federation.api.crds import crd_manifests
from federation.apimachinery.clock import SystemClock
from federation.apimachinery.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, SERVICE_ACCOUNTS, Object
from federation.apiserver.auth.clientcertificates import Peer
from federation.client.http import HTTPClient
from federation.client.kubeconfig import load_kubeconfig
from federation.controllers.cluster.memberaccount import request_token
from federation.hosting.access import HostAccess
from federation.hosting.admissionplugins import admission_plugins
from federation.hosting.endpoint import Endpoint
from federation.hosting.hostkinds import HostKinds
from federation.hosting.manifests import USER
from federation.hosting.pluginreviews import HostAdmission
from federation.hosting.webhookconfigurations import HOLD, MUTATE, VALIDATE
from federation.journal.memoryjournal import MemoryJournal
from federation.web import application

pytestmark = pytest.mark.xdist_group("hosting")
TENANT = {"username": "tenant", "groups": ["system:authenticated"]}
ADMIN = {"username": "root", "groups": ["system:masters"]}
DECISIONS = "/federation/v1/decisions?kind=Deployment&group=apps&namespace=default&name=web"

_PLURALS = {
    "Deployment": "deployments",
    "FederatedObject": "federatedobjects",
    "PropagationPolicy": "propagationpolicies",
}


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parts]:
    with api_server(tmp_path_factory.mktemp("hosting")) as parts:
        parts.run(parts.registry.install_crds(crd_manifests()))
        yield parts


@pytest.fixture
async def client(host: Parts) -> AsyncIterator[HTTPClient]:
    client = HTTPClient(load_kubeconfig(host.kubeconfig))
    yield client
    await client.close()


class AsPeer:
    """The app on a connection with a client certificate."""

    def __init__(self, app: Any, peer: Peer | None) -> None:
        self.app = app
        self.peer = peer

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self.app({**scope, "state": {"peer": self.peer}}, receive, send)


@pytest.fixture
async def endpoint(client: HTTPClient) -> Endpoint:
    clock = SystemClock()
    kinds, access = HostKinds(client, clock), HostAccess(client, clock)
    await kinds.refresh()
    admission = HostAdmission(
        lambda look_up: admission_plugins(client, look_up.find, clock),
        kinds,
        access,
        lambda resource, _: (names.FEDERATE_FINALIZER,) if resource.plural == "deployments" else (),
    )

    async def readiness() -> str:
        return "not synced yet: deployments.apps"

    return Endpoint(admission.answer, application.mount(MemoryJournal(), kinds, ()), access, readiness)


def web(endpoint: Endpoint, peer: Peer | None = None) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(AsPeer(endpoint, peer)), base_url="https://a")


async def review(endpoint: Endpoint, path: str, obj: Object, user: Object, old: Object | None = None) -> Any:
    group, _, version = obj["apiVersion"].rpartition("/")
    plural = _PLURALS[obj["kind"]]
    metadata = obj["metadata"]
    request = {
        "uid": str(uuid.uuid4()),
        "kind": {"group": group, "version": version, "kind": obj["kind"]},
        "resource": {"group": group, "version": version, "resource": plural},
        "namespace": metadata.get("namespace", ""),
        "name": metadata["name"],
        "operation": "CREATE" if old is None else "UPDATE",
        "userInfo": user,
        "object": obj,
        "oldObject": old,
    }
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    async with web(endpoint) as http:
        answer = await http.post(path, json=body)
    assert answer.status_code == 200, answer.text
    found = answer.json()["response"]
    assert found["uid"] == request["uid"]
    return found


def federated(kind: str = "Secret") -> Object:
    template = {"apiVersion": "v1", "kind": kind, "metadata": {"name": "s", "namespace": "default"}}
    return {
        "apiVersion": "core.kubeadmiral.io/v1alpha1",
        "kind": "FederatedObject",
        "metadata": {"name": "s", "namespace": "default", "annotations": {names.HAND_WRITTEN: "true"}},
        "spec": {"template": template},
    }


def policy(count: int) -> Object:
    selectors = [{"apiVersion": "v1", "kind": "Secret", "name": f"s-{number}"} for number in range(count)]
    return {
        "apiVersion": "core.kubeadmiral.io/v1alpha1",
        "kind": "PropagationPolicy",
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"resourceSelectors": selectors, "placement": [{"cluster": "nowhere"}]},
    }


async def test_the_host_is_asked_whether_a_tenant_may_federate(endpoint: Endpoint) -> None:
    answer = await review(endpoint, VALIDATE, federated(), TENANT)
    assert answer["allowed"] is False
    assert 'User "tenant" cannot federate resource "secrets"' in answer["status"]["message"]
    assert answer["status"]["code"] == 403
    assert (await review(endpoint, VALIDATE, federated(), ADMIN))["allowed"] is True


async def test_a_kind_that_the_host_does_not_serve_is_named(endpoint: Endpoint) -> None:
    answer = await review(endpoint, VALIDATE, federated("Unknown"), ADMIN)
    assert "the host serves no such apiVersion and kind" in answer["status"]["message"]


async def test_many_permissions_are_asked_for_together(endpoint: Endpoint) -> None:
    answer = await review(endpoint, VALIDATE, policy(50), ADMIN)
    assert answer["allowed"] is True
    assert "there is no FederatedCluster 'nowhere'" in answer["warnings"][0]
    assert len(answer["warnings"]) == len(set(answer["warnings"])), "a repeated run repeats no warning"


async def test_a_tenant_needs_every_permission(endpoint: Endpoint) -> None:
    answer = await review(endpoint, VALIDATE, policy(3), TENANT)
    assert "cannot update secrets" in answer["status"]["message"]


async def test_a_federated_object_of_a_user_is_marked_as_hand_written(endpoint: Endpoint) -> None:
    obj = federated()
    del obj["metadata"]["annotations"]
    answer = await review(endpoint, MUTATE, obj, ADMIN)
    assert answer["patchType"] == "JSONPatch"
    assert names.HAND_WRITTEN in base64.b64decode(answer["patch"]).decode()
    answer = await review(endpoint, MUTATE, federated(), ADMIN)
    assert names.HAND_WRITTEN not in base64.b64decode(answer["patch"]).decode()


async def test_the_author_is_on_record_whatever_the_client_sends(endpoint: Endpoint) -> None:
    forged = policy(3)
    forged["metadata"]["annotations"] = {names.AUTHORS: '[{"user":{"username":"root"},"wrote":[]}]'}
    answer = await review(endpoint, MUTATE, forged, TENANT)
    patched = base64.b64decode(answer["patch"]).decode()
    assert TENANT["username"] in patched
    assert "root" not in patched


async def test_our_own_writes_are_admitted(endpoint: Endpoint) -> None:
    answer = await review(endpoint, VALIDATE, federated(), {"username": USER})
    assert answer["allowed"] is True


@pytest.mark.parametrize(("finalizers", "is_patched"), [([], True), ([names.FEDERATE_FINALIZER], False)])
async def test_a_new_object_gets_our_finalizer_once(
    endpoint: Endpoint, finalizers: list[str], is_patched: bool
) -> None:
    metadata = {"name": "web", "namespace": "default", "finalizers": finalizers}
    answer = await review(endpoint, HOLD, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata}, TENANT)
    assert answer["allowed"] is True
    assert ("patch" in answer) is is_patched


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"request": {}}', b'{"request": {"uid": "1"}}'])
async def test_a_body_that_is_no_review_is_refused(endpoint: Endpoint, body: bytes) -> None:
    async with web(endpoint) as http:
        answer = await http.post(VALIDATE, content=body)
        assert answer.status_code == 400
        assert (await http.get(VALIDATE)).status_code == 405


async def test_without_credentials_only_health_is_shown(endpoint: Endpoint) -> None:
    async with web(endpoint) as http:
        assert (await http.get("/healthz")).text == "ok"
        readiness = await http.get("/readyz")
        assert (readiness.status_code, readiness.text) == (503, "not synced yet: deployments.apps")
        for path in ("/metrics", DECISIONS, "/federation/v1/openapi.json"):
            assert (await http.get(path)).status_code == 401
        wrong = {"Authorization": "Bearer wrong"}
        assert (await http.get(DECISIONS, headers=wrong)).status_code == 401
        assert (await http.get("/other")).status_code == 404
        no_ui = await http.get("/ui/objects")
        assert no_ui.status_code == 404
        assert no_ui.json()["message"].startswith("the web UI is not served on this port")


async def test_a_client_certificate_of_the_host_names_the_user(endpoint: Endpoint) -> None:
    async with web(endpoint, Peer("tenant", ())) as http:
        refused = await http.get(DECISIONS)
        assert refused.status_code == 403
        assert 'User "tenant" cannot get resource "deployments"' in refused.json()["message"]
        assert (await http.get("/metrics")).status_code == 403
    async with web(endpoint, Peer("root", ("system:masters",))) as http:
        assert (await http.get(DECISIONS)).json()["items"] == []
        assert "federation_" in (await http.get("/metrics")).text
        pretended = await http.get(DECISIONS, headers={"Impersonate-User": "somebody"})
        assert pretended.status_code == 403


async def test_a_token_of_the_host_names_the_user(endpoint: Endpoint, client: HTTPClient) -> None:
    account = {"name": "reader", "namespace": names.SYSTEM_NAMESPACE}
    await client.raw("POST", "/api/v1/namespaces", body={"metadata": {"name": names.SYSTEM_NAMESPACE}})
    await client.create(SERVICE_ACCOUNTS, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
    token = {"Authorization": f"Bearer {await request_token(client, 'reader')}"}
    async with web(endpoint) as http:
        assert (await http.get(DECISIONS, headers=token)).status_code == 403
        rule = {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get"]}
        role = {"apiVersion": CLUSTER_ROLES.api_version, "kind": "ClusterRole", "metadata": {"name": "reader"}}
        await client.create(CLUSTER_ROLES, {**role, "rules": [rule]})
        binding = {
            **role,
            "kind": "ClusterRoleBinding",
            "roleRef": {"apiGroup": CLUSTER_ROLES.group, "kind": "ClusterRole", "name": "reader"},
            "subjects": [{"kind": "ServiceAccount", **account}],
        }
        await client.create(CLUSTER_ROLE_BINDINGS, binding)
        assert (await http.get(DECISIONS, headers=token)).status_code == 200
