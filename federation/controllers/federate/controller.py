"""Triggers of the federate controller, and its wiring; the steps are in `reconcile.py`.

It owns one informer per federated type and follows the types as they come and go. Most events on a source are status
updates; they are dropped here, before anything is queued.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.api.resources import CLUSTER_OVERRIDE_POLICIES, OVERRIDE_POLICIES
from federation.apimachinery.clock import Clock
from federation.apimachinery.resources import Object, Resource
from federation.client.client import Client
from federation.controllers.federate.reconcile import WRITER, Reconciler, SourceKey
from federation.planning.federatedobject import builder, changes, eligibility
from federation.planning.overrides.policymatching import Bindings, idle_controllers
from federation.runtime.controller import Controller, ControllerOptions
from federation.runtime.events import Recorder
from federation.runtime.federatedobjects import FederatedObjects, Triggers
from federation.runtime.federatedtypes import FederatedTypes
from federation.runtime.informer import Informer
from federation.runtime.informers import Informers

_TRIGGERS = Triggers(
    added=False,
    generation=False,
    template=True,
    labels=True,
    annotations=changes.SOURCE_ANNOTATIONS,
    owner_references=True,
)
"""Changes of what the source decides, and removal. An added object is our own write, or its source is added as well."""


@dataclass(frozen=True, slots=True)
class FederateOptions:
    """Limits of the federate controller."""

    workers: int = 16
    """Concurrent reconciles; each waits for the store's group commit most of the time."""
    loop: ControllerOptions = field(default_factory=ControllerOptions)


@dataclass(slots=True)
class _Followed:
    """A federated type, its sources' informer, and how to stop following it."""

    type_: FederatedType
    informer: Informer
    stop: Callable[[], None]


class FederateController:
    """Keeps every federated object equal to its source. `run` runs until cancelled."""

    def __init__(
        self,
        client: Client,
        objects: FederatedObjects,
        informers: Informers,
        recorder: Recorder,
        *,
        clock: Clock,
        options: FederateOptions | None = None,
    ) -> None:
        chosen = options or FederateOptions()
        self._objects = objects
        self._informers = informers
        self._types = objects.types
        self._followed: dict[Resource, _Followed] = {}
        self._bindings = Bindings()
        self._policies = [informers.for_resource(OVERRIDE_POLICIES), informers.for_resource(CLUSTER_OVERRIDE_POLICIES)]
        reconciler = Reconciler(
            client,
            objects,
            recorder,
            source=self._source,
            # A policy that appears right now may be missed here; the override controller finds every federated object
            # that the policy selects, so the object may be propagated once without its overrides, and no more.
            idle=lambda source, federated: idle_controllers(self._bindings, source, federated),
        )
        self.controller: Controller[SourceKey] = Controller(
            "federate",
            reconciler.reconcile,
            workers=chosen.workers,
            clock=clock,
            options=chosen.loop,
            resync=self._all_keys,
        )

    async def run(self) -> None:
        """Subscribe, and start the workers once all caches are synced."""
        for policies in self._policies:
            policies.add_handler(self._on_policy)
        self._objects.subscribe(self._on_federated, _TRIGGERS, writer=WRITER)
        stop = self._types.add_listener(self._follow, self._unfollow)
        try:
            await asyncio.gather(self._objects.wait_synced(), *(informer.wait_synced() for informer in self._policies))
            await self.controller.run()
        finally:
            stop()
            for followed in list(self._followed.values()):
                self._unfollow(followed.type_)

    def _source(self, key: SourceKey) -> tuple[FederatedType, Object] | None:
        """Return a cached source with its federated type."""
        followed = self._followed.get(key.resource)
        obj = followed.informer.get(key.namespace, key.name) if followed is not None else None
        return None if followed is None or obj is None else (followed.type_, _typed(key.resource, obj))

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
        if new is None or (old is not None and not changes.is_relevant_change(old, new)):
            return
        metadata = new["metadata"]
        if not metadata.get("finalizers") and eligibility.exclusion(_typed(resource, new)):
            return
        self.controller.enqueue(SourceKey(resource, metadata.get("namespace", ""), metadata["name"]))

    def _on_federated(self, old: Object | None, new: Object | None) -> None:
        api_version, kind, namespace, name = builder.source_key(old if old is not None else new or {})
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
    """Return the function with which the embedded API server sets our finalizer on new objects that will be federated.

    That saves a write and a round trip (docs/decisions/0020). The reconciler adds the finalizer to all other objects:
    those of other API servers, and those that are federated only later.
    """

    def name_finalizers(resource: Resource, obj: Object) -> tuple[str, ...]:
        is_federated = types.for_resource(resource) is not None and not eligibility.exclusion(obj)
        return (names.FEDERATE_FINALIZER,) if is_federated else ()

    return name_finalizers
