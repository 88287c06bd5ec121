"""Discovery, OpenAPI, health, metrics and version."""

from typing import Any

import httpx
from tests.support.apiserver import Parts
from tests.unit.apiserver.conftest import ADMIN, connect, eventually

from federation.apimachinery.errors import StoreUnavailable
from federation.apiserver.http.app import App
from federation.apiserver.registry.discovery import version_order

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def crd(*versions: str) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "metadata": {"name": "foos.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "foos", "singular": "foo", "kind": "Foo", "shortNames": ["fo"]},
            "versions": [
                {"name": name, "served": True, "storage": name == versions[0], "schema": schema} for name in versions
            ],
        },
    }


async def test_classic_documents(admin: httpx.AsyncClient) -> None:
    assert (await admin.get("/api")).json()["versions"] == ["v1"]
    groups = {group["name"]: group for group in (await admin.get("/apis")).json()["groups"]}
    assert groups["apps"]["preferredVersion"] == {"groupVersion": "apps/v1", "version": "v1"}
    assert {"authorization.k8s.io", "authentication.k8s.io", "rbac.authorization.k8s.io"} <= groups.keys()
    one = (await admin.get("/apis/apps")).json()
    assert (one["kind"], one["apiVersion"], one["name"]) == ("APIGroup", "v1", "apps")
    listed = (await admin.get("/apis/apps/v1")).json()
    assert (listed["kind"], listed["groupVersion"]) == ("APIResourceList", "apps/v1")
    by_name = {resource["name"]: resource for resource in listed["resources"]}
    assert by_name["deployments"]["shortNames"] == ["deploy"]
    assert by_name["deployments"]["singularName"] == "deployment"
    assert by_name["deployments/scale"] == {
        "name": "deployments/scale",
        "singularName": "",
        "namespaced": True,
        "group": "autoscaling",
        "version": "v1",
        "kind": "Scale",
        "verbs": ["get", "patch", "update"],
    }
    core = {resource["name"]: resource for resource in (await admin.get("/api/v1")).json()["resources"]}
    assert core["pods/eviction"]["group"] == "policy"
    assert core["serviceaccounts/token"]["kind"] == "TokenRequest"
    assert not core["namespaces"]["namespaced"]


async def test_the_aggregated_document_and_its_etag(admin: httpx.AsyncClient) -> None:
    answer = await admin.get("/apis", headers={"accept": AGGREGATED})
    assert answer.headers["content-type"] == AGGREGATED
    document = answer.json()
    assert (document["kind"], document["apiVersion"]) == ("APIGroupDiscoveryList", "apidiscovery.k8s.io/v2")
    apps = next(item for item in document["items"] if item["metadata"]["name"] == "apps")
    deployments = next(r for r in apps["versions"][0]["resources"] if r["resource"] == "deployments")
    assert deployments["responseKind"] == {"group": "apps", "version": "v1", "kind": "Deployment"}
    assert [sub["subresource"] for sub in deployments["subresources"]] == ["scale", "status"]
    core = (await admin.get("/api", headers={"accept": AGGREGATED})).json()
    assert [item["metadata"]["name"] for item in core["items"]] == [""]
    etag = answer.headers["etag"]
    same = await admin.get("/apis", headers={"accept": AGGREGATED, "if-none-match": etag})
    assert (same.status_code, same.content) == (304, b"")
    assert (await admin.get("/apis", headers={"accept": "application/yaml"})).text.startswith("kind: APIGroupList")


async def test_custom_kinds_appear_in_version_order_and_disappear(admin: httpx.AsyncClient) -> None:
    etag = (await admin.get("/apis", headers={"accept": AGGREGATED})).headers["etag"]
    await admin.post(CRDS, json=crd("v1beta1", "v2", "v1", "v1alpha1"))

    async def is_served() -> bool:
        return (await admin.get("/apis/example.com")).status_code == 200

    await eventually(is_served)
    group = (await admin.get("/apis/example.com")).json()
    assert [version["version"] for version in group["versions"]] == ["v2", "v1", "v1beta1", "v1alpha1"]
    assert group["preferredVersion"]["version"] == "v2"
    changed = await admin.get("/apis", headers={"accept": AGGREGATED, "if-none-match": etag})
    assert changed.status_code == 200
    assert "apis/example.com/v2" in (await admin.get("/openapi/v3")).json()["paths"]
    await admin.delete(f"{CRDS}/foos.example.com")

    async def is_gone() -> bool:
        return (await admin.get("/apis/example.com")).status_code == 404

    await eventually(is_gone)


def test_versions_are_in_the_order_of_kubernetes() -> None:
    mixed = ["v1alpha1", "foo1", "v2beta1", "v10", "v1", "v2beta2", "bar", "v2"]
    assert sorted(mixed, key=version_order) == ["v10", "v2", "v1", "v2beta2", "v2beta1", "v1alpha1", "bar", "foo1"]


async def test_openapi_v3_is_immutable_by_hash(admin: httpx.AsyncClient) -> None:
    paths = (await admin.get("/openapi/v3")).json()["paths"]
    url = paths["apis/apps/v1"]["serverRelativeURL"]
    answer = await admin.get(url, headers={"accept": "application/com.github.proto-openapi.spec.v3@v1.0+json"})
    assert answer.status_code == 200
    assert answer.headers["cache-control"] == "public, immutable"
    assert "io.k8s.api.apps.v1.Deployment" in answer.json()["components"]["schemas"]
    same = await admin.get(url, headers={"if-none-match": answer.headers["etag"]})
    assert same.status_code == 304
    old = await admin.get("/openapi/v3/apis/apps/v1?hash=OLD")
    assert (old.status_code, old.headers["location"]) == (301, url)
    plain = await admin.get("/openapi/v3/apis/apps/v1")
    assert plain.headers["cache-control"] == "no-cache, private"


async def test_openapi_v2_is_json_and_protobuf(admin: httpx.AsyncClient) -> None:
    answer = await admin.get("/openapi/v2", headers={"accept-encoding": "gzip"})
    assert answer.json()["swagger"] == "2.0"
    protobuf = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
    for accept, shown in ((protobuf, "protobuf"), (f"application/json,{protobuf}", "json"), ("*/*", "json")):
        answer = await admin.get("/openapi/v2", headers={"accept": accept})
        assert answer.headers["content-type"].endswith(shown)
    assert (await admin.get("/openapi/v2", headers={"accept": "application/xml"})).status_code == 406
    assert (await admin.get("/openapi/v3", headers={"accept": protobuf})).status_code == 406


async def test_version_and_index(admin: httpx.AsyncClient) -> None:
    version = (await admin.get("/version")).json()
    assert (version["major"], version["minor"], version["gitVersion"]) == ("1", "36", "v1.36.0+federation")
    assert (await admin.get("/version/")).status_code == 200
    assert "/apis" in (await admin.get("/")).json()["paths"]


async def test_clients_cannot_create_metric_series(admin: httpx.AsyncClient) -> None:
    await admin.get("/api/v1/namespaces")
    for number in range(20):
        await admin.get(f"/api/v1/unheard{number}")
    answer = await admin.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    assert 'federation_server_requests_total{code="200",resource="namespaces",verb="list"}' in answer.text
    assert 'resource="unknown"' in answer.text
    assert "unheard" not in answer.text


async def test_readiness_names_failed_checks(parts: Parts) -> None:
    async def broken() -> str:
        raise StoreUnavailable("disk full")

    async def slow() -> str:
        return "still loading"

    app = App(
        parts.registry,
        authenticator=parts.authenticator,
        authorizer=parts.authorizer,
        readiness={"store": broken, "cache": slow},
    )
    async with connect(app, ADMIN) as client:
        answer = await client.get("/readyz")
        assert answer.status_code == 500
        assert answer.text == (
            "[+]ping ok\n[-]store failed: disk full\n[+]rbac ok\n[-]cache failed: still loading\nreadyz check failed\n"
        )
        assert (await client.get("/livez")).text == "ok"
        assert (await client.get("/readyz/rbac")).status_code == 200
        assert (await client.get("/readyz/store")).status_code == 500
        excluded = await client.get("/readyz?exclude=store&exclude=cache&verbose")
        assert (excluded.status_code, "[+]store excluded: ok" in excluded.text) == (200, True)
