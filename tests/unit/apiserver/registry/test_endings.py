"""Finalizers and grace periods that the registry's controllers end, also after a failure of the store."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.conformance.registry.conftest import Api, Object, a_config_map

from federation.apimachinery.clock import ManualClock
from federation.apimachinery.entropy import SeededEntropy
from federation.apimachinery.errors import StoreUnavailable
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.apiserver.verbs.requestoptions import RegistryOptions

CLAIMS, VOLUMES = "persistentvolumeclaims", "persistentvolumes"
BOUND = {"status": {"phase": "Bound"}}


class FailingStore(MemoryStore):
    """Lists of a prefix fail while `failing` is set to it."""

    failing = "-"
    failures = 0

    async def list(self, prefix: str, **options: Any) -> Any:
        if prefix.startswith(self.failing):
            self.failures += 1
            raise StoreUnavailable("the disk is full")
        return await super().list(prefix, **options)


@asynccontextmanager
async def a_registry(*, has_nodes: bool = True) -> AsyncIterator[tuple[Api, FailingStore]]:
    clock = ManualClock()
    store = FailingStore(clock=clock)
    options = RegistryOptions(collects_pods=not has_nodes)
    registry = Registry(store, clock=clock, options=options, entropy=SeededEntropy(1))
    running = asyncio.create_task(registry.run())
    await clock.advance(0)
    api = Api(registry, clock)
    await api.eventually(lambda: api.exists("namespaces", "default"))
    yield api, store
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


def a_claim(name: str = "data") -> Object:
    resources = {"requests": {"storage": "1Gi"}}
    return {"metadata": {"name": name}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": resources}}


def a_volume(**spec: Any) -> Object:
    local = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/data"}}
    return {"metadata": {"name": "disk"}, "spec": {**local, **spec}}


def a_pod(**spec: Any) -> Object:
    uses = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    return {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "a", "image": "a"}], "volumes": uses, **spec}}


def _gone(api: Api, plural: str, name: str) -> Callable[[], Any]:
    async def is_gone() -> bool:
        return not await api.exists(plural, name)

    return is_gone


async def _pass(api: Api, seconds: float) -> None:
    for _ in range(int(seconds * 2)):
        await api.clock.advance(0.5)


def _reference(uid: str = "") -> Object:
    return {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "data", **({"uid": uid} if uid else {})}


@pytest.mark.parametrize(
    ("reference", "has_claim"),
    [(None, True), (_reference(), False), (_reference("of-an-earlier-claim"), True)],
    ids=["no claim named", "the claim is gone", "another claim of the name"],
)
async def test_a_volume_whose_phase_nobody_corrects_is_released(reference: Object | None, has_claim: bool) -> None:
    async with a_registry() as (api, _):
        if has_claim:
            await api.create(CLAIMS, a_claim())
        await api.create(VOLUMES, a_volume(**({"claimRef": reference} if reference else {})))
        await api.patch(VOLUMES, "disk", BOUND, subresource="status")
        await api.delete(VOLUMES, "disk")
        await api.eventually(_gone(api, VOLUMES, "disk"))


@pytest.mark.parametrize("has_uid", [False, True], ids=["by name", "by uid"])
async def test_a_bound_volume_stays_until_its_claim_is_gone(has_uid: bool) -> None:
    async with a_registry() as (api, _):
        claim = await api.create(CLAIMS, a_claim())
        await api.create(VOLUMES, a_volume(claimRef=_reference(claim["metadata"]["uid"] if has_uid else "")))
        await api.patch(VOLUMES, "disk", BOUND, subresource="status")
        await api.delete(VOLUMES, "disk")
        await _pass(api, 60)
        assert await api.exists(VOLUMES, "disk")
        await api.create(CLAIMS, a_claim("other"))
        await api.delete(CLAIMS, "other")
        await _pass(api, 5)
        assert await api.exists(VOLUMES, "disk")
        await api.delete(CLAIMS, "data")
        await api.eventually(_gone(api, VOLUMES, "disk"))


async def test_a_pod_of_a_node_that_does_not_exist_is_removed_after_its_grace_period_with_its_claim() -> None:
    async with a_registry(has_nodes=False) as (api, _):
        await api.create(CLAIMS, a_claim())
        await api.create("pods", a_pod(nodeName="far-away", terminationGracePeriodSeconds=60))
        await api.delete("pods", "web")
        await api.delete(CLAIMS, "data")
        await _pass(api, 55)
        assert await api.exists("pods", "web")
        assert await api.exists(CLAIMS, "data")
        await api.eventually(_gone(api, "pods", "web"))
        await api.eventually(_gone(api, CLAIMS, "data"))


async def test_a_pod_of_a_node_is_left_to_its_kubelet() -> None:
    async with a_registry(has_nodes=False) as (api, _):
        await api.create("nodes", {"metadata": {"name": "near"}})
        await api.create("pods", a_pod(nodeName="near"))
        await api.delete("pods", "web")
        await _pass(api, 120)
        assert await api.exists("pods", "web")
        await api.delete("nodes", "near")
        await api.eventually(_gone(api, "pods", "web"))


async def test_a_server_with_nodes_leaves_pods_to_its_controllers() -> None:
    async with a_registry() as (api, _):
        await api.create("pods", a_pod(nodeName="far-away"))
        await api.delete("pods", "web")
        await _pass(api, 120)
        assert await api.exists("pods", "web")


async def test_a_namespace_goes_although_the_store_failed_while_it_was_emptied() -> None:
    async with a_registry() as (api, store):
        await api.create("namespaces", {"metadata": {"name": "shop"}})
        await api.create("configmaps", a_config_map("held", finalizers=["example.com/hold"]), "shop")
        await api.delete("namespaces", "shop")
        await _pass(api, 2)
        store.failing = "/core/configmaps/"
        await _pass(api, 5)
        store.failing = "-"
        assert store.failures
        await api.patch("configmaps", "held", {"metadata": {"finalizers": None}}, "shop")
        await api.eventually(_gone(api, "namespaces", "shop"))


async def test_a_claim_goes_although_the_store_failed_while_it_was_in_use() -> None:
    async with a_registry() as (api, store):
        await api.create(CLAIMS, a_claim())
        await api.create("pods", a_pod(nodeName="near"))
        await api.delete(CLAIMS, "data")
        store.failing = "/core/pods/"
        await api.patch("pods", "web", {"metadata": {"labels": {"look": "again"}}})
        await _pass(api, 5)
        store.failing = "-"
        assert store.failures
        await api.delete("pods", "web", grace_period_s=0)
        await api.eventually(_gone(api, CLAIMS, "data"))
