"""Triggers of status collection, and its wiring; the steps are in `reconcile.py`.

Every change of a copy is a trigger; writes are spaced by a `Coalescer`, so that a rollout with hundreds of status
changes costs one write every two seconds.
"""

import asyncio
from dataclasses import dataclass, field

from federation.api.resources import CLUSTER_FEDERATED_OBJECTS, FEDERATED_OBJECTS, Object, Resource
from federation.base.clock import Clock
from federation.client.protocol import Client
from federation.controllers.statuscollect.reconcile import Reconciler
from federation.planning.coalescing import Coalescer, Pace
from federation.planning.naming import federated_object_name
from federation.runtime.controller import Controller, Key, key_of
from federation.runtime.federatedtypes import FederatedTypes
from federation.runtime.informer import Informer
from federation.runtime.informers import Informers
from federation.runtime.members import Members


@dataclass(frozen=True, slots=True)
class StatusCollectOptions:
    """Limits of status collection."""

    workers: int = 4
    """Objects at a time; each waits for the host's group commit."""
    pace: Pace = field(default_factory=lambda: Pace(quiet_s=5.0, wait_s_max=15.0, interval_s_min=15.0))


def build(
    client: Client,
    informers: Informers,
    types: FederatedTypes,
    members: Members,
    clock: Clock,
    options: StatusCollectOptions | None = None,
) -> "StatusCollectController":
    """Return the controller, wired; nothing runs before its `run`."""
    return StatusCollectController(client, informers, types, members, clock, options or StatusCollectOptions())


class StatusCollectController:
    """Owns the queue of status collection."""

    def __init__(
        self,
        client: Client,
        informers: Informers,
        types: FederatedTypes,
        members: Members,
        clock: Clock,
        options: StatusCollectOptions,
    ) -> None:
        self._types = types
        self._clock = clock
        self._federated: dict[bool, Informer] = {
            True: informers.for_resource(FEDERATED_OBJECTS),
            False: informers.for_resource(CLUSTER_FEDERATED_OBJECTS),
        }
        self._pace: Coalescer[Key] = Coalescer(options.pace)
        self._reconciler = Reconciler(client, self._cached, types, members, self._pace, clock)
        self.controller: Controller[Key] = Controller(
            "statuscollect", self._reconciler.reconcile, workers=options.workers, clock=clock
        )
        for informer in self._federated.values():
            informer.add_handler(self._on_federated)
        members.add_handler(self._on_member)

    async def run(self) -> None:
        """Work until cancelled."""
        await asyncio.gather(*(informer.wait_synced() for informer in self._federated.values()))
        await self._types.wait_synced()
        await self.controller.run()

    def _cached(self, key: Key) -> Object | None:
        return self._federated[bool(key.namespace)].get(key.namespace, key.name)

    def _on_federated(self, old: Object | None, new: Object | None) -> None:
        if new is None:
            self._reconciler.forget(key_of(old or {}))
        elif old is not None and old["metadata"].get("labels") != new["metadata"].get("labels"):
            self._note(key_of(new))

    def _on_member(self, cluster: str, resource: Resource, old: Object | None, new: Object | None) -> None:  # noqa: ARG002  # a handler's signature
        type_ = self._types.for_resource(resource)
        obj = new if new is not None else old
        if type_ is None or not type_.collect or obj is None:
            return
        metadata = obj["metadata"]
        self._note(Key(metadata.get("namespace", ""), federated_object_name(metadata["name"], type_.name)))

    def _note(self, key: Key) -> None:
        self.controller.enqueue(key, after_s=self._pace.note(key, self._clock.monotonic()))
