"""Triggers of the WorkloadSpread controller, and its wiring; `reconcile.py` has the steps.

A WorkloadSpread is reconciled when it changes, when its workload changes its replicas or its version, and when one of
its pods appears, ends, disappears or is scheduled. So do pods without a subset, which the status reports and a subset
may adopt.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from federation.apimachinery.clock import Clock
from federation.apimachinery.ownerreferences import controller_uids
from federation.apimachinery.resources import Object
from federation.client.client import Client
from federation.features.workloadspread.incluster.absences import Absences
from federation.features.workloadspread.incluster.reconcile import BY_SPREAD, Reconciler
from federation.features.workloadspread.incluster.statusledger import StatusLedger
from federation.features.workloadspread.incluster.targetworkloads import BY_CONTROLLER, Workloads
from federation.features.workloadspread.rules import watchevents
from federation.features.workloadspread.rules.ledger import parse_match
from federation.features.workloadspread.rules.patchcheck import PatchCheck
from federation.planning.automigration.podanalysis import is_live
from federation.planning.corerules import PatchPod
from federation.runtime.controller import Controller, ControllerOptions, Key, key_of
from federation.runtime.events import Recorder
from federation.runtime.informer import Informer


@dataclass(frozen=True, slots=True)
class SpreadControllerOptions:
    """Limits of the controller."""

    workers: int = 3
    """Concurrent reconciles."""
    coalescing_s: float = 0.5
    """Pause after events of live pods and of statuses, which come in bursts: a reconcile writes the object that
    admissions write. Pods that end or are removed free a place, so they have no pause.
    """
    loop: ControllerOptions = field(default_factory=ControllerOptions)


@dataclass(frozen=True, slots=True)
class Caches:
    """The informers that the controller reads."""

    spreads: Informer
    pods: Informer
    nodes: Informer


class SpreadController:
    """Keeps status, deletion costs and adoptions of the WorkloadSpreads of one cluster up to date."""

    def __init__(
        self,
        client: Client,
        caches: Caches,
        workloads: Workloads,
        ledger: StatusLedger,
        recorder: Recorder,
        patch_pod: PatchPod,
        patches: PatchCheck,
        clock: Clock,
        *,
        options: SpreadControllerOptions | None = None,
    ) -> None:
        chosen = options or SpreadControllerOptions()
        self._caches = caches
        self._workloads = workloads
        self._ledger = ledger
        self._coalescing_s = chosen.coalescing_s
        caches.pods.add_index(BY_CONTROLLER, controller_uids)
        caches.pods.add_index(BY_SPREAD, _spread_keys)
        reconciler = self._reconciler = Reconciler(
            client,
            caches.spreads,
            caches.pods,
            caches.nodes,
            workloads,
            ledger,
            recorder,
            patch_pod,
            patches,
            Absences(client, clock),
            clock,
        )
        self.controller: Controller[Key] = Controller(
            "workloadspread",
            reconciler.reconcile,
            workers=chosen.workers,
            clock=clock,
            options=chosen.loop,
            resync=lambda: map(key_of, caches.spreads.list()),
        )

    async def run(self) -> None:
        """Subscribe, and start the workers once the caches are filled."""
        caches = self._caches
        for informer in (caches.spreads, caches.pods, caches.nodes):
            await informer.wait_synced()
        await self._workloads.wait_synced()
        caches.spreads.add_handler(self._on_spread)
        caches.pods.add_handler(self._on_pod)
        self._workloads.add_handler(self._on_workload)
        await self.controller.run()

    def _on_spread(self, old: Object | None, new: Object | None) -> None:
        if new is None and old is not None:
            self._ledger.forget(old)
            self._reconciler.forget(old)
        elif new is not None:
            self._ledger.observe(new)
            is_status = old is not None and old.get("spec") == new.get("spec")
            self.controller.enqueue(key_of(new), after_s=self._coalescing_s if is_status else 0.0)

    def _on_workload(self, old: Object | None, new: Object | None) -> None:
        workload = new or old or {}
        if watchevents.has_workload_changed(old, new):
            for owner in (workload, self._workloads.cached_controller(workload)):
                self._enqueue_target(owner)

    def _on_pod(self, old: Object | None, new: Object | None) -> None:
        namespace = (new or old or {})["metadata"]["namespace"]
        name = watchevents.spread_of_pod(old, new)
        if new is None and old is not None:
            self._reconciler.note_end(old)
        if name is not None:
            is_ending = new is None or not is_live(new)
            self.controller.enqueue(Key(namespace, name), after_s=0.0 if is_ending else self._coalescing_s)
        elif watchevents.has_unmatched_changed(old, new) and self._caches.spreads.list(namespace):
            for owner in self._controllers(new or old or {}):
                self._enqueue_target(owner, after_s=self._coalescing_s)

    def _controllers(self, pod: Object) -> Iterator[Object]:
        """Yield the cached controllers above a pod, the nearest first."""
        owner = self._workloads.cached_controller(pod)
        seen = set()
        while owner is not None and owner["metadata"]["uid"] not in seen:
            seen.add(owner["metadata"]["uid"])
            yield owner
            owner = self._workloads.cached_controller(owner)

    def _enqueue_target(self, workload: Object | None, after_s: float = 0.0) -> None:
        if workload is None:
            return
        spreads = self._caches.spreads.list(workload["metadata"]["namespace"])
        spread = watchevents.spread_of_workload(spreads, workload)
        if spread is not None:
            self.controller.enqueue(key_of(spread), after_s=after_s)


def _spread_keys(pod: Object) -> list[str]:
    match = parse_match(pod)
    return [] if match is None else [str(Key(pod["metadata"]["namespace"], match.spread))]
