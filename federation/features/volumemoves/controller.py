"""Triggers of moves with volumes, and their wiring; the steps are in `reconcile.py`.

The record of an object triggers its reconcile, and so does the approval of the hold about its old volumes. While a move
is under way its members are looked at every two seconds: what it waits for there are kinds that nothing watches.
"""

import asyncio

from federation.api import names
from federation.api.resources import FEDERATED_CLUSTERS
from federation.apimachinery.resources import Object
from federation.featureapi.surroundings import GateTransport
from federation.features.volumemoves.names import VOLUME_MOVE
from federation.features.volumemoves.reconcile import Reconciler
from federation.features.volumemoves.rules.moverecord import RECORD
from federation.guard.moveguard import MoveGuard
from federation.planning.guard.ledger import GuardOptions
from federation.runtime.controller import Controller, Key, key_of
from federation.runtime.host import Host
from federation.runtime.subscription import Triggers

_WORKERS = 4
_TRIGGERS = Triggers(added=False, generation=False, annotations=frozenset((VOLUME_MOVE,)))
"""A new object has no record; those that exist at the start are looked through once."""


class VolumeMoveController:
    """Owns the queue of moves with volumes."""

    def __init__(self, host: Host, transport: GateTransport) -> None:
        self._objects = host.objects
        self._clusters = host.informers.for_resource(FEDERATED_CLUSTERS)
        self._guard = MoveGuard(host, GuardOptions(), annotation=names.HELD_VOLUMES)
        reconciler = Reconciler(host, self._guard, transport, lambda name: self._clusters.get("", name))
        self.controller: Controller[Key] = Controller(
            "volumemove", reconciler.reconcile, workers=_WORKERS, clock=host.clock
        )
        self._guard.on_approval(lambda federated: self.controller.enqueue(key_of(federated)))

    async def run(self) -> None:
        """Run until cancelled."""
        await asyncio.gather(self._objects.wait_synced(), self._clusters.wait_synced())
        await self._guard.recall()
        self._objects.subscribe(self._on_federated, _TRIGGERS, is_replayed=False)
        for federated in self._objects.scan():
            self._on_federated(None, federated)
        await self.controller.run()

    def _on_federated(self, old: Object | None, new: Object | None) -> None:
        if new is None:
            self._guard.withdraw(key_of(old or {}))
        elif RECORD.of(new) is not None:
            self.controller.enqueue(key_of(new))
