"""Caches of the members: per joined cluster a client and informers for the resources in use.

Every cluster has its own informers and tasks, so a member that hangs does not affect the others, and its caches keep
their content; `is_synced` distinguishes complete caches from incomplete ones. Only managed objects are cached. Nodes
and pods have separate informers with slim objects, only where capacity is needed. The cluster controller calls
`add_cluster` and `remove_cluster`; `client/pool.py` owns the connections.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import prometheus_client

from federation.api import names
from federation.apimachinery.clock import Clock, SystemClock
from federation.apimachinery.ownerreferences import controller_uids
from federation.apimachinery.resources import NODES, PODS, Object, Resource
from federation.client.breaker import Breaker
from federation.client.client import Client
from federation.runtime.admittance import CacheBudget, Transform
from federation.runtime.handlers import Handler
from federation.runtime.indexer import CacheKey
from federation.runtime.informer import Informer, InformerOptions
from federation.runtime.informers import Informers
from federation.runtime.memberclients import Clients, ClusterListener
from federation.runtime.pageslots import PageSlots
from federation.runtime.podstream import WITHOUT_NODE, PodStream
from federation.runtime.replay import replay
from federation.runtime.transforms import drop_managed_fields, slim_node, slim_pod

_ready = prometheus_client.Gauge(
    "federation_runtime_cluster_ready", "1 while a member is published as ready, 0 otherwise", ["cluster"]
)
_health_changes = prometheus_client.Counter(
    "federation_runtime_cluster_health_changes_total", "Published changes of a member's health", ["cluster", "ready"]
)

_probe_lag = prometheus_client.Histogram(
    "federation_runtime_cluster_probe_lag_seconds",
    "Time from the moment at which a member's probe is due to its answer",
    buckets=(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10),
)

MemberHandler = Callable[[str, Resource, Object | None, Object | None], None]
"""Called with cluster, resource, old and new object, like an informer's handler."""
BY_CONTROLLER = "controller"
"""Index of pods and ReplicaSets by the uid of the object that controls them."""
RunningHandler = Callable[[str, Object | None, int], None]
"""Called with a cluster and what a `PodHandler` gets."""
SyncListener = Callable[[str, Resource], None]
DiscardListener = Callable[[Resource, Iterator[CacheKey]], None]
"""Called with a resource and the namespaces and names of the objects that a discarded cache had."""


@dataclass(frozen=True, slots=True)
class MemberOptions:
    """Options of the members' informers."""

    label_selector: str = f"{names.MANAGED_LABEL}=true"
    """Selects the objects to cache: managed ones."""
    informer: InformerOptions = field(
        default_factory=lambda: InformerOptions(list_pages_max=2_000, list_objects_max=200_000)
    )
    cache_bytes_max: int = 1024 * 1024 * 1024
    """Estimated memory of all caches of one cluster."""
    parsed_max: int = 256
    """Managed objects of one kind and cluster that stay parsed in the cache (see `indexer.Cache`)."""
    transform: Transform = drop_managed_fields


class Capacity(NamedTuple):
    """The caches behind the capacity of a cluster. Pods that run are only reported to handlers, not cached."""

    nodes: Informer
    waiting: Informer
    """Slim pods without a node, indexed `BY_CONTROLLER`."""
    running: PodStream

    @property
    def are_current(self) -> bool:
        """Whether all are complete and connected."""
        return all(each.has_synced and each.is_connected for each in self)

    @property
    def have_synced(self) -> bool:
        """Whether all are complete."""
        return all(each.has_synced for each in self)


class _Member:
    """One cluster: its informers by resource and the task that runs them."""

    def __init__(self, name: str, informers: Informers) -> None:
        self.name = name
        self.informers = informers
        self.by_resource: dict[Resource, Informer] = {}
        self.capacity: Capacity | None = None
        self.pods: dict[str, Informer] = {}
        self.owned: dict[Resource, Informer] = {}
        self.tasks: list[asyncio.Task[None]] = []


class Members:
    """The joined clusters and their caches."""

    def __init__(self, clients: Clients, *, clock: Clock | None = None, options: MemberOptions | None = None) -> None:
        self._clients = clients
        self._clock = clock or SystemClock()
        self._options = options or MemberOptions()
        self._members: dict[str, _Member] = {}
        self._in_use: Counter[Resource] = Counter()
        self._handlers: list[MemberHandler] = []
        self._capacity_handlers: list[MemberHandler] = []
        self._running_handlers: list[RunningHandler] = []
        self._pod_handlers: list[MemberHandler] = []
        self._sync_listeners: list[SyncListener] = []
        self._served_listeners: list[SyncListener] = []
        self._connection_listeners: list[ClusterListener] = []
        self._discard_listeners: list[DiscardListener] = []
        self._group: asyncio.TaskGroup | None = None
        self._page_slots = PageSlots(self._clock)
        clients.add_listener(self._on_rebuilt)
        clients.add_recovery_listener(self._on_recovered)

    # -- clusters

    @property
    def clusters(self) -> list[str]:
        """The joined clusters' names, sorted."""
        return sorted(self._members)

    def __contains__(self, cluster: str) -> bool:
        return cluster in self._members

    def client(self, cluster: str) -> Client:
        """Return the cluster's client; NotFound when the pool does not know it."""
        return self._clients.client(cluster)

    async def check_identity(self, cluster: str) -> str:
        """Check the cluster's identity if that is due, and return its uid; ClusterIdentityMismatch."""
        return await self._clients.check_identity(cluster)

    def breaker(self, cluster: str) -> Breaker | None:
        """Return the cluster's circuit breaker, None when the pool does not know it."""
        return self._clients.breaker(cluster)

    def record_health(self, cluster: str, ready: str, *, is_change: bool) -> None:
        """Record a member's published readiness, "True", "False" or "Unknown", in the metrics."""
        _ready.labels(cluster).set(ready == "True")
        if is_change:
            _health_changes.labels(cluster, ready).inc()

    def record_probe(self, lag_s: float) -> None:
        """Record in the metrics how long after its due time a member's probe had its answer."""
        _probe_lag.observe(lag_s)

    def add_recovery_listener(self, on_recovered: ClusterListener) -> None:
        """Call `on_recovered` with the name of each cluster whose circuit closes again."""
        self._clients.add_recovery_listener(on_recovered)

    def add_cluster(self, cluster: str) -> None:
        """Start the cluster's informers, unless they run already."""
        if cluster in self._members:
            return
        informers = Informers(
            self._clients.client(cluster),
            clock=self._clock,
            cluster=cluster,
            options=self._options.informer,
            budget=CacheBudget(cluster, self._options.cache_bytes_max),
        )
        member = self._members[cluster] = _Member(cluster, informers)
        if self._group is not None:
            self._start(member)
        for resource in self._in_use:
            self._watch(member, resource)

    def remove_cluster(self, cluster: str) -> None:
        """Discard the cluster's caches. Handlers get no delete events, because nothing was deleted."""
        member = self._members.pop(cluster, None)
        if member is not None:
            for task in member.tasks:
                task.cancel()
            with contextlib.suppress(KeyError):
                _ready.remove(cluster)
            for resource, informer in member.by_resource.items():
                for listener in self._discard_listeners:
                    listener(resource, informer.cache.keys())

    # -- resources

    def ensure_informer(self, resource: Resource) -> None:
        """Watch the resource in every cluster, now and later; each call needs a `release_informer`."""
        self._in_use[resource] += 1
        if self._in_use[resource] == 1:
            for member in self._members.values():
                self._watch(member, resource)

    def release_informer(self, resource: Resource) -> None:
        """Undo one `ensure_informer`; the last call stops the informers."""
        self._in_use[resource] -= 1
        if self._in_use[resource] > 0:
            return
        del self._in_use[resource]
        for member in self._members.values():
            informer = member.by_resource.pop(resource, None)
            if informer is not None:
                member.informers.release(informer)

    def informer(self, cluster: str, resource: Resource) -> Informer | None:
        """Return the cluster's informer of the resource, None without one."""
        member = self._members.get(cluster)
        return member.by_resource.get(resource) if member is not None else None

    def is_synced(self, cluster: str, resource: Resource) -> bool:
        """Return whether the cache is complete; only then is an object that it lacks absent from the cluster."""
        informer = self.informer(cluster, resource)
        return informer is not None and informer.has_synced

    def get_cached(self, cluster: str, resource: Resource, namespace: str, name: str) -> Object | None:
        """Return the cached managed object; None also while the cache is incomplete (see `is_synced`)."""
        informer = self.informer(cluster, resource)
        return informer.get(namespace, name) if informer is not None else None

    def add_handler(self, handler: MemberHandler) -> None:
        """Call the handler for every change of every watched resource; cached objects are added first."""
        self._handlers.append(handler)
        with replay():
            for member in self._members.values():
                for resource, informer in member.by_resource.items():
                    for obj in informer.cache.scan():
                        handler(member.name, resource, None, obj)

    def add_sync_listener(self, listener: SyncListener) -> None:
        """Call the listener when a cluster's cache of a resource becomes complete, and now for complete caches."""
        self._sync_listeners.append(listener)
        for member in self._members.values():
            for resource, informer in member.by_resource.items():
                if informer.has_synced:
                    with replay():
                        listener(member.name, resource)

    def add_served_listener(self, listener: SyncListener) -> None:
        """Call the listener when a cluster no longer serves a watched resource, and when it serves it again."""
        self._served_listeners.append(listener)

    def add_connection_listener(self, listener: ClusterListener) -> None:
        """Call the listener when the endpoint or the credentials of a cluster have changed."""
        self._connection_listeners.append(listener)

    def add_discard_listener(self, listener: DiscardListener) -> None:
        """Call the listener for each cache of a cluster that has left: what it showed is no longer known."""
        self._discard_listeners.append(listener)

    # -- capacity

    def ensure_capacity_informers(self, cluster: str) -> None:
        """Watch the cluster's nodes and pods; an unknown cluster is ignored. Only pods without a node are cached."""
        member = self._members.get(cluster)
        if member is None or member.capacity is not None:
            return

        def report(pod: Object | None, change: int) -> None:
            for handler in self._running_handlers:
                handler(cluster, pod, change)

        running = PodStream(
            self._clients.client(cluster),
            report,
            clock=self._clock,
            cluster=cluster,
            options=self._options.informer,
            slots=self._page_slots,
        )
        nodes = member.informers.for_resource(NODES, transform=slim_node)
        waiting = member.informers.for_resource(PODS, field_selector=WITHOUT_NODE, transform=slim_pod)
        waiting.add_index(BY_CONTROLLER, controller_uids)
        nodes.add_handler(self._forwarder(cluster, NODES, self._capacity_handlers))
        waiting.add_handler(self._forwarder(cluster, PODS, self._capacity_handlers))
        member.informers.add(running)
        member.capacity = Capacity(nodes, waiting, running)

    def capacity(self, cluster: str) -> Capacity | None:
        """Return the caches of nodes and pods, None when the cluster has none."""
        member = self._members.get(cluster)
        return member.capacity if member is not None else None

    def add_running_handler(self, handler: RunningHandler) -> None:
        """Call the handler when a pod begins or ceases to use a node."""
        self._running_handlers.append(handler)

    def ensure_pods(self, cluster: str, namespace: str = "") -> Informer | None:
        """Watch all pods of a namespace, or of the cluster, with slim objects; None for unknown clusters.

        For features that must look at pods one by one: their memory depends on the number of pods. Sync listeners are
        called for the first complete list.
        """
        member = self._members.get(cluster)
        if member is None:
            return None
        informer = member.pods.get(namespace)
        if informer is None:
            informer = member.informers.for_resource(PODS, namespace=namespace, transform=slim_pod)
            informer.add_index(BY_CONTROLLER, controller_uids)
            informer.add_handler(self._forwarder(cluster, PODS, self._pod_handlers))
            member.pods[namespace] = informer
            self._notify_when_synced(member, PODS, informer)
        return informer

    def add_pod_handler(self, handler: MemberHandler) -> None:
        """Call the handler for every change of a pod in a cache of `ensure_pods`."""
        self._pod_handlers.append(handler)

    def ensure_owned_informer(self, cluster: str, resource: Resource, transform: Transform) -> Informer | None:
        """Watch objects that the cluster's own controllers create, reduced by `transform`; None for unknown clusters.

        These objects are indexed `BY_CONTROLLER`. Sync listeners are called for the first
        complete list; handlers are not called for changes.
        """
        member = self._members.get(cluster)
        if member is None:
            return None
        informer = member.owned.get(resource)
        if informer is None:
            informer = member.owned[resource] = member.informers.for_resource(resource, transform=transform)
            self.ensure_capacity_informers(cluster)
            informer.add_index(BY_CONTROLLER, controller_uids)
            self._notify_when_synced(member, resource, informer)
        return informer

    def ensure_selected_informer(
        self, cluster: str, resource: Resource, label_selector: str, *, transform: Transform
    ) -> Informer | None:
        """Watch objects of a label, managed or not, reduced by `transform`; None for unknown clusters.

        A resource has one such informer, or an owned one. Sync listeners are called for its first complete list.
        """
        member = self._members.get(cluster)
        if member is None:
            return None
        informer = member.owned.get(resource)
        if informer is None:
            informer = member.informers.for_resource(resource, label_selector=label_selector, transform=transform)
            member.owned[resource] = informer
            self._notify_when_synced(member, resource, informer)
        return informer

    def add_capacity_handler(self, handler: MemberHandler) -> None:
        """Call the handler for every later change of a watched node, or of a pod without a node."""
        self._capacity_handlers.append(handler)

    def limit_exceeded(self, cluster: str) -> str:
        """Return the limit that one of the cluster's lists or watches exceeds, as a message; "" if none does."""
        member = self._members.get(cluster)
        informers = member.informers.all() if member is not None else []
        return next((informer.limit_exceeded for informer in informers if informer.limit_exceeded), "")

    def malformed(self, cluster: str) -> list[str]:
        """Return the resources of which the cluster sends items that are not Kubernetes objects."""
        member = self._members.get(cluster)
        informers = member.informers.all() if member is not None and member.informers.have_malformed else []
        return sorted({informer.resource.group_resource for informer in informers if informer.has_malformed})

    # -- running

    async def run(self) -> None:
        """Run the informers of all clusters, also of later ones, until cancelled."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                for member in self._members.values():
                    self._start(member)
                await asyncio.get_running_loop().create_future()
            finally:
                self._group = None

    def _start(self, member: _Member) -> None:
        if self._group is None:
            return
        member.tasks.append(self._group.create_task(member.informers.run(), name=f"member {member.name}"))
        pods = ((PODS, informer) for informer in member.pods.values())
        for resource, informer in (*member.by_resource.items(), *member.owned.items(), *pods):
            self._notify_when_synced(member, resource, informer)

    def _watch(self, member: _Member, resource: Resource) -> None:
        informer = member.informers.for_resource(
            resource,
            label_selector=self._options.label_selector,
            transform=self._options.transform,
            parsed_max=self._options.parsed_max,
        )
        member.by_resource[resource] = informer
        informer.add_handler(self._forwarder(member.name, resource, self._handlers))
        informer.server.add_listener(partial(self._notify_served, member.name, resource))
        self._notify_when_synced(member, resource, informer)

    def _notify_served(self, cluster: str, resource: Resource) -> None:
        for listener in self._served_listeners:
            listener(cluster, resource)

    def _notify_when_synced(self, member: _Member, resource: Resource, informer: Informer) -> None:
        async def notify() -> None:
            await informer.wait_synced()
            current = (member.by_resource.get(resource), member.owned.get(resource), *member.pods.values())
            if informer in current:
                with replay():
                    for listener in self._sync_listeners:
                        listener(member.name, resource)

        if self._group is not None:
            member.tasks = [task for task in member.tasks if not task.done()]
            member.tasks.append(self._group.create_task(notify(), name=f"sync of {resource.plural} in {member.name}"))

    def _on_rebuilt(self, cluster: str) -> None:
        member = self._members.get(cluster)
        if member is not None:
            member.informers.invalidate()
            for listener in self._connection_listeners:
                listener(cluster)

    def _on_recovered(self, cluster: str) -> None:
        member = self._members.get(cluster)
        if member is not None:
            member.informers.retry()

    @staticmethod
    def _forwarder(cluster: str, resource: Resource, handlers: list[MemberHandler]) -> Handler:
        def forward(old: Object | None, new: Object | None) -> None:
            for handler in handlers:
                handler(cluster, resource, old, new)

        return forward
