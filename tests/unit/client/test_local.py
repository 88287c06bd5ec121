"""What a local client says when its store is gone; the rest is the conformance suite's."""

import orjson
import pytest

from federation.api.resources import CONFIGMAPS, SECRETS
from federation.base.errors import ApiError, ServiceUnavailable
from federation.client.local import LocalClient
from federation.client.protocol import PatchType
from federation.registry.registry import Registry
from federation.store.memory import MemoryStore
from federation.store.options import StoreOptions

SETTINGS = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "default"}}


@pytest.fixture
async def store(clock) -> MemoryStore:
    return MemoryStore(StoreOptions(), clock=clock)


@pytest.fixture
async def client(store, clock) -> LocalClient:
    registry = Registry(store, clock=clock)
    await registry.start()
    return LocalClient(registry)


@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.get(CONFIGMAPS, "settings", "default"),
        lambda client: client.list(CONFIGMAPS),
        lambda client: client.create(CONFIGMAPS, {**SETTINGS, "metadata": {"name": "x", "namespace": "default"}}),
        lambda client: client.update(CONFIGMAPS, {**SETTINGS, "data": {"a": "b"}}),
        lambda client: client.patch(
            CONFIGMAPS, "settings", {"data": {"a": "b"}}, patch_type=PatchType.MERGE, namespace="default"
        ),
        lambda client: client.delete(CONFIGMAPS, "settings", "default"),
    ],
    ids=["get", "list", "create", "update", "patch", "delete"],
)
async def test_a_store_that_is_gone_is_a_service_that_is_unavailable(client, store, call) -> None:
    await client.create(CONFIGMAPS, SETTINGS)
    await store.close()
    with pytest.raises(ServiceUnavailable) as caught:
        await call(client)
    assert caught.value.retryable


async def test_a_watch_whose_store_goes_says_so(client, store) -> None:
    since = (await client.list(CONFIGMAPS)).resource_version
    batches = client.watch(CONFIGMAPS, resource_version=since)
    assert await anext(batches) == []
    await store.close()
    with pytest.raises(ServiceUnavailable):
        await anext(batches)


async def test_raw_says_so_too(client, store) -> None:
    assert await client.raw("GET", "/healthz") == (200, b"ok")
    await store.close()
    code, body = await client.raw("GET", "/healthz")
    assert (code, orjson.loads(body)["reason"]) == (503, "ServiceUnavailable")


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("POST", "/api/v1/namespaces", 405),
        ("GET", "/nothing", 404),
        ("GET", "/apis/example.com", 404),
        ("GET", "/apis/apps/v9", 404),
        ("GET", "/apis/apps", 200),
        ("GET", "/api", 200),
        ("GET", "/api/v1", 200),
        ("GET", "/api/v1/nodes?limit=1", 200),
        ("GET", "/api/v1/namespaces/default", 200),
    ],
)
async def test_raw_answers_what_reading_needs(client, method, path, code) -> None:
    assert (await client.raw(method, path))[0] == code


async def test_resources_are_looked_up_again_when_kinds_change(client) -> None:
    await client.list(SECRETS)
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"kind": "Thing", "plural": "things", "singular": "thing", "listKind": "ThingList"},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                }
            ],
        },
    }
    things = type(SECRETS)("example.com", "v1", "Thing", "things")
    with pytest.raises(ApiError):
        await client.list(things)
    await client._registry.install_crds([crd])
    assert (await client.list(things)).items == []
