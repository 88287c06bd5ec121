"""Triggers of the taint controller, and its wiring; the steps are in `reconcile.py`.

A cluster is reconciled when its taints or its condition Ready change.
"""

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery import conditions
from federation.apimachinery.resources import Object
from federation.controllers.clustertaints.reconcile import Reconciler
from federation.planning.failover.holdout import HoldoutOptions
from federation.runtime.controller import Controller
from federation.runtime.host import Host


class ClusterTaintController:
    """Owns the queue of clusters. `run` runs until cancelled."""

    def __init__(self, host: Host, *, options: HoldoutOptions | None = None) -> None:
        self._clusters = host.informers.for_resource(FEDERATED_CLUSTERS)
        self._reconciler = reconciler = Reconciler(
            host, lambda name: self._clusters.get("", name), options or HoldoutOptions()
        )
        self.controller: Controller[str] = Controller(
            "clustertaints", reconciler.reconcile, workers=4, clock=host.clock
        )
        self._clusters.add_handler(self._on_cluster)
        host.presence.on_return(self._on_return)

    async def run(self) -> None:
        """Run until cancelled; the workers start once the clusters are cached."""
        await self._clusters.wait_synced()
        await self.controller.run()

    def _on_return(self) -> None:
        """Look at all clusters: the time in which this process was away does not count against them."""
        for cluster in self._clusters.list():
            self.controller.enqueue(cluster["metadata"]["name"])

    def _on_cluster(self, old: Object | None, new: Object | None) -> None:
        if new is not None and old is None:
            self._reconciler.see(new)
        if new is not None and (old is None or _inputs(old) != _inputs(new)):
            self.controller.enqueue(new["metadata"]["name"])


def _inputs(cluster: Object) -> tuple[object, object, object]:
    ready = conditions.find((cluster.get("status") or {}).get("conditions"), names.CLUSTER_READY)
    return (cluster.get("spec") or {}).get("taints"), (ready or {}).get("status"), (ready or {}).get("reason")
