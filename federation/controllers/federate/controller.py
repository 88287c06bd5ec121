"""Triggers of the federate controller, and its wiring; the steps are in `reconcile.py`.

It owns one informer per federated type and follows the types as they come and go. Most events on a source are status
updates; they are dropped here, before anything is queued.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.api.resources import CLUSTER_OVERRIDE_POLICIES, OVERRIDE_POLICIES
from federation.apimachinery.effect import Effect, EffectOf
from federation.apimachinery.finalizers import has_finalizer
from federation.apimachinery.resources import Object, Resource
from federation.controllers.federate.policyselection import PolicySelection
from federation.controllers.federate.reconcile import WRITER, Placing, Reconciler, SourceKey
from federation.planning.federatedobject import builder, changes, eligibility
from federation.planning.federatedobject.hosteffect import effect_on_host
from federation.planning.overrides.policymatching import Bindings, idle_controllers
from federation.runtime.controller import Controller, ControllerOptions
from federation.runtime.federatedtypes import FederatedTypes
from federation.runtime.host import Host
from federation.runtime.sourceholds import SourceHold
from federation.runtime.sourceinformers import SourceInformers
from federation.runtime.subscription import Triggers

_TRIGGERS = Triggers(
    added=False,
    generation=False,
    template=True,
    labels=True,
    annotations=changes.SOURCE_ANNOTATIONS,
    owner_references=True,
)
"""Changes of what the source decides, and removal. An added object is our own write, or its source is added as well."""
_PLACED = Triggers(added=False, generation=False, deletion=False, placed=True)


@dataclass(frozen=True, slots=True)
class FederateOptions:
    """Limits of the federate controller."""

    workers: int = 16
    """Concurrent reconciles; each waits for the store's group commit most of the time."""
    loop: ControllerOptions = field(default_factory=ControllerOptions)


class FederateController:
    """Keeps every federated object equal to its source. `run` runs until cancelled."""

    def __init__(
        self,
        host: Host,
        selection: PolicySelection,
        placing: Placing,
        *,
        holds: Sequence[SourceHold] = (),
        options: FederateOptions | None = None,
    ) -> None:
        chosen = options or FederateOptions()
        self._objects = host.objects
        self._types = host.objects.types
        self._sources = SourceInformers(host.informers, self._on_source, is_late=True)
        self._selection = selection
        self._deleted: set[SourceKey] = set()
        self._bindings = Bindings()
        self._policies = [
            host.informers.for_resource(OVERRIDE_POLICIES),
            host.informers.for_resource(CLUSTER_OVERRIDE_POLICIES),
        ]
        self._holds = holds
        reconciler = Reconciler(
            host,
            source=self._source,
            deleted=self._deleted,
            expects_placement=selection.expects_placement,
            idle=lambda source, federated: idle_controllers(self._bindings, source, federated),
            waits=lambda source: any(hold.holds(source) for hold in holds),
            placing=placing,
        )
        self.controller: Controller[SourceKey] = Controller(
            "federate",
            reconciler.reconcile,
            workers=chosen.workers,
            clock=host.clock,
            options=chosen.loop,
            resync=self._all_keys,
        )

    async def run(self) -> None:
        """Subscribe, and start the workers once all caches are synced."""
        for policies in self._policies:
            policies.add_handler(self._on_policy)
        self._objects.subscribe(self._on_federated, _TRIGGERS, writer=WRITER, is_late=True)
        self._objects.subscribe(self._on_placed, _PLACED, is_late=True)
        stop = self._types.add_listener(self._sources.follow, self._sources.unfollow)
        try:
            synced = [*(each.wait_synced() for each in self._policies), *(each.wait_synced() for each in self._holds)]
            await asyncio.gather(self._objects.wait_synced(), self._selection.wait_synced(), *synced)
            await self.controller.run()
        finally:
            stop()
            self._sources.close()

    def _source(self, key: SourceKey) -> tuple[FederatedType, Object] | None:
        """Return a cached source with its federated type; a key of a version that the type has left finds none."""
        type_, obj = self._types.for_resource(key.resource), self._sources.get(*key)
        return None if type_ is None or obj is None else (type_, _typed(type_.resource, obj))

    # -- events

    def _on_source(self, type_: FederatedType, old: Object | None, new: Object | None) -> None:
        if new is None:
            self._on_deleted_source(type_, old)
            return
        resource, metadata = type_.resource, new["metadata"]
        if not metadata.get("finalizers") and eligibility.exclusion(_typed(resource, new)):
            return
        if old is not None and not changes.is_relevant_change(old, new):
            return
        self.controller.enqueue(SourceKey(resource, metadata.get("namespace", ""), metadata["name"]))

    def _on_deleted_source(self, type_: FederatedType, old: Object | None) -> None:
        """Delete the federated object of a source that our finalizer did not hold."""
        metadata = (old or {}).get("metadata") or {}
        if metadata and not has_finalizer(old or {}, names.FEDERATE_FINALIZER):
            key = SourceKey(type_.resource, metadata.get("namespace", ""), metadata["name"])
            self._deleted.add(key)
            self.controller.enqueue(key)

    def _on_placed(self, _: Object | None, new: Object | None) -> None:
        """Let our finalizer hold the source of an object whose placement nothing announced."""
        if new is None:
            return
        api_version, kind, namespace, name = builder.source_key(new)
        type_ = self._types.for_object({"apiVersion": api_version, "kind": kind})
        if type_ is None or (source := self._sources.get(type_.resource, namespace, name)) is None:
            return
        if not has_finalizer(source, names.FEDERATE_FINALIZER):
            self.controller.enqueue(SourceKey(type_.resource, namespace, name))

    def _on_federated(self, old: Object | None, new: Object | None) -> None:
        api_version, kind, namespace, name = builder.source_key(old if old is not None else new or {})
        type_ = self._types.for_object({"apiVersion": api_version, "kind": kind})
        if type_ is None or not name:
            return
        if new is not None and new["metadata"].get("deletionTimestamp"):
            source = self._sources.get(type_.resource, namespace, name)
            if source is not None and source["metadata"].get("deletionTimestamp"):
                return  # Our own deletion: the source waits until the federated object is gone.
        self.controller.enqueue(SourceKey(type_.resource, namespace, name))

    def _on_policy(self, old: Object | None, new: Object | None) -> None:
        if new is not None:
            self._bindings.put(new)
        elif old is not None:
            self._bindings.drop(old)

    def _all_keys(self) -> Iterator[SourceKey]:
        for resource, informer in self._sources:
            for obj in informer.list():
                metadata = obj["metadata"]
                yield SourceKey(resource, metadata.get("namespace", ""), metadata["name"])


def _typed(resource: Resource, obj: Object) -> Object:
    """Return the object with apiVersion and kind, which API servers leave out of the items of a list."""
    if "kind" in obj and "apiVersion" in obj:
        return obj
    return {"apiVersion": resource.api_version, "kind": resource.kind, **obj}


def host_effects(types: FederatedTypes, selection: PolicySelection) -> EffectOf:
    """Return the function that tells the embedded API server which configurations act on it (docs/decisions/0091)."""
    names_finalizers = first_finalizers(types, selection)

    def effect_of(resource: Resource, obj: Object) -> Effect:
        is_selected = bool(names_finalizers(resource, _typed(resource, obj)))
        return effect_on_host(resource, obj, is_selected=is_selected)

    return effect_of


def first_finalizers(
    types: FederatedTypes, selection: PolicySelection
) -> Callable[[Resource, Object], tuple[str, ...]]:
    """Return the function with which the embedded API server sets our finalizer on new objects that will be placed.

    That saves a write and a round trip (docs/decisions/0020). The reconciler adds the finalizer to all other objects
    that are placed: those of other API servers, followers, and those whose policy is created later.
    """

    def name_finalizers(resource: Resource, obj: Object) -> tuple[str, ...]:
        type_ = types.for_resource(resource)
        if type_ is None or type_.ending or eligibility.exclusion(obj) or not selection.expects_placement(type_, obj):
            return ()
        return (names.FEDERATE_FINALIZER,)

    return name_finalizers
