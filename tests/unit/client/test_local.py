"""The local transport when its store fails, and writes for users; the conformance suite covers the rest."""

import orjson
import pytest

from federation.apimachinery.clock import SystemClock
from federation.apimachinery.errors import ApiError, Forbidden, ServiceUnavailable
from federation.apimachinery.resources import CONFIGMAPS, SECRETS
from federation.apiserver.auth.authorization import decide
from federation.apiserver.auth.rbac import RBACAuthorizer
from federation.apiserver.registry.registry import Registry
from federation.apiserver.semantics.cel.authorizer import AccessCheck, AccessDecision
from federation.apiserver.store.memory import MemoryStore
from federation.apiserver.store.options import StoreOptions
from federation.client.client import PatchType
from federation.client.local import LocalClient

SETTINGS = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "default"}}

ANN = {"username": "ann", "groups": ["tenants"]}
ALLOWED = AccessDecision(is_allowed=True)


@pytest.fixture
async def store(clock) -> MemoryStore:
    return MemoryStore(StoreOptions(), clock=clock)


@pytest.fixture
async def registry(store, clock) -> Registry:
    registry = Registry(store, clock=clock)
    await registry.start()
    return registry


@pytest.fixture
def client(registry) -> LocalClient:
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
async def test_a_closed_store_is_service_unavailable(client, store, call) -> None:
    await client.create(CONFIGMAPS, SETTINGS)
    await store.close()
    with pytest.raises(ServiceUnavailable) as caught:
        await call(client)
    assert caught.value.retryable


async def test_a_watch_fails_when_its_store_closes(client, store) -> None:
    since = (await client.list(CONFIGMAPS)).resource_version
    batches = client.watch(CONFIGMAPS, resource_version=since)
    assert await anext(batches) == []
    await store.close()
    with pytest.raises(ServiceUnavailable):
        await anext(batches)


async def test_raw_answers_503_when_the_store_is_closed(client, store) -> None:
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
async def test_raw_serves_discovery_and_reads(client, method, path, code) -> None:
    assert (await client.raw(method, path))[0] == code


async def test_cached_kinds_are_dropped_when_kinds_change(client, registry) -> None:
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
    await registry.install_crds([crd])
    assert (await client.list(things)).items == []


async def test_a_write_for_a_user_waits_for_roles_and_obeys_them(registry, client) -> None:
    answers = {"known": AccessDecision(is_allowed=False, error="the roles are not known yet")}
    registry.set_authorizer(lambda user, check: answers["known"] if user == ANN and check.verb == "patch" else ALLOWED)
    apply = {"patch_type": PatchType.APPLY, "namespace": "default", "field_manager": "test", "user": ANN}
    with pytest.raises(ServiceUnavailable, match='rights of user "ann" cannot be checked: the roles are not known'):
        await client.patch(CONFIGMAPS, "settings", SETTINGS, **apply)
    answers["known"] = AccessDecision(is_allowed=False)
    with pytest.raises(
        Forbidden, match='User "ann" cannot patch resource "configmaps" in API group "" in the namespace'
    ):
        await client.patch(CONFIGMAPS, "settings", SETTINGS, **apply)
    answers["known"] = ALLOWED
    written = await client.patch(CONFIGMAPS, "settings", SETTINGS, **apply)
    answers["known"] = AccessDecision(is_allowed=False)
    assert (await client.get(CONFIGMAPS, "settings", "default"))["metadata"]["uid"] == written["metadata"]["uid"]
    await client.delete(CONFIGMAPS, "settings", "default", user=ANN)


def test_a_refusal_before_the_roles_are_known_is_an_error() -> None:
    check = AccessCheck("get", "", "pods")
    authorizer = RBACAuthorizer(Registry(MemoryStore(), clock=SystemClock()))
    assert decide(authorizer, ANN, check).error == "the roles are not known yet"
    assert decide(authorizer, {"username": "root", "groups": ["system:masters"]}, check) == (True, "", "")
