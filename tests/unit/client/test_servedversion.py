"""A resource in a version that its server serves: what counts as absence of a kind, and what says nothing."""

from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from federation.apimachinery.errors import ApiError, NotFound
from federation.apimachinery.resources import Resource
from federation.client.servedversion import find_served_version, in_served_version

WIDGETS = Resource("example.com", "v1", "Widget", "widgets")
PODS = Resource("", "v1", "Pod", "pods")


class _Server:
    """Answers with documents by path, and 404 to other paths."""

    def __init__(self, documents: Mapping[str, Any], code: int = 200) -> None:
        self._documents, self._code = documents, code

    async def raw(self, method: str, path: str, /) -> tuple[int, bytes]:
        assert method == "GET"
        if path not in self._documents:
            return 404, b"404 page not found"
        return self._code, orjson.dumps(self._documents[path])


def _group(*versions: str, preferred: str) -> dict[str, Any]:
    named = [{"version": version} for version in versions]
    return {"groups": [{"name": "example.com", "versions": named, "preferredVersion": {"version": preferred}}]}


def _kinds(name: str, kind: str) -> dict[str, Any]:
    return {"resources": [{"name": name, "kind": kind}, {"name": f"{name}/status", "kind": kind}]}


@pytest.mark.parametrize(
    ("documents", "resource", "version"),
    [
        ({"/apis": {"groups": []}}, WIDGETS, None),
        ({"/apis": _group("v2", preferred="v2")}, WIDGETS, None),
        ({"/apis": _group("v2", preferred="v2"), "/apis/example.com/v2": _kinds("gadgets", "Gadget")}, WIDGETS, None),
        ({"/apis": _group("v2", preferred="v2"), "/apis/example.com/v2": _kinds("widgets", "Other")}, WIDGETS, None),
        ({"/apis": _group("v2", preferred="v2"), "/apis/example.com/v2": _kinds("widgets", "Widget")}, WIDGETS, "v2"),
        (
            {
                "/apis": _group("v2", "v3", preferred="v3"),
                "/apis/example.com/v2": _kinds("widgets", "Widget"),
                "/apis/example.com/v3": _kinds("widgets", "Widget"),
            },
            WIDGETS,
            "v3",
        ),
        ({"/api": {"versions": ["v1"]}, "/api/v1": _kinds("pods", "Pod")}, PODS, "v1"),
    ],
    ids=["no group", "no version", "another kind", "another kind of the name", "one", "preferred", "core"],
)
async def test_the_version_that_is_served(
    documents: Mapping[str, Any], resource: Resource, version: str | None
) -> None:
    found = await find_served_version(_Server(documents), resource)
    assert (None if found is None else found.version) == version
    assert found is None or found._replace(version=resource.version) == resource


@pytest.mark.parametrize(
    "server",
    [_Server({}), _Server({"/apis": []}), _Server({"/apis": {"groups": []}}, code=503)],
    ids=["whatever answers is no API server", "no document", "not available"],
)
async def test_a_server_without_discovery_says_nothing_about_objects(server: _Server) -> None:
    with pytest.raises(ApiError) as raised:
        await find_served_version(server, WIDGETS)
    assert raised.value.code == 503


async def test_a_missing_object_needs_no_discovery_and_a_missing_kind_is_asked_for_in_its_other_version() -> None:
    asked = []

    async def read(resource: Resource) -> str:
        asked.append(resource.version)
        if resource.version == "v1":
            raise NotFound("the server could not find the requested resource")
        return "found"

    served = {"/apis": _group("v2", preferred="v2"), "/apis/example.com/v2": _kinds("widgets", "Widget")}
    assert await in_served_version(_Server(served), WIDGETS, read) == "found"
    assert asked == ["v1", "v2"]
    with pytest.raises(NotFound):
        await in_served_version(_Server({"/apis": {"groups": []}}), WIDGETS, read)

    async def read_absent(_: Resource) -> str:
        raise NotFound('widgets "a" not found', details={"name": "a"})

    with pytest.raises(NotFound):
        await in_served_version(_Server({}), WIDGETS, read_absent)
