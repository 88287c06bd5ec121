"""Triggers of CronFederatedHPAs, and their wiring. Besides its own changes, the next time of a rule triggers one."""

from federation.api.resources import CRON_AUTOSCALERS
from federation.apimachinery.resources import Object
from federation.features.cronfederatedhpa.reconcile import Reconciler
from federation.runtime.controller import Controller, Key, key_of
from federation.runtime.host import Host

_WORKERS = 2


class CronAutoscalerController:
    """Runs the rules of every CronFederatedHPA. `run` runs until cancelled."""

    def __init__(self, host: Host) -> None:
        self._scalers = host.informers.for_resource(CRON_AUTOSCALERS)
        self._types = host.objects.types
        reconciler = Reconciler(host, self._scalers)
        self.controller: Controller[Key] = Controller(
            "cronautoscaler", reconciler.reconcile, workers=_WORKERS, clock=host.clock
        )
        self._scalers.add_handler(self._on_scaler)

    async def run(self) -> None:
        """Start the workers once the CronFederatedHPAs and the federated types are cached."""
        await self._scalers.wait_synced()
        await self._types.wait_synced()
        await self.controller.run()

    def _on_scaler(self, old: Object | None, new: Object | None) -> None:
        if new is not None and (old is None or old.get("spec") != new.get("spec")):
            self.controller.enqueue(key_of(new))
