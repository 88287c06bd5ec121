"""DELETE: preconditions, finalizers, propagation, grace periods, and whole collections.

An object without finalizers and grace period is removed at once. Any other gets a deletionTimestamp and is removed
when its last finalizer is removed, its grace period is confirmed, or its namespace is empty. Foreground and Orphan
propagation are finalizers that the garbage collector (`registry/gc.py`) removes.
"""

from datetime import timedelta
from functools import partial

import orjson

from federation.apimachinery.clock import from_rfc3339, to_rfc3339
from federation.apimachinery.errors import (
    BadRequest,
    Conflict,
    Forbidden,
    KeyNotFound,
    NotFound,
    RevisionConflict,
    ValueDamaged,
)
from federation.apimachinery.resources import Object
from federation.apiserver.semantics.encoding import encoding
from federation.apiserver.semantics.kinds.kinds import KindInfo
from federation.apiserver.store.interface import Body, Entry
from federation.apiserver.verbs.context import VerbContext, object_modified, object_not_found, status_details
from federation.apiserver.verbs.deleteoptions import validate_delete_options
from federation.apiserver.verbs.reads import Reader
from federation.apiserver.verbs.requestoptions import DeleteOptions, ListOptions, ListResult

ORPHAN_FINALIZER = "orphan"
FOREGROUND_FINALIZER = "foregroundDeletion"
_MARKS = ("deletionTimestamp", "deletionGracePeriodSeconds", "finalizers")


class Deleter:
    """Deletes for one registry."""

    def __init__(self, context: VerbContext, reader: Reader) -> None:
        self._context = context
        self._reader = reader

    async def delete(self, info: KindInfo, namespace: str, name: str, options: DeleteOptions) -> tuple[bytes, bool]:
        """Delete an object or mark it for deletion; return its last state or a Status, and whether it is removed.

        NotFound, Conflict, Invalid.
        """
        validate_delete_options(options)
        if options.grace_period_s is not None and options.grace_period_s < -1:
            raise BadRequest("gracePeriodSeconds must be greater than or equal to 0")
        context = self._context
        while True:  # until the request's deadline, as in `Writer.change`
            try:
                entry = await context.get_entry(info, namespace, name)
            except ValueDamaged as damage:
                return await self._remove_damaged(info, namespace, name, options, damage.revision)
            # In its stored version: only metadata, which all versions share, is read and changed.
            obj = encoding.decode(entry.value)
            _check_preconditions(info, obj, options)
            if refusal := info.strategy.deletion_refusal(obj) or self._protection(info, obj):
                raise Forbidden(
                    f'{info.group_resource} "{name}" is forbidden: {refusal}', details=status_details(info, name)
                )
            if (admission := context.active_admission) is not None:
                served = encoding.decode(await context.from_storage(info, entry.value))
                await admission.validate_delete(info, served, options)
            try:
                return await self._delete_entry(info, entry, obj, options)
            except RevisionConflict as error:
                if options.resource_version:
                    raise object_modified(info, name) from error
            except KeyNotFound as error:
                raise object_not_found(info, name) from error

    async def delete_collection(
        self, info: KindInfo, namespace: str, list_options: ListOptions, options: DeleteOptions
    ) -> ListResult:
        """Delete everything that a list with these options returns, and return that list."""
        found = await self._reader.list_page(info, namespace, list_options)
        for value in found.items:
            metadata = encoding.decode_metadata(value)
            try:
                await self.delete(info, metadata.get("namespace", ""), metadata["name"], options)
            except NotFound:
                continue
        return found

    def _protection(self, info: KindInfo, obj: Object) -> str:
        """Return why an object that is not being deleted yet is protected, "" if it is not."""
        problem = self._context.protections.get(info.group_resource)
        return "" if problem is None or obj["metadata"].get("deletionTimestamp") else problem(obj)

    async def _delete_entry(
        self, info: KindInfo, entry: Entry, obj: Object, options: DeleteOptions
    ) -> tuple[bytes, bool]:
        metadata = obj["metadata"]
        finalizers = _finalizers(info, metadata.get("finalizers") or [], options)
        grace_s = info.strategy.grace_period_s(obj, options.grace_period_s)
        if not finalizers and not grace_s and info.strategy.is_removable(obj):
            return await self._remove(info, entry, obj, options)
        if not self._mark(info, obj, finalizers, grace_s):
            return await self._context.from_storage(info, entry.value), False
        body = _body(obj)
        if options.dry_run:
            return await self._context.from_storage(info, encoding.to_bytes(body, entry.revision)), False
        marked = await self._context.store.update(entry.key, body, entry.revision, frees_space=True)
        if hook := self._context.hooks.get(info.prefix):
            hook.written(obj)
        return await self._context.from_storage(info, marked.value), False

    async def _remove(self, info: KindInfo, entry: Entry, obj: Object, options: DeleteOptions) -> tuple[bytes, bool]:
        metadata = obj["metadata"]
        body = _body(obj)
        if options.dry_run:
            value = encoding.to_bytes(body, entry.revision)
        else:
            remove = partial(self._context.store.delete, entry.key, body, entry.revision)
            value = (await self._context.store_charged(info, None, obj, -len(entry.value), options, remove)).value
            if hook := self._context.hooks.get(info.prefix):
                hook.removed(obj)
        if info.strategy.returns_deleted_object:
            return await self._context.from_storage(info, value), True
        return success_status(info, metadata["name"], metadata["uid"]), True

    async def _remove_damaged(
        self, info: KindInfo, namespace: str, name: str, options: DeleteOptions, revision: int
    ) -> tuple[bytes, bool]:
        """Remove an object whose stored value is damaged; its finalizers and owners are unknown.

        Deleting it is the remedy, so admission, which needs the object, is not called.
        """
        metadata: Object = {"name": name, "uid": ""} | ({"namespace": namespace} if namespace else {})
        obj: Object = {"apiVersion": info.resource.api_version, "kind": info.resource.kind, "metadata": metadata}
        if refusal := info.strategy.deletion_refusal(obj):
            raise Forbidden(
                f'{info.group_resource} "{name}" is forbidden: {refusal}', details=status_details(info, name)
            )
        _check_preconditions(info, {"metadata": {**metadata, "resourceVersion": str(revision)}}, options)
        if not options.dry_run:
            try:
                await self._context.store.delete(info.key(namespace, name), _body(obj), revision)
            except RevisionConflict as error:
                raise object_modified(info, name) from error
            except KeyNotFound as error:
                raise object_not_found(info, name) from error
        return success_status(info, name, ""), True

    def _mark(self, info: KindInfo, obj: Object, finalizers: list[str], grace_s: int) -> bool:
        """Write the deletion timestamp, grace period and finalizers into `obj`; return whether that changed it."""
        metadata = obj["metadata"]
        now = self._context.clock.now()
        before = [metadata.get(field) for field in _MARKS]
        if not metadata.get("deletionTimestamp"):
            metadata["deletionTimestamp"] = to_rfc3339(now + timedelta(seconds=grace_s))
            metadata["deletionGracePeriodSeconds"] = grace_s
            if metadata.get("generation"):
                metadata["generation"] += 1
        elif grace_s < (metadata.get("deletionGracePeriodSeconds") or 0):
            requested_at = from_rfc3339(metadata["deletionTimestamp"]) - timedelta(
                seconds=metadata["deletionGracePeriodSeconds"]
            )
            metadata["deletionTimestamp"] = to_rfc3339(max(requested_at + timedelta(seconds=grace_s), now))
            metadata["deletionGracePeriodSeconds"] = grace_s
        if finalizers:
            metadata["finalizers"] = finalizers
        else:
            metadata.pop("finalizers", None)
        info.strategy.prepare_deletion(obj)
        return before != [metadata.get(field) for field in _MARKS]


def _body(obj: Object) -> Body:
    """Encode an object in the version that it is stored in."""
    return encoding.encode(encoding.encode_head(obj["apiVersion"], obj["kind"]), obj)


def success_status(info: KindInfo, name: str, uid: str) -> bytes:
    """Return the Status that answers a delete."""
    return orjson.dumps(
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": status_details(info, name, uid),
        }
    )


def _check_preconditions(info: KindInfo, obj: Object, options: DeleteOptions) -> None:
    metadata = obj["metadata"]
    name, resource = metadata["name"], info.resource
    qualified = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
    for wanted, field, found, cause in (
        (options.uid, "UID", metadata["uid"], "deleted and then recreated"),
        (options.resource_version, "ResourceVersion", metadata["resourceVersion"], "modified"),
    ):
        if wanted and wanted != found:
            # kube-apiserver names the kind here, where every other conflict names the resource.
            raise Conflict(
                f'Operation cannot be fulfilled on {qualified} "{name}": the {field} in the precondition ({wanted})'
                f" does not match the {field} in record ({found}). The object might have been {cause}",
                details={**status_details(info, name), "kind": resource.kind},
            )


def _finalizers(info: KindInfo, present: list[str], options: DeleteOptions) -> list[str]:
    """Return the finalizers under the requested propagation: at most one of the two that the garbage collector owns."""
    policy = options.propagation_policy
    if not policy and options.orphan_dependents is not None:
        policy = "Orphan" if options.orphan_dependents else "Background"
    if not policy:
        owned = [name for name in present if name in {ORPHAN_FINALIZER, FOREGROUND_FINALIZER}]
        if owned or info.strategy.default_propagation == "Background":
            return present
        policy = info.strategy.default_propagation
    kept = [name for name in present if name not in {ORPHAN_FINALIZER, FOREGROUND_FINALIZER}]
    if policy == "Orphan":
        return [*kept, ORPHAN_FINALIZER]
    if policy == "Foreground":
        return [*kept, FOREGROUND_FINALIZER]
    return kept
