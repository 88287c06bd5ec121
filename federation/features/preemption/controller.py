"""Wiring of preemption: one key, which is due once per interval."""

from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.resources import PRIORITY_CLASSES
from federation.features.preemption.memberview import Observer
from federation.features.preemption.reconcile import Reconciler
from federation.features.preemption.reports import Reports
from federation.journal.decisions import Journal
from federation.planning.clusters.clusterresources import Collectors
from federation.runtime.controller import Controller
from federation.runtime.host import Host

_ALL = ""
"""The only key."""


class PreemptionController:
    """Lets replicas give way once per interval; with an interval of 0 it ends what earlier rounds left, once."""

    def __init__(self, host: Host, collectors: Collectors, journal: Journal, *, interval_s: float) -> None:
        self._objects = host.objects
        self._clusters = host.informers.for_resource(FEDERATED_CLUSTERS)
        self._classes = host.informers.for_resource(PRIORITY_CLASSES) if interval_s else None
        reconciler = Reconciler(
            host.objects,
            self._clusters,
            self._classes,
            Observer(host.members, collectors, host.clock, interval_s),
            Reports(host, journal),
            interval_s,
        )
        self.controller: Controller[str] = Controller("preemption", reconciler.reconcile, workers=1, clock=host.clock)

    async def run(self) -> None:
        """Start once everything is cached."""
        await self._objects.wait_synced()
        await self._clusters.wait_synced()
        if self._classes is not None:
            await self._classes.wait_synced()
        self.controller.enqueue(_ALL)
        await self.controller.run()
