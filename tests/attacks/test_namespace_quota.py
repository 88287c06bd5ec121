"""One tenant against the host's memory: a namespace stores no more than its bytes, whatever its users send at once."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.apiserver import Parts, api_server
from tests.support.rest import Api, Object, Refused, eventually, refused

from federation.apimachinery.clock import SystemClock
from federation.apimachinery.errors import AlreadyExists, Forbidden
from federation.apimachinery.resources import CONFIGMAPS, Resource
from federation.apiserver.registry.registry import Registry
from federation.apiserver.semantics.encoding import encoding
from federation.apiserver.store.interface import Store
from federation.apiserver.store.memory import MemoryStore
from federation.apiserver.store.sql import SQLStore
from federation.apiserver.verbs.requestoptions import DeleteOptions, RegistryOptions, WriteOptions
from federation.client.kubeconfig import load_kubeconfig
from federation.client.local import LocalClient

_BYTES_MAX = 2_000_000
_USER = WriteOptions(user=lambda: {"username": "tenant", "groups": ["system:authenticated"]})


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parts]:
    options = RegistryOptions(namespace_bytes_max=_BYTES_MAX, quota_bytes_interval_s=0.05)
    with api_server(tmp_path_factory.mktemp("quota"), registry_options=options) as parts:
        yield parts


@pytest.fixture(scope="module")
def admin(server: Parts) -> Iterator[Api]:
    api = Api(load_kubeconfig(server.kubeconfig), "team")
    api.create("namespaces", {"metadata": {"name": "team"}})
    yield api
    api.close()


@pytest.fixture
def tenant(admin: Api) -> Iterator[Api]:
    """The administrator of an otherwise empty namespace, as a service account."""
    for name in admin.names("configmaps"):
        admin.delete("configmaps", name)
    with contextlib.suppress(Refused):
        admin.create("serviceaccounts", {"metadata": {"name": "tenant"}})
        binding = {
            "metadata": {"name": "tenant"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
            "subjects": [{"kind": "ServiceAccount", "name": "tenant", "namespace": "team"}],
        }
        admin.create("rolebindings", binding)
    token = admin.create("serviceaccounts", {"spec": {}}, name="tenant", subresource="token")["status"]["token"]
    api = Api(replace(admin.connection, client_cert_data=b"", client_key_data=b"", token=token), "team")
    eventually(lambda: _may_list(api))
    yield api
    api.close()


def _may_list(api: Api) -> bool:
    with contextlib.suppress(Refused):
        api.list("configmaps")
        return True
    return False


def _config_map(name: str, size: int) -> Object:
    return {"metadata": {"name": name}, "data": {"k": "x" * size}}


def _stored_bytes(server: Parts, namespace: str = "team") -> int:
    async def count() -> int:
        page = await server.registry.store.list("/")
        return sum(len(entry.value) for entry in page.entries if f"/{namespace}/" in entry.key)

    return server.run(count())


def test_a_flood_of_config_maps_stops_at_the_limit_of_the_namespace(server: Parts, tenant: Api) -> None:
    def create(number: int) -> str:
        try:
            tenant.create("configmaps", _config_map(f"flood-{number}", 300_000))
        except Refused as error:
            return f"{error.code} {error.message}"
        return ""

    with ThreadPoolExecutor(8) as pool:
        refusals = [text for text in pool.map(create, range(32)) if text]
    assert _stored_bytes(server) <= _BYTES_MAX
    assert 32 - len(refusals) == 6
    assert all(text.startswith("403 ") and "is 2000000: delete objects of the namespace" in text for text in refusals)


def test_a_full_namespace_can_be_emptied_and_shrunk_and_affects_no_other(admin: Api, tenant: Api) -> None:
    for number in range(6):
        tenant.create("configmaps", _config_map(f"full-{number}", 300_000))
    with refused(403, "Forbidden", "namespace_bytes_max"):
        tenant.create("configmaps", _config_map("more", 300_000))
    with refused(403, "Forbidden", "namespace_bytes_max"):
        tenant.patch("configmaps", "full-0", {"data": {"more": "x" * 300_000}})
    admin.create("configmaps", _config_map("administrator", 300_000))
    tenant.patch("configmaps", "full-0", {"data": {"k": "small"}})
    tenant.delete("configmaps", "full-1")
    tenant.delete("configmaps", "full-2")
    tenant.create("configmaps", _config_map("more", 300_000))


def test_a_quota_on_bytes_refuses_and_reports_its_usage(admin: Api, tenant: Api) -> None:
    hard = {"bytes/configmaps": "500k", "bytes": "1M"}
    admin.create("resourcequotas", {"metadata": {"name": "size"}, "spec": {"hard": hard}})
    tenant.create("configmaps", _config_map("one", 300_000))

    def used() -> int:
        status = admin.get("resourcequotas", "size").get("status") or {}
        return int((status.get("used") or {}).get("bytes/configmaps", "0").removesuffix("k") or 0)

    eventually(lambda: used() > 300_000)
    with refused(403, "Forbidden", "exceeded quota: size, requested: bytes/configmaps=300"):
        tenant.create("configmaps", _config_map("two", 300_000))
    tenant.delete("configmaps", "one")
    tenant.create("configmaps", _config_map("two", 300_000))
    admin.delete("resourcequotas", "size")


def test_the_largest_namespaces_are_in_the_metrics(admin: Api, tenant: Api) -> None:
    tenant.create("configmaps", _config_map("one", 300_000))

    def is_shown() -> bool:
        text = admin.http.get("/metrics").text
        name = 'federation_registry_namespace_bytes{namespace="team"}'
        found = [line for line in text.splitlines() if line.startswith(name)]
        return bool(found) and float(found[0].split()[-1]) > 300_000

    eventually(is_shown)


@contextlib.asynccontextmanager
async def _registries(store: Store, count: int, options: RegistryOptions) -> AsyncIterator[list[Registry]]:
    """Several registries with their loops over one store, as processes that share a database."""
    registries = [Registry(store, clock=SystemClock(), options=options) for _ in range(count)]
    async with asyncio.TaskGroup() as group:
        await store.ready()
        for registry in registries:
            await registry.start()
        loops = [group.create_task(run()) for run in (store.run, *(registry.run for registry in registries))]
        yield registries
        for loop in loops:
            loop.cancel()
    await store.close()


async def _create(registry: Registry, name: str, size: int = 1, namespace: str = "default") -> bool:
    info = registry.kinds.lookup("", "v1", "configmaps")
    obj = {"apiVersion": "v1", "kind": "ConfigMap", **_config_map(name, size)}
    try:
        await registry.create(info, namespace, obj, _USER)
    except (Forbidden, AlreadyExists):
        return False
    return True


async def test_processes_that_share_a_store_do_not_exceed_a_count_quota_together(tmp_path: Path) -> None:
    store = SQLStore(f"sqlite:///{tmp_path / 'state.db'}")
    await store.ready()
    before = Registry(store, clock=SystemClock())
    await before.start()
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q"},
        "spec": {"hard": {"count/configmaps": "10"}},
    }
    await before.create(before.kinds.lookup("", "v1", "resourcequotas"), "default", quota, WriteOptions())
    async with _registries(store, 2, RegistryOptions()) as registries:
        first = registries[0]
        names = [f"c{number % 30}" for number in range(60)]
        created = await asyncio.gather(*(_create(registries[i % 2], name) for i, name in enumerate(names)))
        page = await store.list("/core/configmaps/default/")
        assert sum(created) == len(page.entries) <= 10
        entry = await store.get("/core/resourcequotas/default/q")
        assert entry is not None
        assert encoding.decode(entry.value)["status"]["used"] == {"count/configmaps": str(len(page.entries))}
        assert await _create(first, "fits") is (len(page.entries) < 10)
        info = first.kinds.lookup("", "v1", "configmaps")
        for item in page.entries[:3]:
            await registries[1].delete(info, "default", item.key.rpartition("/")[2], DeleteOptions())
        assert await _create(first, "after-deletion")


async def test_a_copy_by_the_control_plane_counts_and_is_never_refused() -> None:
    options = RegistryOptions(namespace_bytes_max=100_000)
    async with _registries(MemoryStore(), 1, options) as (registry,):
        for _ in range(20):  # until the loop has counted the stored objects, which suspends no more often in memory
            await asyncio.sleep(0)
        client = LocalClient(registry)
        assert await _create(registry, "source", 60_000)
        assert not registry.is_full("default")
        copy = {"metadata": {"name": "copy", "namespace": "default"}, "data": {"k": "x" * 60_000}}
        await client.create(CONFIGMAPS, copy)
        assert not await _create(registry, "another", 100)
        assert registry.is_full("default")
        assert not registry.is_full("other")


@pytest.mark.parametrize("hard", [{"count/configmaps": "1"}, {"bytes/configmaps": "70000"}], ids=["count", "bytes"])
async def test_a_copy_by_the_control_plane_is_not_refused_by_a_quota(hard: dict[str, str]) -> None:
    async with _registries(MemoryStore(), 1, RegistryOptions()) as (registry,):
        for _ in range(20):
            await asyncio.sleep(0)
        client = LocalClient(registry)
        quota = {"metadata": {"name": "q", "namespace": "default"}, "spec": {"hard": hard}}
        await client.create(Resource("", "v1", "ResourceQuota", "resourcequotas"), quota)
        assert await _create(registry, "source", 60_000)
        copy = {"metadata": {"name": "copy", "namespace": "default"}, "data": {"k": "x" * 60_000}}
        await client.create(CONFIGMAPS, copy)
        assert not await _create(registry, "another", 100)
