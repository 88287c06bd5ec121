"""Wiring of the source of rates: one key, which is due once per interval."""

from federation.api.resources import FEDERATED_CLUSTERS
from federation.controllers.clusterrates.reconcile import Reconciler, Source
from federation.planning.cost.ratelist import RateOptions
from federation.runtime.controller import Controller
from federation.runtime.host import Host

_ALL = ""
"""The only key."""


class ClusterRateController:
    """Keeps the rates of clusters those of the source. `run` works until cancelled."""

    def __init__(self, host: Host, source: Source, *, options: RateOptions) -> None:
        self._clusters = host.informers.for_resource(FEDERATED_CLUSTERS)
        reconciler = Reconciler(host, self._clusters, source, options)
        self.controller: Controller[str] = Controller("clusterrates", reconciler.reconcile, workers=1, clock=host.clock)

    async def run(self) -> None:
        """Start once the clusters are cached."""
        await self._clusters.wait_synced()
        self.controller.enqueue(_ALL)
        await self.controller.run()
