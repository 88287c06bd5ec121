"""Configurations that act on an API server, and protections: where they act, and that none is silently without effect.

No right of a namespace reaches them, here or in a member. A policy or webhook on CONNECT holds for every way to open a
connection: the pod here, a member's, and a page's terminal. A protection that does nothing says so when it is written.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.attacks.test_ui import ADMIN, OWN, logged_in
from tests.attacks.test_ui_terminal import opened, pod
from tests.support.apiserver import Parts
from tests.support.manifests import a_policy, an_override
from tests.support.tenants import OURS, Tenants, tenants
from tests.support.world import a_world, a_world_without_pods

from federation.admission.protections import ProtectionWarnings
from federation.api import names
from federation.api.crds import crd_manifests
from federation.api.resources import CLUSTER_PROPAGATION_POLICIES, OVERRIDE_POLICIES, PROPAGATION_POLICIES
from federation.apimachinery.resources import (
    ADMISSION_POLICIES,
    ADMISSION_POLICY_BINDINGS,
    CONFIGMAPS,
    VALIDATING_WEBHOOKS,
    Object,
    Resource,
)
from federation.client.pool import ClusterPool
from federation.controllers.federate.controller import first_finalizers
from federation.memberproxy.connector import MemberProxy
from federation.planning.federatedobject.hosteffect import ACTING
from federation.web.ui.credentials import Credentials

SERVICE = {"service": {"namespace": "default", "name": "of-a-tenant"}}


def _selecting(*resources: Resource, **metadata: Any) -> Object:
    selectors = [{"apiVersion": each.api_version, "kind": each.kind} for each in resources]
    policy = a_policy({}, name="tenant", resourceSelectors=selectors)
    return {**policy, "metadata": {**policy["metadata"], **metadata}}


def _webhooks(**labels: str) -> Object:
    rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["secrets"]}
    webhook = {"name": "steal.example.com", "clientConfig": {"url": "https://127.0.0.1:1/"}, "rules": [rule]}
    webhook |= {"sideEffects": "None", "admissionReviewVersions": ["v1"], "failurePolicy": "Ignore"}
    metadata = {"name": "checks", "labels": labels}
    return {
        "apiVersion": VALIDATING_WEBHOOKS.api_version,
        "kind": VALIDATING_WEBHOOKS.kind,
        "metadata": metadata,
        "webhooks": [webhook],
    }


def _admission_policy() -> tuple[Object, Object]:
    rule = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "object.metadata.name != 'refused'"}],
    }
    bound = {"policyName": "guard", "validationActions": ["Deny"]}
    return {"metadata": {"name": "guard"}, "spec": spec}, {"metadata": {"name": "guard"}, "spec": bound}


async def test_a_policy_of_a_namespace_neither_places_nor_silences_what_acts_on_the_host() -> None:
    async with a_world(members=("east",)) as world:
        policy, binding = _admission_policy()
        await world.create(ADMISSION_POLICIES, policy)
        await world.create(ADMISSION_POLICY_BINDINGS, binding)
        await world.create(VALIDATING_WEBHOOKS, _webhooks())
        await world.create(PROPAGATION_POLICIES, _selecting(*ACTING))
        await world.settle()
        refused = {"metadata": {"name": "refused", "namespace": "default"}}
        with pytest.raises(Exception, match="guard"):
            await world.user.create(CONFIGMAPS, refused)
        for resource, name in ((VALIDATING_WEBHOOKS, "checks"), (ADMISSION_POLICIES, "guard")):
            found = await world.find(resource, name, "")
            assert found is not None
            assert not found["metadata"].get("finalizers")
            assert await world.members["east"].find(resource, name, "") is None


async def test_a_label_of_a_namespaces_policy_on_a_configuration_has_no_effect() -> None:
    async with a_world(members=("east",)) as world:
        await world.create(PROPAGATION_POLICIES, _selecting(CONFIGMAPS))
        await world.settle()
        await world.create(VALIDATING_WEBHOOKS, _webhooks(**{names.PROPAGATION_POLICY_LABEL: "tenant"}))
        await world.settle()
        found = await world.find(VALIDATING_WEBHOOKS, "checks", "")
        assert found is not None
        assert not found["metadata"].get("finalizers")
        assert await world.members["east"].find(VALIDATING_WEBHOOKS, "checks", "") is None


async def test_an_override_policy_of_a_namespace_does_not_redirect_a_webhook_in_a_member() -> None:
    async with a_world(members=("east",)) as world:
        everywhere = _selecting(VALIDATING_WEBHOOKS)
        del everywhere["metadata"]["namespace"]
        await world.create(CLUSTER_PROPAGATION_POLICIES, {**everywhere, "kind": "ClusterPropagationPolicy"})
        redirect = an_override("east", "/webhooks/0/clientConfig", SERVICE)
        selectors = [{"apiVersion": VALIDATING_WEBHOOKS.api_version, "kind": VALIDATING_WEBHOOKS.kind}]
        redirect["spec"]["resourceSelectors"] = selectors
        await world.create(OVERRIDE_POLICIES, redirect)
        await world.settle()
        await world.create(
            VALIDATING_WEBHOOKS, _webhooks(**{names.OVERRIDE_POLICY_LABEL: redirect["metadata"]["name"]})
        )
        await world.settle()
        delivered = await world.members["east"].find(VALIDATING_WEBHOOKS, "checks", "")
        assert delivered is not None
        assert delivered["webhooks"][0]["clientConfig"] == {"url": "https://127.0.0.1:1/"}


# Connections

__all__ = ["pod"]  # a fixture
POLICIES = "/apis/admissionregistration.k8s.io/v1"
CLUSTERS = "/apis/core.kubeadmiral.io/v1alpha1/federatedclusters"
EXEC = "/api/v1/namespaces/default/pods/web/exec"
DENIED = "no connections today"


async def forbid(
    admin: httpx.AsyncClient, probe: str, *resources: str, expression: str = "false", group: str = "", **binding: Any
) -> None:
    """Deny CONNECT on the resources unless the expression holds, and wait until `probe` is denied."""
    rules = [{"apiGroups": [group], "apiVersions": ["*"], "operations": ["CONNECT"], "resources": list(resources)}]
    spec = {
        "matchConstraints": {"resourceRules": rules},
        "validations": [{"expression": expression, "message": DENIED}],
    }
    bound = {"policyName": "connections", "validationActions": ["Deny"], **binding}
    await store(admin, "validating", "connections", spec, bound)
    await answer_of(lambda: admin.post(probe), is_denied)


async def store(admin: httpx.AsyncClient, kind: str, name: str, spec: Object, binding: Object) -> None:
    """Create a policy of admission and its binding."""
    for plural, body in ((f"{kind}admissionpolicies", spec), (f"{kind}admissionpolicybindings", binding)):
        answer = await admin.post(f"{POLICIES}/{plural}", json={"metadata": {"name": name}, "spec": body})
        assert answer.status_code == 201, answer.text


async def answer_of(
    ask: Callable[[], Awaitable[httpx.Response]], is_wanted: Callable[[httpx.Response], bool]
) -> httpx.Response:
    """Ask until the policy is loaded, and return the answer that shows it."""
    async with asyncio.timeout(30):
        while not is_wanted(answer := await ask()):  # noqa: ASYNC110  # the server has no event for a loaded policy
            await asyncio.sleep(0.01)
    return answer


def is_denied(answer: httpx.Response) -> bool:
    return answer.status_code == 422 and DENIED in answer.text


@pytest.fixture
async def proxied(parts: Parts) -> None:
    """A proxy to clusters of which none answers: what is denied never gets that far."""
    await parts.registry.install_crds(
        [crd for crd in crd_manifests() if "federatedclusters." in crd["metadata"]["name"]]
    )
    key = ("core.kubeadmiral.io", "v1alpha1", "federatedclusters", "proxy")
    parts.connectors[key] = MemberProxy(ClusterPool())


@pytest.mark.usefixtures("pod")
async def test_a_policy_on_exec_holds_for_the_api_and_for_the_terminal_of_a_page(
    parts: Parts, admin: httpx.AsyncClient
) -> None:
    await forbid(admin, f"{EXEC}?command=sh", "pods/exec", expression="object.command != ['sh']")
    assert not is_denied(await admin.post(f"{EXEC}?command=id"))
    async with opened(parts, Credentials(peer=ADMIN)) as terminal:
        assert (await terminal.answer())["type"] == "websocket.accept"
        assert DENIED in await terminal.end()
    async with opened(parts, Credentials(peer=ADMIN), command="id") as terminal:
        assert (await terminal.answer())["type"] == "websocket.accept"
        assert DENIED.encode() not in (await terminal.answer()).get("bytes", b"")
    async with logged_in(parts, Credentials(peer=ADMIN)) as browser:
        assert (await browser.get("/ui/pods/default/web/terminal", headers=OWN)).status_code == 200


@pytest.mark.usefixtures("proxied")
@pytest.mark.parametrize(
    ("resource", "path"),
    [
        ("pods/exec", "/api/v1/namespaces/default/pods/web/exec?command=sh"),
        ("pods/exec", "/api/v1/namespaces/only-there/pods/web/exec/?command=sh"),
        ("pods/attach", "/api/v1/namespaces/default/pods/web/attach"),
        ("pods/portforward", "/api/v1/namespaces/default/pods/web/portforward?ports=80"),
        ("pods/proxy", "/api/v1/namespaces/default/pods/web:80/proxy/admin/x"),
        ("services/proxy", "/api/v1/namespaces/default/services/web/proxy"),
        ("nodes/proxy", "/api/v1/nodes/node-1/proxy/exec/default/web/nginx"),
        ("nodes/*", "/api/v1/nodes/node-1/proxy/"),
    ],
)
async def test_a_policy_on_connections_holds_for_members(admin: httpx.AsyncClient, resource: str, path: str) -> None:
    target = f"{CLUSTERS}/east/proxy{path}"
    assert not is_denied(await admin.post(target))
    await forbid(admin, target, resource)
    for method in ("GET", "POST", "PUT", "DELETE"):
        assert is_denied(await admin.request(method, target)), method
    assert not is_denied(await admin.get(f"{CLUSTERS}/east/proxy/api/v1/namespaces/default/pods/web/log"))
    assert not is_denied(await admin.get(f"{CLUSTERS}/east/proxy/api/v1/namespaces/default/pods/exec"))


@pytest.mark.usefixtures("proxied")
async def test_a_policy_on_the_proxy_of_clusters_sees_the_path(admin: httpx.AsyncClient) -> None:
    expression = "!object.path.startsWith('/api/v1/secrets')"
    probe = f"{CLUSTERS}/east/proxy/api/v1/secrets"
    await forbid(admin, probe, "federatedclusters/proxy", expression=expression, group="core.kubeadmiral.io")
    assert is_denied(await admin.get(f"{CLUSTERS}/*/proxy/api/v1/secrets"))
    assert not is_denied(await admin.get(f"{CLUSTERS}/east/proxy/api/v1/pods"))


@pytest.mark.usefixtures("proxied")
async def test_a_binding_for_some_namespaces_leaves_the_others_alone(admin: httpx.AsyncClient) -> None:
    selector = {"matchLabels": {"kubernetes.io/metadata.name": "only-there"}}
    path = f"{CLUSTERS}/east/proxy/api/v1/namespaces/{{}}/pods/web/exec?command=sh"
    await forbid(admin, path.format("only-there"), "pods/exec", matchResources={"namespaceSelector": selector})
    assert not is_denied(await admin.post(path.format("default")))


async def test_a_policy_on_tokens_of_service_accounts_is_asked(admin: httpx.AsyncClient) -> None:
    rules = [
        {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["serviceaccounts/token"]}
    ]
    spec = {
        "matchConstraints": {"resourceRules": rules},
        "validations": [{"expression": "object.spec.expirationSeconds <= 3600", "message": DENIED}],
    }
    await store(admin, "validating", "tokens", spec, {"policyName": "tokens", "validationActions": ["Deny"]})
    account = "/api/v1/namespaces/default/serviceaccounts"
    assert (await admin.post(account, json={"metadata": {"name": "robot"}})).status_code == 201

    async def request(seconds: int) -> httpx.Response:
        return await admin.post(f"{account}/robot/token", json={"spec": {"expirationSeconds": seconds}})

    await answer_of(lambda: request(7200), is_denied)
    assert (await request(3600)).status_code == 201


async def mutate(admin: httpx.AsyncClient, resource: str, expression: str, group: str = "") -> None:
    """Change the options of connections by a JSON patch in CEL."""
    rules = [{"apiGroups": [group], "apiVersions": ["*"], "operations": ["CONNECT"], "resources": [resource]}]
    mutation = {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}
    spec = {"matchConstraints": {"resourceRules": rules}, "mutations": [mutation], "reinvocationPolicy": "Never"}
    await store(admin, "mutating", "connections", spec, {"policyName": "connections"})


@pytest.mark.usefixtures("pod")
async def test_what_admission_makes_of_the_options_is_what_is_run(parts: Parts, admin: httpx.AsyncClient) -> None:
    await mutate(admin, "pods/exec", """[JSONPatch{op: "replace", path: "/command", value: ["hostname"]}]""")
    shown = b""
    async with asyncio.timeout(30):
        while b"web" not in shown:  # until the policy is loaded
            shown = b""
            async with opened(parts, Credentials(peer=ADMIN), command="false") as terminal:
                while (message := await terminal.answer())["type"] != "websocket.close":
                    shown += message.get("bytes") or b""


@pytest.mark.usefixtures("proxied")
async def test_a_change_of_a_path_is_refused_and_not_ignored(admin: httpx.AsyncClient) -> None:
    expression = """[JSONPatch{op: "replace", path: "/path", value: "/healthz"}]"""
    await mutate(admin, "federatedclusters/proxy", expression, "core.kubeadmiral.io")
    path = f"{CLUSTERS}/east/proxy/api/v1/pods"
    answer = await answer_of(lambda: admin.get(path), lambda found: found.status_code == 403)
    assert "admission changed the path of the request, which is not supported here" in answer.text


# Protections without an effect

NETWORK = {"metadata": {"name": "deny"}, "spec": {"podSelector": {}, "policyTypes": ["Ingress"]}}
LABELLED = {"labels": {"kubeadmiral.io/propagation-policy-name": "divide"}}
QUOTA = {"metadata": {"name": "q"}, "spec": {"hard": {"requests.cpu": "1", "pods": "5", "count/secrets": "9"}}}
COUNTS = {"metadata": {"name": "c"}, "spec": {"hard": {"count/secrets": "9", "persistentvolumeclaims": "3"}}}
RANGE = {"metadata": {"name": "l"}, "spec": {"limits": [{"type": "Container", "max": {"cpu": "1"}}]}}
BUDGET = {"metadata": {"name": "b"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"a": "b"}}}}
QUEUING = {"queues": 64, "handSize": 8, "queueLengthLimit": 50}
LEVEL = {
    "metadata": {"name": "mine"},
    "spec": {
        "type": "Limited",
        "limited": {"lendablePercent": 50, "limitResponse": {"type": "Queue", "queuing": QUEUING}},
    },
}
SILENT: list[tuple[str, dict[str, Any], str]] = [
    ("networking.k8s.io/v1/namespaces/default/networkpolicies", NETWORK, "it protects nothing until"),
    ("policy/v1/namespaces/default/poddisruptionbudgets", BUDGET, "ClusterDisruptionBudget"),
    ("/v1/namespaces/default/resourcequotas", QUOTA, "requests.cpu, pods count Pods that are written on this host"),
    ("/v1/namespaces/default/limitranges", RANGE, "not the pods that members make"),
    ("flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations", LEVEL, "lendablePercent"),
]


async def warnings_of(host: Tenants, path: str, body: dict[str, Any], method: str = "POST") -> str:
    root = await host.root()
    prefix = "/api" if path.startswith("/") else "/apis/"
    answer = await root.request(method, path if path.startswith(OURS) else f"{prefix}{path}", json=body)
    assert answer.status_code in (200, 201), answer.text
    return answer.headers.get("warning", "")


@pytest.mark.slow("a fleet whose policies decide what is delivered")
async def test_what_no_member_has_and_the_host_does_not_enforce_is_said(tmp_path: Path) -> None:
    async with a_world_without_pods(members=("east",)) as world, tenants(tmp_path, registry=world.registry) as host:
        delivers = first_finalizers(world.plane.types, world.plane.policy_selection)
        world.registry.add_admission_plugin(ProtectionWarnings(delivers), beside_others=True)
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}, schedulingMode="Duplicate"))
        await world.settle()
        for path, body, text in SILENT:
            assert text in await warnings_of(host, path, body), path
        delivered = {**NETWORK, "metadata": {"name": "delivered", **LABELLED}}
        assert await warnings_of(host, SILENT[0][0], delivered) == ""
        assert await warnings_of(host, "/v1/namespaces/default/resourcequotas", COUNTS) == ""


@pytest.mark.parametrize(
    ("plural", "selected", "text"),
    [
        ("overridepolicies", {"apiVersion": "v1", "kind": "Namespace"}, "Namespace is a kind without a namespace"),
        ("propagationpolicies", {"apiVersion": "v1", "kind": "Namespace"}, "use the cluster-wide kind"),
        ("overridepolicies", {"apiVersion": "v1", "kind": "ResourceQuota"}, "by a ClusterOverridePolicy only"),
    ],
)
async def test_a_policy_of_a_namespace_that_selects_what_it_cannot_reach_says_so(
    tmp_path: Path, plural: str, selected: dict[str, Any], text: str
) -> None:
    async with tenants(tmp_path) as host:
        spec = {"resourceSelectors": [selected], **({"schedulingMode": "Duplicate"} if plural[0] == "p" else {})}
        body = {"metadata": {"name": "p"}, "spec": spec}
        assert text in await warnings_of(host, f"{OURS}/namespaces/default/{plural}", body)
