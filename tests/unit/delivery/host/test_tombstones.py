"""The records of objects that are left in members: our own writes count at once, and newer ones are not removed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from tests.support.member_world import Line
from tests.unit.apiserver.conftest import eventually

from federation.api import names
from federation.api.crds import crd_manifests
from federation.api.resources import LEFTOVERS
from federation.apimachinery.clock import ManualClock
from federation.apimachinery.resources import CONFIGMAPS, DEPLOYMENTS
from federation.apiserver.registry.registry import Registry
from federation.apiserver.store.memory import MemoryStore
from federation.assembly import HOST_REGISTRY
from federation.client.client import Client
from federation.delivery.host.tombstones import Tombstones, parse
from federation.delivery.rules.memberrecord import MemberKey
from federation.planning.leftovers.record import Action, Reason, Record
from federation.runtime.informers import Informers

RECORD = Record("m1", DEPLOYMENTS, "default", "web", Action.DELETE, Reason.SOURCE_DELETED, cluster_uid="c1", uid="u1")
KEY = MemberKey("m1", DEPLOYMENTS, "default", "web")


class Host:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.registry = Registry(MemoryStore(clock=self.clock), clock=self.clock, options=HOST_REGISTRY)
        self.line = Line(self.registry, self.clock)
        self.client = Client(self.line)
        self.informers = Informers(self.client, clock=self.clock)
        self.tombstones = Tombstones(self.client, self.informers)

    async def seen(self, record: Record, *, is_there: bool = True) -> Record | None:
        """Wait until the informer has the record, or has it no more; return it as read."""

        async def is_so() -> bool:
            return (record in self.tombstones.in_cluster(record.cluster)) is is_there

        await eventually(is_so)
        return self.tombstones.get(record.record_name)


@asynccontextmanager
async def running() -> AsyncIterator[Host]:
    host = Host()
    tasks = [asyncio.create_task(host.registry.run())]
    await host.registry.install_crds(crd_manifests())
    tasks.append(asyncio.create_task(host.informers.run()))
    await host.tombstones.wait_synced()
    yield host
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_record_counts_as_soon_as_it_is_stored() -> None:
    async with running() as host:
        await host.tombstones.put(RECORD)
        assert host.tombstones.pending(KEY, "c1") == RECORD
        assert await host.seen(RECORD) == RECORD
        assert host.tombstones._written == {}, "the informer has it now"
        host.line.calls.clear()
        await host.tombstones.put(RECORD)
        assert host.line.writes() == [("create", "leftovers", RECORD.record_name)], "the same record is not replaced"
        released = replace(RECORD, action=Action.RELEASE)
        await host.tombstones.put(released)
        assert host.tombstones.pending(KEY, "c1") == released


@pytest.mark.parametrize(
    ("record", "uid", "is_pending"),
    [
        (RECORD, "c1", True),
        (RECORD, "", True),
        (replace(RECORD, cluster_uid=""), "c1", True),
        (RECORD, "c2", False),
        (replace(RECORD, action=Action.KEEP), "c1", False),
        (replace(RECORD, action=Action.RELEASE), "c1", True),
        (replace(RECORD, name="other"), "c1", False),
        (replace(RECORD, cluster="m2"), "c1", False),
        (replace(RECORD, resource=CONFIGMAPS), "c1", False),
    ],
)
async def test_a_record_is_pending_for_its_object_in_its_cluster(record: Record, uid: str, is_pending: bool) -> None:
    async with running() as host:
        await host.tombstones.put(record)
        assert (host.tombstones.pending(KEY, uid) is not None) is is_pending


async def test_a_record_that_was_written_since_it_was_read_is_not_removed() -> None:
    async with running() as host:
        await host.tombstones.put(RECORD)
        read = await host.seen(RECORD)
        assert read is not None
        newer = replace(RECORD, message="newer")
        await host.tombstones.put(newer)
        await host.tombstones.remove(read)
        assert host.tombstones.get(RECORD.record_name) == newer
        read = await host.seen(newer)
        assert read is not None
        await host.tombstones.remove(read)
        await host.seen(newer, is_there=False)
        assert host.tombstones.get(RECORD.record_name) is None
        await host.tombstones.remove(read)


async def test_records_are_found_by_object_and_cluster_and_the_oldest_are_dropped() -> None:
    async with running() as host:
        records = [replace(RECORD, cluster=cluster, name=name) for name in ("a", "b", "c") for cluster in ("m1", "m2")]
        for record in records:
            await host.tombstones.put(record)
        await host.seen(records[-1])
        named = MemberKey("", DEPLOYMENTS, "default", "b")
        assert {each.cluster for each in host.tombstones.of_object(named)} == {"m1", "m2"}
        assert {each.name for each in host.tombstones.of_object(named)} == {"b"}
        assert len(host.tombstones.all()) == 6
        await host.tombstones.limit("m1", 3)
        await host.tombstones.limit("m1", 1)
        await host.seen(records[2], is_there=False)
        assert [each.name for each in host.tombstones.in_cluster("m1")] == ["c"]
        assert len(host.tombstones.in_cluster("m2")) == 3


async def test_a_malformed_record_is_none() -> None:
    head = {"apiVersion": LEFTOVERS.api_version, "kind": LEFTOVERS.kind, "metadata": {"name": "x"}}
    assert parse({**head, "spec": {"action": "Burn"}}) is None
    async with running() as host:
        assert host.tombstones.restoration is None
        assert not host.tombstones.is_forgotten({"metadata": {"annotations": {names.TEMPLATE_HASH: "h"}}})
