"""A host in memory on a manual clock, with federated objects as informers show them, for what delivery asks the host.

There are no members: what one has is put into the records, as the answer to our own write.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from tests.support.member_world import placed
from tests.support.preparedstores import a_host_store
from tests.support.wiredhost import wire_host

from federation.api.resources import FEDERATED_OBJECTS
from federation.apimachinery.clock import ManualClock
from federation.apimachinery.resources import Object, Resource
from federation.apiserver.registry.registry import Registry
from federation.assembly import HOST_REGISTRY
from federation.client.client import PatchType
from federation.client.local import LocalClient
from federation.delivery.members.keptstate import KeptState
from federation.delivery.members.memberobjects import MemberObjectCache
from federation.delivery.members.memberrecords import MemberRecords
from federation.delivery.rules.memberrecord import MemberKey
from federation.runtime.controller import Key, key_of


class Host:
    """`reported` has the Events, `enqueued` the keys of the objects that shall be reconciled."""

    def __init__(self, registry: Registry, clock: ManualClock) -> None:
        self.clock = clock
        self.client = LocalClient(registry)
        self.wired = replace(wire_host(self.client, clock), recorder=self)
        self.objects, self.informers = self.wired.objects, self.wired.informers
        self.records = MemberRecords(clock)
        self.kept = KeptState()
        self.member_objects = MemberObjectCache(self.wired.members, self.records, clock, self.kept)
        self.reported: list[tuple[str, str]] = []
        self.enqueued: list[Key] = []

    def event(self, obj: Object, type_: str, reason: str, message: str) -> None:
        self.reported.append((reason, message))

    async def until(self, condition: Callable[[], Any]) -> None:
        """Give way to the informers until the condition holds."""
        async with asyncio.timeout(60):
            while not condition():  # noqa: ASYNC110  # any state may be waited for, not only an event
                await asyncio.sleep(0)

    async def federate(self, template: Object, *clusters: str, **metadata: Any) -> tuple[Key, Object]:
        """Create the federated object of a template, placed in the clusters, and wait until the caches have it."""
        group = template["apiVersion"].rpartition("/")[0]
        type_ = self.objects.types.for_group_kind(group, template["kind"])
        assert type_ is not None
        key = self.objects.key_of_source(type_, template)
        federated = {
            "apiVersion": FEDERATED_OBJECTS.api_version,
            "kind": FEDERATED_OBJECTS.kind,
            "metadata": {"name": key.name, "namespace": key.namespace, **metadata},
            "spec": {"template": template, **placed(dict.fromkeys(clusters))},
        }
        created = await self.client.create(FEDERATED_OBJECTS, federated)
        await self.until(lambda: self.objects.get(key) is not None)
        assert key == key_of(created)
        return key, created

    async def patch(self, key: Key, body: Object, *, subresource: str = "") -> Object:
        """Merge-patch a federated object, and wait until the caches have it."""
        patched = await self.client.patch(
            FEDERATED_OBJECTS,
            key.name,
            body,
            patch_type=PatchType.MERGE,
            namespace=key.namespace,
            subresource=subresource,
        )
        await self.until(lambda: self.objects.get(key) == patched)
        return patched

    def deliver(self, cluster: str, resource: Resource, obj: Object) -> MemberKey:
        """Record that the cluster has the object."""
        metadata = {"uid": "u1", "resourceVersion": "7", **obj["metadata"]}
        key = MemberKey(cluster, resource, metadata.get("namespace", ""), metadata["name"])
        self.records.record_write(key, {**obj, "metadata": metadata}, "", is_subset=True)
        return key


@asynccontextmanager
async def a_host() -> AsyncIterator[Host]:
    """Run the host's caches for the block."""
    clock = ManualClock()
    registry = Registry(await a_host_store(clock), clock=clock, options=HOST_REGISTRY)
    await registry.start()
    host = Host(registry, clock)
    tasks = [asyncio.create_task(registry.run()), asyncio.create_task(host.informers.run())]
    try:
        await host.objects.wait_synced()
        yield host
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
