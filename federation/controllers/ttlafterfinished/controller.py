"""Triggers of the deletion of finished sources, and its wiring; the steps are in `reconcile.py`.

Every federated object with evidence of its end is looked at when it changes, and again when its time to live ends.
"""

from dataclasses import dataclass
from typing import Any

from federation.apimachinery.resources import Object
from federation.controllers.ttlafterfinished.reconcile import Reconciler
from federation.planning.federatedobject.finished import evidence_by_cluster
from federation.runtime.controller import Controller, Key, key_of
from federation.runtime.host import Host
from federation.runtime.subscription import Triggers


def _finished_clusters(federated: Object) -> Any:
    return sorted(evidence_by_cluster(federated))


_TRIGGERS = Triggers(status=_finished_clusters)


@dataclass(frozen=True, slots=True)
class TTLAfterFinishedOptions:
    """Limits of the deletion of finished sources."""

    workers: int = 2
    """Concurrent deletions."""


class TTLAfterFinishedController:
    """Deletes finished sources whose time to live has ended. `run` runs until cancelled."""

    def __init__(self, host: Host, *, options: TTLAfterFinishedOptions | None = None) -> None:
        chosen = options or TTLAfterFinishedOptions()
        self._objects = host.objects
        reconciler = Reconciler(host)
        self.controller: Controller[Key] = Controller(
            "ttlafterfinished", reconciler.reconcile, workers=chosen.workers, clock=host.clock
        )
        host.objects.subscribe(self._on_federated, _TRIGGERS, is_late=True)

    async def run(self) -> None:
        """Run until cancelled."""
        await self._objects.wait_synced()
        await self.controller.run()

    def _on_federated(self, old: Object | None, new: Object | None) -> None:  # noqa: ARG002  # a handler's signature
        if new is not None and evidence_by_cluster(new):
            self.controller.enqueue(key_of(new))
