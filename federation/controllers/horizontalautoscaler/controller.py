"""Triggers of the autoscalers, and their wiring. Besides its own changes, time triggers an autoscaler: every 15 s."""

import asyncio

from federation.apimachinery.clock import Clock
from federation.apimachinery.resources import Object
from federation.client.client import Client
from federation.controllers.horizontalautoscaler.reconcile import Reconciler
from federation.controllers.horizontalautoscaler.scaletargets import ScaleTargets
from federation.runtime.controller import Controller, ControllerOptions, Key, key_of
from federation.runtime.informer import Informer

_TIMEOUT_S = 60.0
"""Deadline of a reconcile. A request to a cluster that hangs takes up to 30 seconds."""


class HorizontalAutoscalerController:
    """Scales the targets of the autoscalers in `autoscalers`. `run` runs until cancelled.

    `manager` is the field manager of the replicas that it sets.
    """

    def __init__(
        self,
        client: Client,
        autoscalers: Informer,
        targets: ScaleTargets,
        *,
        clock: Clock,
        manager: str,
        workers: int = 2,
    ) -> None:
        self._autoscalers = autoscalers
        self._targets = targets
        reconciler = Reconciler(client, autoscalers, targets, clock, manager=manager)
        self.controller: Controller[Key] = Controller(
            "horizontalautoscaler",
            reconciler.reconcile,
            workers=workers,
            clock=clock,
            options=ControllerOptions(reconcile_timeout_s=_TIMEOUT_S),
        )
        autoscalers.add_handler(self._on_autoscaler)

    async def run(self) -> None:
        """Start the workers once the autoscalers and their targets are cached."""
        await asyncio.gather(self._autoscalers.wait_synced(), self._targets.wait_synced())
        await self.controller.run()

    def _on_autoscaler(self, old: Object | None, new: Object | None) -> None:
        # The generation of an autoscaler does not change with its spec.
        if old is None or new is None or old.get("spec") != new.get("spec"):
            self.controller.enqueue(key_of(new if new is not None else old or {}))
