"""Discovery of a member's types from aggregated documents."""

from typing import Any

import orjson
import pytest

from federation.apimachinery.clock import ManualClock
from federation.apimachinery.errors import ClusterError
from federation.apiserver.registry.discovery import aggregated_document
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.client.client import Client
from federation.client.local import LocalTransport
from federation.controllers.cluster.apidiscovery import discover

KNOWN = {
    "group": "metrics.k8s.io",
    "version": "v1beta1",
    "kind": "NodeMetrics",
    "pluralName": "nodes",
    "scope": "Cluster",
}


class Aggregating(LocalTransport):
    """A server with aggregated discovery; `changes` replace its documents."""

    def __init__(self, registry: Registry, changes: dict[str, Any] | None = None) -> None:
        super().__init__(registry)
        self.kinds = registry.kinds
        self.changes = changes or {}
        self.paths: list[str] = []

    async def raw(
        self, method: str, path: str, body: bytes | None, timeout_s: float, accept: str = ""
    ) -> tuple[int, bytes]:
        self.paths.append(path)
        if path not in ("/api", "/apis"):
            return await super().raw(method, path, body, timeout_s, accept)
        assert "as=APIGroupDiscoveryList" in accept
        return 200, orjson.dumps(self.changes.get(path) or aggregated_document(self.kinds, path, "v2"))


@pytest.fixture
def registry() -> Registry:
    return Registry(MemoryStore(), clock=ManualClock())


def a_document(**version: Any) -> dict[str, Any]:
    versions = [{"version": "v1beta1", **version}]
    return {"kind": "APIGroupDiscoveryList", "items": [{"metadata": {"name": "metrics.k8s.io"}, "versions": versions}]}


async def test_aggregated_documents_name_the_same_types_with_three_requests(registry: Registry) -> None:
    transport = Aggregating(registry)
    classic, aggregated = await discover(Client(LocalTransport(registry)), []), await discover(Client(transport), [])
    assert aggregated == classic
    assert len(aggregated.types) > 50
    assert sorted(transport.paths) == ["/api", "/apis", "/version"]


async def test_types_of_an_unavailable_aggregated_api_stay_known(registry: Registry) -> None:
    stale = Aggregating(registry, {"/apis": a_document(freshness="Stale", resources=[])})
    found = await discover(Client(stale), [KNOWN])
    assert found.failed == ("metrics.k8s.io/v1beta1",)
    assert KNOWN in found.types


async def test_a_malformed_version_counts_as_failed(registry: Registry) -> None:
    resources = [{"resource": 1, "responseKind": {"kind": "NodeMetrics"}}]
    found = await discover(Client(Aggregating(registry, {"/apis": a_document(resources=resources)})), [])
    assert found.failed == ("metrics.k8s.io/v1beta1",)


async def test_resources_that_have_only_subresources_are_no_types(registry: Registry) -> None:
    resources = [{"resource": "evictions", "responseKind": {"kind": ""}}, {"resource": "others", "responseKind": None}]
    found = await discover(Client(Aggregating(registry, {"/apis": a_document(resources=resources)})), [])
    assert {type_.get("group", "") for type_ in found.types} == {""}


async def test_a_list_of_groups_without_names_is_refused(registry: Registry) -> None:
    broken = Aggregating(registry, {"/apis": {"kind": "APIGroupDiscoveryList", "items": [{"metadata": None}]}})
    with pytest.raises(ClusterError, match="malformed"):
        await discover(Client(broken), [])
