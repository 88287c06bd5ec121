"""Wiring of queues: one key, which is due a moment after anything changed that a round depends on."""

from federation.features.queues.ledgerevents import Observer
from federation.features.queues.reconcile import Reconciler
from federation.features.queues.rules.queueledger import Ledger
from federation.runtime.controller import Controller
from federation.runtime.host import Host

_ALL = ""
"""The only key."""
_COALESCING_S = 0.05
"""Delay between a change and its round; all changes until then share it."""


class QueueController:
    """Admits the objects of JobQueues. It holds the ledger, which a restart makes again from the host's objects."""

    def __init__(self, host: Host) -> None:
        self.ledger = Ledger()
        self._observer = Observer(host, self.ledger, self._changed)
        reconciler = Reconciler(host, self.ledger, self._observer)
        self.controller: Controller[str] = Controller("queues", reconciler.reconcile, workers=1, clock=host.clock)

    async def run(self) -> None:
        """Run until cancelled."""
        await self._observer.run()
        self.controller.enqueue(_ALL)
        await self.controller.run()

    def _changed(self) -> None:
        self.controller.enqueue(_ALL, after_s=_COALESCING_S)
