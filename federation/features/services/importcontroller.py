"""Triggers of ServiceImports, and its wiring; the steps are in `reconcile.py`.

A ServiceImport is reconciled when it changes, when the scheduler decides about it, when its Service is placed
elsewhere, and when an imported EndpointSlice appears.
"""

import asyncio
from collections.abc import Iterator

from federation.api.resources import SERVICE_IMPORTS
from federation.apimachinery.resources import Object
from federation.features.services.importreconcile import (
    BY_SERVICE,
    WRITER,
    Reconciler,
    service_key_of,
    slice_service,
)
from federation.features.services.names import SERVICE_IMPORT_CONTROLLER
from federation.runtime.controller import Controller, Key, key_of
from federation.runtime.host import Host
from federation.runtime.subscription import Triggers

_WORKERS = 4


class ServiceImportController:
    """Places Services and EndpointSlices where they are imported. `run` runs until cancelled."""

    def __init__(self, host: Host) -> None:
        self._objects = host.objects
        self._imports = host.informers.for_resource(SERVICE_IMPORTS)
        host.objects.add_index(BY_SERVICE, slice_service)
        reconciler = Reconciler(host, self._imports)
        self.controller: Controller[Key] = Controller(
            "serviceimport", reconciler.reconcile, workers=_WORKERS, clock=host.clock, resync=self._keys
        )

    async def run(self) -> None:
        """Subscribe, and start the workers once all caches are synced."""
        self._imports.add_handler(self._on_import)
        self._objects.subscribe(self._on_federated, Triggers(), writer=WRITER, is_late=True)
        await asyncio.gather(self._objects.wait_synced(), self._imports.wait_synced())
        await self.controller.run()

    def _keys(self) -> Iterator[Key]:
        return map(key_of, self._imports.list())

    def _on_import(self, old: Object | None, new: Object | None) -> None:
        if new is None or old is None or old["metadata"].get("generation") != new["metadata"].get("generation"):
            self.controller.enqueue(key_of(new if new is not None else old or {}))

    def _on_federated(self, old: Object | None, new: Object | None) -> None:
        federated = new if new is not None else old or {}
        key = service_key_of(federated)
        if key is not None and (_is_placed_by_us(federated) or self._concerns_import(key, federated)):
            self.controller.enqueue(key)

    def _concerns_import(self, key: Key, federated: Object) -> bool:
        is_import = federated["spec"]["template"]["kind"] == SERVICE_IMPORTS.kind
        return is_import or self._imports.get(*key) is not None


def _is_placed_by_us(federated: Object) -> bool:
    entries = federated["spec"].get("placements") or ()
    return any(entry.get("controller") == SERVICE_IMPORT_CONTROLLER for entry in entries)
