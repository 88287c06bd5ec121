"""Forbidden responses in Kubernetes' words."""

import pytest
from tests.support.apiserver import Parts
from tests.unit.apiserver.conftest import connect
from tests.unit.apiserver.rbacobjects import BOB, CONFIGMAPS

from federation.apimachinery.paths import ResourcePath
from federation.apiserver.auth.authorization import to_attributes


async def test_forbidden_messages_are_those_of_kubernetes(parts: Parts) -> None:
    async with connect(parts.app, BOB) as bob:
        answer = (await bob.get(f"{CONFIGMAPS}/a")).json()
        assert answer["message"] == (
            'configmaps "a" is forbidden: User "bob" cannot get resource "configmaps" in API group "" '
            'in the namespace "default"'
        )
        assert answer["details"] == {"name": "a", "kind": "configmaps"}
        answer = (await bob.post("/apis/apps/v1/namespaces/x/deployments/a/scale", json={})).json()
        assert answer["message"].startswith(
            'deployments.apps "a" is forbidden: User "bob" cannot create resource "deployments/scale"'
        )
        answer = (await bob.get("/api/v1/nodes")).json()
        assert answer["message"].endswith('cannot list resource "nodes" in API group "" at the cluster scope')
        answer = (await bob.get("/metrics")).json()
        assert answer["message"] == 'forbidden: User "bob" cannot get path "/metrics"'
        assert (await bob.get("/apis")).status_code == 200
        assert (await bob.get("/apis/nope/v1/secrets")).status_code == 403


@pytest.mark.parametrize(
    ("path", "namespace"),
    [
        (ResourcePath("", "v1", "", "namespaces", "shop", ""), "shop"),
        (ResourcePath("", "v1", "", "namespaces", "shop", "status"), "shop"),
        (ResourcePath("", "v1", "", "namespaces", "", ""), ""),
        (ResourcePath("example.com", "v1", "", "namespaces", "shop", ""), ""),
        (ResourcePath("", "v1", "", "nodes", "shop", ""), ""),
        (ResourcePath("", "v1", "shop", "pods", "a", "log"), "shop"),
    ],
)
def test_a_namespace_is_in_itself(path: ResourcePath, namespace: str) -> None:
    attributes = to_attributes(path, "get")
    assert attributes == ("get", path.group, "v1", path.plural, path.subresource, namespace, path.name, "")
