"""One view of the federated objects for all controllers: read, write exactly one state, subscribe to changes.

Namespaced and cluster-scoped federated objects are behind one key. Reads return our own writes before the informers
have them. A controller declares in `Triggers` which changes matter to it; the view filters all others out before they
reach the controller's queue, its own writes among them. The view decides nothing about an object's content. It lives as
long as the control plane. Read next: `informer.py` for the caches, `assumecache.py` for our own writes.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain
from typing import Any

from federation.api import names
from federation.api.federatedtype import FederatedType, template_kind
from federation.api.resources import CLUSTER_FEDERATED_OBJECTS, FEDERATED_OBJECTS
from federation.apimachinery import conditions
from federation.apimachinery.clock import Clock
from federation.apimachinery.errors import Invalid
from federation.apimachinery.mergepatch import apply_merge_patch, create_merge_patch
from federation.apimachinery.resources import GroupKind, Object, Resource
from federation.client.client import Client, Objects
from federation.runtime.assumecache import AssumeCache
from federation.runtime.controller import Key, key_of
from federation.runtime.federatedtypes import FederatedTypes
from federation.runtime.handlers import Handler
from federation.runtime.indexer import cache_key
from federation.runtime.informer import Informer
from federation.runtime.informers import Informers
from federation.runtime.subscription import Differences, Subscription, Triggers

Keys = list[Key]
Completion = Callable[[Object], Object | None]
"""Returns the patch of a controller for the object that another one is about to write; None if it has none."""

_BY_TEMPLATE_KIND = "template-kind"


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
        self._key_of = lru_cache(maxsize=4096)(
            lambda namespace, name, type_name: Key(namespace, name_of(name, type_name))
        )
        """Several handlers ask for the key of each event of a member."""
        self._clock = clock
        self._namespaced = informers.for_resource(FEDERATED_OBJECTS)
        self._cluster_scoped = informers.for_resource(CLUSTER_FEDERATED_OBJECTS)
        self._assumed: AssumeCache[Key] = AssumeCache(self._cached)
        self._subscriptions: dict[str, Subscription] = {}
        self._differences = Differences()
        self._completion: tuple[str, Completion] | None = None
        for informer in self._informers:
            informer.add_handler(self._prune)
        self.add_index(_BY_TEMPLATE_KIND, lambda federated: (str(template_kind(federated)),))

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

    def of_kind(self, kind: GroupKind, namespace: str = "") -> Objects:
        """Return the cached federated objects whose template is of the kind, of one namespace or of all."""
        return self.by_index(_BY_TEMPLATE_KIND, str(kind), namespace)

    def of_type(self, type_: FederatedType) -> Objects:
        """Return the cached federated objects of the type."""
        return self.of_kind(type_.resource.group_kind)

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

    def keys_of_kind(self, kind: GroupKind, namespace: str = "") -> Keys:
        """Return the keys of what `of_kind` returns, without reading the objects."""
        return self.keys_by_index(_BY_TEMPLATE_KIND, str(kind), namespace)

    def keys_of_type(self, type_: FederatedType) -> Keys:
        """Return the keys of what `of_type` returns, without reading the objects."""
        return self.keys_of_kind(type_.resource.group_kind)

    def type_of(self, federated: Mapping[str, Any]) -> FederatedType | None:
        """Return the federated type of the object's template."""
        return self.types.for_federated(federated)

    def key_for(self, type_: FederatedType, namespace: str, name: str) -> Key:
        """Return the key of the federated object of a source or member object of this namespace and name."""
        return self._key_of(namespace, name, type_.name)

    def key_of_source(self, type_: FederatedType, obj: Object) -> Key:
        """Return the key of the federated object of this source or member object."""
        return self._key_of(*cache_key(obj), type_.name)

    def of_source(self, group: str, kind: str, namespace: str, name: str) -> Object | None:
        """Return the federated object of a source; None without one, or when the kind is not federated."""
        type_ = self.types.for_group_kind(group, kind)
        return None if type_ is None else self.get(self.key_for(type_, namespace, name))

    # -- writing

    async def patch(
        self, key: Key, federated: Object, body: Object, *, subresource: str = "", writer: str = "", joint: str = ""
    ) -> Object | None:
        """Merge-patch exactly this state and return the new one, None when the object is gone.

        Conflict when the object has changed in between. A draft is created. The subscriptions of `writer` and of
        `joint`, whose patch goes with it, do not get the event.
        """
        if not subresource and self._completion is not None:
            completing, complete = self._completion
            wanted = apply_merge_patch(federated, body)
            if (further := complete(wanted)) is not None:
                completed = create_merge_patch(federated, apply_merge_patch(wanted, further))
                with contextlib.suppress(Invalid):  # What is wrong is reported by the controller that made that part.
                    return await self._write(key, federated, completed, "", (writer, joint, completing))
        return await self._write(key, federated, body, subresource, (writer, joint))

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

    def subscribe(
        self,
        handler: Handler,
        triggers: Triggers | None,
        *,
        writer: str = "",
        is_replayed: bool = True,
        is_late: bool = False,
    ) -> None:
        """Call the handler for every event that passes the triggers (None: every event), and now for cached objects.

        With a `writer`, which can have one subscription, the events of that writer's own patches are left out. Without
        `is_replayed` the handler is not called for objects that are cached now: reading ten thousand takes 0.1 s.
        A late handler (`handlers.py`) gets the objects that exist at the start after the list of them.
        """
        subscription = Subscription(handler, triggers, self._differences)
        if writer:
            self._subscriptions[writer] = subscription
        for informer in self._informers:
            informer.add_handler(subscription.handle, is_replayed=is_replayed, is_late=is_late)

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
        return (self._namespaced if key.namespace else self._cluster_scoped).cache.get(*key)

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
