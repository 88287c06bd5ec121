"""Triggers of the topology spread of sharded services, and its wiring; the steps are in `reconcile.py`.

A plan is reconciled at once when it or a StatefulSet of its namespace on the host changes: a new StatefulSet should
have its constraints before it is delivered. Changes of nodes, pods and StatefulSets in members trigger it a second
later, all changes until then together.
"""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS, TOPOLOGY_SPREAD_PLANS
from federation.apimachinery.ownerreferences import controller_of
from federation.apimachinery.resources import NODES, STATEFUL_SETS, Object, Resource
from federation.features.topologyspreadplan.observer import SpreadObserver
from federation.features.topologyspreadplan.reconcile import Reconciler
from federation.features.topologyspreadplan.rules.observation import awaits_constraints
from federation.runtime.controller import Controller, Key, key_of
from federation.runtime.host import Host


@dataclass(frozen=True, slots=True)
class TopologySpreadOptions:
    """Limits of the controller."""

    workers: int = 1
    """Concurrent reconciles; a search for deadlocks keeps one busy."""
    coalescing_s: float = 1.0
    """Delay between a change in a member and the reconcile; all changes until then share it."""


class TopologySpreadController:
    """Owns the queue of TopologySpreadPlans. `run` runs until cancelled."""

    def __init__(self, host: Host, options: TopologySpreadOptions | None = None) -> None:
        chosen, informers, members = options or TopologySpreadOptions(), host.informers, host.members
        self._coalescing_s = chosen.coalescing_s
        self._plans = informers.for_resource(TOPOLOGY_SPREAD_PLANS)
        self._stateful_sets = informers.for_resource(STATEFUL_SETS)
        self._clusters = informers.for_resource(FEDERATED_CLUSTERS)
        reconciler = Reconciler(
            host, SpreadObserver(members), plans=self._plans, stateful_sets=self._stateful_sets.list
        )
        self.controller: Controller[Key] = Controller(
            "topologyspread", reconciler.reconcile, workers=chosen.workers, clock=host.clock, resync=self._keys
        )
        self._plans.add_handler(self._on_plan)
        self._stateful_sets.add_handler(self._on_stateful_set)
        self._clusters.add_handler(self._on_cluster)
        members.add_handler(self._on_member_object)
        members.add_capacity_handler(self._on_capacity)
        members.add_pod_handler(self._on_pod)
        members.add_sync_listener(lambda _cluster, _resource: self._enqueue(self._keys()))

    async def run(self) -> None:
        """Run until cancelled. The workers start once the host's objects are cached."""
        informers = (self._plans, self._stateful_sets, self._clusters)
        await asyncio.gather(*(informer.wait_synced() for informer in informers))
        await self.controller.run()

    def _keys(self, namespace: str = "") -> Iterator[Key]:
        return map(key_of, self._plans.list(namespace))

    def _enqueue(self, keys: Iterator[Key]) -> None:
        for key in keys:
            self.controller.enqueue(key, after_s=self._coalescing_s)

    # -- events

    def _on_plan(self, old: Object | None, new: Object | None) -> None:
        if new is not None and (old is None or old.get("spec") != new.get("spec")):
            self.controller.enqueue(key_of(new))

    def _on_stateful_set(self, old: Object | None, new: Object | None) -> None:
        if old is None or new is None or _facts(old) != _facts(new):
            for key in self._keys((new if new is not None else old or {})["metadata"]["namespace"]):
                self.controller.enqueue(key)

    def _on_cluster(self, old: Object | None, new: Object | None) -> None:
        if old is None or new is None:
            self._enqueue(self._keys())

    def _on_member_object(self, cluster: str, resource: Resource, old: Object | None, new: Object | None) -> None:  # noqa: ARG002  # a handler's signature
        if resource == STATEFUL_SETS and (old or {}).get("status") != (new or {}).get("status"):
            self._enqueue(self._keys((new if new is not None else old or {})["metadata"]["namespace"]))

    def _on_capacity(self, cluster: str, resource: Resource, old: Object | None, new: Object | None) -> None:  # noqa: ARG002  # a handler's signature
        if resource == NODES:
            self._enqueue(self._keys())

    def _on_pod(self, cluster: str, resource: Resource, old: Object | None, new: Object | None) -> None:  # noqa: ARG002  # a handler's signature
        pod = new if new is not None else old or {}
        owner = controller_of(pod)
        if owner is not None and owner.get("kind") == "StatefulSet":
            self._enqueue(self._keys(pod["metadata"].get("namespace", "")))


def _facts(stateful_set: Object) -> tuple[Any, ...]:
    """Return what decisions read from a StatefulSet of the host."""
    return stateful_set.get("spec"), (stateful_set["metadata"].get("annotations") or {}).get(names.PLACEMENTS)


class ConstraintHold:
    """A `SourceHold` for the StatefulSets that a TopologySpreadPlan selects."""

    def __init__(self, host: Host) -> None:
        self._plans = host.informers.for_resource(TOPOLOGY_SPREAD_PLANS)
        self._clock = host.clock

    async def wait_synced(self) -> None:
        """Wait until the plans are cached."""
        await self._plans.wait_synced()

    def holds(self, source: Object) -> bool:
        """Return whether the object awaits constraints."""
        return awaits_constraints(source, self._plans.list(source["metadata"].get("namespace", "")), self._clock.now())
