"""Triggers of auto-migration, and its wiring; the steps are in `reconcile.py`.

A member object and its pods trigger a reconcile of their own workload. Nodes, and pods of others, trigger the workloads
that wait for free capacity in that member, together after a delay and not for every pod. Nothing is polled.
"""

import asyncio
from collections.abc import Iterator

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery import conditions
from federation.apimachinery.ownerreferences import owner_references
from federation.apimachinery.resources import DEPLOYMENTS, PODS, Object, Resource
from federation.controllers.automigration.reconcile import MigrationOptions, Reconciler, threshold_of
from federation.planning.automigration.podanalysis import has_scheduling_changed
from federation.planning.clusters.clusterresources import Collectors
from federation.runtime.controller import Controller, Key, key_of
from federation.runtime.host import Host
from federation.runtime.subscription import Triggers

_WORKERS = 4
_TRIGGERS = Triggers(
    annotations=frozenset(
        (names.POD_UNSCHEDULABLE_THRESHOLD, names.FAILBACK, names.AUTO_MIGRATION_INFO, names.SCHEDULING_TRIGGERS)
    )
)


class AutoMigrationController:
    """Owns the queue of auto-migration."""

    def __init__(self, host: Host, collectors: Collectors, *, options: MigrationOptions | None = None) -> None:
        chosen = options or MigrationOptions()
        self._objects = host.objects
        self._types = host.objects.types
        self._clock = host.clock
        self._options = chosen
        self._clusters = host.informers.for_resource(FEDERATED_CLUSTERS)
        self._dependents: dict[str, set[Key]] = {}
        self._clusters_of: dict[Key, frozenset[str]] = {}
        self._requeued_at_s: dict[str, float] = {}
        self._reconciler = Reconciler(
            host, collectors, chosen, watch=self._watch, cluster=lambda name: self._clusters.get("", name)
        )
        self.controller: Controller[Key] = Controller(
            "automigration", self._reconciler.reconcile, workers=_WORKERS, clock=host.clock, resync=self._all_keys
        )
        self._types.add_listener(self._on_type, self._on_type)
        host.objects.subscribe(self._on_federated, _TRIGGERS, is_late=True)
        self._clusters.add_handler(self._on_cluster)
        host.members.add_handler(self._on_member_object)
        host.members.add_capacity_handler(self._on_capacity)
        host.members.add_running_handler(self._on_running)
        host.members.add_sync_listener(self._on_synced)

    async def run(self) -> None:
        """Run until cancelled."""
        await asyncio.gather(self._objects.wait_synced(), self._clusters.wait_synced())
        await self.controller.run()

    # -- dependencies

    def _watch(self, key: Key, clusters: frozenset[str]) -> None:
        """Record the clusters in which the object waits for capacity or for a cache."""
        before = self._clusters_of.get(key, frozenset())
        for cluster in before - clusters:
            self._dependents[cluster].discard(key)
        now_s = self._clock.monotonic()
        for cluster in clusters - before:
            self._dependents.setdefault(cluster, set()).add(key)
            # The delay of an earlier change still runs: this object must see that change as well.
            if (wait_s := self._requeued_at_s.get(cluster, 0.0) - now_s) > 0:
                self.controller.enqueue(key, after_s=wait_s, priority=1)
        if clusters:
            self._clusters_of[key] = clusters
        else:
            self._clusters_of.pop(key, None)

    def _requeue_dependents(self, cluster: str, delay_s: float) -> None:
        """Enqueue the objects that depend on the cluster, once for all events within the delay."""
        now_s = self._clock.monotonic()
        if now_s < self._requeued_at_s.get(cluster, 0.0):
            return
        self._requeued_at_s[cluster] = now_s + delay_s
        for key in self._dependents.get(cluster, ()):
            self.controller.enqueue(key, after_s=delay_s, priority=1)

    def _all_keys(self) -> Iterator[Key]:
        return (key_of(federated) for federated in self._objects.scan() if _is_migrated(federated))

    # -- events

    def _on_federated(self, old: Object | None, new: Object | None) -> None:
        federated = new if new is not None else old or {}
        if _is_migrated(federated) or (old is not None and _is_migrated(old)):
            self.controller.enqueue(key_of(federated))

    def _on_cluster(self, old: Object | None, new: Object | None) -> None:
        name = (new if new is not None else old or {})["metadata"]["name"]
        if new is None or _is_ready(old) != _is_ready(new):
            self._requeued_at_s.pop(name, None)
            self._requeue_dependents(name, self._options.observe_delay_s)

    def _on_type(self, type_: FederatedType) -> None:
        if type_.resource == DEPLOYMENTS:
            for key in self._all_keys():
                self.controller.enqueue(key, priority=1)

    def _on_member_object(self, cluster: str, resource: Resource, old: Object | None, new: Object | None) -> None:  # noqa: ARG002  # a handler's signature
        if resource == DEPLOYMENTS:
            metadata = (new if new is not None else old or {})["metadata"]
            self._enqueue_workload(metadata.get("namespace", ""), metadata["name"])

    def _on_capacity(self, cluster: str, resource: Resource, old: Object | None, new: Object | None) -> None:
        if resource == PODS:
            pod = new if new is not None else old or {}
            if has_scheduling_changed(old or {}, new or {}):
                self._on_pending_pod(pod)
            return
        self._on_room(cluster)

    def _on_running(self, cluster: str, pod: Object | None, change: int) -> None:  # noqa: ARG002  # a handler's signature
        self._on_room(cluster)

    def _on_room(self, cluster: str) -> None:
        if self._dependents.get(cluster):
            self._requeue_dependents(cluster, self._options.capacity_delay_s)

    def _on_pending_pod(self, pod: Object) -> None:
        """Enqueue the pod's workload, found by name: a Deployment's name is the prefix of its ReplicaSets' names."""
        for reference in owner_references(pod["metadata"]):
            if reference.get("kind") == "ReplicaSet":
                self._enqueue_workload(pod["metadata"].get("namespace", ""), reference["name"].rpartition("-")[0])

    def _on_synced(self, cluster: str, resource: Resource) -> None:  # noqa: ARG002  # a listener's signature
        self._requeued_at_s.pop(cluster, None)
        self._requeue_dependents(cluster, self._options.observe_delay_s)

    def _enqueue_workload(self, namespace: str, name: str) -> None:
        type_ = self._types.for_resource(DEPLOYMENTS)
        if type_ is None:
            return
        key = self._objects.key_for(type_, namespace, name)
        federated = self._objects.get(key)
        if federated is not None and _is_migrated(federated):
            self.controller.enqueue(key, after_s=self._options.observe_delay_s)


def _is_migrated(federated: Object) -> bool:
    annotations = federated["metadata"].get("annotations") or {}
    return threshold_of(annotations) is not None or names.AUTO_MIGRATION_INFO in annotations


def _is_ready(cluster: Object | None) -> bool:
    return conditions.is_true(((cluster or {}).get("status") or {}).get("conditions"), names.CLUSTER_READY)
