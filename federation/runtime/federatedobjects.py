"""One view of the federated objects for all controllers: read, write exactly one state, subscribe to changes.

Namespaced and cluster-scoped federated objects are behind one key. Reads return our own writes before the informers
have them. A controller declares in `Triggers` which changes matter to it; the view filters all others out before they
reach the controller's queue, its own writes among them. The view decides nothing about an object's content. It lives as
long as the control plane. Read next: `informer.py` for the caches, `assumecache.py` for our own writes.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

from federation.api import names
from federation.api.federatedtype import FederatedType, template_kind
from federation.api.resources import CLUSTER_FEDERATED_OBJECTS, FEDERATED_OBJECTS
from federation.apimachinery import conditions
from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import Invalid
from federation.apimachinery.mergepatch import apply_merge_patch, create_merge_patch
from federation.apimachinery.resources import Object, Resource
from federation.client.client import Client, Objects
from federation.runtime.assumecache import AssumeCache
from federation.runtime.controller import Key, key_of
from federation.runtime.federatedtypes import FederatedTypes
from federation.runtime.indexer import revision_of
from federation.runtime.informer import Handler, Informer
from federation.runtime.informers import Informers

Keys = list[Key]
Completion = Callable[[Object], Object | None]
"""Returns the patch of a controller for the object that another one is about to write; None if it has none."""

_BY_TEMPLATE_KIND = "template-kind"
_PROGRESS = frozenset((names.PENDING_CONTROLLERS, names.OVERRIDE_POLICIES))
"""Annotations that trigger nobody: `is_due` and `is_pending` handle the one, new overrides come with the other."""


@dataclass(frozen=True, slots=True)
class Triggers:
    """The changes of a federated object that a controller reacts to. A removal and a new uid always matter."""

    added: bool = True
    generation: bool = True
    template: bool = False
    """`spec.template`, for a controller that does not react to every new generation."""
    entries_of: str = ""
    """The placements and overrides of this controller, which a user may have edited."""
    placed: bool = False
    """Whether any controller has placed the object."""
    labels: bool = False
    annotations: bool | AbstractSet[str] = False
    """Every annotation, none, or those with these names."""
    finalizers: bool = False
    owner_references: bool = False
    deletion: bool = True
    """The start of a deletion. Without it, an object that is being deleted is ignored until it is removed."""
    status: Callable[[Object], Any] | None = None
    """Returns the part of the object's status that matters; None ignores the status."""
    is_due: Callable[[Object], bool] | None = None
    """For a controller of the pipeline: returns whether it may act on the object now. Changes of an object that is not
    due are passed on as one event when it becomes due. An object that is being deleted is always due."""
    is_pending: Callable[[Object], bool] | None = None
    """Returns whether the controller is at the head of `pending-controllers`. Getting there counts as a change."""

    def concern(self, old: Object | None, new: Object) -> bool:
        """Return whether the change matters to the controller, whether or not the object is due."""
        if self.is_pending is not None and self.is_pending(new) and (old is None or not self.is_pending(old)):
            return True
        return self.added if old is None else self._has_changed(old, new)

    def is_due_now(self, federated: Object) -> bool:
        """Return whether the controller may act on the object now."""
        return self.is_due is None or bool(federated["metadata"].get("deletionTimestamp")) or self.is_due(federated)

    def _has_changed(self, old: Object, new: Object) -> bool:
        before, after = old["metadata"], new["metadata"]
        return (
            before.get("uid") != after.get("uid")
            or (self.generation and (before.get("generation") != after.get("generation") or "generation" not in after))
            or (self.template and (old.get("spec") or {}).get("template") != (new.get("spec") or {}).get("template"))
            or (bool(self.entries_of) and _entries(old, self.entries_of) != _entries(new, self.entries_of))
            or (self.placed and _is_placed(old) != _is_placed(new))
            or (self.deletion and before.get("deletionTimestamp") != after.get("deletionTimestamp"))
            or (self.labels and before.get("labels") != after.get("labels"))
            or (self.finalizers and before.get("finalizers") != after.get("finalizers"))
            or (self.owner_references and before.get("ownerReferences") != after.get("ownerReferences"))
            or self._has_annotation_changed(before.get("annotations") or {}, after.get("annotations") or {})
            or (self.status is not None and self.status(old) != self.status(new))
        )

    def _has_annotation_changed(self, before: dict[str, str], after: dict[str, str]) -> bool:
        if self.annotations is True:
            return before != after and _without_progress(before) != _without_progress(after)
        return self.annotations is not False and any(before.get(name) != after.get(name) for name in self.annotations)


def _without_progress(annotations: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in annotations.items() if name not in _PROGRESS}


def _is_placed(federated: Object) -> bool:
    return any(entry.get("placement") for entry in (federated.get("spec") or {}).get("placements") or ())


def _entries(federated: Object, controller: str) -> Objects:
    spec = federated.get("spec") or {}
    entries = chain(spec.get("placements") or (), spec.get("overrides") or ())
    return [entry for entry in entries if entry.get("controller") == controller]


class _Own(NamedTuple):
    """A write of the controller that the watch has not delivered yet."""

    base: int
    """The revision that it was made for."""
    is_complete: bool
    """Whether it also did what was deferred: the object was not due before it, and is due with it."""


@dataclass(slots=True)
class _Held:
    """The writes of one object that are open, and the events that arrived since the first of them began."""

    writes: int = 0
    is_deferred: bool = False
    """Whether the controller has deferred the object since then."""
    events: list[tuple[Object | None, Object | None]] = field(default_factory=list)


class Subscription:
    """One controller's handler with its triggers, and the controller's writes that the watch has not delivered yet.

    The event of the controller's own write is dropped if it contains no other change: its old state is the one that the
    patch was made for, its new state the one that the patch returned. Events that arrive during a write are held until
    its response, which identifies the write's own event: within one process the watch is often faster. Writes of one
    object overlap where the controller completes the patch of another one (`complete_writes`); then events are held
    until the last response.
    """

    def __init__(self, handler: Handler, triggers: Triggers | None) -> None:
        self._handler = handler
        self._triggers = triggers
        self._deferred: set[Key] = set()
        self._written: dict[Key, dict[int, _Own]] = {}
        self._held: dict[Key, _Held] = {}

    def handle(self, old: Object | None, new: Object | None) -> None:
        """Call the handler if the event matters."""
        key = key_of(new if new is not None else old or {})
        if (held := self._held.get(key)) is not None:
            held.events.append((old, new))
        elif (own := self._take_own_write(key, old, new)) is not None:
            if own.is_complete:
                self._deferred.discard(key)
        elif self._is_admitted(key, old, new):
            self._handler(old, new)

    def _is_admitted(self, key: Key, old: Object | None, new: Object | None) -> bool:
        triggers = self._triggers
        if triggers is None:
            return True
        if new is None:
            self._deferred.discard(key)
            return True
        if not triggers.deletion and new["metadata"].get("deletionTimestamp"):
            return False
        is_concerned = triggers.concern(old, new)
        if not triggers.is_due_now(new):
            if is_concerned:
                self._deferred.add(key)
            return False
        if key in self._deferred:
            self._deferred.remove(key)
            return True
        return is_concerned

    def defer(self, key: Key) -> None:
        """Pass on the next event with which the object is due, even if it contains no other change."""
        self._deferred.add(key)
        if (held := self._held.get(key)) is not None:
            held.is_deferred = True

    def begin_write(self, key: Key) -> None:
        """Hold the object's events until every write of it has ended."""
        self._held.setdefault(key, _Held()).writes += 1

    def end_write(self, key: Key, base: Object, written: Object | None) -> None:
        """End a write. The last one passes on the held events, except those of the writes that succeeded."""
        held = self._held[key]
        if written is not None and revision_of(written) > revision_of(base):
            is_complete = not held.is_deferred and not self._is_due(base) and self._is_due(written)
            self._written.setdefault(key, {})[revision_of(written)] = _Own(revision_of(base), is_complete)
        held.writes -= 1
        if held.writes:
            return
        del self._held[key]
        for old, new in held.events:
            self.handle(old, new)

    def _is_due(self, federated: Object) -> bool:
        return self._triggers is None or self._triggers.is_due_now(federated)

    def _take_own_write(self, key: Key, old: Object | None, new: Object | None) -> _Own | None:
        """Return the controller's write if the event shows nothing else, and forget it and those before it."""
        writes = self._written.get(key)
        if writes is None:
            return None
        revision = revision_of(new)
        own = writes.get(revision)
        later = {written: each for written, each in writes.items() if new is not None and written > revision}
        if later:
            self._written[key] = later
        else:
            del self._written[key]
        return own if own is not None and own.base == revision_of(old) else None


class FederatedObjects:
    """The cached federated objects and our writes to them. `name_of(source name, type)` names a federated object."""

    def __init__(
        self,
        client: Client,
        informers: Informers,
        types: FederatedTypes,
        *,
        name_of: Callable[[str, str], str],
        clock: Clock,
    ) -> None:
        self.types = types
        self._client = client
        self._name_of = name_of
        self._clock = clock
        self._namespaced = informers.for_resource(FEDERATED_OBJECTS)
        self._cluster_scoped = informers.for_resource(CLUSTER_FEDERATED_OBJECTS)
        self._assumed: AssumeCache[Key] = AssumeCache(self._cached)
        self._subscriptions: dict[str, Subscription] = {}
        self._completion: tuple[str, Completion] | None = None
        for informer in self._informers:
            informer.add_handler(self._prune)
        self.add_index(_BY_TEMPLATE_KIND, lambda federated: (template_kind(federated),))

    # -- reading

    @property
    def has_synced(self) -> bool:
        """Whether every federated type and federated object that exists is known."""
        return self.types.has_synced and all(informer.has_synced for informer in self._informers)

    async def wait_synced(self) -> None:
        """Return once every federated type and federated object that exists is known."""
        await asyncio.gather(self.types.wait_synced(), *(informer.wait_synced() for informer in self._informers))

    def get(self, key: Key) -> Object | None:
        """Return the newest known state, with apiVersion and kind, which API servers leave out of a list's items."""
        found = self._assumed.get(key)
        if found is None or "kind" in found:
            return found
        resource = resource_of(key)
        return {"apiVersion": resource.api_version, "kind": resource.kind, **found}

    def scan(self) -> Iterator[Object]:
        """Yield all cached federated objects, one by one."""
        return chain.from_iterable(informer.cache.scan() for informer in self._informers)

    def all_keys(self) -> Iterator[Key]:
        """Yield the keys of all cached federated objects."""
        return (Key(*key) for informer in self._informers for key in list(informer.cache.keys()))

    def list_namespace(self, namespace: str) -> Objects:
        """Return the cached federated objects of one namespace."""
        return self._namespaced.list(namespace)

    def of_kind(self, api_version: str, kind: str, namespace: str = "") -> Objects:
        """Return the cached federated objects whose template is of the kind, of one namespace or of all."""
        return self.by_index(_BY_TEMPLATE_KIND, f"{api_version}/{kind}", namespace)

    def of_type(self, type_: FederatedType) -> Objects:
        """Return the cached federated objects of the type."""
        return self.of_kind(type_.resource.api_version, type_.resource.kind)

    def add_index(self, name: str, values: Callable[[Object], Any]) -> None:
        """Keep an index by the values that the function gives for a federated object."""
        for informer in self._informers:
            informer.add_index(name, values)

    def by_index(self, name: str, value: str, namespace: str = "") -> Objects:
        """Return the cached federated objects that have the value, of one namespace or of all."""
        if not namespace:
            return list(chain.from_iterable(informer.by_index(name, value) for informer in self._informers))
        return [obj for obj in self._namespaced.by_index(name, value) if obj["metadata"].get("namespace") == namespace]

    def keys_by_index(self, name: str, value: str, namespace: str = "") -> Keys:
        """Return the keys of what `by_index` returns, without reading the objects."""
        found = (key for informer in self._informers for key in informer.cache.keys_by_index(name, value))
        return [Key(*key) for key in found if not namespace or key[0] == namespace]

    def keys_of_kind(self, api_version: str, kind: str, namespace: str = "") -> Keys:
        """Return the keys of what `of_kind` returns, without reading the objects."""
        return self.keys_by_index(_BY_TEMPLATE_KIND, f"{api_version}/{kind}", namespace)

    def keys_of_type(self, type_: FederatedType) -> Keys:
        """Return the keys of what `of_type` returns, without reading the objects."""
        return self.keys_of_kind(type_.resource.api_version, type_.resource.kind)

    def type_of(self, federated: Object) -> FederatedType | None:
        """Return the federated type of the object's template."""
        return self.types.for_federated(federated)

    def key_for(self, type_: FederatedType, namespace: str, name: str) -> Key:
        """Return the key of the federated object of a source or member object of this namespace and name."""
        return Key(namespace, self._name_of(name, type_.name))

    def key_of_source(self, type_: FederatedType, obj: Object) -> Key:
        """Return the key of the federated object of this source or member object."""
        metadata = obj["metadata"]
        return self.key_for(type_, metadata.get("namespace", ""), metadata["name"])

    def of_source(self, group: str, kind: str, namespace: str, name: str) -> Object | None:
        """Return the federated object of a source; None without one, or when the kind is not federated."""
        type_ = self.types.for_group_kind(group, kind)
        return None if type_ is None else self.get(self.key_for(type_, namespace, name))

    # -- writing

    async def patch(
        self, key: Key, federated: Object, body: Object, *, subresource: str = "", writer: str = ""
    ) -> Object | None:
        """Merge-patch exactly this state and return the new one, None when the object is gone.

        Conflict when the object has changed in between. A draft is created. The subscription of `writer` does not get
        the event.
        """
        if not subresource and self._completion is not None:
            completing, complete = self._completion
            wanted = apply_merge_patch(federated, body)
            if (further := complete(wanted)) is not None:
                completed = create_merge_patch(federated, apply_merge_patch(wanted, further))
                with contextlib.suppress(Invalid):  # What is wrong is reported by the controller that made that part.
                    return await self._write(key, federated, completed, "", (writer, completing))
        return await self._write(key, federated, body, subresource, (writer,))

    def complete_writes(self, completion: Completion, *, writer: str) -> None:
        """Add the writer's patch to the patches of the other controllers.

        A step of the pipeline that needs nothing but the object then takes no write of its own.
        """
        self._completion = writer, completion

    async def _write(
        self, key: Key, federated: Object, body: Object, subresource: str, writers: Iterable[str]
    ) -> Object | None:
        subscriptions = [
            self._subscriptions[writer] for writer in dict.fromkeys(writers) if writer in self._subscriptions
        ]
        written = None
        for subscription in subscriptions:
            subscription.begin_write(key)
        try:
            written = await self._assumed.assume_result(key, self._send(key, federated, body, subresource))
        finally:
            for subscription in subscriptions:
                subscription.end_write(key, federated, written)
        return written

    async def _send(self, key: Key, federated: Object, body: Object, subresource: str) -> Object:
        resource, version = resource_of(key), federated["metadata"]["resourceVersion"]
        if is_draft(federated):
            created = apply_merge_patch(federated, body)
            return await self._client.create(resource, created, field_manager=names.FIELD_MANAGER)
        return await self._client.patch(
            resource,
            key.name,
            {**body, "metadata": {**body.get("metadata", {}), "resourceVersion": version}},
            namespace=key.namespace,
            subresource=subresource,
            field_manager=names.FIELD_MANAGER,
        )

    async def set_condition(
        self, key: Key, type_: str, *, status: str, reason: str, message: str = "", writer: str = ""
    ) -> bool:
        """Write one condition when it differs from the newest known state; return whether it was written."""
        federated = self.get(key)
        if federated is None:
            return False
        present = (federated.get("status") or {}).get("conditions") or []
        wanted = conditions.set_condition(
            present,
            type_=type_,
            status=status,
            reason=reason,
            message=message,
            now=self._clock.now(),
            time_fields=("lastUpdateTime",),
        )
        if wanted is present:
            return False
        body: Object = {"status": {"conditions": wanted}}
        return await self.patch(key, federated, body, subresource="status", writer=writer) is not None

    # -- events

    def subscribe(self, handler: Handler, triggers: Triggers | None, *, writer: str = "") -> None:
        """Call the handler for every event that passes the triggers (None: every event), and now for cached objects.

        With a `writer`, which can have one subscription, the events of that writer's own patches are left out.
        """
        subscription = Subscription(handler, triggers)
        if writer:
            self._subscriptions[writer] = subscription
        for informer in self._informers:
            informer.add_handler(subscription.handle)

    def defer(self, key: Key, *, writer: str) -> None:
        """Call the writer's handler when the object becomes due, even without a change that matters to it.

        A controller calls it in a reconcile of an object that is not due, which another object triggered: it can do
        nothing yet, and the event with which the object becomes due may not pass the triggers.
        """
        if (subscription := self._subscriptions.get(writer)) is not None:
            subscription.defer(key)

    # -- inside

    @property
    def _informers(self) -> tuple[Informer, Informer]:
        return self._namespaced, self._cluster_scoped

    def _cached(self, key: Key) -> Object | None:
        return (self._namespaced if key.namespace else self._cluster_scoped).get(*key)

    def _prune(self, old: Object | None, new: Object | None) -> None:
        self._assumed.prune(key_of(new if new is not None else old or {}))


def to_draft(federated: Object) -> Object:
    """Return a federated object that does not exist yet in the form in which it can be patched: that creates it."""
    return {**federated, "metadata": {**federated["metadata"], "resourceVersion": "", "generation": 1}}


def is_draft(federated: Object) -> bool:
    """Return whether the federated object does not exist yet."""
    return not federated["metadata"]["resourceVersion"]


def resource_of(key: Key) -> Resource:
    """Return the resource of the federated object with the key."""
    return FEDERATED_OBJECTS if key.namespace else CLUSTER_FEDERATED_OBJECTS
