"""Attack: a permission on one object, or on a subresource, is stretched to read others."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.tenants import Tenants, rule, tenants

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
