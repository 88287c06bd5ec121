"""Attack: a permission on one object, or on a subresource, is stretched to read others."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.tenants import MERGE, Tenants, rule, tenants

from federation.api.resources import CORE_GROUP
from federation.apimachinery.selectors import parse_field_selector

SECRETS = "/api/v1/namespaces/default/secrets"


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Tenants]:
    async with tenants(tmp_path) as served:
        yield served


@pytest.mark.parametrize(
    "selector",
    [
        "metadata.name!=zzz\\",
        "type!=zzz\\",
        "metadata.name!=zzz\\\\\\",
        "metadata.name=hidden",
        "metadata.namespace=default,",
        ",",
    ],
)
async def test_a_watch_of_one_object_shows_no_other(host: Tenants, selector: str) -> None:
    """A backslash at the end of the client's selector escapes the comma before what the server appends."""
    root = await host.root()
    for name in ("shown", "hidden"):
        assert (await root.post(SECRETS, json={"metadata": {"name": name}})).status_code == 201
    await host.grant("somebody", {**rule("get,watch", "secrets", ""), "resourceNames": ["shown"]})
    client = await host.client("somebody")
    for path in (f"{SECRETS}/shown", "/api/v1/watch/namespaces/default/secrets/shown"):
        answer = await client.get(path, params={"watch": "1", "timeoutSeconds": "1", "fieldSelector": selector})
        assert "hidden" not in answer.text
    assert (await client.get(SECRETS, params={"watch": "1", "timeoutSeconds": "1"})).status_code == 403


async def test_view_in_one_namespace_watches_no_other_namespace(host: Tenants) -> None:
    root, viewer = await host.root(), await host.client("viewer")
    assert (await root.post("/api/v1/namespaces", json={"metadata": {"name": "rival"}})).status_code == 201
    query = {"watch": "1", "timeoutSeconds": "1", "fieldSelector": "metadata.name!=x\\"}
    answer = await viewer.get("/api/v1/namespaces/default", params=query)
    assert "rival" not in answer.text


@pytest.mark.parametrize("query", [{"watch": "1"}, {}])
async def test_a_subresource_is_not_watched(host: Tenants, query: dict[str, str]) -> None:
    """A watch of `scale` would show the whole object."""
    await host.grant("somebody", rule("get,list,watch", "deployments/scale,deployments/status", "apps"))
    client = await host.client("somebody")
    params = {**query, "timeoutSeconds": "1"}
    for subresource in ("scale", "status"):
        path = f"/apis/apps/v1/watch/namespaces/default/deployments/web/{subresource}"
        assert (await client.get(path, params=params)).status_code == 404


@pytest.mark.parametrize("base", ["/api/v1", "/apis/events.k8s.io/v1"])
async def test_an_event_about_an_object_without_a_namespace_is_read_with_that_object(host: Tenants, base: str) -> None:
    """Events about clusters, nodes and policies of administrators lie in `default`; `view` there reads none of them."""
    root, viewer = await host.root(), await host.client("viewer")
    abouts = {
        "own": {"apiVersion": f"{CORE_GROUP}/v1alpha1", "kind": "FederatedCluster", "name": "east"},
        "cluster": {"apiVersion": f"{CORE_GROUP}/v1alpha1", "kind": "FederatedCluster", "name": "rival"},
        "policy": {"apiVersion": f"{CORE_GROUP}/v1alpha1", "kind": "ClusterPropagationPolicy", "name": "rival"},
        "node": {"apiVersion": "v1", "kind": "Node", "name": "rival"},
        "unserved": {"apiVersion": "example.com/v1", "kind": "Rival", "name": "rival"},
        "nothing": {},
        "namespace": {"apiVersion": "v1", "kind": "Namespace", "name": "default"},
        "neighbour": {"apiVersion": "v1", "kind": "Namespace", "name": "rival"},
        "pod": {"apiVersion": "v1", "kind": "Pod", "name": "web", "namespace": "default"},
    }
    for name, about in abouts.items():
        event = {"metadata": {"name": name}, "involvedObject": about, "reason": "R", "message": f"about {name}"}
        answer = await root.post("/api/v1/namespaces/default/events", json=event)
        assert answer.status_code == 201, answer.text
    own = {**rule("get,list", "federatedclusters"), "resourceNames": ["east"]}
    await host.grant("viewer", own, namespace="")
    await host.bind("viewer", "edit")
    events, shown = f"{base}/namespaces/default/events", {"own", "namespace", "pod"}
    listed = await viewer.get(events)
    assert {item["metadata"]["name"] for item in listed.json()["items"]} == shown
    assert "which the user cannot get" in listed.headers["warning"]
    watched = await viewer.get(events, params={"watch": "1", "timeoutSeconds": "1", "resourceVersion": "0"})
    assert "about pod" in watched.text
    assert "rival" not in watched.text
    for name in abouts.keys() - shown:
        path = f"{events}/{name}"
        patch = await viewer.patch(path, json={"metadata": {"labels": {"a": "b"}}}, headers=MERGE)
        about = await viewer.get(path, params={"fieldSelector": "involvedObject.name=rival"})
        assert [each.status_code for each in (await viewer.get(path), about, patch)] == [403] * 3
        for answer in (await viewer.get(path), about, patch, await viewer.delete(path)):
            assert f"about {name}" not in answer.text
            assert "rival" not in answer.text
    await host.bind("everywhere", "view", namespace="")
    listed = await (await host.client("everywhere")).get(f"{base}/events")
    assert {item["metadata"]["name"] for item in listed.json()["items"]} == {"namespace", "pod"}
    await host.grant("reader", rule("get,list,watch", "*", "*"), namespace="")
    listed = await (await host.client("reader")).get(f"{base}/events")
    assert {item["metadata"]["name"] for item in listed.json()["items"]} == shown
    assert "warning" not in listed.headers


def test_a_field_selector_is_divided_at_commas_that_are_not_escaped() -> None:
    def values(text: str) -> list[str]:
        return [term.value for term in parse_field_selector(text)]

    assert values(r"a=b\,c,d=e") == ["b,c", "e"]
    assert values(r"a=b\\,c=d") == ["b\\", "d"]
    assert values(r"a=b\\\,c,d=e\=f") == ["b\\,c", "e=f"]
    assert values(",a=b,,") == ["b"]
    for malformed in ("a=b\\", r"a=b\c", r"a=\\\x"):
        with pytest.raises(ValueError, match="escape"):
            values(malformed)
