"""Registries of several processes that start at the same time on one store."""

from federation.api.crds import crd_manifests
from federation.apimachinery.clock import SystemClock
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore


async def test_definitions_that_another_process_has_just_created_are_served() -> None:
    store = MemoryStore()
    first, second = Registry(store, clock=SystemClock()), Registry(store, clock=SystemClock())
    await first.start()
    await second.start()
    await first.install_crds(crd_manifests())
    await second.install_crds(crd_manifests())
    names = {info.resource for info in first.kinds.all() if info.is_custom}
    assert names
    assert {info.resource for info in second.kinds.all() if info.is_custom} == names
