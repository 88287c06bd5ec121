"""Wiring of auto-migration: which events of federated objects, copies, pods and nodes concern which object.

Copies and pods concern their own workload. Nodes, and pods of others, concern the workloads that wait for room in that
member; those are woken together, and not for every pod. Nothing is polled.
"""

import asyncio
from collections.abc import Iterator

from federation.api import conditions, names
from federation.api.federatedtype import FederatedType
from federation.api.resources import DEPLOYMENTS, FEDERATED_CLUSTERS, FEDERATED_OBJECTS, PODS, Object, Resource
from federation.base.clock import Clock
from federation.client.protocol import Client
from federation.controllers.automigration.reconcile import MigrationOptions, Reconciler, threshold_of
from federation.planning.automigration.pods import has_scheduling_changed
from federation.planning.clusterresources import Collectors, has_ended
from federation.planning.naming import federated_object_name
from federation.runtime.controller import Controller, Key, key_of
from federation.runtime.events import Recorder
from federation.runtime.federatedtypes import FederatedTypes
from federation.runtime.informers import Informers
from federation.runtime.members import Members

_WORKERS = 4
_READ = (
    names.POD_UNSCHEDULABLE_THRESHOLD,
    names.FAILBACK,
    names.AUTO_MIGRATION_INFO,
    names.SCHEDULING_TRIGGERS,
)
"""The annotations that decide what is to be done."""


def build(
    client: Client,
    informers: Informers,
    types: FederatedTypes,
    members: Members,
    collectors: Collectors,
    recorder: Recorder,
    clock: Clock,
    options: MigrationOptions | None = None,
) -> "AutoMigrationController":
    """Return the controller, wired; nothing runs before its `run`."""
    return AutoMigrationController(
        client, informers, types, members, collectors, recorder, clock, options or MigrationOptions()
    )


class AutoMigrationController:
    """Owns the queue of auto-migration."""

    def __init__(
        self,
        client: Client,
        informers: Informers,
        types: FederatedTypes,
        members: Members,
        collectors: Collectors,
        recorder: Recorder,
        clock: Clock,
        options: MigrationOptions,
    ) -> None:
        self._types = types
        self._clock = clock
        self._options = options
        self._objects = informers.for_resource(FEDERATED_OBJECTS)
        self._clusters = informers.for_resource(FEDERATED_CLUSTERS)
        self._watching: dict[str, set[Key]] = {}
        self._watched: dict[Key, frozenset[str]] = {}
        self._woken_until_s: dict[str, float] = {}
        self._reconciler = Reconciler(
            client,
            lambda key: self._objects.get(*key),
            types,
            members,
            collectors,
            recorder,
            clock,
            options,
            watch=self._watch,
            cluster=lambda name: self._clusters.get("", name),
        )
        self.controller: Controller[Key] = Controller(
            "automigration", self._reconciler.reconcile, workers=_WORKERS, clock=clock, resync=self._all_keys
        )
        self._objects.add_handler(self._on_federated)
        self._clusters.add_handler(self._on_cluster)
        members.add_handler(self._on_copy)
        members.add_capacity_handler(self._on_capacity)
        members.add_sync_listener(self._on_synced)

    async def run(self) -> None:
        """Work until cancelled."""
        await asyncio.gather(self._types.wait_synced(), self._objects.wait_synced(), self._clusters.wait_synced())
        self._types.add_listener(self._on_type, self._on_type)
        await self.controller.run()

    # -- what objects depend on

    def _watch(self, key: Key, clusters: frozenset[str]) -> None:
        """Take down in which clusters the object waits for room, or for a cache."""
        before = self._watched.get(key, frozenset())
        for cluster in before - clusters:
            self._watching[cluster].discard(key)
        now_s = self._clock.monotonic()
        for cluster in clusters - before:
            self._watching.setdefault(cluster, set()).add(key)
            # Whoever comes while the others wait to be woken is woken with them: the change may be still to come.
            if (wait_s := self._woken_until_s.get(cluster, 0.0) - now_s) > 0:
                self.controller.enqueue(key, after_s=wait_s, priority=1)
        if clusters:
            self._watched[key] = clusters
        else:
            self._watched.pop(key, None)

    def _wake(self, cluster: str, delay_s: float) -> None:
        """Look at the objects that depend on the cluster, once for all that happens within the delay."""
        now_s = self._clock.monotonic()
        if now_s < self._woken_until_s.get(cluster, 0.0):
            return
        self._woken_until_s[cluster] = now_s + delay_s
        for key in self._watching.get(cluster, ()):
            self.controller.enqueue(key, after_s=delay_s, priority=1)

    def _all_keys(self) -> Iterator[Key]:
        return (key_of(federated) for federated in self._objects.list() if _is_concerned(federated))

    # -- events

    def _on_federated(self, old: Object | None, new: Object | None) -> None:
        federated = new if new is not None else old or {}
        if not _is_concerned(federated) and not (old is not None and _is_concerned(old)):
            return
        if old is None or new is None or _is_relevant_change(old, new):
            self.controller.enqueue(key_of(federated))

    def _on_cluster(self, old: Object | None, new: Object | None) -> None:
        name = (new if new is not None else old or {})["metadata"]["name"]
        if new is None or _is_ready(old) != _is_ready(new):
            self._woken_until_s.pop(name, None)
            self._wake(name, self._options.look_delay_s)

    def _on_type(self, type_: FederatedType) -> None:
        if type_.resource == DEPLOYMENTS:
            for key in self._all_keys():
                self.controller.enqueue(key, priority=1)

    def _on_copy(self, cluster: str, resource: Resource, old: Object | None, new: Object | None) -> None:  # noqa: ARG002  # a handler's signature
        if resource == DEPLOYMENTS:
            metadata = (new if new is not None else old or {})["metadata"]
            self._look_soon(metadata.get("namespace", ""), metadata["name"])

    def _on_capacity(self, cluster: str, resource: Resource, old: Object | None, new: Object | None) -> None:
        if resource == PODS:
            pod = new if new is not None else old or {}
            if has_scheduling_changed(old or {}, new or {}):
                self._on_waiting_pod(pod)
            if _node_of(old) == _node_of(new):
                return
        if self._watching.get(cluster):
            self._wake(cluster, self._options.room_delay_s)

    def _on_waiting_pod(self, pod: Object) -> None:
        """Find the pod's workload by name: a Deployment's ReplicaSets are called after it."""
        for reference in pod["metadata"].get("ownerReferences") or ():
            if reference.get("kind") == "ReplicaSet":
                self._look_soon(pod["metadata"].get("namespace", ""), reference["name"].rpartition("-")[0])

    def _on_synced(self, cluster: str, resource: Resource) -> None:  # noqa: ARG002  # a listener's signature
        self._woken_until_s.pop(cluster, None)
        self._wake(cluster, self._options.look_delay_s)

    def _look_soon(self, namespace: str, name: str) -> None:
        type_ = self._types.for_resource(DEPLOYMENTS)
        if type_ is None:
            return
        key = Key(namespace, federated_object_name(name, type_.name))
        federated = self._objects.get(*key)
        if federated is not None and _is_concerned(federated):
            self.controller.enqueue(key, after_s=self._options.look_delay_s)


def _is_concerned(federated: Object) -> bool:
    annotations = federated["metadata"].get("annotations") or {}
    return threshold_of(annotations) is not None or names.AUTO_MIGRATION_INFO in annotations


def _is_relevant_change(old: Object, new: Object) -> bool:
    before, after = old["metadata"], new["metadata"]
    if before.get("generation") != after.get("generation"):
        return True
    if before.get("deletionTimestamp") != after.get("deletionTimestamp"):
        return True
    old_annotations, new_annotations = before.get("annotations") or {}, after.get("annotations") or {}
    return any(old_annotations.get(name) != new_annotations.get(name) for name in _READ)


def _is_ready(cluster: Object | None) -> bool:
    return conditions.is_true(((cluster or {}).get("status") or {}).get("conditions"), names.CLUSTER_READY)


def _node_of(pod: Object | None) -> str:
    """Return the node on which the pod takes room, "" when it takes none; one on its way out still does."""
    return "" if pod is None or has_ended(pod) else str((pod.get("spec") or {}).get("nodeName", ""))
