"""Conformance area: aggregated API servers, with a small one of our own behind a Service with an external name."""

import base64
import ipaddress
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import orjson
import pytest
from tests.support.aggregated import AGGREGATED, CLASSIC, SERVICE, AggregatedServer, aggregated_server
from tests.support.rest import TABLE, Api, Object, Refused, eventually, refused

from federation.apimachinery.connection import Connection

DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
AUTHENTICATION = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
STREAM_S = 20.0


@pytest.fixture
def front_proxy_ca(api: Api, connection: Connection) -> str:
    """The CA that signed the client certificate of requests to aggregated API servers."""
    host = urlsplit(connection.server).hostname or ""
    if host != "localhost" and not ipaddress.ip_address(host).is_loopback:
        pytest.skip("the server runs on another machine and cannot reach the test's server")

    def published() -> str:
        data = api.send("GET", AUTHENTICATION).json()["data"]
        ca: str = data.get("requestheader-client-ca-file", "")
        return ca

    return str(eventually(published))


@pytest.fixture
def kubeconfig(connection: Connection, tmp_path: Path) -> Path:
    """A kubeconfig of the administrator."""

    def encoded(data: bytes) -> str:
        return base64.b64encode(data).decode()

    user = {
        "client-certificate-data": encoded(connection.client_cert_data),
        "client-key-data": encoded(connection.client_key_data),
    }
    cluster = {"server": connection.server, "certificate-authority-data": encoded(connection.ca_data)}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "tested", "cluster": cluster}],
        "users": [{"name": "admin", "user": user}],
        "contexts": [{"name": "tested", "context": {"cluster": "tested", "user": "admin"}}],
        "current-context": "tested",
    }
    path = tmp_path / "kubeconfig"
    path.write_bytes(orjson.dumps(config))  # JSON is YAML
    return path


@pytest.fixture(params=[AGGREGATED])
def server(
    api: Api, group: str, front_proxy_ca: str, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[AggregatedServer]:
    """A running server that no APIService registers yet; its registration is removed after the test."""
    with aggregated_server(
        tmp_path, group=group, namespace=api.namespace, client_ca=front_proxy_ca, style=request.param
    ) as served:
        yield served
        try:
            api.delete("apiservices", f"v1.{group}")
        except Refused as refusal:
            if refusal.code != 404:
                raise


@pytest.fixture
def served(api: Api, server: AggregatedServer) -> AggregatedServer:
    """A server whose APIService is available and in discovery."""
    server.register(api)
    wait_for(api, server, "Passed")
    eventually(lambda: freshness(api, server.group) == "Current")
    return server


def available(api: Api, server: AggregatedServer) -> Object:
    status = api.get("apiservices", f"v1.{server.group}").get("status") or {}
    return next((found for found in status.get("conditions") or () if found["type"] == "Available"), {})


def wait_for(api: Api, server: AggregatedServer, reason: str) -> Object:
    """Return the condition once it has this reason."""

    def found() -> Object:
        condition = available(api, server)
        return condition if condition.get("reason") == reason else {}

    condition: Object = eventually(found)
    return condition


def discovered(api: Api, group: str) -> Object:
    """Return the version of a group in the aggregated document, {} when it is not there."""
    items = api.send("GET", "/apis", accept=DISCOVERY).json()["items"]
    versions = [item["versions"][0] for item in items if item["metadata"]["name"] == group]
    return versions[0] if versions else {}


def freshness(api: Api, group: str) -> str:
    return str(discovered(api, group).get("freshness", ""))


def things(api: Api, group: str, *rest: str) -> str:
    return "/".join([f"/apis/{group}/v1/namespaces/{api.namespace}/things", *rest])


def test_an_answering_server_is_available(api: Api, served: AggregatedServer) -> None:
    condition = available(api, served)
    assert (condition["status"], condition["message"]) == ("True", "all checks passed")
    table = api.send("GET", api.url("apiservices", f"v1.{served.group}"), accept=TABLE).json()
    assert table["rows"][0]["cells"][:3] == [f"v1.{served.group}", f"{api.namespace}/{SERVICE}", "True"]


def test_requests_carry_the_user(api: Api, nobody: Api, served: AggregatedServer) -> None:
    with refused(403, "Forbidden", f'cannot list resource "things" in API group "{served.group}"'):
        nobody.send("GET", things(api, served.group))
    rule = {"apiGroups": [served.group], "resources": ["things", "things/echo"], "verbs": ["get", "list"]}
    api.create("roles", {"metadata": {"name": "reader"}, "rules": [rule]})
    subject = {"kind": "ServiceAccount", "name": "nobody", "namespace": api.namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"}
    api.create("rolebindings", {"metadata": {"name": "reader"}, "subjects": [subject], "roleRef": role})

    def listed() -> Object:
        try:
            found: Object = nobody.send("GET", things(api, served.group)).json()
        except Refused:
            return {}
        return found

    assert eventually(listed)["kind"] == "ThingList"
    (request,) = served.requests_of_tests()
    assert request.peer == "front-proxy-client"
    assert request.values("x-remote-user") == [f"system:serviceaccount:{api.namespace}:nobody"]
    assert set(request.values("x-remote-group")) == {
        "system:serviceaccounts",
        f"system:serviceaccounts:{api.namespace}",
        "system:authenticated",
    }
    assert request.values("x-remote-extra-authentication.kubernetes.io%2Fcredential-id")[0].startswith("JTI=")
    assert not request.values("authorization")
    # What follows a subresource needs the permission on the subresource.
    nobody.send("GET", things(api, served.group, "one", "echo", "further", "on"))
    with refused(403, "Forbidden", 'cannot get resource "things/other"'):
        nobody.send("GET", things(api, served.group, "one", "other", "further", "on"))
    with refused(403, "Forbidden", 'cannot create resource "things"'):
        nobody.send("POST", things(api, served.group), {})


def test_clients_cannot_name_another_user(api: Api, served: AggregatedServer) -> None:
    forged = {
        "x-remote-user": "somebody",
        "x-remote-group": "system:masters",
        "x-remote-uid": "1",
        "x-remote-extra-scopes": "all",
        "connection": "x-remote-group, keep-alive",
        "x-custom": "kept",
    }
    api.send("GET", things(api, served.group), headers=forged)
    (request,) = served.requests_of_tests()
    assert request.values("x-remote-user") != ["somebody"]
    assert len(request.values("x-remote-user")) == 1
    assert "1" not in request.values("x-remote-uid")
    assert not request.values("x-remote-extra-scopes")
    assert request.values("x-remote-group")
    assert request.values("x-custom") == ["kept"]


@pytest.mark.ours("kube-apiserver forwards cookies and headers with underscores")
def test_credentials_of_browsers_stay_here(api: Api, served: AggregatedServer) -> None:
    headers = {"cookie": "session=1", "x_remote_user": "somebody", "x-forwarded-for": "10.1.2.3"}
    answer = api.send("GET", things(api, served.group), headers=headers)
    (request,) = served.requests_of_tests()
    assert not [name for name, _ in request.headers if name.lower() in ("cookie", "x_remote_user")]
    assert request.values("x-forwarded-for") == ["127.0.0.1"]
    assert "set-cookie" not in answer.headers
    assert answer.headers["content-security-policy"] == "default-src 'none'; sandbox"


def test_impersonation_is_resolved_before(api: Api, served: AggregatedServer) -> None:
    headers = {"impersonate-user": "alice", "impersonate-group": "system:masters"}
    api.send("GET", things(api, served.group), headers=headers)
    (request,) = served.requests_of_tests()
    assert request.values("x-remote-user") == ["alice"]
    assert "system:masters" in request.values("x-remote-group")
    assert not request.values("impersonate-user")


def test_bodies_and_queries_travel(api: Api, served: AggregatedServer) -> None:
    body = {"kind": "Thing", "metadata": {"name": "größer"}, "data": "x" * 300_000}
    answer = api.send("POST", things(api, served.group), body, dryRun="All", fieldManager="a b")
    assert (answer.status_code, answer.json()["kind"]) == (201, "Thing")
    (request,) = served.requests_of_tests()
    assert orjson.loads(request.body) == body
    assert request.path.endswith("things?dryRun=All&fieldManager=a+b")
    assert request.values("content-type") == ["application/json"]


def test_errors_of_the_server_travel(api: Api, served: AggregatedServer) -> None:
    with refused(404):
        api.send("GET", f"/apis/{served.group}/v1/others")


@pytest.mark.parametrize("server", [AGGREGATED, CLASSIC], indirect=True)
def test_the_group_is_discovered(api: Api, served: AggregatedServer) -> None:
    """[sig-api-machinery] Aggregator: discovery lists the resources of aggregated API servers."""
    group = served.group
    groups = {entry["name"]: entry for entry in api.send("GET", "/apis").json()["groups"]}
    assert groups[group]["preferredVersion"] == {"groupVersion": f"{group}/v1", "version": "v1"}
    assert api.send("GET", f"/apis/{group}").json()["versions"] == groups[group]["versions"]
    resources = api.send("GET", f"/apis/{group}/v1").json()["resources"]
    assert [resource["name"] for resource in resources] == ["things", "things/echo"]
    (thing,) = discovered(api, group)["resources"]
    assert (thing["resource"], thing["scope"], thing["shortNames"]) == ("things", "Namespaced", ["tg"])
    assert thing["responseKind"]["kind"] == "Thing"
    assert [part["subresource"] for part in thing["subresources"]] == ["echo"]
    names = [entry["name"] for entry in api.send("GET", "/apis").json()["groups"]]
    assert names.index("node.k8s.io") < names.index(group)


def test_kubectl_works_with_it(api: Api, served: AggregatedServer, kubeconfig: Path, tmp_path: Path) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["kubectl", "--kubeconfig", str(kubeconfig), "--cache-dir", str(tmp_path / "cache"), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    def kubectl(*arguments: str) -> str:
        done = run(*arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    listed = kubectl("api-resources", f"--api-group={served.group}", "--no-headers").split()
    assert listed == ["things", "tg", f"{served.group}/v1", "true", "Thing"]
    assert kubectl("get", "tg", "-n", api.namespace, "-o", "name") == f"thing.{served.group}/one\n"
    assert f"v1.{served.group}" in kubectl("get", "apiservices", "-o", "name")
    # A server reads the index of the documents some time after the APIService is available.
    explained = eventually(lambda: run("explain", f"things.{served.group}.size").stdout)
    assert "How large the thing is." in explained


def test_watches_are_streamed(api: Api, served: AggregatedServer) -> None:
    with api.http.stream("GET", things(api, served.group), params={"watch": "1"}, timeout=STREAM_S) as stream:
        lines = stream.iter_lines()
        assert orjson.loads(next(lines))["object"]["metadata"]["name"] == "first"
        served.next_event.set()
        assert orjson.loads(next(lines))["object"]["metadata"]["name"] == "second"
        assert not list(lines)


def test_redirects_are_refused(api: Api, served: AggregatedServer) -> None:
    with refused(502, text="the backend attempted to redirect this request, which is not permitted"):
        api.send("GET", things(api, served.group, "redirect"))


def test_a_response_that_breaks_off_is_not_taken_for_complete(api: Api, served: AggregatedServer) -> None:
    with pytest.raises(httpx.TransportError):
        api.send("GET", things(api, served.group, "half"))


def test_a_broken_server_is_unavailable_and_stale(api: Api, served: AggregatedServer) -> None:
    served.is_broken = True
    # A change makes both servers check at once instead of at the next interval.
    api.patch("apiservices", f"v1.{served.group}", {"spec": {"versionPriority": 21, "groupPriorityMinimum": 2001}})
    api.patch("services", SERVICE, {"metadata": {"labels": {"checked": "again"}}})
    condition = wait_for(api, served, "FailedDiscoveryCheck")
    assert condition["status"] == "False"
    url = f"https://localhost:{served.port}/apis/{served.group}/v1"
    assert condition["message"] == f"failing or missing response from {url}: bad status from {url}: 500"

    def unavailable() -> str:
        try:
            api.send("GET", things(api, served.group))
        except Refused as refusal:
            return refusal.message if refusal.code == 503 else ""
        return ""

    assert eventually(unavailable) == "service unavailable\n"
    eventually(lambda: freshness(api, served.group) == "Stale")
    assert served.group in [entry["name"] for entry in api.send("GET", "/apis").json()["groups"]]
    served.is_broken = False
    api.patch("services", SERVICE, {"metadata": {"labels": {"checked": "anew"}}})
    wait_for(api, served, "Passed")
    eventually(lambda: freshness(api, served.group) == "Current")
    eventually(lambda: not unavailable())


@pytest.mark.parametrize(
    ("change", "text"),
    [({"caBundle": ""}, "certificate"), ({"service": {"port": 1}}, "refused")],
    ids=["unknown authority", "nothing listens"],
)
def test_a_server_that_cannot_be_reached_is_unavailable(
    api: Api, server: AggregatedServer, change: Object, text: str
) -> None:
    api.create(
        "services", {"metadata": {"name": SERVICE}, "spec": {"type": "ExternalName", "externalName": "localhost"}}
    )
    obj = server.api_service(api.namespace)
    for name, value in change.items():
        obj["spec"][name] = {**obj["spec"][name], **value} if isinstance(value, dict) else value
    api.create("apiservices", obj)
    condition = wait_for(api, server, "FailedDiscoveryCheck")
    assert text in condition["message"]
    assert not server.requests_of_tests()
    with refused(503, text="service unavailable"):
        api.send("GET", things(api, server.group))


def test_a_missing_service_is_reported(api: Api, server: AggregatedServer) -> None:
    api.create("apiservices", server.api_service(api.namespace))
    condition = wait_for(api, server, "ServiceNotFound")
    assert condition["message"] == f'service/{SERVICE} in "{api.namespace}" is not present'
    table = api.send("GET", api.url("apiservices", f"v1.{server.group}"), accept=TABLE).json()
    assert table["rows"][0]["cells"][2] == "False (ServiceNotFound)"
    api.create(
        "services", {"metadata": {"name": SERVICE}, "spec": {"type": "ExternalName", "externalName": "localhost"}}
    )
    wait_for(api, server, "Passed")


@pytest.mark.parametrize(
    ("ports", "reason", "message"),
    [
        ([80], "ServicePortError", 'service/{name} in "{namespace}" is not listening on port {port}'),
        ([], "EndpointsNotFound", 'cannot find endpointslices for service/{name} in "{namespace}"'),
    ],
    ids=["another port", "no endpoints"],
)
def test_services_without_endpoints_are_reported(
    api: Api, server: AggregatedServer, ports: list[int], reason: str, message: str
) -> None:
    listed = [{"port": port} for port in ports or [server.port]]
    api.create("services", {"metadata": {"name": SERVICE}, "spec": {"ports": listed}})
    api.create("apiservices", server.api_service(api.namespace))
    condition = wait_for(api, server, reason)
    assert condition["message"] == message.format(name=SERVICE, namespace=api.namespace, port=server.port)


def test_a_removed_registration_ends_everything(api: Api, served: AggregatedServer) -> None:
    api.delete("apiservices", f"v1.{served.group}")

    def is_gone() -> bool:
        try:
            api.send("GET", things(api, served.group))
        except Refused as refusal:
            return refusal.code == 404
        return False

    eventually(is_gone)
    eventually(lambda: not discovered(api, served.group))
    eventually(lambda: served.group not in [entry["name"] for entry in api.send("GET", "/apis").json()["groups"]])


@pytest.mark.ours("kube-apiserver contacts every address")
def test_addresses_of_this_machine_need_a_verified_server(api: Api, server: AggregatedServer) -> None:
    server.register(api, caBundle="", insecureSkipTLSVerify=True)
    condition = wait_for(api, server, "FailedDiscoveryCheck")
    assert "is not contacted without verifying the server: give spec.caBundle" in condition["message"]
    assert not server.requests_of_tests()


@pytest.mark.ours("kube-apiserver needs 60 s to give up")
def test_a_server_that_hangs_delays_nothing_else(api: Api, served: AggregatedServer) -> None:
    served.is_hanging.set()
    with refused(504, "Timeout"):
        api.send("GET", things(api, served.group), timeout="1s")
    assert api.send("GET", "/apis", accept=DISCOVERY).status_code == 200
    assert api.send("GET", "/readyz", accept="*/*").text == "ok"


@pytest.mark.ours("kube-apiserver forwards every path")
@pytest.mark.parametrize("path", ["one/../../secrets", "one//two", "./one"])
def test_ambiguous_paths_are_refused(api: Api, served: AggregatedServer, path: str) -> None:
    encoded = path.replace("..", "%2e%2e").replace("./", "%2e/")
    with refused(400, "BadRequest", "cannot have empty segments, . or .."):
        api.send("GET", things(api, served.group, encoded))
    assert not served.requests_of_tests()


def test_only_administrators_register_servers(api: Api, nobody: Api, server: AggregatedServer) -> None:
    subject = {"kind": "ServiceAccount", "name": "nobody", "namespace": api.namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"}
    api.create("rolebindings", {"metadata": {"name": "tenant"}, "subjects": [subject], "roleRef": role})
    eventually(lambda: allowed(nobody, "create", "configmaps", api.namespace))
    for verb in ("create", "update", "patch", "delete", "get", "list"):
        assert not allowed(nobody, verb, "apiservices", "", "apiregistration.k8s.io"), verb
    with refused(403, "Forbidden"):
        nobody.create("apiservices", server.api_service(api.namespace))


def allowed(api: Api, verb: str, resource: str, namespace: str, group: str = "") -> bool:
    attributes = {"verb": verb, "resource": resource, "group": group, "namespace": namespace}
    review = {"spec": {"resourceAttributes": attributes}}
    url = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    return bool(api.send("POST", url, review).json()["status"]["allowed"])


def test_services_learn_how_to_trust_the_front_proxy(api: Api, front_proxy_ca: str) -> None:
    data = api.send("GET", AUTHENTICATION).json()["data"]
    assert "BEGIN CERTIFICATE" in front_proxy_ca
    assert front_proxy_ca != data["client-ca-file"]
    assert orjson.loads(data["requestheader-allowed-names"]) == ["front-proxy-client"]
    assert orjson.loads(data["requestheader-username-headers"]) == ["X-Remote-User"]
    assert orjson.loads(data["requestheader-group-headers"]) == ["X-Remote-Group"]
    assert orjson.loads(data["requestheader-extra-headers-prefix"]) == ["X-Remote-Extra-"]
