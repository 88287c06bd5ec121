"""Wiring of queues: one key, which is due a moment after anything changed that a round depends on."""

import asyncio

from federation.featureapi.surroundings import GateTransport
from federation.features.queues.checking import Checker
from federation.features.queues.queueevents import Observer
from federation.features.queues.reconcile import Reconciler
from federation.features.queues.rules.facts import Admitted
from federation.features.queues.rules.queuestate import QueueState
from federation.runtime.controller import Controller
from federation.runtime.host import Host

_ALL = ""
"""The only key."""
_CHECKERS = 8
"""Admission checks that are asked at the same time."""
_COALESCING_S = 0.05
"""Delay between a change and its round; all changes until then share it."""


class QueueController:
    """Admits the objects of JobQueues. It holds the state, which a restart makes again from the host's objects."""

    def __init__(self, host: Host, transport: GateTransport) -> None:
        self.state = QueueState()
        self._observer = Observer(host, self.state, self._changed)
        self._checker = Checker(transport, self.state, host.clock, self._changed)
        reconciler = Reconciler(host, self.state, self._observer, self._ask)
        self.checks: Controller[str] = Controller(
            "queues-checks", self._checker.reconcile, workers=_CHECKERS, clock=host.clock
        )
        self.controller: Controller[str] = Controller("queues", reconciler.reconcile, workers=1, clock=host.clock)

    async def run(self) -> None:
        """Run until cancelled."""
        await self._observer.run()
        self.controller.enqueue(_ALL)
        async with asyncio.TaskGroup() as group:
            group.create_task(self.controller.run(), name="queues")
            group.create_task(self.checks.run(), name="queues-checks")

    def _ask(self, key: str, admitted: Admitted) -> None:
        self._checker.want(key, admitted)
        self.checks.enqueue(key)

    def _changed(self) -> None:
        self.controller.enqueue(_ALL, after_s=_COALESCING_S)
