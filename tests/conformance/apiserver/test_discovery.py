"""Conformance area: discovery, OpenAPI, version and health."""

import base64
import hashlib

import pytest
from tests.support.rest import Api, Object, Refused, eventually, refused

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"


def test_the_core_versions(api: Api) -> None:
    versions = api.send("GET", "/api").json()
    assert (versions["kind"], versions["versions"]) == ("APIVersions", ["v1"])


@pytest.mark.parametrize(
    "group",
    [
        "apps",
        "batch",
        "autoscaling",
        "policy",
        "rbac.authorization.k8s.io",
        "apiextensions.k8s.io",
        "coordination.k8s.io",
        "authorization.k8s.io",
        "authentication.k8s.io",
        "networking.k8s.io",
        "storage.k8s.io",
        "admissionregistration.k8s.io",
    ],
)
def test_groups_are_listed_with_a_preferred_version(api: Api, group: str) -> None:
    """[sig-api-machinery] Discovery should validate PreferredVersion for each APIGroup."""
    groups = {entry["name"]: entry for entry in api.send("GET", "/apis").json()["groups"]}
    entry = groups[group]
    assert entry["preferredVersion"] in entry["versions"]
    assert api.send("GET", f"/apis/{group}").json()["preferredVersion"] == entry["preferredVersion"]
    listed = api.send("GET", f"/apis/{entry['preferredVersion']['groupVersion']}").json()
    assert listed["groupVersion"] == entry["preferredVersion"]["groupVersion"]


def test_resources_list_their_verbs(api: Api) -> None:
    resources = {entry["name"]: entry for entry in api.send("GET", "/api/v1").json()["resources"]}
    pods = resources["pods"]
    assert (pods["kind"], pods["namespaced"], pods["singularName"], pods["shortNames"]) == ("Pod", True, "pod", ["po"])
    assert set(pods["verbs"]) == {"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
    assert pods["categories"] == ["all"]
    assert resources["pods/status"]["verbs"] == ["get", "patch", "update"]
    assert not resources["namespaces"]["namespaced"]


def test_a_scale_has_its_own_kind(api: Api) -> None:
    resources = {entry["name"]: entry for entry in api.send("GET", "/apis/apps/v1").json()["resources"]}
    scale = resources["deployments/scale"]
    assert (scale["group"], scale["version"], scale["kind"]) == ("autoscaling", "v1", "Scale")


def test_everything_in_one_document(api: Api) -> None:
    """[sig-api-machinery] Aggregated discovery should return the aggregated discovery document."""
    answer = api.send("GET", "/apis", accept=AGGREGATED)
    assert "as=APIGroupDiscoveryList" in answer.headers["content-type"]
    groups = {entry["metadata"]["name"]: entry for entry in answer.json()["items"]}
    resources = {entry["resource"]: entry for entry in groups["apps"]["versions"][0]["resources"]}
    kind = resources["deployments"]["responseKind"]
    # Clients read an empty group and version as those of the list.
    assert (kind["group"] or "apps", kind["version"] or "v1", kind["kind"]) == ("apps", "v1", "Deployment")
    assert {entry["subresource"] for entry in resources["deployments"]["subresources"]} == {"scale", "status"}


def test_an_unchanged_document_is_not_sent_again(api: Api) -> None:
    tag = api.send("GET", "/api", accept=AGGREGATED).headers["etag"]
    answer = api.send("GET", "/api", accept=AGGREGATED, headers={"if-none-match": tag})
    assert (answer.status_code, answer.content) == (304, b"")


@pytest.mark.parametrize("path", ["/apis/no.such.group", "/apis/apps/v9", "/api/v2", "/no/such/path"])
def test_an_unserved_path_is_not_found(api: Api, path: str) -> None:
    with refused(404):
        api.send("GET", path)


def test_the_version_is_served(api: Api) -> None:
    version = api.send("GET", "/version").json()
    assert version["major"] == "1"
    assert version["gitVersion"].startswith("v1.")


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz"])
def test_health_is_served(api: Api, path: str) -> None:
    assert api.send("GET", path, accept="*/*").text == "ok"
    assert "[+]ping ok" in api.send("GET", path, accept="*/*", verbose="").text


def test_the_old_openapi_document_describes_deployments(api: Api) -> None:
    """[sig-api-machinery] server version and OpenAPI: definitions are published."""
    document = api.send("GET", "/openapi/v2").json()
    assert document["swagger"] == "2.0"
    deployment = document["definitions"]["io.k8s.api.apps.v1.Deployment"]
    kind = {"group": "apps", "kind": "Deployment", "version": "v1"}
    assert kind in deployment["x-kubernetes-group-version-kind"]
    assert "/apis/apps/v1/namespaces/{namespace}/deployments/{name}" in document["paths"]


def test_openapi_names_documents_by_their_content(api: Api) -> None:
    index = api.send("GET", "/openapi/v3").json()["paths"]
    url = index["apis/apps/v1"]["serverRelativeURL"]
    assert url.startswith("/openapi/v3/apis/apps/v1?hash=")
    document = api.send("GET", url).json()
    assert document["openapi"].startswith("3.0")
    spec = document["components"]["schemas"]["io.k8s.api.apps.v1.DeploymentSpec"]
    assert spec["properties"]["replicas"]["type"] == "integer"


def test_merge_keys_are_published(api: Api) -> None:
    url = api.send("GET", "/openapi/v3").json()["paths"]["api/v1"]["serverRelativeURL"]
    schemas = api.send("GET", url).json()["components"]["schemas"]
    containers = schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert containers["x-kubernetes-list-map-keys"] == ["name"]


def test_an_unsupported_method_is_refused(api: Api) -> None:
    with refused(405, "MethodNotAllowed"):
        api.send("PUT", api.url("configmaps"), {})


def test_anonymous_users_see_only_health(nobody: Api) -> None:
    stranger = {"authorization": ""}
    assert nobody.send("GET", "/livez", accept="*/*", headers=stranger).text == "ok"
    with pytest.raises(Refused) as caught:
        nobody.send("GET", "/api/v1/namespaces", headers=stranger)
    assert caught.value.code in {401, 403}


def test_resources_have_a_hash_of_their_storage_version(api: Api, widgets: str, group: str) -> None:
    """[sig-api-machinery] Discovery should accurately determine present and missing resources."""
    digest = hashlib.sha256(f"{group}/v1/Widget".encode()).digest()
    (widget, *subresources) = api.send("GET", f"/apis/{group}/v1").json()["resources"]
    assert widget["storageVersionHash"] == base64.b64encode(digest[:8]).decode()
    assert all("storageVersionHash" not in subresource for subresource in subresources)
    pods = {entry["name"]: entry for entry in api.send("GET", "/api/v1").json()["resources"]}
    assert pods["pods"]["storageVersionHash"] == "xPOwRZ+Yhw8="
    assert "storageVersionHash" not in pods["pods/status"]


@pytest.mark.parametrize("accept", [AGGREGATED, AGGREGATED.partition(",")[0]])
def test_aggregated_discovery_lists_custom_resources(api: Api, widgets: str, group: str, accept: str) -> None:
    """[sig-api-machinery] AggregatedDiscovery should support raw aggregated discovery request for CRDs."""

    def found() -> list[Object]:
        answer = api.send("GET", "/apis", accept=accept)
        assert answer.headers["content-type"] == AGGREGATED.partition(",")[0]
        return [item for item in answer.json()["items"] if item["metadata"]["name"] == group]

    (item,) = eventually(found)
    (version,) = item["versions"]
    assert (version["version"], version["freshness"]) == ("v1", "Current")
    assert [resource["resource"] for resource in version["resources"]] == ["widgets"]
