"""URL paths to resources."""

import pytest

from federation.apimachinery.paths import ResourcePath, parse

CASES = {
    "/api/v1/pods": ResourcePath("", "v1", "", "pods", "", ""),
    "/api/v1/pods/": ResourcePath("", "v1", "", "pods", "", ""),
    "/api/v1/namespaces": ResourcePath("", "v1", "", "namespaces", "", ""),
    "/api/v1/namespaces/a": ResourcePath("", "v1", "", "namespaces", "a", ""),
    "/api/v1/namespaces/a/status": ResourcePath("", "v1", "", "namespaces", "a", "status"),
    "/api/v1/namespaces/a/finalize": ResourcePath("", "v1", "", "namespaces", "a", "finalize"),
    "/api/v1/namespaces/a/pods": ResourcePath("", "v1", "a", "pods", "", ""),
    "/api/v1/namespaces/a/pods/b/binding": ResourcePath("", "v1", "a", "pods", "b", "binding"),
    "/apis/apps/v1/deployments": ResourcePath("apps", "v1", "", "deployments", "", ""),
    "/apis/apps/v1/namespaces/a/deployments/b": ResourcePath("apps", "v1", "a", "deployments", "b", ""),
    "/apis/apps/v1/namespaces/a/deployments/b/scale": ResourcePath("apps", "v1", "a", "deployments", "b", "scale"),
    "/apis/apps/v1/watch/namespaces/a/deployments": ResourcePath("apps", "v1", "a", "deployments", "", "", True),
    "/apis/rbac.authorization.k8s.io/v1/clusterroles/a:b": ResourcePath(
        "rbac.authorization.k8s.io", "v1", "", "clusterroles", "a:b", ""
    ),
}


@pytest.mark.parametrize("path", CASES)
def test_a_resource_path_names_its_parts(path: str) -> None:
    assert parse(path) == CASES[path]


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "",
        "/api",
        "/api/v1",
        "/api/v1/",
        "/apis",
        "/apis/apps",
        "/apis/apps/v1",
        "/apis//v1/x",
        "/version",
        "/metrics",
        "*",
        "//",
        "/api/v1//pods",
        "/api/v1/namespaces//pods",
        "/api/v1/namespaces/a/pods/b/c/d",
        "/apix/v1/pods",
    ],
)
def test_other_paths_are_not_resources(path: str) -> None:
    assert parse(path) is None


def test_the_verb_depends_on_method_and_name() -> None:
    collection, item = parse("/api/v1/namespaces/a/pods"), parse("/api/v1/namespaces/a/pods/b")
    assert collection is not None
    assert item is not None
    assert [collection.verb(m) for m in ("GET", "POST", "DELETE")] == ["list", "create", "deletecollection"]
    assert [item.verb(m) for m in ("GET", "PUT", "PATCH", "DELETE")] == ["get", "update", "patch", "delete"]
    assert item.verb("OPTIONS") == ""
