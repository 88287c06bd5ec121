"""Triggers of the delivery of WorkloadSpreads, and its wiring; the steps are in `reconcile.py`.

A WorkloadSpread is reconciled when it changes, when the scheduler decides about its workload, and when labels, kinds or
readiness of a cluster change. The status that a member reports triggers it a second later, all reports until then
together. A workload that waits for the delivery of its WorkloadSpread is reconciled too, when the delivery progresses.
"""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS, WORKLOAD_SPREADS
from federation.apimachinery.resources import Object, Resource
from federation.features.workloadspread.reconcile import (
    BY_TARGET,
    WRITER,
    Reconciler,
    is_spread,
    target_of_federated,
    target_value,
    workload_of,
)
from federation.features.workloadspread.rules.patchcheck import PatchCheck
from federation.planning.federatedobject import pendingcontrollers
from federation.runtime.controller import Controller, Key, key_of
from federation.runtime.host import Host
from federation.runtime.subscription import Triggers
from federation.scheduling.framework.types import ClusterChange
from federation.scheduling.snapshot import ClusterCache

_CHANGES = ClusterChange.MEMBERSHIP | ClusterChange.LABELS | ClusterChange.API_TYPES | ClusterChange.READINESS


def _delivery(federated: Object) -> Any:
    """Return the progress of the delivery of a WorkloadSpread; None for other kinds."""
    if not is_spread(federated):
        return None
    status = federated.get("status") or {}
    return status.get("syncedGeneration"), status.get("clusters")


_TRIGGERS = Triggers(
    annotations=frozenset((names.WORKLOAD_SPREAD, names.ORDINAL_STARTS, names.PENDING_CONTROLLERS)),
    placed=True,
    entries_of=names.GLOBAL_SCHEDULER,
    status=_delivery,
)


@dataclass(frozen=True, slots=True)
class WorkloadSpreadOptions:
    """Limits of the controller."""

    workers: int = 2
    """Concurrent reconciles."""
    coalescing_s: float = 1.0
    """Delay between a member's report and the reconcile; all reports until then share it."""
    wait_s_max: float = 10.0
    """Longest time for which a workload waits until its members have their limits: one of them may refuse them."""


class WorkloadSpreadController:
    """Owns the queue of federated WorkloadSpreads. `run` runs until cancelled."""

    def __init__(self, host: Host, patches: PatchCheck, *, options: WorkloadSpreadOptions | None = None) -> None:
        chosen = options or WorkloadSpreadOptions()
        self._coalescing_s = chosen.coalescing_s
        self._objects = host.objects
        self._cache = ClusterCache()
        self._clusters = host.informers.for_resource(FEDERATED_CLUSTERS)
        self._spreads = host.informers.for_resource(WORKLOAD_SPREADS)
        host.objects.add_index(BY_TARGET, target_of_federated)
        reconciler = Reconciler(host, self._spreads, self._cache.snapshot, patches, wait_s_max=chosen.wait_s_max)
        self.controller: Controller[Key] = Controller(
            "workloadspreads", reconciler.reconcile, workers=chosen.workers, clock=host.clock, resync=self._keys
        )
        host.members.add_handler(self._on_member)

    async def run(self) -> None:
        """Subscribe, and start the workers once all caches are synced."""
        self._clusters.add_handler(self._on_cluster)
        self._spreads.add_handler(self._on_source)
        self._objects.subscribe(self._on_federated, _TRIGGERS, writer=WRITER, is_late=True)
        await asyncio.gather(self._objects.wait_synced(), self._clusters.wait_synced(), self._spreads.wait_synced())
        await self.controller.run()

    def _keys(self) -> Iterable[Key]:
        return map(key_of, self._objects.of_kind(WORKLOAD_SPREADS.group_kind))

    # -- events

    def _on_federated(self, old: Object | None, new: Object | None) -> None:
        federated = new if new is not None else old or {}
        if is_spread(federated):
            self._enqueue_waiting(federated)
            self.controller.enqueue(key_of(federated))
            return
        if pendingcontrollers.is_at_head(federated, names.SPREAD_CONTROLLER):
            self.controller.enqueue(key_of(federated))
            return
        namespace = federated["metadata"].get("namespace", "")
        for spread in self._objects.by_index(BY_TARGET, target_value(federated), namespace):
            self.controller.enqueue(key_of(spread))

    def _enqueue_waiting(self, federated: Object) -> None:
        """Enqueue the workload of a federated WorkloadSpread if it waits for the delivery."""
        workload = workload_of(self._objects, federated)
        if workload is not None and pendingcontrollers.is_at_head(workload, names.SPREAD_CONTROLLER):
            self.controller.enqueue(key_of(workload))

    def _on_source(self, old: Object | None, new: Object | None) -> None:
        if new is not None and (old is None or old.get("status") != new.get("status")):
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
            self.controller.enqueue(self._objects.key_of_source(type_, spread), after_s=self._coalescing_s)
