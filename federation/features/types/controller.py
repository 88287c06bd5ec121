"""Triggers of the typeconfig controller, and its wiring; the steps are in `reconcile.py`.

A FederatedTypeConfig is reconciled when it is created, deleted or annotated, and when the CustomResourceDefinition of
its kind changes. While objects are federated by one that is being deleted, it is looked at again.
"""

import asyncio

from federation.api.resources import FEDERATED_TYPE_CONFIGS
from federation.apimachinery.resources import CRDS, GroupKind, Object
from federation.features.types.reconcile import Reconciler
from federation.planning.typederivation import defined_kind, defines
from federation.runtime.controller import Controller
from federation.runtime.host import Host
from federation.runtime.transforms import slim_definition

_WORKERS = 2


class TypeConfigController:
    """Owns the queue of FederatedTypeConfigs. `run` runs until cancelled."""

    def __init__(self, host: Host) -> None:
        self._objects = host.objects
        self._configs = host.informers.for_resource(FEDERATED_TYPE_CONFIGS)
        self._definitions = host.informers.for_resource(CRDS, transform=slim_definition)
        self._reconciler = reconciler = Reconciler(
            host, config=lambda name: self._configs.get("", name), definition=self._definition
        )
        self.controller: Controller[str] = Controller(
            "typeconfig", reconciler.reconcile, workers=_WORKERS, clock=host.clock
        )
        self._configs.add_handler(self._on_config)
        self._definitions.add_handler(self._on_definition)

    async def run(self) -> None:
        """Run until cancelled. The workers start once all federated objects are cached."""
        await asyncio.gather(self._objects.wait_synced(), self._definitions.wait_synced())
        await self.controller.run()

    def _definition(self, kind: GroupKind) -> Object | None:
        """Return the cached CustomResourceDefinition of a kind."""
        return next((each for each in self._definitions.list() if defines(each, kind)), None)

    def _on_config(self, old: Object | None, new: Object | None) -> None:
        if new is not None:
            self.controller.enqueue(new["metadata"]["name"])
        elif old is not None:
            self._reconciler.report_removed(old)

    def _on_definition(self, old: Object | None, new: Object | None) -> None:  # noqa: ARG002  # a handler's signature
        type_ = None if new is None else self._objects.types.for_group_kind(*defined_kind(new))
        if type_ is not None:
            self.controller.enqueue(type_.name)
