"""Wiring of the sync controller; the steps are in `reconcile.py`, the event handlers in `eventhandlers.py`.

A federated object is reconciled when anything but its status changes and no controller is pending, when one of its
fields in a member object may have changed, when a cluster becomes ready, unready or leaves, when a cluster's cache
becomes complete, and when an operation ends after its reconcile. An object that the host's admission holds is also
reconciled when the configuration of admission changes. There is no debounce: the queue and the records
of member objects make bursts cheap.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from federation.api.federatedtype import FederatedType
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.resources import Object
from federation.delivery.clusterdelivery import ClusterDelivery
from federation.delivery.clusterremoval import ClusterRemoval
from federation.delivery.clustersteps import Rollouts
from federation.delivery.deletion import Deletion
from federation.delivery.eventhandlers import TRIGGERS, EventHandlers
from federation.delivery.host.deletionguard import DeletionGuard
from federation.delivery.host.followerwait import FollowerReadiness
from federation.delivery.host.hostadmission import HostAdmission, HostAdmissionOptions
from federation.delivery.host.sources import Sources
from federation.delivery.host.tombstones import Tombstones
from federation.delivery.host.unwrittenfields import UnwrittenFields
from federation.delivery.members.clusters import Clusters
from federation.delivery.members.depot import Depot
from federation.delivery.members.driftreports import DriftReports
from federation.delivery.members.executor import Executor, ExecutorOptions
from federation.delivery.members.keptstate import KeptState
from federation.delivery.members.memberobjects import MemberObjectCache
from federation.delivery.members.memberoperations import MemberOperations
from federation.delivery.members.memberrecords import MemberRecords
from federation.delivery.members.operations import MemberWriter
from federation.delivery.observer import Observer
from federation.delivery.publication import WRITER, Publication
from federation.delivery.questions import Questions
from federation.delivery.reconcile import Reconciler
from federation.delivery.rules.decision import Decision
from federation.guard.suspensions import Holds
from federation.planning.guard.ledger import GuardOptions
from federation.runtime.controller import Controller, ControllerOptions, Key, key_of
from federation.runtime.host import Host

_OVERDUE_CHECK_INTERVAL_S = 5.0


@dataclass(frozen=True, slots=True)
class SyncOptions:
    """Limits of sync."""

    workers: int = 512
    """Concurrent reconciles. Each waits for members most of its time, so many of them cost little."""
    grace_s: float = 5.0
    """How long a reconcile waits for members before it publishes the results so far."""
    followers_wait_s: float = 30.0
    """How long a write of a workload waits for the objects that its pods need in the cluster."""
    cluster_removal_workers: int = 2
    """Concurrent removals of clusters."""
    reconcile_timeout_s: float = 60.0
    executor: ExecutorOptions = field(default_factory=ExecutorOptions)
    admission: HostAdmissionOptions = field(default_factory=HostAdmissionOptions)
    guard: GuardOptions = field(default_factory=GuardOptions)
    """Limits of deletions that take data with them."""


class Policies(Protocol):
    """Tells which sources policies place."""

    def expects_placement(self, type_: FederatedType, source: Mapping[str, Any]) -> bool:
        """Return whether a policy selects the source, or its type is placed without one."""
        ...

    async def wait_synced(self) -> None:
        """Return once every policy is known."""
        ...


class SyncController:
    """Owns the queues and the executor of sync."""

    def __init__(
        self,
        host: Host,
        tombstones: Tombstones,
        records: MemberRecords,
        policies: Policies,
        options: SyncOptions | None = None,
    ) -> None:
        objects, members, clock = host.objects, host.members, host.clock
        chosen = options or SyncOptions()
        self._objects = objects
        self._members = members
        self._tombstones = tombstones
        self._policies = policies
        self._records = records
        self._is_running = False
        self._clock = clock
        self._cluster_informer = host.informers.for_resource(FEDERATED_CLUSTERS)
        kept = KeptState()
        drift = DriftReports(records, host.recorder, clock, kept)
        self.executor = Executor(members, clock=clock, options=chosen.executor)
        kept.on_cluster_gone(self.executor.end_cluster, records.remove_cluster)
        member_objects = MemberObjectCache(members, records, clock, kept)
        writer, grace_s, enqueue = MemberWriter(kept, UnwrittenFields(host.client).find), chosen.grace_s, self.enqueue
        depot = Depot(host, kept, records, self.executor, member_objects, writer, Clusters(), grace_s, enqueue)
        readiness = FollowerReadiness(host, member_objects, kept, wait_s=chosen.followers_wait_s, enqueue=self.enqueue)
        self._holds = holds = Holds(host.informers, clock, self._on_hold)
        operations = MemberOperations(depot, drift, holds.suspensions)
        self.executor.on_recovered = operations.retry
        self._admission = admission = HostAdmission(host, kept, self.enqueue, chosen.admission)
        questions = Questions(depot, admission, drift)
        rollouts = Rollouts(depot, holds)
        observer = Observer(depot, admission, readiness, holds, tombstones)
        delivery = ClusterDelivery(depot, observer, operations, questions)
        self._guard = guard = DeletionGuard(host, chosen.guard, kept, self.enqueue)
        deletion = Deletion(depot, delivery, readiness, guard, tombstones)
        sources = Sources(host, kept, self.enqueue)
        publication = Publication(host, admission, policies.expects_placement, kept)
        self._reconciler = reconciler = Reconciler(depot, sources, delivery, rollouts, deletion, publication)
        find = self._find_cluster
        removal = ClusterRemoval(host, find, tombstones, holds.suspensions, writer)
        self.controller: Controller[Key] = Controller(
            "sync",
            reconciler.reconcile,
            workers=chosen.workers,
            clock=clock,
            options=ControllerOptions(reconcile_timeout_s=chosen.reconcile_timeout_s),
            resync=objects.all_keys,
            ends_delays=True,
        )
        workers, limits = chosen.cluster_removal_workers, ControllerOptions(reconcile_timeout_s=600.0)
        self.cluster_removal: Controller[str] = Controller(
            "sync-cascade", removal.reconcile, workers=workers, clock=clock, options=limits
        )
        self._handlers = EventHandlers(
            depot, readiness, rollouts, tombstones, self.controller.enqueue, self.cluster_removal
        )
        self._subscribe()

    @property
    def has_synced(self) -> bool:
        """Whether the host's caches are complete."""
        return self._objects.has_synced and self._cluster_informer.has_synced

    def preview(self, federated: Object, type_: FederatedType) -> Mapping[str, Decision]:
        """Return what would be decided now about the object by cluster, {} in a process that delivers nothing."""
        if not self._is_running:
            return {}
        return self._reconciler.preview(key_of(federated), federated, type_)

    def _find_cluster(self, name: str) -> Object | None:
        return self._cluster_informer.get("", name)

    def _on_hold(self) -> None:
        """Look at every object again: a freeze or suspension that was changed or removed may have held any of them."""
        if self._is_running:
            for key in self._objects.all_keys():
                self.controller.enqueue(key, priority=1)

    def enqueue(self, key: Key) -> None:
        """Enqueue a federated object."""
        self.controller.enqueue(key)

    async def run(self) -> None:
        """Run until cancelled. The workers start once types, clusters, objects and admission are cached."""
        await self._objects.wait_synced()
        await self._cluster_informer.wait_synced()
        await self._admission.wait_synced()
        await self._policies.wait_synced()
        await self._holds.wait_synced()
        # An unknown record would let a new object be delivered over one that is to be deleted.
        await self._tombstones.wait_synced()
        await self._guard.wait_synced()
        self._is_running = True
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.executor.run(), name="sync-executor")
                group.create_task(self.controller.run(), name="sync")
                group.create_task(self.cluster_removal.run(), name="sync-cascade")
                group.create_task(self._watch_records(), name="sync-records")
        finally:
            self._is_running = False
            await self._admission.stop()

    async def _watch_records(self) -> None:
        """Requeue objects whose members do not show what they acknowledged: no event announces what did not happen."""
        while True:
            await self._clock.sleep(_OVERDUE_CHECK_INTERVAL_S)
            for key in self._records.overdue():
                self._handlers.on_overdue(key)

    def _subscribe(self) -> None:
        handlers = self._handlers
        self._objects.subscribe(handlers.on_federated, None)
        self._objects.subscribe(handlers.on_dispatch_due, TRIGGERS, writer=WRITER, is_late=True)
        self._objects.types.add_listener(handlers.on_type_added, handlers.on_type_removed)
        self._cluster_informer.add_handler(handlers.on_cluster)
        self._tombstones.add_handler(handlers.on_leftover)
        self._members.add_handler(handlers.on_member_object)
        self._members.add_sync_listener(handlers.on_member_synced)
        self._members.add_served_listener(handlers.on_member_synced)
        self._members.add_connection_listener(handlers.on_new_connection)
