"""The steps that keep a federated object equal to its source, and the source alive until its members are clean.

Our finalizer on the source, unless the API server has put it there already (`first_finalizers`), then the complete
federated object. The finalizer comes first, so that a source which may already be on its way to members can never
vanish without them being cleaned up. What the federated object looks like is decided in `planning/federation.py`.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, Protocol

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.api.resources import Object, Resource
from federation.base.errors import Invalid, NotFound
from federation.client.protocol import Client, PatchType
from federation.planning import federation, naming
from federation.runtime.controller import DONE, Result
from federation.runtime.events import Recorder


class SourceKey(NamedTuple):
    """A source object: its kind, its namespace ("" for cluster-scoped ones) and its name."""

    resource: Resource
    namespace: str
    name: str

    def __str__(self) -> str:
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.resource.group_resource} {where}"


class Caches(Protocol):
    """What the reconciler reads; the controller owns the informers behind it."""

    def type_of(self, resource: Resource) -> FederatedType | None:
        """Return the federated type of the kind, None when it is no longer one."""
        ...

    def source(self, key: SourceKey) -> Object | None:
        """Return the cached source."""
        ...

    def federated(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """Return the cached federated object."""
        ...


class Reconciler:
    """Brings one source and its federated object together per call."""

    def __init__(
        self,
        client: Client,
        caches: Caches,
        recorder: Recorder,
        *,
        idle: Callable[[Mapping[str, Any], Mapping[str, Any] | None], Collection[str]],
    ) -> None:
        self._client = client
        self._caches = caches
        self._recorder = recorder
        self._idle = idle

    async def reconcile(self, key: SourceKey) -> Result:
        """Create or update the federated object, or take it down with its source."""
        type_ = self._caches.type_of(key.resource)
        source = self._caches.source(key)
        if type_ is None or source is None:
            return DONE
        name = naming.federated_object_name(key.name, type_.name)
        federated = self._caches.federated(type_.federated_resource, key.namespace, name)
        if source["metadata"].get("deletionTimestamp"):
            await self._take_down(type_, source, name)
            return DONE
        if federation.exclusion(source):
            return DONE
        if federated is not None and not self._is_ours(source, federated):
            return DONE
        try:
            source = await self._ensure_finalizer(type_, source)
        except NotFound:
            return DONE  # It is gone; the informer's event will say so.
        if federated is None:
            await self._create(type_, source)
        else:
            await self._update(type_, source, federated)
        return DONE

    def _is_ours(self, source: Object, federated: Object) -> bool:
        """Say whether the federated object may be written for this source; a collision of names warns the user.

        A federated object that is being deleted is that of an earlier life of the source: its end brings us back here.
        """
        if federated["metadata"].get("deletionTimestamp"):
            return False
        owner = federation.controller_of(federated)
        if owner is None or owner.get("uid") == source["metadata"].get("uid"):
            return True
        if (owner.get("kind"), owner.get("name")) != (source["kind"], source["metadata"]["name"]):
            taken = federated["metadata"]["name"]
            message = f'federated object "{taken}" belongs to {owner.get("kind")} "{owner.get("name")}"'
            self._recorder.event(source, "Warning", names.EVENT_CREATE_FEDERATED_OBJECT, message)
        return False

    async def _ensure_finalizer(self, type_: FederatedType, source: Object) -> Object:
        finalizers = source["metadata"].get("finalizers") or []
        if names.FEDERATE_FINALIZER in finalizers:
            return source
        return await self._set_finalizers(type_, source, [*finalizers, names.FEDERATE_FINALIZER])

    async def _set_finalizers(self, type_: FederatedType, source: Object, finalizers: list[str]) -> Object:
        """Replace the finalizers. They are a list, so the patch holds only for the version that it was made for."""
        metadata = source["metadata"]
        patch: Object = {"metadata": {"resourceVersion": metadata["resourceVersion"], "finalizers": finalizers or None}}
        return await self._client.patch(
            type_.resource,
            metadata["name"],
            patch,
            patch_type=PatchType.MERGE,
            namespace=metadata.get("namespace", ""),
            field_manager=names.FIELD_MANAGER,
        )

    async def _create(self, type_: FederatedType, source: Object) -> None:
        federated = federation.build(source, type_, idle=self._idle(source, None))
        try:
            await self._client.create(type_.federated_resource, federated, field_manager=names.FIELD_MANAGER)
        except Invalid as error:
            self._warn(source, names.EVENT_CREATE_FEDERATED_OBJECT, "create", error)

    async def _update(self, type_: FederatedType, source: Object, federated: Object) -> None:
        patch = federation.plan_update(source, federated, type_, idle=self._idle(source, federated))
        if patch is None:
            return
        metadata = federated["metadata"]
        try:
            await self._client.patch(
                type_.federated_resource,
                metadata["name"],
                patch,
                patch_type=PatchType.MERGE,
                namespace=metadata.get("namespace", ""),
                field_manager=names.FIELD_MANAGER,
            )
        except Invalid as error:
            self._warn(source, names.EVENT_UPDATE_FEDERATED_OBJECT, "update", error)

    async def _take_down(self, type_: FederatedType, source: Object, name: str) -> None:
        """Delete the federated object and, once it is gone, let the source go.

        The federated object is read from the server, not from the cache: a cache that has not yet seen it would let the
        source go while members still hold its objects. One read per deletion is the cost accepted.
        """
        finalizers = source["metadata"].get("finalizers") or []
        if names.FEDERATE_FINALIZER not in finalizers:
            return
        resource, namespace = type_.federated_resource, source["metadata"].get("namespace", "")
        try:
            federated = await self._client.get(resource, name, namespace)
        except NotFound:
            federated = None
        if federated is not None and self._is_owned_by(federated, source):
            if not federated["metadata"].get("deletionTimestamp"):
                if _is_orphaning(source, federated):
                    await self._release(resource, federated)
                await self._delete(resource, federated)
            return
        remaining = [finalizer for finalizer in finalizers if finalizer != names.FEDERATE_FINALIZER]
        try:
            await self._set_finalizers(type_, source, remaining)
        except NotFound:
            return

    async def _release(self, resource: Resource, federated: Object) -> None:
        """Have the members keep their objects: for them the federated object's deletion is only a letting go."""
        metadata = federated["metadata"]
        try:
            await self._client.patch(
                resource,
                metadata["name"],
                {"metadata": {"annotations": {names.INTERNAL_ORPHAN: "all"}}},
                patch_type=PatchType.MERGE,
                namespace=metadata.get("namespace", ""),
                field_manager=names.FIELD_MANAGER,
            )
        except NotFound:
            return

    async def _delete(self, resource: Resource, federated: Object) -> None:
        metadata = federated["metadata"]
        try:
            await self._client.delete(
                resource,
                metadata["name"],
                metadata.get("namespace", ""),
                propagation_policy="Background",
                uid=metadata.get("uid", ""),
            )
        except NotFound:
            return

    def _is_owned_by(self, federated: Object, source: Object) -> bool:
        owner = federation.controller_of(federated)
        return owner is None or owner.get("uid") == source["metadata"].get("uid")

    def _warn(self, source: Object, reason: str, verb: str, error: Exception) -> None:
        self._recorder.event(source, "Warning", reason, f"failed to {verb} the federated object: {error}")


def _is_orphaning(source: Object, federated: Object) -> bool:
    """Say whether the source is deleted with --cascade=orphan.

    The finalizer says so until the garbage collector has taken the owner reference away; from then on its absence does,
    as every federated object is created with one.
    """
    finalizers = source["metadata"].get("finalizers") or ()
    return names.ORPHAN_FINALIZER in finalizers or federation.controller_of(federated) is None
