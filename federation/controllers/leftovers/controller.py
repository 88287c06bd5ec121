"""Triggers of the leftovers controller, and its wiring; the steps are in `reconcile.py` and `sweep.py`.

A record is reconciled when it is written or changed, and when its cluster becomes ready. A member is swept soon after
it becomes ready, soon after an object appears in it that no federated object names, and daily. A report is the verdict
of one moment, so the member is also swept soon after the federated object of a reported object allows another verdict.
"""

import asyncio
from dataclasses import dataclass, field
from functools import partial

from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.resources import Object, Resource
from federation.controllers.leftovers.reconcile import Reconciler
from federation.controllers.leftovers.sweep import Sweep
from federation.delivery.host.tombstones import Tombstones, parse
from federation.delivery.rules.content import member_key
from federation.delivery.rules.plan import cluster_state_of
from federation.guard.suspensions import Suspensions
from federation.planning.guard.ledger import GuardOptions
from federation.planning.leftovers.record import Record
from federation.planning.leftovers.strays import StrayAction, is_written_by_us, judge_federated, policy_of
from federation.runtime.controller import Controller, ControllerOptions
from federation.runtime.host import Host

_SWEEP_TIMEOUT_S = 600.0


@dataclass(frozen=True, slots=True)
class LeftoverOptions:
    """Limits of the leftovers controller."""

    workers: int = 16
    """Concurrent reconciles; each waits for a member most of its time."""
    sweep_workers: int = 4
    """Members that are swept concurrently."""
    sweep_period_s: float = 24 * 3600.0
    """Interval of the sweeps of a member."""
    sweep_delay_s: float = 5.0
    """How long a sweep waits after an object appeared that nothing delivers: schedule and sync may be about to."""
    join_delay_s: float = 30.0
    """The same after a member became ready: policies may place many objects in it, which are then managed again."""
    guard: GuardOptions = field(default_factory=GuardOptions)
    """How many objects the sweeps of a member may remove."""


class LeftoverController:
    """Owns the queue of records. `run` runs until cancelled."""

    def __init__(self, host: Host, tombstones: Tombstones, *, options: LeftoverOptions | None = None) -> None:
        chosen = options or LeftoverOptions()
        self._objects = host.objects
        self._tombstones = tombstones
        self._delay_s = chosen.sweep_delay_s
        self._join_delay_s = chosen.join_delay_s
        self._clusters = host.informers.for_resource(FEDERATED_CLUSTERS)
        self._is_running = False
        self._suspensions = Suspensions(host.informers, host.clock, self._on_suspension)
        find = partial(self._clusters.get, "")
        reconciler = Reconciler(host, tombstones, self._suspensions, cluster=find)
        self.controller: Controller[str] = Controller(
            "leftovers",
            reconciler.reconcile,
            workers=chosen.workers,
            clock=host.clock,
            resync=lambda: [record.record_name for record in tombstones.all()],
        )
        sweep = Sweep(host, tombstones, cluster=find, period_s=chosen.sweep_period_s, guard=chosen.guard)
        self.sweeps: Controller[str] = Controller(
            "sweep",
            sweep.reconcile,
            workers=chosen.sweep_workers,
            clock=host.clock,
            options=ControllerOptions(reconcile_timeout_s=_SWEEP_TIMEOUT_S),
        )
        tombstones.add_handler(self._on_leftover)
        host.objects.subscribe(self._on_federated, None, is_replayed=False, is_late=True)
        self._clusters.add_handler(self._on_cluster)
        host.members.add_handler(self._on_member_object)

    async def run(self) -> None:
        """Run until cancelled. The workers start once records, clusters and federated objects are cached."""
        await asyncio.gather(self._tombstones.wait_synced(), self._clusters.wait_synced(), self._objects.wait_synced())
        await self._suspensions.wait_synced()
        self._is_running = True
        async with asyncio.TaskGroup() as group:
            group.create_task(self.controller.run(), name="leftovers")
            group.create_task(self.sweeps.run(), name="sweep")

    def _on_leftover(self, old: Object | None, new: Object | None) -> None:  # noqa: ARG002  # a handler's signature
        if new is None:
            return
        self.controller.enqueue(new["metadata"]["name"])
        if self._is_running and (record := parse(new)) is not None:
            type_ = self._objects.types.for_resource(record.resource)
            key = self._objects.key_for(type_, record.namespace, record.name) if type_ is not None else None
            federated = self._objects.get(key) if key is not None else None
            if federated is not None:
                # It may have been placed between the verdict and this event.
                self._judge_again(record, None, federated)

    def _on_federated(self, old: Object | None, new: Object | None) -> None:
        if new is None or not self._is_running:
            return
        type_ = self._objects.type_of(new)
        records = self._tombstones.of_object(member_key(new, type_, "")) if type_ is not None else ()
        for record in records:
            self._judge_again(record, old, new)

    def _judge_again(self, record: Record, old: Object | None, new: Object) -> None:
        """Sweep the member of a report if the change of its federated object decides about the reported object."""
        cluster = self._clusters.get("", record.cluster)
        if record.is_pending or cluster is None or not cluster_state_of(cluster).ready:
            return  # a member is swept when it becomes ready
        policy = policy_of(cluster)
        verdict = judge_federated(new, record.cluster, policy)
        if verdict in (StrayAction.REPORT, StrayAction.UNDECIDED):
            return
        if old is None or judge_federated(old, record.cluster, policy) is not verdict:
            self.sweeps.enqueue(record.cluster, after_s=self._delay_s)

    def _on_suspension(self) -> None:
        """Look at every record again: a suspension that was changed or removed may have held any of them."""
        for record in self._tombstones.all() if self._is_running else ():
            self.controller.enqueue(record.record_name)

    def _on_cluster(self, old: Object | None, new: Object | None) -> None:
        if new is None or not cluster_state_of(new).ready:
            return
        name = new["metadata"]["name"]
        if old is None or not cluster_state_of(old).ready:
            for record in self._tombstones.in_cluster(name):
                self.controller.enqueue(record.record_name)
            self.sweeps.enqueue(name, after_s=self._join_delay_s)
        elif policy_of(old) is not policy_of(new):
            self.sweeps.enqueue(name)

    def _on_member_object(self, cluster: str, resource: Resource, old: Object | None, new: Object | None) -> None:
        """Sweep a member in which an object appears that no federated object names, as after a restore."""
        if new is None or old is not None or new["metadata"].get("deletionTimestamp") or not is_written_by_us(new):
            return
        type_ = self._objects.types.for_resource(resource)
        if type_ is None:
            return
        federated = self._objects.get(self._objects.key_of_source(type_, new))
        if federated is None or judge_federated(federated, cluster, None) is not StrayAction.DELIVERED:
            self.sweeps.enqueue(cluster, after_s=self._delay_s)
