"""Connections of a process that does not run the controllers: those of the joined clusters, as the host describes them."""

import asyncio
import base64
from collections.abc import AsyncIterator

import pytest

from federation.api import names
from federation.api.crds import crd_manifests
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.clock import SystemClock
from federation.apimachinery.resources import NAMESPACES, SECRETS, Object, Resource
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.client.local import LocalClient
from federation.client.pool import ClusterPool
from federation.memberproxy.replicaconnections import ReplicaConnections
from federation.runtime.informers import Informers

SYSTEM = names.SYSTEM_NAMESPACE


class Stage:
    """A host in memory, and the pools of a process that follows and of one that leads."""

    def __init__(self, registry: Registry) -> None:
        self.user = LocalClient(registry, user_agent="test")
        self.informers = Informers(LocalClient(registry))
        self.following, self.leading = ClusterPool(), ClusterPool()
        ReplicaConnections(self.informers, self.following, lambda: False)
        ReplicaConnections(self.informers, self.leading, lambda: True)

    async def patch(self, resource: Resource, body: Object, subresource: str = "") -> None:
        """Change the cluster or its Secret, and wait until the informers have seen it."""
        namespace = SYSTEM if resource.namespaced else ""
        written = await self.user.patch(resource, "east", body, namespace=namespace, subresource=subresource)
        await self.seen(resource, written)

    async def seen(self, resource: Resource, written: Object) -> None:
        namespace = SYSTEM if resource.namespaced else ""
        informer = self.informers.for_resource(resource, namespace=namespace)
        assert await informer.wait_for(written["metadata"]["resourceVersion"])

    async def token(self, text: str) -> None:
        await self.patch(SECRETS, {"data": {names.SECRET_BOOTSTRAP_TOKEN: base64.b64encode(text.encode()).decode()}})

    def token_in_use(self) -> str:
        connection = self.following.connection("east")
        return connection.token if connection is not None else ""


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    registry = Registry(MemoryStore(), clock=SystemClock())
    running = [asyncio.create_task(registry.run())]
    await registry.install_crds(crd_manifests())
    stage = Stage(registry)
    running.append(asyncio.create_task(stage.informers.run()))
    await stage.user.create(NAMESPACES, {"metadata": {"name": SYSTEM}})
    await stage.user.create(SECRETS, {"metadata": {"name": "east", "namespace": SYSTEM}})
    await stage.informers.wait_synced()
    await stage.token("first")
    spec = {"apiEndpoint": "https://127.0.0.1:1", "insecure": True, "secretRef": {"name": "east"}}
    await stage.user.create(FEDERATED_CLUSTERS, {"metadata": {"name": "east"}, "spec": spec})
    yield stage
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)


async def join(stage: Stage) -> None:
    await stage.patch(FEDERATED_CLUSTERS, {"status": {"joinPerformed": True}}, "status")


async def test_a_cluster_has_a_connection_from_its_join_to_its_end(stage: Stage) -> None:
    assert stage.following.clusters == []
    await join(stage)
    assert stage.token_in_use() == "first"
    await stage.user.delete(FEDERATED_CLUSTERS, "east")
    spec = {"apiEndpoint": "https://127.0.0.1:1", "secretRef": {"name": "west"}}
    later = await stage.user.create(FEDERATED_CLUSTERS, {"metadata": {"name": "west"}, "spec": spec})
    await stage.seen(FEDERATED_CLUSTERS, later)
    assert stage.following.clusters == []


async def test_new_credentials_and_endpoints_are_used(stage: Stage) -> None:
    await join(stage)
    await stage.token("second")
    assert stage.token_in_use() == "second"
    await stage.patch(FEDERATED_CLUSTERS, {"spec": {"apiEndpoint": "https://127.0.0.1:2"}})
    connection = stage.following.connection("east")
    assert connection is not None
    assert connection.server == "https://127.0.0.1:2"


async def test_where_the_controllers_run_they_decide(stage: Stage) -> None:
    await join(stage)
    assert stage.following.clusters == ["east"]
    assert stage.leading.clusters == []
