"""Wiring of the federate controller: which events of sources, federated objects and policies concern which source.

It owns one informer per federated type and follows the types as they come and go. Most events on a source are status
updates; they are dropped here, before anything is queued.
"""

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.api.resources import (
    CLUSTER_FEDERATED_OBJECTS,
    CLUSTER_OVERRIDE_POLICIES,
    FEDERATED_OBJECTS,
    OVERRIDE_POLICIES,
    Object,
    Resource,
)
from federation.base.clock import Clock
from federation.client.protocol import Client
from federation.controllers.federate.reconcile import Reconciler, SourceKey
from federation.planning import federation
from federation.planning.overrides.bindings import Bindings, idle_controllers
from federation.runtime.controller import Controller, ControllerOptions
from federation.runtime.events import Recorder
from federation.runtime.federatedtypes import FederatedTypes
from federation.runtime.informer import Informer
from federation.runtime.informers import Informers


@dataclass(frozen=True, slots=True)
class FederateOptions:
    """Limits of the federate controller."""

    workers: int = 16
    """Sources that are worked on at the same time; each waits for the store's group commit most of the time."""
    loop: ControllerOptions = field(default_factory=ControllerOptions)


@dataclass(slots=True)
class _Followed:
    """A federated type, its sources' informer, and how to stop following it."""

    type_: FederatedType
    informer: Informer
    stop: Callable[[], None]


class FederateController:
    """Keeps every source and its federated object together. `run` works until cancelled."""

    def __init__(
        self,
        client: Client,
        informers: Informers,
        types: FederatedTypes,
        recorder: Recorder,
        *,
        clock: Clock,
        options: FederateOptions | None = None,
    ) -> None:
        chosen = options or FederateOptions()
        self._informers = informers
        self._types = types
        self._followed: dict[Resource, _Followed] = {}
        self._bindings = Bindings()
        self._federated = {
            resource: informers.for_resource(resource) for resource in (FEDERATED_OBJECTS, CLUSTER_FEDERATED_OBJECTS)
        }
        self._policies = [informers.for_resource(OVERRIDE_POLICIES), informers.for_resource(CLUSTER_OVERRIDE_POLICIES)]
        reconciler = Reconciler(client, self, recorder, idle=self._idle)
        self.controller: Controller[SourceKey] = Controller(
            "federate",
            reconciler.reconcile,
            workers=chosen.workers,
            clock=clock,
            options=chosen.loop,
            resync=self._all_keys,
        )

    async def run(self) -> None:
        """Follow types and objects, and work once what is read has arrived."""
        for policies in self._policies:
            policies.add_handler(self._on_policy)
        for federated in self._federated.values():
            federated.add_handler(self._on_federated)
        stop = self._types.add_listener(self._follow, self._unfollow)
        try:
            await asyncio.gather(*(informer.wait_synced() for informer in [*self._policies, *self._federated.values()]))
            await self.controller.run()
        finally:
            stop()
            for followed in list(self._followed.values()):
                self._unfollow(followed.type_)

    # -- what the reconciler reads

    def type_of(self, resource: Resource) -> FederatedType | None:
        """Return the federated type of the kind."""
        followed = self._followed.get(resource)
        return followed.type_ if followed is not None else None

    def source(self, key: SourceKey) -> Object | None:
        """Return the cached source."""
        followed = self._followed.get(key.resource)
        obj = followed.informer.get(key.namespace, key.name) if followed is not None else None
        return _typed(key.resource, obj) if obj is not None else None

    def federated(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """Return the cached federated object."""
        return self._federated[resource].get(namespace, name)

    def _idle(self, source: Mapping[str, Any], federated: Mapping[str, Any] | None) -> Collection[str]:
        """Return the pipeline controllers that have nothing to do for the source.

        A policy that appears right now may be missed here; the override controller looks at every federated object by
        itself when it sees the policy, so the only cost is that the object may go out once before it is overridden.
        """
        return idle_controllers(self._bindings, source, federated)

    # -- events

    def _follow(self, type_: FederatedType) -> None:
        informer = self._informers.for_resource(type_.resource)

        def handle(old: Object | None, new: Object | None) -> None:
            self._on_source(type_.resource, old, new)

        # Known before the handler is added, because that replays what the cache holds already.
        followed = self._followed[type_.resource] = _Followed(type_, informer, lambda: None)
        followed.stop = informer.add_handler(handle)

    def _unfollow(self, type_: FederatedType) -> None:
        followed = self._followed.pop(type_.resource, None)
        if followed is not None:
            followed.stop()
            self._informers.release(followed.informer)

    def _on_source(self, resource: Resource, old: Object | None, new: Object | None) -> None:
        if new is None or (old is not None and not federation.is_relevant_change(old, new)):
            return
        metadata = new["metadata"]
        if not metadata.get("finalizers") and federation.exclusion(_typed(resource, new)):
            return
        self.controller.enqueue(SourceKey(resource, metadata.get("namespace", ""), metadata["name"]))

    def _on_federated(self, old: Object | None, new: Object | None) -> None:
        """Look again when somebody changed what is ours, or when a deletion is through.

        An add needs no look: either it is our own write, or the source's own add has been queued as well.
        """
        if old is None or (new is not None and not federation.is_foreign_change(old, new)):
            return
        api_version, kind, namespace, name = federation.source_key(old)
        type_ = self._types.for_object({"apiVersion": api_version, "kind": kind})
        if type_ is not None and name:
            self.controller.enqueue(SourceKey(type_.resource, namespace, name))

    def _on_policy(self, old: Object | None, new: Object | None) -> None:
        if new is not None:
            self._bindings.put(new)
        elif old is not None:
            self._bindings.drop(old)

    def _all_keys(self) -> Iterator[SourceKey]:
        for resource, followed in self._followed.items():
            for obj in followed.informer.list():
                metadata = obj["metadata"]
                yield SourceKey(resource, metadata.get("namespace", ""), metadata["name"])


def _typed(resource: Resource, obj: Object) -> Object:
    """Return the object with apiVersion and kind, which API servers leave out of the items of a list."""
    if "kind" in obj and "apiVersion" in obj:
        return obj
    return {"apiVersion": resource.api_version, "kind": resource.kind, **obj}


def first_finalizers(types: FederatedTypes) -> Callable[[Resource, Object], tuple[str, ...]]:
    """Return what names our finalizer for a new object that will be federated, where the API server can ask us.

    The object then has it from its creation on, which saves a write and a round trip (docs/decisions/0020). The
    reconciler puts it on whatever came without: objects of other API servers, and those that are federated only later.
    """

    def name_finalizers(resource: Resource, obj: Object) -> tuple[str, ...]:
        is_federated = types.for_resource(resource) is not None and not federation.exclusion(obj)
        return (names.FEDERATE_FINALIZER,) if is_federated else ()

    return name_finalizers


def build(
    client: Client,
    informers: Informers,
    types: FederatedTypes,
    recorder: Recorder,
    *,
    clock: Clock,
    options: FederateOptions | None = None,
) -> FederateController:
    """Return the wired controller; nothing runs yet."""
    return FederateController(client, informers, types, recorder, clock=clock, options=options)
