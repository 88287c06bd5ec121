"""Triggers of sync, and its wiring; the steps are in `reconcile.py`.

A federated object is looked at again when anything but its status changes, when a copy changes in a way that matters
(not its status, not what others added), when a cluster becomes ready, unready or leaves, when a cluster's cache becomes
complete, and when an operation ends that nobody waited for any more. Nothing is delayed on purpose: the queue and the
ledger make bursts cheap.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.api.resources import (
    CLUSTER_FEDERATED_OBJECTS,
    FEDERATED_CLUSTERS,
    FEDERATED_OBJECTS,
    Object,
    Resource,
)
from federation.base.clock import Clock
from federation.base.errors import NotFound
from federation.client.protocol import Client
from federation.controllers.sync.cascade import Cascade
from federation.controllers.sync.clusters import Clusters
from federation.controllers.sync.copies import Copies
from federation.controllers.sync.deletion import Deletion
from federation.controllers.sync.dispatching import Dispatcher, federated_key
from federation.controllers.sync.followers import Arrivals
from federation.controllers.sync.host import Host, clusters_of_interest
from federation.controllers.sync.reconcile import Reconciler
from federation.dispatch.executor import Executor, ExecutorOptions
from federation.dispatch.ledger import Ledger, MemberKey, revision_of
from federation.runtime.controller import Controller, ControllerOptions, Key, key_of
from federation.runtime.events import Recorder
from federation.runtime.federatedtypes import FederatedTypes
from federation.runtime.informer import Informer
from federation.runtime.informers import Informers
from federation.runtime.members import Members

_BY_CLUSTER = "sync-cluster"
_URGENT, _BULK = 0, 1
"""Queue priorities: one object's own change before what touches all objects of a cluster."""


@dataclass(frozen=True, slots=True)
class SyncOptions:
    """Limits of sync."""

    workers: int = 512
    """Federated objects at a time; each waits for members most of its time, so that many cost little."""
    grace_s: float = 5.0
    """How long a reconcile waits for members before it publishes what is known and leaves the rest for later."""
    followers_wait_s: float = 30.0
    """How long a workload waits in a cluster for what its pods need to get there, before it goes without."""
    cascade_workers: int = 2
    """Leaving clusters at a time."""
    reconcile_timeout_s: float = 60.0
    executor: ExecutorOptions = field(default_factory=ExecutorOptions)


def build(
    client: Client,
    informers: Informers,
    types: FederatedTypes,
    members: Members,
    recorder: Recorder,
    clock: Clock,
    options: SyncOptions | None = None,
) -> "SyncController":
    """Return the controller, wired; nothing runs before its `run`."""
    return SyncController(client, informers, types, members, recorder, clock, options or SyncOptions())


class SyncController:
    """Owns the queues, the executor and the ledger of sync."""

    def __init__(
        self,
        client: Client,
        informers: Informers,
        types: FederatedTypes,
        members: Members,
        recorder: Recorder,
        clock: Clock,
        options: SyncOptions,
    ) -> None:
        self._types = types
        self._members = members
        self._federated: dict[bool, Informer] = {
            True: informers.for_resource(FEDERATED_OBJECTS),
            False: informers.for_resource(CLUSTER_FEDERATED_OBJECTS),
        }
        self._cluster_informer = informers.for_resource(FEDERATED_CLUSTERS)
        self._ledger = Ledger()
        self.executor = Executor(self._client_of, clock=clock, options=options.executor)
        self._clusters = Clusters(self._on_cluster_changed)
        self._host = Host(client, self._cached)
        copies = Copies(members, self._ledger)
        self._arrivals = Arrivals(
            types, self._cached, copies, recorder, clock, wait_s=options.followers_wait_s, enqueue=self.enqueue
        )
        self._dispatcher = Dispatcher(
            members,
            self.executor,
            self._ledger,
            copies,
            self._arrivals,
            recorder,
            clock,
            grace_s=options.grace_s,
            enqueue=self.enqueue,
        )
        self.executor.on_recovered = self._dispatcher.recover
        deletion = Deletion(self._host, self._clusters, self._dispatcher, self._arrivals, recorder, clock)
        reconciler = Reconciler(self._host, types, self._clusters, self._dispatcher, deletion, recorder, clock)
        cascade = Cascade(client, self._cluster_object, self._cached, types, members, recorder)
        limits = ControllerOptions(reconcile_timeout_s=options.reconcile_timeout_s)
        self.controller: Controller[Key] = Controller(
            "sync",
            reconciler.reconcile,
            workers=options.workers,
            clock=clock,
            options=limits,
            resync=self._all_keys,
        )
        self.cascade: Controller[str] = Controller(
            "sync-cascade",
            cascade.reconcile,
            workers=options.cascade_workers,
            clock=clock,
            options=ControllerOptions(reconcile_timeout_s=600.0),
        )
        self._followed: set[Resource] = set()
        self._subscribe()

    @property
    def has_synced(self) -> bool:
        """Whether everything that decides on the host is known."""
        informers = [*self._federated.values(), self._cluster_informer]
        return self._types.has_synced and all(informer.has_synced for informer in informers)

    def enqueue(self, key: Key) -> None:
        """Ask for a reconcile of a federated object."""
        self.controller.enqueue(key)

    async def run(self) -> None:
        """Work until cancelled. Nothing is decided before types, clusters and federated objects are all known."""
        for informer in (*self._federated.values(), self._cluster_informer):
            await informer.wait_synced()
        await self._types.wait_synced()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.executor.run(), name="sync-executor")
            group.create_task(self.controller.run(), name="sync")
            group.create_task(self.cascade.run(), name="sync-cascade")

    # -- reading

    def _cached(self, key: Key) -> Object | None:
        return self._federated[bool(key.namespace)].get(key.namespace, key.name)

    def _cluster_object(self, name: str) -> Object | None:
        return self._cluster_informer.get("", name)

    def _client_of(self, cluster: str) -> Client | None:
        try:
            return self._members.client(cluster)
        except NotFound:
            return None

    def _all_keys(self) -> Iterable[Key]:
        return [key_of(obj) for informer in self._federated.values() for obj in informer.list()]

    # -- triggers

    def _subscribe(self) -> None:
        for informer in self._federated.values():
            informer.add_index(_BY_CLUSTER, clusters_of_interest)
            informer.add_handler(self._on_federated)
        self._types.add_listener(self._on_type_added, self._on_type_removed)
        self._cluster_informer.add_handler(self._on_cluster)
        self._members.add_handler(self._on_member)
        self._members.add_sync_listener(self._on_synced)

    def _on_federated(self, old: Object | None, new: Object | None) -> None:
        obj = new if new is not None else old
        assert obj is not None
        key = key_of(obj)
        self._host.saw(key)
        self._arrivals.changed(obj)
        if new is None:
            self._arrivals.forget(key)
            return
        if old is None:
            self._follow_type_of(new)
        elif not _is_relevant(old, new):
            return
        self.controller.enqueue(key, priority=_URGENT)

    def _follow_type_of(self, federated: Object) -> None:
        """Start to follow the members' objects of a type when its first federated object appears."""
        type_ = self._types.for_federated(federated)
        if type_ is not None and type_.resource not in self._followed:
            self._followed.add(type_.resource)
            self._members.ensure_informer(type_.resource)

    def _on_type_added(self, type_: FederatedType) -> None:
        for informer in self._federated.values():
            for obj in informer.list():
                if self._types.for_federated(obj) == type_:
                    self._follow_type_of(obj)
                    self.controller.enqueue(key_of(obj), priority=_BULK)

    def _on_type_removed(self, type_: FederatedType) -> None:
        if type_.resource in self._followed:
            self._followed.discard(type_.resource)
            self._members.release_informer(type_.resource)

    def _on_cluster(self, old: Object | None, new: Object | None) -> None:
        self._clusters.handle(old, new)
        name = (new if new is not None else old or {})["metadata"]["name"]
        if new is not None and _concerns_cascade(new):
            self.cascade.enqueue(name)

    def _on_cluster_changed(self, name: str) -> None:
        if self._clusters.get(name) is None:
            self._dispatcher.forget_cluster(name)
        self._enqueue_objects_of(name)

    def _enqueue_objects_of(self, cluster: str, type_: FederatedType | None = None) -> None:
        for informer in self._federated.values():
            for obj in informer.by_index(_BY_CLUSTER, cluster):
                if type_ is None or self._types.for_federated(obj) is type_:
                    self.controller.enqueue(key_of(obj), priority=_BULK)

    def _on_synced(self, cluster: str, resource: Resource) -> None:
        type_ = self._types.for_resource(resource)
        if type_ is not None:
            self._enqueue_objects_of(cluster, type_)

    def _on_member(self, cluster: str, resource: Resource, old: Object | None, new: Object | None) -> None:
        type_ = self._types.for_resource(resource)
        obj = new if new is not None else old
        if type_ is None or obj is None:
            return
        metadata = obj["metadata"]
        key = MemberKey(cluster, resource, metadata.get("namespace", ""), metadata["name"])
        if new is None:
            self._ledger.note_gone(key)
        else:
            is_own = self._is_own_write(key, new)
            self._ledger.note_seen(key, revision_of(new))
            if old is None:
                self._arrivals.appeared(key)
            if is_own or (old is not None and not _is_touched(old, new)):
                return
        self.controller.enqueue(federated_key(type_, obj), priority=_URGENT)

    def _is_own_write(self, key: MemberKey, new: Object) -> bool:
        """Say whether the event is the echo of what we wrote, or of what we are about to hear that we wrote."""
        if self.executor.is_under_way(key):
            return True
        return self._ledger.revision(key) == revision_of(new)


def _concerns_cascade(cluster: Object) -> bool:
    metadata = cluster["metadata"]
    has_finalizer = names.CASCADING_DELETE_FINALIZER in (metadata.get("finalizers") or ())
    return has_finalizer == bool(metadata.get("deletionTimestamp"))


def _is_relevant(old: Object, new: Object) -> bool:
    """Say whether a federated object changed in anything but its status, which only sync writes."""
    before, after = old["metadata"], new["metadata"]
    if before.get("generation") != after.get("generation") or before.get("uid") != after.get("uid"):
        return True
    return any(
        before.get(name) != after.get(name) for name in ("annotations", "deletionTimestamp", "finalizers", "labels")
    )


def _is_touched(old: Object, new: Object) -> bool:
    """Say whether a copy changed in a way that may take something of ours away: what others add does not matter."""
    before, after = old["metadata"], new["metadata"]
    if before.get("uid") != after.get("uid") or before.get("deletionTimestamp") != after.get("deletionTimestamp"):
        return True
    if any(_lost(before.get(name), after.get(name)) for name in ("labels", "annotations")):
        return True
    if "generation" in after:
        return bool(before.get("generation") != after["generation"])
    keys = (old.keys() | new.keys()) - {"metadata", "status"}
    return any(old.get(key) != new.get(key) for key in keys)


def _lost(before: dict[str, Any] | None, after: dict[str, Any] | None) -> bool:
    """Say whether an entry vanished or changed; the Deployment controller's own revision counter does not count."""
    if not before or before == after:
        return False
    held = after or {}
    return any(held.get(key) != value for key, value in before.items() if key != names.DEPLOYMENT_REVISION)
