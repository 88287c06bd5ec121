"""Wiring of the source of rates: one key, which is due once per interval."""

from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.clock import Clock
from federation.client.client import Client
from federation.controllers.clusterrates.reconcile import Reconciler, Source
from federation.planning.cost.ratelist import RateOptions
from federation.runtime.controller import Controller
from federation.runtime.events import Recorder
from federation.runtime.informers import Informers

_ALL = ""
"""The only key."""


class ClusterRateController:
    """Keeps the rates of clusters those of the source. `run` works until cancelled."""

    def __init__(
        self,
        client: Client,
        informers: Informers,
        recorder: Recorder,
        source: Source,
        *,
        clock: Clock,
        options: RateOptions,
    ) -> None:
        self._clusters = informers.for_resource(FEDERATED_CLUSTERS)
        reconciler = Reconciler(client, self._clusters, recorder, source, clock, options)
        self.controller: Controller[str] = Controller("clusterrates", reconciler.reconcile, workers=1, clock=clock)

    async def run(self) -> None:
        """Start once the clusters are cached."""
        await self._clusters.wait_synced()
        self.controller.enqueue(_ALL)
        await self.controller.run()
