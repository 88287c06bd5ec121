"""The steps that keep a federated object equal to its source, and the source alive until its members are clean.

A source that is or will be placed gets our finalizer, unless the API server has put it there already
(`first_finalizers`), so that it is not removed before its member objects are. Then comes the complete federated object,
which `planning/federatedobject/builder.py` builds. A source without the finalizer disappears at once when it is
deleted; its federated object goes next, by us or by the garbage collector, and has a finalizer of its own: whatever was
placed in between is removed from the members.

A federated object that somebody deletes while its source lives is written again with its placement; sync waits for that
and touches no member object. Only a crash between the two writes loses the placement: then the scheduler decides again.

Decision: docs/decisions/0071-one-write-for-a-first-placement.md
"""

import contextlib
from collections.abc import Callable, Collection, Mapping, MutableSet
from typing import Any, NamedTuple, Protocol

from federation.api import names
from federation.api.federatedtype import Ending, FederatedType
from federation.apimachinery import dotpaths
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.errors import Invalid, NotFound
from federation.apimachinery.finalizers import has_finalizer, with_finalizers, without_finalizers
from federation.apimachinery.ownerreferences import controller_of
from federation.apimachinery.resources import NAMESPACES, Object, Resource
from federation.client.servedversion import in_served_version
from federation.controllers.federate.historywriter import write_history
from federation.controllers.federate.names import (
    EVENT_CREATE_FEDERATED_OBJECT,
    EVENT_FEDERATED_OBJECT_WRITTEN_AGAIN,
    EVENT_UPDATE_FEDERATED_OBJECT,
    ORPHAN_FINALIZER,
)
from federation.delivery.rules.names import EVENT_DELETION_WAITS
from federation.planning.federatedobject import builder, eligibility
from federation.planning.federatedobject.placements import effective_placement
from federation.planning.federatedobject.provenance import is_from, is_hand_written, is_wanted
from federation.planning.status.finalizers import foreign_finalizers
from federation.planning.waves.rolloutpart import rollout_part
from federation.planning.waves.waverules import mark_change
from federation.runtime.controller import DONE, Key, Result, key_of
from federation.runtime.events import NORMAL, WARNING
from federation.runtime.federatedobjects import to_draft
from federation.runtime.host import Host


class SourceKey(NamedTuple):
    """A source object: its kind, its namespace ("" for cluster-scoped ones) and its name."""

    resource: Resource
    namespace: str
    name: str

    def __str__(self) -> str:
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.resource.group_resource} {where}"


class Placing(Protocol):
    """The scheduler, as far as its decisions go with the writes of this controller."""

    async def create_placed(self, key: Key, draft: Object) -> bool:
        """Create a draft with its first placement; return False if there is none to write yet."""
        ...

    async def update_placed(self, key: Key, federated: Object, patch: Object, *, writer: str) -> bool:
        """Patch an object and its placement; return False if it has to be patched without. Invalid."""
        ...


WRITER = "federate"
_ORPHANED = {names.INTERNAL_ORPHAN: "all"}
_RECHECK_S = 1.0
"""When to look again at a federated object that cannot be written yet."""


class Reconciler:
    """Keeps the federated object of one source up to date, per call."""

    def __init__(
        self,
        host: Host,
        *,
        source: Callable[[SourceKey], tuple[FederatedType, Object] | None],
        deleted: MutableSet[SourceKey],
        expects_placement: Callable[[FederatedType, Object], bool],
        idle: Callable[[Mapping[str, Any], Mapping[str, Any] | None], Collection[str]],
        waits: Callable[[Object], bool],
        placing: Placing,
    ) -> None:
        self._client = host.client
        self._objects = host.objects
        self._recorder = host.recorder
        self._clock = host.clock
        self._source = source
        self._deleted = deleted
        self._expects_placement = expects_placement
        self._idle = idle
        self._waits = waits
        self._placing = placing
        self._replaced: dict[SourceKey, Object] = {}
        """Deleted federated objects whose replacement is not written yet."""

    async def reconcile(self, key: SourceKey) -> Result:
        """Create or update the federated object, or delete it with its source."""
        found = self._source(key)
        if found is None:
            self._replaced.pop(key, None)
            if key in self._deleted:
                await self._delete_without_source(key)
                self._deleted.discard(key)
            return DONE
        self._deleted.discard(key)
        type_, source = found
        if type_.ending in (Ending.ORPHAN, Ending.REMOVE):
            return DONE  # the typeconfig controller deletes the federated object and releases the source
        federated_key = self._objects.key_for(type_, key.namespace, key.name)
        if source["metadata"].get("deletionTimestamp"):
            await self._delete_with_source(type_, source, federated_key)
            return DONE
        federated = self._objects.get(federated_key)
        if federated is not None and _is_deleted_alone(federated, type_, source):
            return await self._write_again(key, type_, source, federated)
        if federated is None and type_.ending is Ending.WAITS and key not in self._replaced:
            return DONE
        if eligibility.exclusion(source) or (federated is not None and not self._is_ours(source, federated)):
            return DONE
        if self._expects_placement(type_, source) or (federated is not None and effective_placement(federated)):
            try:
                source = await self._ensure_finalizer(type_, source)
            except NotFound:
                return DONE  # The source is deleted; its event deletes the federated object.
        if federated is None and self._waits(source):
            return Result(requeue_after_s=_RECHECK_S)
        if federated is None:
            await self._create(key, type_, source)
        else:
            await self._update(type_, source, federated)
        return DONE

    async def _write_again(self, key: SourceKey, type_: FederatedType, source: Object, federated: Object) -> Result:
        """Replace a federated object that was deleted while its source lives; the member objects stay as they are."""
        federated_key, finalizers = key_of(federated), federated["metadata"].get("finalizers") or []
        self._replaced[key] = federated
        if finalizers != [names.SYNC_FINALIZER] or not await self._is_kept_on_host(key, type_, federated):
            return Result(requeue_after_s=_RECHECK_S)
        if names.WRITTEN_AGAIN not in (federated["metadata"].get("annotations") or {}):
            # Its followers stay where they are until the replacement is there.
            mark: Object = {"metadata": {"annotations": {names.WRITTEN_AGAIN: "true"}}}
            marked = await self._objects.patch(federated_key, federated, mark)
            if marked is None:
                return DONE
            federated = self._replaced[key] = marked
        await self._objects.patch(federated_key, federated, {"metadata": {"finalizers": []}})
        await self._create(key, type_, source)
        text = "its FederatedObject was deleted and is written again; delete the object itself to remove it"
        self._recorder.event(source, WARNING, EVENT_FEDERATED_OBJECT_WRITTEN_AGAIN, text)
        return DONE

    async def _is_kept_on_host(self, key: SourceKey, type_: FederatedType, federated: Object) -> bool:
        """Return whether the API server still has the source, and its namespace is not being deleted."""
        try:
            source = await self._read(key)
            namespace = await self._client.get(NAMESPACES, key.namespace) if key.namespace else {"metadata": {}}
        except NotFound:
            return False
        return is_wanted(federated, type_, source) and not namespace["metadata"].get("deletionTimestamp")

    async def _read(self, key: SourceKey) -> Object:
        """Return the source as the API server has it; NotFound only if it is absent in every version of its kind."""
        return await in_served_version(
            self._client, key.resource, lambda resource: self._client.get(resource, key.name, key.namespace)
        )

    def _is_ours(self, source: Object, federated: Object) -> bool:
        """Return whether the federated object may be written for this source; a name collision emits a warning.

        A federated object that is being deleted is that of an earlier source; its removal requeues the key.
        """
        if federated["metadata"].get("deletionTimestamp"):
            return False
        if is_from(federated, source):
            return True
        owner = controller_of(federated) or {}
        if (owner.get("kind"), owner.get("name")) != (source["kind"], source["metadata"]["name"]):
            taken = federated["metadata"]["name"]
            message = f'federated object "{taken}" belongs to {owner.get("kind")} "{owner.get("name")}"'
            self._recorder.event(source, "Warning", EVENT_CREATE_FEDERATED_OBJECT, message)
        return False

    async def _ensure_finalizer(self, type_: FederatedType, source: Object) -> Object:
        if has_finalizer(source, names.FEDERATE_FINALIZER):
            return source
        return await self._set_finalizers(type_, source, with_finalizers(source, names.FEDERATE_FINALIZER))

    async def _set_finalizers(self, type_: FederatedType, source: Object, finalizers: list[str]) -> Object:
        """Replace the finalizers. They are a list, so the patch holds only for the version that it was made for."""
        metadata = source["metadata"]
        patch: Object = {"metadata": {"resourceVersion": metadata["resourceVersion"], "finalizers": finalizers or None}}
        return await self._client.patch(
            type_.resource,
            metadata["name"],
            patch,
            namespace=metadata.get("namespace", ""),
            field_manager=names.FIELD_MANAGER,
        )

    async def _create(self, key: SourceKey, type_: FederatedType, source: Object) -> None:
        idle, replaced = self._idle(source, None), self._replaced.get(key)
        if replaced is not None and is_from(replaced, source):
            federated = builder.rebuild(source, replaced, type_, idle=idle)
        else:
            federated = builder.build(source, type_, idle=idle)
        try:
            # Its placement and overrides go with it where they can be decided at once, which saves two writes.
            if replaced is None and await self._placing.create_placed(key_of(federated), to_draft(federated)):
                return
            await self._client.create(type_.federated_resource, federated, field_manager=names.FIELD_MANAGER)
        except Invalid as error:
            self._warn(source, EVENT_CREATE_FEDERATED_OBJECT, "create", error)
            return
        self._replaced.pop(key, None)

    async def _update(self, type_: FederatedType, source: Object, federated: Object) -> None:
        patch = builder.plan_update(source, federated, type_, idle=self._idle(source, federated))
        if patch is None:
            return
        patch["metadata"]["annotations"][names.EDITED_AT] = to_rfc3339(self._clock.now())
        await write_history(self._client, type_, source, federated)
        part, changed = rollout_part(type_), dotpaths.get(patch, ("spec", "template"))
        if part is not None and changed and effective_placement(federated) and part.of(changed):
            patch["metadata"]["annotations"] |= mark_change(federated)
        key = key_of(federated)
        with contextlib.suppress(Invalid):  # What is wrong with a placement is reported by the scheduler.
            if await self._placing.update_placed(key, federated, patch, writer=WRITER):
                return
        try:
            await self._objects.patch(key, federated, patch, writer=WRITER)
        except Invalid as error:
            self._warn(source, EVENT_UPDATE_FEDERATED_OBJECT, "update", error)

    async def _delete_with_source(self, type_: FederatedType, source: Object, key: Key) -> None:
        """Delete the federated object and, once it is gone, remove our finalizer from the source.

        The federated object is read from the server, not from the cache: a cache that has not yet seen it would release
        the source while members still hold its objects. One read per deletion is the cost accepted.
        """
        if not has_finalizer(source, names.FEDERATE_FINALIZER):
            return
        try:
            federated = await self._client.get(type_.federated_resource, key.name, key.namespace)
        except NotFound:
            federated = None
        if federated is not None and is_from(federated, source):
            if not federated["metadata"].get("deletionTimestamp"):
                if words := _last_words(source, federated):
                    await self._objects.patch(key, federated, {"metadata": {"annotations": words}})
                await self._delete(type_.federated_resource, federated)
            return
        with contextlib.suppress(NotFound):
            await self._set_finalizers(type_, source, without_finalizers(source, names.FEDERATE_FINALIZER))
            if foreign := foreign_finalizers(source):
                text = "no cluster has it any more; on the host it stays until their controllers remove its finalizers"
                self._recorder.event(source, NORMAL, EVENT_DELETION_WAITS, f"{text} [{','.join(foreign)}]")

    async def _delete_without_source(self, key: SourceKey) -> None:
        """Delete the federated object of a source that was deleted without waiting for it.

        The garbage collector does the same for one that has an owner, and loses those of --cascade=orphan. A list that
        lacks the source deletes nothing: the server has to confirm it.
        """
        type_ = self._objects.types.for_resource(key.resource)
        if type_ is None:
            return
        federated_key = self._objects.key_for(type_, key.namespace, key.name)
        federated = self._objects.get(federated_key)
        if federated is None or federated["metadata"].get("deletionTimestamp") or is_hand_written(federated):
            return
        owner = controller_of(federated)
        if owner is not None and (owner.get("kind"), owner.get("name")) != (key.resource.kind, key.name):
            return
        try:
            await self._read(key)
        except NotFound:
            if owner is None:
                await self._objects.patch(federated_key, federated, {"metadata": {"annotations": _ORPHANED}})
            await self._delete(type_.federated_resource, federated)

    async def _delete(self, resource: Resource, federated: Object) -> None:
        metadata = federated["metadata"]
        with contextlib.suppress(NotFound):
            await self._client.delete(
                resource,
                metadata["name"],
                metadata.get("namespace", ""),
                propagation_policy="Background",
                uid=metadata.get("uid", ""),
            )

    def _warn(self, source: Object, reason: str, verb: str, error: Exception) -> None:
        self._recorder.event(source, "Warning", reason, f"failed to {verb} the federated object: {error}")


def _is_deleted_alone(federated: Object, type_: FederatedType, source: Object) -> bool:
    """Return whether the federated object is being deleted while its source lives."""
    return bool(federated["metadata"].get("deletionTimestamp")) and is_wanted(federated, type_, source)


def _last_words(source: Object, federated: Object) -> Object:
    """Return the annotations by which the members keep their objects, {} if the federated object has them.

    The source may be annotated and deleted before a reconcile copies the annotation.
    """
    if _is_orphaning(source, federated):
        return _ORPHANED  # sync then only releases the members' objects
    word, copied = ((each["metadata"].get("annotations") or {}).get(names.ORPHAN) for each in (source, federated))
    return {} if word in (None, copied) else {names.ORPHAN: word}


def _is_orphaning(source: Object, federated: Object) -> bool:
    """Return whether the source is deleted with --cascade=orphan.

    The finalizer shows it until the garbage collector removes the owner reference; then the missing reference does,
    as every federated object is created with one.
    """
    return has_finalizer(source, ORPHAN_FINALIZER) or controller_of(federated) is None
