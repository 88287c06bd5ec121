"""DELETE: preconditions, finalizers, propagation, grace periods, and whole collections.

An object goes at once when nothing waits for it. Otherwise it is marked (deletionTimestamp) and goes when the last
finalizer is taken, its grace period is confirmed, or its namespace is empty. Propagation other than Background is a
finalizer that `gc.py` takes away when it has done its part.
"""

from datetime import timedelta

import orjson

from federation.api.resources import Object
from federation.base.clock import from_rfc3339, to_rfc3339
from federation.base.errors import (
    BadRequest,
    Conflict,
    Forbidden,
    KeyNotFound,
    NotFound,
    RevisionConflict,
    cause,
    invalid,
)
from federation.registry import encoding
from federation.registry.access import Access, details, modified, object_not_found
from federation.registry.kinds import KindInfo
from federation.registry.options import DeleteOptions, ListOptions, ListResult
from federation.registry.reads import Reader
from federation.store.interface import Body, Entry

ORPHAN_FINALIZER = "orphan"
FOREGROUND_FINALIZER = "foregroundDeletion"
_POLICIES = frozenset({"", "Background", "Foreground", "Orphan"})


class Deleter:
    """Deletes for one registry."""

    def __init__(self, access: Access, reader: Reader) -> None:
        self._access = access
        self._reader = reader

    async def delete(self, info: KindInfo, namespace: str, name: str, options: DeleteOptions) -> tuple[bytes, bool]:
        """Delete or mark an object; its last state or a Status, and whether it is gone. NotFound, Conflict, Invalid."""
        _check(options)
        access = self._access
        for _ in range(access.options.write_attempts_max):
            entry = await access.entry(info, namespace, name)
            obj = encoding.decode(entry.value)  # as it is stored: nothing but its metadata is read and changed
            _check_preconditions(info, obj, options)
            if refusal := info.strategy.deletion_refusal(obj):
                raise Forbidden(f'{info.group_resource} "{name}" is forbidden: {refusal}', details=details(info, name))
            if (asked := access.asks) is not None:
                seen = encoding.decode(await access.present_one(info, entry.value))
                await asked.validate_delete(info, seen, options)
            try:
                return await self._delete_entry(info, entry, obj, options)
            except RevisionConflict as error:
                if options.resource_version:
                    raise modified(info, name) from error
            except KeyNotFound as error:
                raise object_not_found(info, name) from error
        raise modified(info, name)

    async def delete_collection(
        self, info: KindInfo, namespace: str, list_options: ListOptions, options: DeleteOptions
    ) -> ListResult:
        """Delete everything a list would return and answer with that list."""
        found = await self._reader.list_page(info, namespace, list_options)
        for value in found.items:
            metadata = encoding.metadata_of(value)
            try:
                await self.delete(info, metadata.get("namespace", ""), metadata["name"], options)
            except NotFound:
                continue
        return found

    async def _delete_entry(
        self, info: KindInfo, entry: Entry, obj: Object, options: DeleteOptions
    ) -> tuple[bytes, bool]:
        metadata = obj["metadata"]
        finalizers = _finalizers(info, metadata.get("finalizers") or [], options)
        grace_s = info.strategy.grace_period_s(obj, options.grace_period_s)
        if not finalizers and not grace_s and info.strategy.may_go(obj):
            return await self._remove(info, entry, obj, options)
        if not self._mark(info, obj, finalizers, grace_s):
            return await self._access.present_one(info, entry.value), False
        body = _body(obj)
        if options.dry_run:
            return await self._access.present_one(info, encoding.join(body, entry.revision)), False
        marked = await self._access.store.update(entry.key, body, entry.revision)
        if hook := self._access.hooks.get(info.prefix):
            hook.written(obj)
        return await self._access.present_one(info, marked.value), False

    async def _remove(self, info: KindInfo, entry: Entry, obj: Object, options: DeleteOptions) -> tuple[bytes, bool]:
        metadata = obj["metadata"]
        body = _body(obj)
        if options.dry_run:
            value = encoding.join(body, entry.revision)
        else:
            value = (await self._access.store.delete(entry.key, body, entry.revision)).value
            if hook := self._access.hooks.get(info.prefix):
                hook.removed(obj)
        if info.strategy.returns_deleted_object:
            return await self._access.present_one(info, value), True
        return success_status(info, metadata["name"], metadata["uid"]), True

    def _mark(self, info: KindInfo, obj: Object, finalizers: list[str], grace_s: int) -> bool:
        """Write the wish to be deleted into `obj`; False when it says so already."""
        metadata = obj["metadata"]
        now = self._access.clock.now()
        before = (
            metadata.get("deletionTimestamp"),
            metadata.get("deletionGracePeriodSeconds"),
            metadata.get("finalizers"),
        )
        if not metadata.get("deletionTimestamp"):
            metadata["deletionTimestamp"] = to_rfc3339(now + timedelta(seconds=grace_s))
            metadata["deletionGracePeriodSeconds"] = grace_s
            if metadata.get("generation"):
                metadata["generation"] += 1
        elif grace_s < (metadata.get("deletionGracePeriodSeconds") or 0):
            asked = from_rfc3339(metadata["deletionTimestamp"]) - timedelta(
                seconds=metadata["deletionGracePeriodSeconds"]
            )
            metadata["deletionTimestamp"] = to_rfc3339(max(asked + timedelta(seconds=grace_s), now))
            metadata["deletionGracePeriodSeconds"] = grace_s
        if finalizers:
            metadata["finalizers"] = finalizers
        else:
            metadata.pop("finalizers", None)
        info.strategy.prepare_deletion(obj)
        after = (
            metadata.get("deletionTimestamp"),
            metadata.get("deletionGracePeriodSeconds"),
            metadata.get("finalizers"),
        )
        return before != after


def _body(obj: Object) -> Body:
    """Return an object in the version that it was stored in."""
    return encoding.encode(encoding.head(obj["apiVersion"], obj["kind"]), obj)


def success_status(info: KindInfo, name: str, uid: str) -> bytes:
    """Return the Status that answers a delete."""
    return orjson.dumps(
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": details(info, name, uid),
        }
    )


def _check(options: DeleteOptions) -> None:
    if options.propagation_policy not in _POLICIES:
        raise invalid(
            "DeleteOptions",
            "meta.k8s.io",
            "",
            [
                cause(
                    "FieldValueNotSupported",
                    f'Unsupported value: "{options.propagation_policy}": supported values: "Background", "Foreground",'
                    ' "Orphan"',
                    "propagationPolicy",
                )
            ],
        )
    if options.propagation_policy and options.orphan_dependents is not None:
        raise invalid(
            "DeleteOptions",
            "meta.k8s.io",
            "",
            [
                cause(
                    "FieldValueInvalid",
                    f'Invalid value: "{options.propagation_policy}": orphanDependents and deletionPropagation cannot be'
                    " both set",
                    "propagationPolicy",
                )
            ],
        )
    if options.grace_period_s is not None and options.grace_period_s < -1:
        raise BadRequest("gracePeriodSeconds must be greater than or equal to 0")


def _check_preconditions(info: KindInfo, obj: Object, options: DeleteOptions) -> None:
    metadata = obj["metadata"]
    for wanted, field, found in (
        (options.uid, "UID", metadata["uid"]),
        (options.resource_version, "ResourceVersion", metadata["resourceVersion"]),
    ):
        if wanted and wanted != found:
            raise Conflict(
                f'Operation cannot be fulfilled on {info.group_resource} "{metadata["name"]}": Precondition failed:'
                f" {field} in precondition: {wanted}, {field} in object meta: {found}",
                details=details(info, metadata["name"], metadata["uid"]),
            )


def _finalizers(info: KindInfo, present: list[str], options: DeleteOptions) -> list[str]:
    """Return the finalizers that the wanted propagation leaves: at most one of the two that `gc.py` owns."""
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
