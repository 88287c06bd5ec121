"""A value of a Secret is read nowhere but by those who read Secrets, whatever kind carries it.

A real federation has a canary in every kind that can carry a value of a Secret. Then a user with the role `view`, of a
namespace and of all, reads every kind, and the files and outputs of an administrator are searched: the raw database
with a key, the backup, the audit log at RequestResponse, the server's log at debug level, Events, conditions, metrics,
plans, records of decisions and support bundles.
"""

import asyncio
import base64
import contextlib
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest
from tests.support.crawling import Frontier
from tests.support.encryption import write_keys
from tests.support.federation import Federation, eventually, fedctl, log_of, start_federation
from tests.support.manifests import a_deployment, a_policy
from tests.support.rest import APPLY, JSON_PATCH, Api, Refused
from tests.support.rest import MERGE as MERGE_PATCH
from tests.support.tenants import FEDERATED, MERGE, OURS, RBAC, rule, tenants
from tests.support.world import a_world
from tests.unit.apiserver.conftest import connect
from tests.unit.web.test_delivery import served

from federation.api.resources import COLLECTED_STATUSES, FEDERATED_TYPE_CONFIGS, PROPAGATION_POLICIES
from federation.api.secretvalues import carries_secret_values, secret_values, without_secret_values
from federation.apimachinery.connection import Connection
from federation.apimachinery.resources import DEPLOYMENTS, EVENTS, SECRETS, Object
from federation.apimachinery.wellknown import AUTHENTICATED
from federation.apiserver.auth.clientcertificates import Peer
from federation.client.kubeconfig import load_kubeconfig
from federation.journal.decisions import DecisionFilter
from federation.planning.status.collection import collect

PLAIN = "correct-horse-battery"
HIDDEN = base64.b64encode(PLAIN.encode()).decode()
SECRET: Object = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {
        "name": "password",
        "namespace": "default",
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": f'{{"data":{{"a":"{HIDDEN}"}}}}'},
    },
    "data": {"a": HIDDEN},
}


async def test_copies_are_read_only_by_those_who_read_the_secret(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async with a_world() as world, tenants(tmp_path, world.registry) as host:
        config = await world.user.get(FEDERATED_TYPE_CONFIGS, "secrets")
        config["spec"]["statusCollection"] = {
            "enabled": True,
            "fields": ["data", "metadata", "type", "metadata.labels"],
        }
        await world.user.update(FEDERATED_TYPE_CONFIGS, config)
        await world.create(PROPAGATION_POLICIES, a_policy({"east": 1}, schedulingMode="Duplicate"))
        await world.create(
            SECRETS,
            {
                **SECRET,
                "metadata": {**SECRET["metadata"], "labels": {"kubeadmiral.io/propagation-policy-name": "divide"}},
            },
        )

        async def collected() -> Any:
            return await world.find(COLLECTED_STATUSES, "password-secrets")

        found = await world.until(collected)
        await host.grant("viewer", rule("*", "federatedobjects,federatedobjects/status,collectedstatuses"))
        viewer = await host.client("viewer")
        path = f"{FEDERATED}/password-secrets"
        for answer in (
            await viewer.get(path),
            await viewer.get(f"{path}/status"),
            await viewer.get(FEDERATED),
            await viewer.get(f"{OURS}/federatedobjects"),
            await viewer.patch(path, json={}, headers=MERGE),
            await viewer.patch(f"{path}?dryRun=All", json={}, headers=MERGE),
            await viewer.delete(f"{path}?dryRun=All"),
            await viewer.delete(f"{FEDERATED}?dryRun=All"),
            await viewer.get(path, headers={"accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}),
        ):
            assert answer.status_code == 403, answer.text
            assert PLAIN not in answer.text
            assert HIDDEN not in answer.text
        async with asyncio.timeout(60):  # an allowed watch does not end: the world's clock stands still
            assert (await viewer.get(FEDERATED, params={"watch": "1", "timeoutSeconds": "1"})).status_code == 403
        review = {"spec": {"resourceAttributes": {"verb": "get", "namespace": "default"}}}
        review["spec"]["resourceAttributes"] |= {"group": "core.kubeadmiral.io", "resource": "federatedobjects"}
        answer = await viewer.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", json=review)
        assert answer.json()["status"]["allowed"] is False
        await host.grant("editor", rule("get", "federatedobjects"))
        assert HIDDEN in (await (await host.client("editor")).get(path)).text

        public = [found, *(await world.user.list(EVENTS)).items]
        public += [str(record) for record in await world.journal.query(DecisionFilter(), limit=500)]
        assert HIDDEN not in str(public)
        assert PLAIN not in str(public)
        for entry in found["clusters"]:
            assert "data: may hold the data of the Secret" in entry["error"]
        printed = capsys.readouterr()
        assert HIDDEN not in printed.out + printed.err


@pytest.mark.parametrize(
    ("text", "is_manifest"),
    [
        ("kind: Secret\ndata: {a: dG9wc2VjcmV0}", True),
        ("# a chart\nkind: 'Secret'\ntype: Opaque\nstringData:\n  a: topsecret9\n", True),
        ('{kind: Secret, data: {a: "topsecret9"}}', True),
        ('{"kind": "Secret",\n"data": {"a": "topsecret9"},}', True),
        ('{"kind":"ConfigMap"}\n{"kind":"Secret","stringData":{"a":"topsecret9"}}', True),
        ("kind: SecretStore\ndata: none", False),
        ("kind: Secret", False),
        ("a Secret has data: yes", False),
        ("kind: ConfigMap\ndata: {a: b}", False),
    ],
)
def test_a_manifest_in_another_format_counts_as_a_whole(text: str, is_manifest: bool) -> None:
    obj = {"kind": "Work", "spec": {"text": text, "more": ["plain"]}}
    for stored in (orjson.dumps(obj), orjson.dumps({"kind": "List", "text": orjson.dumps(obj).decode()})):
        assert carries_secret_values(stored) is is_manifest
    shown = without_secret_values(obj)
    assert shown["spec"] == {"text": "***" if is_manifest else text, "more": ["plain"]}
    found = set(secret_values(obj))
    assert not is_manifest or found & {b"topsecret", b"topsecret9"}


def test_a_collected_status_shows_only_public_fields_of_a_secret() -> None:
    fields = [("data",), ("stringData",), ("metadata",), ("metadata", "annotations"), ("metadata", "managedFields")]
    collected, error = collect(SECRET, [*fields, ("metadata", "name"), ("kind",)], holds_secrets=True)
    assert collected == {"metadata": {"name": "password"}, "kind": "Secret"}
    assert HIDDEN not in error
    assert all(".".join(path) in error for path in fields)
    assert collect({"kind": "ConfigMap", "data": {"a": "1"}}, [("data",)])[0] == {"data": {"a": "1"}}


async def test_an_object_of_a_member_that_carries_values_is_read_with_the_right_to_read_secrets(tmp_path: Path) -> None:
    """The control plane reads it with its own credentials: `/federation/v1/memberobjects`, of any federated kind."""
    path = "/federation/v1/memberobjects?cluster=east&group=apps&kind=Deployment&namespace=default"
    async with a_world() as world, served(world, tmp_path) as (parts, admin):
        carrier = a_deployment("carrier")
        carrier["metadata"]["annotations"] = {"example.com/manifest": json.dumps(SECRET), "text": in_yaml(HIDDEN)}
        for each in (carrier, a_deployment("plain")):
            await world.members["east"].admin.create(DEPLOYMENTS, each)
        proxy = rule("get", "federatedclusters/proxy")
        await admin.post(f"{RBAC}/clusterroles", json={"metadata": {"name": "proxy"}, "rules": [proxy]})
        for name, where in (("proxy", "clusterrolebindings"), ("view", "namespaces/default/rolebindings")):
            reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
            subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "viewer"}
            body = {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]}
            assert (await admin.post(f"{RBAC}/{where}", json=body)).status_code == 201
        async with connect(parts.app, Peer("viewer", (AUTHENTICATED,))) as viewer:

            async def may_read() -> bool:
                return (await viewer.get(f"{path}&name=plain")).status_code == 200

            await world.until(may_read)
            for refused in (await viewer.get(f"{path}&name=carrier"), await viewer.get(path)):
                assert refused.status_code == 403, refused.text
                assert "carries values of secrets" in refused.json()["message"]
                assert HIDDEN not in refused.text
        assert HIDDEN in (await admin.get(f"{path}&name=carrier")).text
        for name in ("carrier", "plain"):
            await world.members["east"].admin.delete(DEPLOYMENTS, name, "default")


# Values in all kinds, and all places where they could be read

POLICY = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: RequestResponse}]\n"
POLICIES = f"{OURS}/namespaces/default/overridepolicies"
_SECRETS = "/api/v1/namespaces/default/secrets"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_WORD = "canary"
_PLACED = {"kubeadmiral.io/propagation-policy-name": "everywhere"}


class Canaries:
    """Values of Secrets that are found again: each has the name of the kind that carries it."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def __call__(self, carrier: str) -> str:
        """Return a new value in base64."""
        self.names.append(carrier)
        return base64.b64encode(self._text(carrier)).decode()

    def _text(self, carrier: str) -> bytes:
        return f"{_WORD}-{carrier}-{_WORD}".encode()

    def found_in(self, data: bytes) -> list[str]:
        """Return the carriers whose value is in the data, plain or in base64."""
        return [
            name
            for name in self.names
            if self._text(name) in data or base64.b64encode(self._text(name)).rstrip(b"=") in data
        ]


def overrides(value: str, *, path: str = "/data/password", **more: Any) -> dict[str, Any]:
    patch = {"operator": "add", "path": path, "value": value}
    return {"overrideRules": [{"overriders": {"jsonpatch": [patch], **more}}]}


def policy(name: str, spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    kind = "OverridePolicy"
    return {
        "apiVersion": "core.kubeadmiral.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }


def secret(name: str, value: str, **labels: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": "default", "labels": {**_PLACED, **labels}},
        "data": {"password": value},
    }


def in_yaml(value: str) -> str:
    """Return the manifest of a Secret in YAML, as charts and operators have it in a text."""
    return f"apiVersion: v1\nkind: Secret\nmetadata:\n  name: x\ndata:\n  password: {value}\n"


def plant(api: Api, canary: Canaries) -> None:
    """Write a canary by each kind that can carry one."""
    propagation = {
        "kind": "PropagationPolicy",
        "metadata": {"name": "everywhere"},
        "spec": {"schedulingMode": "Duplicate"},
    }
    api.send("POST", f"{OURS}/namespaces/default/propagationpolicies", propagation)
    labels = {"kubeadmiral.io/override-policy-name": "by-label"}
    api.send("POST", _SECRETS, secret("labelled", canary("secret"), **labels))
    api.send("POST", POLICIES, policy("by-label", overrides(canary("label"))))
    selects = {"resourceSelectors": [{"apiVersion": "v1", "kind": "Secret", "name": "labelled"}]}
    api.send("POST", POLICIES, policy("selecting", {**overrides(canary("selector"), path="/data/more"), **selects}))
    cluster = {**policy("cluster-wide", {**overrides(canary("cluster"), path="/data/third"), **selects})}
    cluster["kind"] = "ClusterOverridePolicy"
    cluster["spec"]["resourceSelectors"] = [{"apiVersion": "v1", "kind": "Secret", "namespace": "default"}]
    api.send("POST", f"{OURS}/clusteroverridepolicies", cluster)
    api.send("POST", POLICIES, policy("text", overrides(canary("stringdata"), path="/stringData/password")))
    fields = {
        "fieldPath": "/data/app.yaml",
        "yaml": [{"operator": "add", "subPath": "/x", "value": canary("document")}],
    }
    api.send("POST", POLICIES, policy("document", {"overrideRules": [{"overriders": {"fields": [fields]}}]}))
    # The spec has the value no longer, but the annotation of kubectl does.
    applied = json.dumps(policy("applied", overrides(canary("applied"))))
    api.send("POST", POLICIES, policy("applied", overrides("eA=="), annotations={LAST_APPLIED: applied}))
    applied = json.dumps(secret("labelled", canary("nested")))
    api.send(
        "POST",
        POLICIES,
        policy("nested", {"overrideRules": [{"overriders": {"annotations": [{"value": {LAST_APPLIED: applied}}]}}]}),
    )
    waves = {"changeRollout": {"waves": [{"name": "first", "pause": True}]}, **selects}
    api.send("POST", POLICIES, policy("changed", {**overrides(canary("earlier"), path="/data/c"), **waves}))
    eventually(
        lambda: api.send("GET", f"{POLICIES}/changed").json().get("status", {}), lambda it: "changeRollout" in it
    )
    api.send("PATCH", f"{POLICIES}/changed", {"spec": overrides("eA==", path="/data/c")}, type_=MERGE_PATCH)
    add = [{"op": "add", "path": "/spec/overrideRules/0/overriders/jsonpatch/0/value", "value": canary("patch")}]
    api.send("POST", POLICIES, policy("patched", overrides("eA==")))
    api.send("PATCH", f"{POLICIES}/patched", add, type_=JSON_PATCH)
    body = policy("ssa", overrides(canary("ssa")))
    api.send("PATCH", f"{POLICIES}/ssa", body, type_=APPLY, fieldManager="x")
    # A failing test would quote the value that the object has, or the one that is expected.
    test = {"operator": "test", "path": "/data/password", "value": canary("test")}
    spec = {"overrideRules": [{"overriders": {"jsonpatch": [test]}}]}
    api.send("POST", POLICIES, policy("failing", spec))
    api.send("POST", _SECRETS, secret("failing", "eA==", **{"kubeadmiral.io/override-policy-name": "failing"}))
    anchor = base64.b64encode(b"*" + base64.b64decode(canary("yaml"))).decode()
    api.send("POST", _SECRETS, secret("broken", anchor, **{"kubeadmiral.io/override-policy-name": "broken"}))
    broken = {"fieldPath": "/data/password", "yaml": [{"subPath": "/x", "value": "y"}]}
    api.send("POST", POLICIES, policy("broken", {"overrideRules": [{"overriders": {"fields": [broken]}}]}))
    with contextlib.suppress(Refused):  # an error quotes the value, perhaps
        api.send("POST", POLICIES, policy("refused", overrides(canary("refused")), labels={"a": ["b"]}))
    plant_other_kinds(api, canary)


def plant_other_kinds(api: Api, canary: Canaries) -> None:
    """Write canaries by kinds of KubeFed and of others."""
    federated = {
        "apiVersion": "types.kubefed.io/v1beta1",
        "kind": "FederatedSecret",
        "metadata": {"name": "kubefed"},
        "spec": {
            "template": {"data": {"password": canary("kubefed")}},
            "placement": {"clusterSelector": {}},
            "overrides": [
                {
                    "clusterName": "member-1",
                    "clusterOverrides": [{"path": "/data/p", "op": "add", "value": canary("override")}],
                }
            ],
        },
    }
    api.send("POST", "/apis/types.kubefed.io/v1beta1/namespaces/default/federatedsecrets", federated)
    revisions = "/apis/apps/v1/namespaces/default/controllerrevisions"
    for name, data in (
        ("revision", secret("x", canary("revision"))),
        ("revision-yaml", {"manifests": in_yaml(canary("revision-yaml"))}),
    ):
        api.send("POST", revisions, {"metadata": {"name": name}, "revision": 1, "data": data})
    api.send("POST", POLICIES, policy("yaml-text", overrides(in_yaml(canary("yaml-text")), path="/spec/values")))
    names = {"plural": "works", "singular": "work", "kind": "Work"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "works.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }
    api.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    work = {
        "apiVersion": "example.com/v1",
        "kind": "Work",
        "metadata": {"name": "work"},
        "spec": {"manifests": [secret("x", canary("work"))], "more": f"---\n{in_yaml(canary('work-yaml'))}"},
    }
    url = "/apis/example.com/v1/namespaces/default/works"
    eventually(lambda: _is_posted(api, url, work), bool)
    rules = [{"apiGroups": ["example.com"], "resources": ["works", "works/status"], "verbs": ["get", "list", "watch"]}]
    role = {
        "metadata": {"name": "works", "labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
        "rules": rules,
    }
    api.send("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", role)


def _is_posted(api: Api, url: str, obj: dict[str, Any]) -> bool:
    try:
        api.send("POST", url, obj)
    except Refused as refusal:
        if refusal.code == 404:
            return False
        raise
    return True


def viewer(api: Api, name: str, *, everywhere: bool = False, role: str = "view") -> Api:
    """Return a client of a new ServiceAccount with the role `view`, and with reports."""
    api.send("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": name}})
    subject = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    scope = "clusterrolebindings" if everywhere else "namespaces/default/rolebindings"
    binding = {"metadata": {"name": name}, "roleRef": reference, "subjects": [subject]}
    api.send("POST", f"/apis/rbac.authorization.k8s.io/v1/{scope}", binding)
    token = api.send("POST", f"/api/v1/namespaces/default/serviceaccounts/{name}/token", {"spec": {}}).json()
    connection = api.connection
    own = Connection(server=connection.server, ca_data=connection.ca_data, token=token["status"]["token"])
    return Api(own, "default")


def readable(api: Api, root: Api) -> Iterator[tuple[str, bytes]]:
    """Yield the path and answer of each read of each kind by a user; the discovery of an administrator names them."""
    groups = root.send("GET", "/apis").json()["groups"]
    versions = [version["groupVersion"] for group in groups for version in group["versions"]]
    for base in ("/api/v1", *(f"/apis/{version}" for version in versions)):
        for resource in root.send("GET", base).json()["resources"]:
            plural, _, subresource = resource["name"].partition("/")
            if "get" not in resource["verbs"] or subresource not in ("", "status"):
                continue
            middle = "/namespaces/default" if resource["namespaced"] else ""
            yield from _reads(api, root, f"{base}{middle}/{plural}", subresource)
            if middle and not subresource:
                yield from _answers(api, f"{base}/{plural}")
    for path in ("decisions?limit=500", "objects", "capacity", "history", "queuehistory", "rollouts", "policies"):
        yield from _answers(api, f"/federation/v1/{path}")


def pages(api: Api) -> Iterator[tuple[str, bytes]]:
    """Yield the pages of the web UI and their lists as files: those that the links lead a user with a token to."""
    connection = api.connection
    origin = {"origin": connection.server}
    with httpx.Client(
        base_url=connection.server, verify=connection.to_tls() or True, headers=origin, timeout=90, trust_env=False
    ) as page:
        form = {"token": connection.token, "next": "/ui/overview"}
        assert page.post("/ui/login", data=form).status_code == 303
        frontier = Frontier(of_a_form_max=12)
        for link in frontier:
            answer = page.get(link)
            frontier.add(answer.text)
            yield f"{answer.status_code} {link}", answer.content


def _reads(api: Api, root: Api, url: str, subresource: str) -> Iterator[tuple[str, bytes]]:
    try:
        items = root.send("GET", url).json().get("items") or []
    except Refused:
        return
    if not subresource:
        yield from _answers(api, url)
        if items:
            yield from _answers(api, f"{url}?limit=2")
            yield from _answers(api, f"{url}?watch=1&resourceVersion=0&timeoutSeconds=1")
    for item in items:
        name = item["metadata"]["name"]
        yield from _answers(api, f"{url}/{name}{'/' + subresource if subresource else ''}")


def _answers(api: Api, url: str) -> Iterator[tuple[str, bytes]]:
    for accept in ("application/json", "application/json;as=Table;v=v1;g=meta.k8s.io"):
        if "watch=1" in url and "Table" in accept:
            continue
        answer = api.http.get(url, headers={"accept": accept})
        yield f"{answer.status_code} {url} {accept[17:22]}", answer.content


@pytest.fixture(scope="module")
def canary() -> Canaries:
    return Canaries()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, canary: Canaries) -> Iterator[Federation]:
    directory = tmp_path_factory.mktemp("carriers")
    (directory / "policy.yaml").write_text(POLICY)
    write_keys(directory / "keys", "k1")
    environment = {
        "FEDERATION_AUDIT_POLICY_FILE": str(directory / "policy.yaml"),
        "FEDERATION_ENCRYPTION_KEY_FILE": str(directory / "keys"),
    }
    started = start_federation(
        directory / "state", members=1, arguments=["--log-level", "debug"], is_fresh=True, **environment
    )
    with contextlib.closing(started) as federation, contextlib.closing(root_of(federation)) as api:
        plant(api, canary)
        eventually(lambda: _of_kubefed(api), lambda found: found is not None)
        eventually(lambda: federation.in_members("secrets", "kubefed"), lambda found: "member-1" in found)
        eventually(lambda: api.send("GET", "/api/v1/events").text, lambda text: "not one document of YAML" in text)
        yield federation


def root_of(federation: Federation) -> Api:
    return Api(load_kubeconfig(federation.directory / "kubeconfig"), "default")


def _of_kubefed(api: Api) -> Any:
    with contextlib.suppress(Refused):
        return api.send("GET", f"{POLICIES}/kubefed-secret").json()
    return None


def _report(found: dict[str, list[str]]) -> str:
    return "\n".join(f"{place}: {', '.join(names)}" for place, names in found.items() if names)


@pytest.mark.slow("a federation with an audit log and encryption, and all its outputs")
@pytest.mark.parametrize("everywhere", [False, True], ids=["of a namespace", "of all namespaces"])
def test_the_role_view_reads_no_value_of_a_secret(running: Federation, canary: Canaries, everywhere: bool) -> None:
    with contextlib.closing(root_of(running)) as root:
        own = viewer(root, f"viewer-{everywhere}".lower(), everywhere=everywhere)
        with contextlib.closing(own):
            eventually(lambda: own.http.get(POLICIES).status_code, lambda code: code == 200)
            answers = dict(readable(own, root)) | dict(pages(own))
            found = {url: canary.found_in(body) for url, body in answers.items()}
    if report := _report(found):
        pytest.fail(report)
    assert len([url for url in answers if url.startswith("200")]) > 50
    assert len([url for url in answers if url.startswith("200 /ui/")]) > 15


@pytest.mark.slow("a federation with an audit log and encryption, and all its outputs")
def test_an_administrator_reads_every_carrier(running: Federation, canary: Canaries) -> None:
    """Otherwise the search would find nothing because nothing is there."""
    with contextlib.closing(root_of(running)) as root:
        found = {name for _, body in readable(root, root) for name in canary.found_in(body)}
    assert found == set(canary.names) - {"refused", "yaml"}


@pytest.mark.slow("a federation with an audit log and encryption, and all its outputs")
def test_no_file_or_output_has_a_value_of_a_secret(running: Federation, canary: Canaries, tmp_path: Path) -> None:
    kubeconfig = ("--kubeconfig", str(running.directory / "kubeconfig"))
    fedctl("backup", str(tmp_path / "backup"), "--dir", str(running.directory))
    fedctl("support-bundle", str(tmp_path / "bundle.tar.gz"), "--log", str(log_of(running.directory)), *kubeconfig)
    new = policy("by-label", overrides(canary("planned")), namespace="default")
    (tmp_path / "new.json").write_text(json.dumps(new))
    outputs = {
        "plan": fedctl("plan", "-f", str(tmp_path / "new.json"), "--diff", *kubeconfig, check=False).stdout,
        "plan as JSON": fedctl("plan", "-f", str(tmp_path / "new.json"), "-o", "json", *kubeconfig, check=False).stdout,
        "why": fedctl("why", "secret", "failing", *kubeconfig, check=False).stdout,
        "manifests": fedctl("render", "secret/kubefed", "--cluster", "member-1", *kubeconfig, check=False).stdout,
        "differences": fedctl("diff", "secret/kubefed", *kubeconfig, check=False).stdout,
        "twin": fedctl("twin", "--for", "10s", "-o", "json", *kubeconfig, check=False).stdout,
        "records": fedctl("replay", "--since", "1h", "-o", "json", *kubeconfig, check=False).stdout,
    }
    assert all(outputs[name] for name in ("plan", "plan as JSON", "why", "manifests", "records", "twin")), outputs
    with contextlib.closing(root_of(running)) as root:
        administrator = viewer(root, "administrator", everywhere=True, role="cluster-admin")
        with contextlib.closing(administrator):
            eventually(lambda: administrator.http.get("/api/v1/nodes").status_code, lambda code: code == 200)
            outputs |= {link: text.decode(errors="replace") for link, text in pages(administrator)}
            assert len([link for link in outputs if link.startswith("200 /ui/act/")]) > 20
        for path in ("/metrics", "/api/v1/events", "/federation/v1/decisions?limit=500", "/readyz?verbose"):
            outputs[path] = root.http.get(path).text
        root.send("GET", f"{_SECRETS}/labelled")
    texts = {name: text.encode() for name, text in outputs.items()}
    texts |= {str(path.name): path.read_bytes() for path in running.directory.glob("state.db*")}
    texts |= {"audit log": (running.directory / "audit.log").read_bytes()}
    texts |= {"server log": log_of(running.directory).read_bytes()}
    texts |= {"backup": (tmp_path / "backup").read_bytes()}
    texts |= {f"bundle: {name}": data for name, data in unpacked(tmp_path / "bundle.tar.gz")}
    found = {name: canary.found_in(text) for name, text in texts.items()}
    if report := _report(found):
        pytest.fail(report)
    assert {"state.db", "audit log"} <= texts.keys()
    assert texts["audit log"].count(b"RequestResponse") > len(canary.names)


def unpacked(path: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the files of an archive by name."""
    with tarfile.open(path) as archive:
        for member in archive.getmembers():
            if (file := archive.extractfile(member)) is not None:
                yield member.name, file.read()
