"""Triggers of rollouts in waves, and their wiring; the steps are in `reconcile.py`.

A workload is reconciled when its federated object or FederatedRollout changes, and a second after a change of its
member objects, all changes until then together. Changes of a cluster reconcile every workload with waves.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS, FEDERATED_ROLLOUTS
from federation.apimachinery.resources import Object, Resource
from federation.featureapi.surroundings import GateTransport
from federation.features.waves.clusterobservation import CompileGate, Observer
from federation.features.waves.httpgate import HTTPGate
from federation.features.waves.metricsgate import MetricsGate
from federation.features.waves.podreader import PodReader
from federation.features.waves.reconcile import WRITER, Reconciler
from federation.features.waves.waitingforbudgets import WaitingForBudgets
from federation.guard.suspensions import Holds
from federation.planning.federatedobject import pendingcontrollers
from federation.planning.waves.rolloutpart import has_waves
from federation.planning.waves.waverules import find_rules
from federation.runtime.controller import Controller, Key, key_of
from federation.runtime.host import Host
from federation.runtime.subscription import Triggers

_WITH_WAVES = "rollout/waves"
_TRIGGERS = Triggers(
    annotations=frozenset((names.ROLLOUT, names.OVERRIDE_ROLLOUT, names.APPROVED_REVISIONS)),
    is_due=pendingcontrollers.is_ready_for_dispatch,
)


@dataclass(frozen=True, slots=True)
class RolloutOptions:
    """Limits of the controller."""

    workers: int = 2
    """Concurrent reconciles; a request of a gate keeps one busy."""
    coalescing_s: float = 1.0
    """Delay between a change in a member and the reconcile; all changes until then share it."""


class RolloutController:
    """Owns the queue of federated objects whose policies have waves. `run` runs until cancelled."""

    def __init__(
        self,
        host: Host,
        compile_gate: CompileGate,
        transport: GateTransport,
        metrics: MetricsGate,
        *,
        options: RolloutOptions | None = None,
    ) -> None:
        chosen = options or RolloutOptions()
        self._coalescing_s = chosen.coalescing_s
        self._objects = host.objects
        self._rollouts = host.informers.for_resource(FEDERATED_ROLLOUTS)
        self._clusters = host.informers.for_resource(FEDERATED_CLUSTERS)
        host.objects.add_index(_WITH_WAVES, lambda federated: ("true",) if find_rules(federated) is not None else ())
        self._waiting = WaitingForBudgets(host.informers, self._enqueue)
        self._pods = PodReader(host.members, host.clock, self._enqueue)
        self._is_running = False
        self._holds = Holds(host.informers, host.clock, self._on_hold)
        self._reconciler = Reconciler(
            host,
            self._rollouts,
            Observer(host.members, lambda name: self._clusters.get("", name), compile_gate),
            HTTPGate(transport, host.clock),
            metrics,
            self._waiting,
            self._pods,
            self._holds,
        )
        self.controller: Controller[Key] = Controller(
            "rollout", self._reconciler.reconcile, workers=chosen.workers, clock=host.clock, resync=self._keys
        )
        host.members.add_handler(self._on_member_object)
        host.members.add_sync_listener(lambda _cluster, _resource: self._enqueue_all())

    async def run(self) -> None:
        """Subscribe, and start the workers once the host's objects are cached."""
        self._rollouts.add_handler(self._on_rollout)
        self._clusters.add_handler(self._on_cluster)
        self._objects.subscribe(self._on_federated, _TRIGGERS, writer=WRITER, is_late=True)
        await asyncio.gather(
            self._objects.wait_synced(),
            self._rollouts.wait_synced(),
            self._clusters.wait_synced(),
            self._waiting.run(),
            self._holds.wait_synced(),
        )
        self._is_running = True
        try:
            await self.controller.run()
        finally:
            self._is_running = False
            await self._pods.close()

    def _keys(self) -> Iterator[Key]:
        return iter(self._objects.keys_by_index(_WITH_WAVES, "true"))

    def _enqueue(self, key: Key) -> None:
        self.controller.enqueue(key)

    def _on_hold(self) -> None:
        """Look at every rollout again: a freeze or suspension was changed or removed."""
        if self._is_running:
            self._enqueue_all()

    def _enqueue_all(self) -> None:
        for key in self._keys():
            self.controller.enqueue(key, after_s=self._coalescing_s)

    # -- events

    def _on_federated(self, old: Object | None, new: Object | None) -> None:
        federated = new if new is not None else old or {}
        key = key_of(federated)
        if find_rules(federated) is not None or self._rollouts.get(*key) is not None:
            self.controller.enqueue(key)

    def _on_rollout(self, old: Object | None, new: Object | None) -> None:
        key = key_of(new if new is not None else old or {})
        self._reconciler.assumed.prune(key)
        self._waiting.on_rollout(old, new)
        if old is None or new is None or old.get("spec") != new.get("spec"):
            self.controller.enqueue(key)

    def _on_cluster(self, old: Object | None, new: Object | None) -> None:
        if old is None or new is None or _relevant(old) != _relevant(new):
            self._enqueue_all()
        elif old["spec"].get("taints") != new["spec"].get("taints"):
            self._waiting.retry()

    def _on_member_object(self, cluster: str, resource: Resource, old: Object | None, new: Object | None) -> None:  # noqa: ARG002  # a handler's signature
        type_ = self._objects.types.for_resource(resource)
        if type_ is None or not has_waves({"apiVersion": resource.api_version, "kind": resource.kind}):
            return
        key = self._objects.key_of_source(type_, new if new is not None else old or {})
        federated = self._objects.get(key)
        if federated is not None and find_rules(federated) is not None:
            self.controller.enqueue(key, after_s=self._coalescing_s)


def _relevant(cluster: Object) -> tuple[object, object]:
    """Return the parts of a FederatedCluster that rollouts depend on: its labels, and the status of its conditions."""
    found = (cluster.get("status") or {}).get("conditions") or ()
    return cluster["metadata"].get("labels"), [(each.get("type"), each.get("status")) for each in found]
