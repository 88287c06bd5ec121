"""The inventory of a plan from hosts of other versions."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from federation.api.crds import crd_manifests
from federation.api.resources import FEDERATED_CLUSTERS, PROJECTS
from federation.apimachinery.clock import ManualClock
from federation.apimachinery.errors import NotFound
from federation.apimachinery.resources import NAMESPACES, Resource
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.assembly import HOST_REGISTRY
from federation.client.client import Client
from federation.client.local import LocalTransport
from federation.features.catalogue import decision_chain
from federation.plans.inventory import read_inventory


@asynccontextmanager
async def a_host_without(resource: Resource) -> AsyncIterator[Client]:
    """Run a host that does not serve one of our kinds."""
    clock = ManualClock()
    registry = Registry(MemoryStore(clock=clock), clock=clock, options=HOST_REGISTRY)
    served = [crd for crd in crd_manifests() if crd["metadata"]["name"] != resource.group_resource]
    running = asyncio.create_task(registry.run())
    await registry.install_crds(served)
    yield Client(LocalTransport(registry))
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_host_that_is_older_than_a_kind_has_no_objects_of_it() -> None:
    async with a_host_without(PROJECTS) as host:
        inventory = await read_inventory(host, decision_chain())
        assert inventory.list(PROJECTS) == []
        assert "default" in {each["metadata"]["name"] for each in inventory.list(NAMESPACES)}


async def test_a_host_without_clusters_is_no_host_of_a_federation() -> None:
    async with a_host_without(FEDERATED_CLUSTERS) as host:
        with pytest.raises(NotFound):
            await read_inventory(host, decision_chain())
