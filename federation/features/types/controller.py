"""Triggers of the typeconfig controller, and its wiring; the steps are in `reconcile.py`.

A FederatedTypeConfig is reconciled when it is created, deleted or annotated. While objects are federated by one that is
being deleted, it is looked at again.
"""

from federation.api.resources import FEDERATED_TYPE_CONFIGS
from federation.apimachinery.resources import Object
from federation.features.types.reconcile import Reconciler
from federation.runtime.controller import Controller
from federation.runtime.host import Host

_WORKERS = 2


class TypeConfigController:
    """Owns the queue of FederatedTypeConfigs. `run` runs until cancelled."""

    def __init__(self, host: Host) -> None:
        self._objects = host.objects
        self._configs = host.informers.for_resource(FEDERATED_TYPE_CONFIGS)
        self._reconciler = reconciler = Reconciler(host, config=lambda name: self._configs.get("", name))
        self.controller: Controller[str] = Controller(
            "typeconfig", reconciler.reconcile, workers=_WORKERS, clock=host.clock
        )
        self._configs.add_handler(self._on_config)

    async def run(self) -> None:
        """Run until cancelled. The workers start once all federated objects are cached."""
        await self._objects.wait_synced()
        await self.controller.run()

    def _on_config(self, old: Object | None, new: Object | None) -> None:
        if new is not None:
            self.controller.enqueue(new["metadata"]["name"])
        elif old is not None:
            self._reconciler.report_removed(old)
