"""A host's store with the federation's definitions and the shipped types, prepared once per process.

Creating them costs more than most tests that need them.
"""

from federation.api.crds import crd_manifests
from federation.api.federatedtype import default_type_configs
from federation.api.resources import FEDERATED_TYPE_CONFIGS
from federation.apimachinery.clock import Clock, ManualClock
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.assembly import HOST_REGISTRY
from federation.client.local import LocalClient
from tests.support.faults import StoreCopy, copy_of, restored

_copies: list[StoreCopy] = []


async def a_host_store(clock: Clock) -> MemoryStore:
    """Return a store of its own with this content; `Registry.start` reads it."""
    if not _copies:
        store = MemoryStore(clock=ManualClock())
        registry = Registry(store, clock=ManualClock(), options=HOST_REGISTRY)
        await registry.install_crds(crd_manifests())
        for config in default_type_configs():
            await LocalClient(registry).create(FEDERATED_TYPE_CONFIGS, config)
        _copies.append(copy_of(store))
    return restored(MemoryStore(clock=clock), _copies[0])
