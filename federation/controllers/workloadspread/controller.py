"""Triggers of the delivery of WorkloadSpreads, and its wiring; the steps are in `reconcile.py`.

A WorkloadSpread is reconciled when it changes, when the scheduler decides about its workload, and when labels, kinds or
readiness of a cluster change. The status that a member reports triggers it a second later, all reports until then
together.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS, WORKLOAD_SPREADS
from federation.apimachinery.clock import Clock
from federation.apimachinery.resources import Object, Resource
from federation.client.client import Client
from federation.controllers.workloadspread.reconcile import WRITER, Reconciler, target_of_federated
from federation.planning.followers.leaderplan import identity_of
from federation.runtime.controller import Controller, Key, key_of
from federation.runtime.federatedobjects import FederatedObjects, Triggers
from federation.runtime.informers import Informers
from federation.runtime.members import Members
from federation.scheduling.framework.types import ClusterChange
from federation.scheduling.snapshot import ClusterCache

_BY_TARGET = "workloadspread/target"
_CHANGES = ClusterChange.MEMBERSHIP | ClusterChange.LABELS | ClusterChange.API_TYPES | ClusterChange.READINESS
_TRIGGERS = Triggers(
    annotations=frozenset((names.WORKLOAD_SPREAD, names.ORDINAL_STARTS, names.PENDING_CONTROLLERS)),
    placed=True,
    entries_of=names.GLOBAL_SCHEDULER,
)


@dataclass(frozen=True, slots=True)
class WorkloadSpreadOptions:
    """Limits of the controller."""

    workers: int = 2
    """Concurrent reconciles."""
    coalescing_s: float = 1.0
    """Delay between a member's report and the reconcile; all reports until then share it."""


class WorkloadSpreadController:
    """Owns the queue of federated WorkloadSpreads. `run` runs until cancelled."""

    def __init__(
        self,
        client: Client,
        objects: FederatedObjects,
        informers: Informers,
        members: Members,
        *,
        clock: Clock,
        options: WorkloadSpreadOptions | None = None,
    ) -> None:
        chosen = options or WorkloadSpreadOptions()
        self._coalescing_s = chosen.coalescing_s
        self._objects = objects
        self._cache = ClusterCache()
        self._clusters = informers.for_resource(FEDERATED_CLUSTERS)
        self._spreads = informers.for_resource(WORKLOAD_SPREADS)
        objects.add_index(_BY_TARGET, target_of_federated)
        reconciler = Reconciler(client, objects, members, self._spreads, self._cache.snapshot, clock)
        self.controller: Controller[Key] = Controller(
            "workloadspreads", reconciler.reconcile, workers=chosen.workers, clock=clock, resync=self._keys
        )
        members.add_handler(self._on_member)

    async def run(self) -> None:
        """Subscribe, and start the workers once all caches are synced."""
        self._clusters.add_handler(self._on_cluster)
        self._spreads.add_handler(self._on_source)
        self._objects.subscribe(self._on_federated, _TRIGGERS, writer=WRITER)
        await asyncio.gather(self._objects.wait_synced(), self._clusters.wait_synced(), self._spreads.wait_synced())
        await self.controller.run()

    def _keys(self) -> Iterable[Key]:
        return map(key_of, self._objects.of_kind(WORKLOAD_SPREADS.api_version, WORKLOAD_SPREADS.kind))

    # -- events

    def _on_federated(self, old: Object | None, new: Object | None) -> None:
        federated = new if new is not None else old or {}
        identity = identity_of(federated)
        if identity.kind == WORKLOAD_SPREADS.kind:
            self.controller.enqueue(key_of(federated))
            return
        target = f"{identity.group} {identity.kind} {identity.namespace} {identity.name}"
        for spread in self._objects.by_index(_BY_TARGET, target, identity.namespace):
            self.controller.enqueue(key_of(spread))

    def _on_source(self, old: Object | None, new: Object | None) -> None:
        if new is not None and old is None:
            self._enqueue(new)

    def _on_cluster(self, old: Object | None, new: Object | None) -> None:
        change = self._cache.update(new) if new is not None else self._cache.remove((old or {})["metadata"]["name"])
        if change & _CHANGES:
            for key in self._keys():
                self.controller.enqueue(key, after_s=self._coalescing_s)

    def _on_member(self, cluster: str, resource: Resource, old: Object | None, new: Object | None) -> None:  # noqa: ARG002  # a handler's signature
        if resource == WORKLOAD_SPREADS and (old or {}).get("status") != (new or {}).get("status"):
            self._enqueue(new if new is not None else old or {})

    def _enqueue(self, spread: Object) -> None:
        """Enqueue the federated object of a source or of a member's WorkloadSpread."""
        type_ = self._objects.types.for_resource(WORKLOAD_SPREADS)
        if type_ is not None:
            metadata = spread["metadata"]
            key = self._objects.key_for(type_, metadata.get("namespace", ""), metadata["name"])
            self.controller.enqueue(key, after_s=self._coalescing_s)
