"""The REST verbs through the whole app: bodies, status codes, representations and refused requests."""

import gzip
from typing import Any

import httpx
import orjson
import pytest
import yaml
from tests.support.apiserver import Parts
from tests.unit.apiserver.conftest import connect

from federation.apiserver.auth.clientcertificates import Peer
from federation.apiserver.http.app import App, AppOptions
from federation.apiserver.http.flowcontrol import FlowControlOptions

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"
PARTIAL_LIST = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"


def configmap(name: str = "a", **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def deployment(name: str = "web", replicas: int = 1) -> dict[str, Any]:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}},
        },
    }


def status(answer: httpx.Response) -> tuple[int, str, str]:
    body = answer.json()
    assert body["kind"] == "Status"
    assert body["code"] == answer.status_code
    return body["code"], body["reason"], body["message"]


async def test_an_objects_life(admin: httpx.AsyncClient) -> None:
    created = await admin.post(CONFIGMAPS, json=configmap(x="1"))
    assert created.status_code == 201
    assert created.headers["content-type"] == "application/json"
    obj = created.json()
    got = await admin.get(f"{CONFIGMAPS}/a")
    assert got.status_code == 200
    assert got.content == created.content
    obj["data"]["x"] = "2"
    updated = await admin.put(f"{CONFIGMAPS}/a", json=obj)
    assert updated.status_code == 200
    assert status(await admin.put(f"{CONFIGMAPS}/a", json=obj))[:2] == (409, "Conflict")
    merge = {"content-type": "application/merge-patch+json"}
    patched = await admin.patch(f"{CONFIGMAPS}/a", content=b'{"data":{"y":"3"}}', headers=merge)
    assert patched.json()["data"] == {"x": "2", "y": "3"}
    deleted = await admin.delete(f"{CONFIGMAPS}/a")
    assert (deleted.status_code, deleted.json()["status"]) == (200, "Success")
    assert status(await admin.get(f"{CONFIGMAPS}/a")) == (404, "NotFound", 'configmaps "a" not found')


async def test_apply_creates_with_201_and_changes_with_200(admin: httpx.AsyncClient) -> None:
    headers = {"content-type": "application/apply-patch+yaml"}
    url = f"{CONFIGMAPS}/a?fieldManager=me"
    text = yaml.safe_dump(configmap(x="1"))
    assert (await admin.patch(url, content=text, headers=headers)).status_code == 201
    again = await admin.patch(url, content=orjson.dumps(configmap(x="2")), headers=headers)
    assert (again.status_code, again.json()["data"]) == (200, {"x": "2"})
    bomb = b"a: &a [x,x]\nb: &b [*a,*a]\nmetadata: " + b"[" * 500
    assert status(await admin.patch(url, content=bomb, headers=headers))[0] == 400
    bomb = (
        b"{a0: &a0 [x,x], " + b", ".join(b"a%d: &a%d [*a%d,*a%d]" % (n, n, n - 1, n - 1) for n in range(1, 40)) + b"}"
    )
    assert "excessive aliasing" in status(await admin.patch(url, content=bomb, headers=headers))[2]
    huge = b'{"data":{"x":%s}}' % (b"9" * 400)
    assert "needs more than 64 bits" in status(await admin.patch(url, content=huge, headers=headers))[2]
    flow = b"{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {x: '3'}}"
    assert (await admin.patch(url, content=flow, headers=headers)).json()["data"] == {"x": "3"}
    missing = await admin.patch(f"{CONFIGMAPS}/a", content=text, headers=headers)
    assert "fieldManager: Required value: is required for apply patch" in status(missing)[2]


async def test_a_write_with_an_invalid_representation_writes_nothing(admin: httpx.AsyncClient) -> None:
    made = await admin.post(f"{CONFIGMAPS}?includeObject=All", json=configmap(x="1"), headers={"accept": TABLE})
    assert status(made)[0] == 400
    assert (await admin.get(f"{CONFIGMAPS}/a")).status_code == 404


async def test_lists_are_pages_of_objects(admin: httpx.AsyncClient) -> None:
    for name in "abc":
        await admin.post(CONFIGMAPS, json=configmap(name))
    field = "fieldSelector=metadata.name!%3Dkube-root-ca.crt"
    page = (await admin.get(f"{CONFIGMAPS}?limit=2&{field}")).json()
    assert (page["kind"], page["apiVersion"]) == ("ConfigMapList", "v1")
    assert [item["metadata"]["name"] for item in page["items"]] == ["a", "b"]
    rest = (await admin.get(f"{CONFIGMAPS}?limit=2&{field}&continue={page['metadata']['continue']}")).json()
    assert [item["metadata"]["name"] for item in rest["items"]] == ["c"]
    assert "continue" not in rest["metadata"]
    assert rest["metadata"]["resourceVersion"] == page["metadata"]["resourceVersion"]
    everywhere = (await admin.get("/api/v1/configmaps")).json()
    assert {item["metadata"]["namespace"] for item in everywhere["items"]} >= {"default"}


async def test_yaml_is_accepted_and_returned(admin: httpx.AsyncClient) -> None:
    headers = {"content-type": "application/yaml", "accept": "application/yaml"}
    answer = await admin.post(CONFIGMAPS, content=yaml.safe_dump(configmap(x="1")), headers=headers)
    assert answer.status_code == 201
    assert answer.headers["content-type"] == "application/yaml"
    assert yaml.safe_load(answer.text)["data"] == {"x": "1"}
    listed = await admin.get(CONFIGMAPS, headers={"accept": "application/yaml"})
    assert yaml.safe_load(listed.text)["kind"] == "ConfigMapList"


async def test_pretty_output_is_indented(admin: httpx.AsyncClient) -> None:
    await admin.post(CONFIGMAPS, json=configmap())
    assert b'\n  "kind": "ConfigMap"' in (await admin.get(f"{CONFIGMAPS}/a?pretty=true")).content
    assert b"\n" not in (await admin.get(f"{CONFIGMAPS}/a?pretty=false")).content


async def test_tables_and_metadata(admin: httpx.AsyncClient) -> None:
    await admin.post(DEPLOYMENTS, json=deployment())
    table = (await admin.get(DEPLOYMENTS, headers={"accept": TABLE})).json()
    assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    assert table["columnDefinitions"][0]["name"] == "Name"
    assert table["rows"][0]["cells"][0] == "web"
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    whole = (await admin.get(f"{DEPLOYMENTS}/web?includeObject=Object", headers={"accept": TABLE})).json()
    assert whole["rows"][0]["object"]["spec"]["replicas"] == 1
    none = (await admin.get(f"{DEPLOYMENTS}?includeObject=None", headers={"accept": TABLE})).json()
    assert none["rows"][0]["object"] is None
    assert status(await admin.get(f"{DEPLOYMENTS}?includeObject=All", headers={"accept": TABLE}))[0] == 400
    partial = (await admin.get(f"{DEPLOYMENTS}/web", headers={"accept": PARTIAL})).json()
    assert partial["kind"] == "PartialObjectMetadata"
    assert "spec" not in partial
    partials = (await admin.get(DEPLOYMENTS, headers={"accept": PARTIAL_LIST})).json()
    assert (partials["kind"], partials["items"][0]["kind"]) == ("PartialObjectMetadataList", "PartialObjectMetadata")
    gone = await admin.delete(f"{DEPLOYMENTS}/web", headers={"accept": TABLE})
    assert gone.json()["kind"] == "Status"


async def test_unsupported_representations_are_not_acceptable(admin: httpx.AsyncClient) -> None:
    answer = await admin.get(CONFIGMAPS, headers={"accept": "application/vnd.kubernetes.protobuf"})
    assert status(answer)[:2] == (406, "NotAcceptable")
    answer = await admin.post(CONFIGMAPS, content=b"a=b", headers={"content-type": "application/x-www-form-urlencoded"})
    assert status(answer)[:2] == (415, "UnsupportedMediaType")
    answer = await admin.patch(f"{CONFIGMAPS}/a", content=b"{}", headers={"content-type": "application/json"})
    assert status(answer)[:2] == (415, "UnsupportedMediaType")


async def test_large_responses_are_compressed_when_the_client_accepts_gzip(
    parts: Parts, admin: httpx.AsyncClient
) -> None:
    await admin.post(CONFIGMAPS, json=configmap("big", x="y" * 200_000))
    answer = await admin.get(f"{CONFIGMAPS}/big", headers={"accept-encoding": "gzip"})
    assert answer.headers["content-encoding"] == "gzip"
    assert answer.json()["data"]["x"] == "y" * 200_000
    assert int(answer.headers["content-length"]) < 10_000
    plain = await admin.get(f"{CONFIGMAPS}/big", headers={"accept-encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert gzip  # the client has decompressed the first response


async def test_warnings_are_headers(admin: httpx.AsyncClient) -> None:
    body = deployment()
    body["spec"]['repl"icas'] = 3
    answer = await admin.post(f"{DEPLOYMENTS}?fieldValidation=Warn", json=body)
    assert answer.status_code == 201
    assert answer.headers.get_list("warning") == ['299 - "unknown field \\"spec.repl\\"icas\\""']


async def test_duplicate_fields_follow_the_field_validation(admin: httpx.AsyncClient) -> None:
    body = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"1","k":"2"}}'
    headers = {"content-type": "application/json"}
    strict = await admin.post(f"{CONFIGMAPS}?fieldValidation=Strict", content=body, headers=headers)
    assert status(strict) == (
        400,
        "BadRequest",
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: duplicate field "data.k"',
    )
    warned = await admin.post(CONFIGMAPS, content=body, headers=headers)
    assert warned.headers["warning"] == '299 - "duplicate field \\"data.k\\""'
    body = body.replace(b'"name":"a"', b'"name":"b"')
    ignored = await admin.post(f"{CONFIGMAPS}?fieldValidation=Ignore", content=body, headers=headers)
    assert (ignored.status_code, "warning" in ignored.headers) == (201, False)


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/apis/nope/v1/things", 404),
        ("GET", "/apis/apps/v9/deployments", 404),
        ("GET", "/api/v1/nopes", 404),
        ("GET", "/api/v1/configmaps/a", 404),
        ("GET", "/api/v1/namespaces/default/nodes", 404),
        ("GET", f"{CONFIGMAPS}/a/status", 404),
        ("GET", f"{CONFIGMAPS}/a/b/c/d", 404),
        ("GET", "/nonsense", 404),
        ("GET", f"{CONFIGMAPS}/{'x' * 3000}", 404),
        ("GET", f"{CONFIGMAPS}/a%00b", 404),
        ("GET", "/api/v1/namespaces/a%00b/configmaps", 404),
        ("GET", "/api/v2", 404),
        ("GET", "/apis/apps/v9", 404),
        ("GET", "/apis/nope", 404),
        ("GET", "/openapi/v3/apis/nope/v1", 404),
        ("GET", "/federation/v1/nope", 404),
        ("GET", "/readyz/nope", 404),
        ("POST", "/api/v1/configmaps", 405),
        ("DELETE", "/api/v1/configmaps", 405),
        ("DELETE", "/api/v1/namespaces", 405),
        ("PUT", CONFIGMAPS, 405),
        ("PATCH", CONFIGMAPS, 405),
        ("POST", f"{CONFIGMAPS}/a", 405),
        ("OPTIONS", CONFIGMAPS, 405),
        ("DELETE", f"{DEPLOYMENTS}/a/scale", 405),
        ("POST", "/version", 405),
        ("POST", "/apis", 405),
        ("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", 405),
        ("POST", "/federation/v1/decisions", 405),
    ],
)
async def test_unknown_paths_and_objects_are_a_status(
    admin: httpx.AsyncClient, method: str, path: str, code: int
) -> None:
    answer = await admin.request(method, path, json={} if method in ("POST", "PUT", "PATCH") else None)
    assert status(answer)[0] == code


@pytest.mark.parametrize(
    ("query", "code", "message"),
    [
        ("limit=x", 400, 'strconv.ParseInt: parsing "x": invalid syntax'),
        ("timeoutSeconds=1.5&watch=1", 400, "invalid syntax"),
        ("labelSelector=a%3D%3Db%3D%3Dc", 400, "unable to parse"),
        ("fieldSelector=nope%3D1", 400, "is not a known field selector"),
        ("resourceVersion=abc", 400, "resourceVersion"),
        ("resourceVersionMatch=Exact", 422, "resourceVersionMatch is forbidden unless resourceVersion is provided"),
        ("resourceVersionMatch=Foo&resourceVersion=1", 422, 'Unsupported value: "Foo"'),
        ("resourceVersion=0&resourceVersionMatch=Exact", 422, 'is forbidden for resourceVersion "0"'),
        ("sendInitialEvents=true", 422, "sendInitialEvents is forbidden for list"),
        ("watch=1&sendInitialEvents=true", 422, "requires setting resourceVersionMatch to NotOlderThan"),
        ("continue=nonsense", 400, "continue"),
        ("timeout=soon", 400, 'invalid duration "soon"'),
        ("watch=1&labelSelector=a%3D%3Db%3D%3Dc", 400, "unable to parse"),
        ("a=%ff", 400, "invalid query string"),
        ("&".join(f"a{i}=1" for i in range(300)), 400, "invalid query string"),
    ],
)
async def test_bad_parameters_are_refused(admin: httpx.AsyncClient, query: str, code: int, message: str) -> None:
    found = status(await admin.get(f"{CONFIGMAPS}?{query}"))
    assert found[0] == code
    assert message in found[2]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("dryRun=Some", 'dryRun: Unsupported value: ["Some"]: supported values: "All"'),
        ("dryRun=", 'dryRun: Unsupported value: [""]: supported values: "All"'),
        ("fieldValidation=Maybe", 'fieldValidation: Unsupported value: "Maybe"'),
        ("fieldManager=" + "x" * 129, "fieldManager: Too long: may not be more than 128 bytes"),
        ("fieldManager=a%00b", "invalid character U+0000 (at position 1)"),
    ],
)
async def test_bad_write_parameters_are_invalid(admin: httpx.AsyncClient, query: str, message: str) -> None:
    found = status(await admin.post(f"{CONFIGMAPS}?{query}", json=configmap()))
    assert found[:2] == (422, "Invalid")
    assert message in found[2]


async def test_dry_run_writes_nothing(admin: httpx.AsyncClient) -> None:
    assert (await admin.post(f"{CONFIGMAPS}?dryRun=All", json=configmap())).status_code == 201
    assert (await admin.get(f"{CONFIGMAPS}/a")).status_code == 404
    await admin.post(CONFIGMAPS, json=configmap())
    assert (await admin.delete(f"{CONFIGMAPS}/a?dryRun=All")).status_code == 200
    assert (await admin.get(f"{CONFIGMAPS}/a")).status_code == 200


async def test_delete_options_in_the_body(admin: httpx.AsyncClient) -> None:
    created = (await admin.post(CONFIGMAPS, json=configmap())).json()
    wrong = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "other"}}
    assert status(await admin.request("DELETE", f"{CONFIGMAPS}/a", json=wrong))[:2] == (409, "Conflict")
    for bad, code in (
        ({"propagationPolicy": "Sometimes"}, 422),
        ({"propagationPolicy": "Orphan", "orphanDependents": True}, 422),
        ({"dryRun": ["Some"]}, 422),
        ({"gracePeriodSeconds": "5"}, 400),
        ({"gracePeriodSeconds": True}, 400),
        ({"preconditions": "x"}, 400),
        ({"preconditions": {"uid": 1}}, 400),
        ({"propagationPolicy": 1}, 400),
        ({"kind": "Pod"}, 400),
        (["x"], 400),
    ):
        assert status(await admin.request("DELETE", f"{CONFIGMAPS}/a", json=bad))[0] == code, bad
    right = {"preconditions": {"uid": created["metadata"]["uid"]}, "propagationPolicy": "Background"}
    assert (await admin.request("DELETE", f"{CONFIGMAPS}/a", json=right)).status_code == 200


async def test_deleting_an_object_with_finalizers(admin: httpx.AsyncClient) -> None:
    held = configmap()
    held["metadata"]["finalizers"] = ["example.com/hold"]
    await admin.post(CONFIGMAPS, json=held)
    first = await admin.delete(f"{CONFIGMAPS}/a")
    assert (first.status_code, "deletionTimestamp" in first.json()["metadata"]) == (200, True)
    legacy = await admin.request("DELETE", f"{CONFIGMAPS}/a", json={"orphanDependents": False})
    assert legacy.status_code == 202


async def test_deleting_a_collection(admin: httpx.AsyncClient) -> None:
    for name in "ab":
        await admin.post(CONFIGMAPS, json=configmap(name) | {"metadata": {"name": name, "labels": {"x": name}}})
    answer = await admin.delete(f"{CONFIGMAPS}?labelSelector=x%3Da")
    assert [item["metadata"]["name"] for item in answer.json()["items"]] == ["a"]
    assert (await admin.get(f"{CONFIGMAPS}/b")).status_code == 200


async def test_status_and_scale(admin: httpx.AsyncClient) -> None:
    await admin.post(DEPLOYMENTS, json=deployment())
    merge = {"content-type": "application/merge-patch+json"}
    patched = await admin.patch(f"{DEPLOYMENTS}/web/status", content=b'{"status":{"replicas":5}}', headers=merge)
    assert patched.json()["status"]["replicas"] == 5
    scale = (await admin.get(f"{DEPLOYMENTS}/web/scale")).json()
    assert (scale["kind"], scale["spec"]) == ("Scale", {"replicas": 1})
    scale["spec"]["replicas"] = 4
    assert (await admin.put(f"{DEPLOYMENTS}/web/scale", json=scale)).json()["spec"] == {"replicas": 4}


async def test_a_body_beyond_the_limit_is_refused_before_it_is_read(parts: Parts, admin: httpx.AsyncClient) -> None:
    big = b'{"a":"' + b"x" * (3 * 1024 * 1024) + b'"}'
    declared = await admin.post(CONFIGMAPS, content=big, headers={"content-type": "application/json"})
    assert status(declared)[:2] == (413, "RequestEntityTooLarge")

    async def chunks() -> Any:
        for _ in range(7):
            yield b"x" * 500_000

    streamed = await admin.post(CONFIGMAPS, content=chunks(), headers={"content-type": "application/json"})
    assert status(streamed)[0] == 413
    odd = await admin.post(CONFIGMAPS, content=b"{}", headers={"content-length": "-1"})
    assert status(odd)[0] == 413


async def test_too_many_requests_carry_retry_after(parts: Parts) -> None:
    options = AppOptions(flow_control=FlowControlOptions(requests_max=0, level_waiting_max=0))
    app = App(
        parts.registry,
        authenticator=parts.authenticator,
        authorizer=parts.authorizer,
        options=options,
    )
    async with connect(app, Peer("jane", ())) as client:
        for answer in (
            await client.post("/apis/authentication.k8s.io/v1/selfsubjectreviews", json={}),
            await client.get("/apis"),
        ):
            assert status(answer)[:2] == (429, "TooManyRequests")
            assert answer.headers["retry-after"] == "1"
        assert (await client.get("/readyz")).status_code == 200
    async with connect(app) as administrator:
        assert (await administrator.get(CONFIGMAPS)).status_code == 200


async def test_a_closed_store_is_unavailable(parts: Parts, admin: httpx.AsyncClient) -> None:
    await parts.registry.store.close()
    assert status(await admin.get(CONFIGMAPS))[:2] == (503, "ServiceUnavailable")


async def test_a_client_that_disconnects_while_sending_gets_no_response(parts: Parts) -> None:
    sent: list[Any] = []
    scope = {
        "type": "http",
        "method": "POST",
        "path": CONFIGMAPS,
        "query_string": b"",
        "headers": [],
        "state": {"peer": None},
    }
    scope["headers"] = [
        (b"authorization", b"Bearer " + parts.token_file.add(user="a", groups=["system:masters"]).encode())
    ]

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    await parts.app(scope, receive, send)
    assert sent == []
