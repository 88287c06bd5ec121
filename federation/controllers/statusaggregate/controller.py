"""Triggers of status aggregation, and its wiring; the steps are in `reconcile.py`.

Copies, federated objects and clusters' caches are triggers. A change is written after a short quiet time, so that
`kubectl` sees a rollout move at once and a burst of status changes costs one write.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from federation.api.federatedtype import FederatedType
from federation.api.resources import CLUSTER_FEDERATED_OBJECTS, FEDERATED_OBJECTS, Object, Resource
from federation.base.clock import Clock
from federation.client.protocol import Client
from federation.controllers.statusaggregate.reconcile import Reconciler
from federation.planning.coalescing import Coalescer, Pace
from federation.planning.naming import federated_object_name
from federation.runtime.controller import Controller, Key, key_of
from federation.runtime.federatedtypes import FederatedTypes
from federation.runtime.informer import Informer
from federation.runtime.informers import Informers
from federation.runtime.members import Members


@dataclass(frozen=True, slots=True)
class StatusAggregateOptions:
    """Limits of status aggregation."""

    workers: int = 8
    """Objects at a time; each waits for the host's group commit."""
    pace: Pace = field(default_factory=lambda: Pace(quiet_s=0.4, wait_s_max=2.0, interval_s_min=1.0))


def build(
    client: Client,
    informers: Informers,
    types: FederatedTypes,
    members: Members,
    clock: Clock,
    options: StatusAggregateOptions | None = None,
) -> "StatusAggregateController":
    """Return the controller, wired; nothing runs before its `run`."""
    return StatusAggregateController(client, informers, types, members, clock, options or StatusAggregateOptions())


class StatusAggregateController:
    """Owns the queue of status aggregation and the informers of sources."""

    def __init__(
        self,
        client: Client,
        informers: Informers,
        types: FederatedTypes,
        members: Members,
        clock: Clock,
        options: StatusAggregateOptions,
    ) -> None:
        self._informers = informers
        self._types = types
        self._members = members
        self._clock = clock
        self._federated: dict[bool, Informer] = {
            True: informers.for_resource(FEDERATED_OBJECTS),
            False: informers.for_resource(CLUSTER_FEDERATED_OBJECTS),
        }
        self._sources: dict[Resource, tuple[Informer, Callable[[], None]]] = {}
        self._pace: Coalescer[Key] = Coalescer(options.pace)
        self._reconciler = Reconciler(client, self._cached, self._source, types, members, self._pace, clock)
        self.controller: Controller[Key] = Controller(
            "statusaggregate", self._reconciler.reconcile, workers=options.workers, clock=clock
        )
        types.add_listener(self._follow, self._unfollow)
        for informer in self._federated.values():
            informer.add_handler(self._on_federated)
        members.add_handler(self._on_member)
        members.add_sync_listener(self._on_synced)

    async def run(self) -> None:
        """Work until cancelled."""
        await asyncio.gather(*(informer.wait_synced() for informer in self._federated.values()))
        await self._types.wait_synced()
        await self.controller.run()

    def _cached(self, key: Key) -> Object | None:
        return self._federated[bool(key.namespace)].get(key.namespace, key.name)

    def _source(self, resource: Resource, namespace: str, name: str) -> Object | None:
        followed = self._sources.get(resource)
        return followed[0].get(namespace, name) if followed is not None else None

    def _follow(self, type_: FederatedType) -> None:
        resource = type_.resource
        if not type_.aggregate or resource in self._sources:
            return
        informer = self._informers.for_resource(resource)

        def on_source(old: Object | None, new: Object | None) -> None:
            self._on_source(type_, old, new)

        self._sources[resource] = (informer, informer.add_handler(on_source))

    def _unfollow(self, type_: FederatedType) -> None:
        followed = self._sources.pop(type_.resource, None)
        if followed is not None:
            informer, stop = followed
            stop()
            self._informers.release(informer)

    def _on_source(self, type_: FederatedType, old: Object | None, new: Object | None) -> None:
        obj = new if new is not None else old
        assert obj is not None
        key = key_of(obj)
        self._reconciler.saw(type_.resource, key)
        if new is not None and old is None and self._cached(self._key_for(type_, obj)) is not None:
            # The federated object may have been there first (a restart).
            self._note(self._key_for(type_, obj))

    def _on_federated(self, old: Object | None, new: Object | None) -> None:
        if new is None:
            self._reconciler.forget(key_of(old or {}))
        elif not new["metadata"].get("deletionTimestamp"):
            self._note(key_of(new))

    def _on_member(self, cluster: str, resource: Resource, old: Object | None, new: Object | None) -> None:  # noqa: ARG002  # a handler's signature
        type_ = self._types.for_resource(resource)
        obj = new if new is not None else old
        if type_ is None or not type_.aggregate or obj is None:
            return
        if old is not None and new is not None and old.get("status") == new.get("status"):
            return
        self._note(self._key_for(type_, obj))

    def _on_synced(self, cluster: str, resource: Resource) -> None:  # noqa: ARG002  # a listener's signature
        type_ = self._types.for_resource(resource)
        if type_ is None or not type_.aggregate:
            return
        for obj in self._federated[resource.namespaced].list():
            if self._types.for_federated(obj) is type_:
                self._note(key_of(obj))

    def _key_for(self, type_: FederatedType, obj: Object) -> Key:
        metadata = obj["metadata"]
        return Key(metadata.get("namespace", ""), federated_object_name(metadata["name"], type_.name))

    def _note(self, key: Key) -> None:
        self.controller.enqueue(key, after_s=self._pace.note(key, self._clock.monotonic()))
