"""Patches go through the version that a server stores, as far as its definitions or its discovery name it."""

import base64
import hashlib
from typing import Any

import orjson
import pytest

from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.clock import ManualClock
from federation.apimachinery.errors import ApiError, ClusterUnreachable, Forbidden, InternalError, NotFound
from federation.apimachinery.resources import DEPLOYMENTS, Object, Resource
from federation.client.client import Request
from federation.client.storedkinds import StoredKinds

WIDGETS = Resource("example.com", "v1beta1", "Widget", "widgets")
STORED = WIDGETS._replace(version="v1")


def _version(name: str, *fields: str, served: bool = True) -> Object:
    spec = {"type": "object", "properties": {field: {"type": "string"} for field in fields}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return {"name": name, "served": served, "storage": name == "v1", "schema": schema}


def _definition(*versions: Object, **spec: Any) -> Object:
    return {"spec": {"versions": list(versions), **spec}}


DEFINITION = _definition(_version("v1beta1", "size"), _version("v1", "size", "color"))


class Host:
    """A server that answers requests for definitions, and counts them; its discovery serves two versions.

    `stored` is the version whose hash discovery has, "" for none.
    """

    def __init__(self, answer: Object | Exception, stored: str = "v1") -> None:
        self.asked: list[str] = []
        self.answer = answer
        self.served = ["v1", "v1beta1"]
        self.stored = stored

    async def request(self, request: Request) -> Object:
        self.asked.append(request.name)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def raw(self, method: str, path: str, *_: Any) -> tuple[int, bytes]:
        assert method == "GET"
        versions = [{"version": name, "groupVersion": f"example.com/{name}"} for name in self.served]
        if path == "/apis":
            groups = [{"name": "example.com", "versions": versions, "preferredVersion": versions[0]}]
            return 200, orjson.dumps({"groups": groups})
        if path.removeprefix("/apis/example.com/") not in self.served:
            return 404, b"{}"
        digest = hashlib.sha256(f"example.com/{self.stored}/Widget".encode()).digest()[:8]
        hashes = {"storageVersionHash": base64.b64encode(digest).decode()} if self.stored else {}
        return 200, orjson.dumps({"resources": [{"name": "widgets", "kind": "Widget", **hashes}]})

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} is not needed")


async def test_the_definition_is_read_once_a_minute_and_names_the_stored_version() -> None:
    host, clock = Host(DEFINITION), ManualClock()
    kinds = StoredKinds(host, clock)
    for resource in (WIDGETS, STORED, WIDGETS):
        assert await kinds.stored_in(resource) == STORED
    assert host.asked == ["widgets.example.com"]
    host.stored = "v1beta1"
    assert await kinds.stored_in(WIDGETS) == STORED
    await clock.advance(61)
    assert await kinds.stored_in(WIDGETS) == WIDGETS
    assert host.asked == ["widgets.example.com"]


async def test_without_a_hash_in_discovery_the_definition_is_read() -> None:
    assert await StoredKinds(Host(DEFINITION, "")).stored_in(WIDGETS) == STORED


async def test_without_a_definition_the_version_stays() -> None:
    assert await StoredKinds(Host(NotFound("no definition"))).stored_in(WIDGETS) == WIDGETS


@pytest.mark.parametrize("stored", ["v1", "v1beta1", ""])
async def test_without_the_right_to_read_definitions_discovery_names_the_version(stored: str) -> None:
    kinds = StoredKinds(Host(Forbidden("no right"), stored))
    assert await kinds.stored_in(WIDGETS) == (STORED if stored == "v1" else WIDGETS)
    assert await kinds.applied_in(WIDGETS) == WIDGETS  # its fields are not known


@pytest.mark.parametrize("error", [InternalError("it fails"), ClusterUnreachable("away")], ids=["fails", "away"])
async def test_a_server_that_does_not_answer_is_no_reason_to_lose_fields(error: Exception) -> None:
    with pytest.raises((ApiError, ClusterUnreachable)):
        await StoredKinds(Host(error)).stored_in(WIDGETS)


async def test_a_version_that_is_not_served_is_not_replaced() -> None:
    host = Host(_definition(_version("v1beta1", "size", served=False), _version("v1", "size")))
    assert await StoredKinds(host).stored_in(WIDGETS) == WIDGETS  # discovery is a moment behind the definition
    host.served.remove("v1beta1")
    assert await StoredKinds(host).stored_in(WIDGETS) == WIDGETS


async def test_a_kind_that_a_webhook_converts_is_left_alone() -> None:
    kinds = StoredKinds(Host({"spec": {**DEFINITION["spec"], "conversion": {"strategy": "Webhook"}}}))
    assert await kinds.stored_in(WIDGETS) == WIDGETS


@pytest.mark.parametrize(
    ("own", "stored", "is_moved"),
    [(("size",), ("size", "color"), True), (("size", "color"), ("size",), False), (("size",), ("size",), True)],
)
async def test_manifests_go_through_the_stored_version_only_if_it_has_all_their_fields(
    own: tuple[str, ...], stored: tuple[str, ...], *, is_moved: bool
) -> None:
    kinds = StoredKinds(Host(_definition(_version("v1beta1", *own), _version("v1", *stored))))
    assert await kinds.applied_in(WIDGETS) == (STORED if is_moved else WIDGETS)
    assert await kinds.stored_in(WIDGETS) == STORED


async def test_built_in_kinds_and_our_own_are_not_looked_up() -> None:
    host = Host(DEFINITION)
    for resource in (DEPLOYMENTS, FEDERATED_CLUSTERS):
        assert await StoredKinds(host).stored_in(resource) == resource
        assert await StoredKinds(host).applied_in(resource) == resource
    assert host.asked == []
