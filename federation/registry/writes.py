"""CREATE, UPDATE and PATCH: read, prepare, write, and try again when another writer was faster.

A write with a resourceVersion is tried once and answers Conflict; one without is repeated on the newest state. A write
that changes nothing returns the live object and writes nothing. Taking the last finalizer of a terminating object
removes it. Read `preparing.py` for what happens to the object, `patching.py` for the patch types.
"""

from collections.abc import Callable
from datetime import datetime

from federation.api.resources import Object
from federation.base.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    Forbidden,
    KeyExists,
    KeyNotFound,
    MethodNotAllowed,
    NotFound,
    RevisionConflict,
    StoreError,
    cause,
    invalid,
)
from federation.registry import encoding
from federation.registry.access import Access, already_exists, details, modified, object_not_found
from federation.registry.kinds import KindInfo
from federation.registry.options import WriteOptions
from federation.registry.patching import Patch
from federation.registry.preparing import (
    check_envelope,
    complete,
    has_to_go,
    prepare_create,
    prepare_update,
    track_create,
    with_finalizers,
)
from federation.store.interface import Entry

_GENERATED_NAMES_MAX = 8

Change = Callable[[Object], tuple[Object, bool]]
"""From the live object to (wanted object, whether the caller pinned a resourceVersion)."""


class Writer:
    """Writes for one registry."""

    def __init__(self, access: Access) -> None:
        self._access = access

    async def create(self, info: KindInfo, namespace: str, obj: Object, options: WriteOptions) -> bytes:
        """Store a new object and return its bytes; AlreadyExists, Invalid, Forbidden, NotFound (namespace)."""
        check_envelope(info, namespace, "", obj)
        metadata = obj["metadata"]
        if metadata.get("resourceVersion"):
            raise BadRequest("resourceVersion should not be set on objects to be created")
        if info.is_terminating:
            raise MethodNotAllowed(
                f"create not allowed while custom resource definition is terminating: {info.group_resource}"
            )
        prefix = "" if metadata.get("name") else metadata.get("generateName") or ""
        if prefix:
            metadata["name"] = prefix[: info.strategy.generate_length_max - 5] + self._access.entropy.suffix()
        if info.resource.namespaced:
            await self._check_namespace(info, namespace, metadata.get("name", ""))
        if self._access.asks is not None:
            obj = await self._mutated(info, obj, None, options)
        now = self._access.clock.now()
        prepare_create(info, obj, options, now=now, uid=self._access.entropy.uid())
        obj = self._held(info, track_create(info, obj, options, now=now), now)
        if (asked := self._access.asks) is not None:
            await asked.validate(info, obj, None, options)
        return await self._insert(info, namespace, obj, prefix, options)

    async def update(
        self, info: KindInfo, namespace: str, name: str, obj: Object, options: WriteOptions, *, subresource: str = ""
    ) -> tuple[bytes, bool]:
        """Replace an object (or its status) and return its bytes and whether it was created."""
        check_envelope(info, namespace, name, obj)
        revision = obj["metadata"].get("resourceVersion") or ""
        if not revision and not info.strategy.allow_unconditional_update:
            raise invalid(
                info.resource.kind,
                info.resource.group,
                name,
                [
                    cause(
                        "FieldValueInvalid",
                        "Invalid value: 0x0: must be specified for an update",
                        "metadata.resourceVersion",
                    )
                ],
            )
        may_create = info.strategy.allow_create_on_update and not subresource and not revision

        def replace(live: Object) -> tuple[Object, bool]:
            if revision not in {"", live["metadata"]["resourceVersion"]}:
                raise modified(info, name)
            return {**obj, "metadata": dict(obj["metadata"])}, bool(revision)

        try:
            return (
                await self.change(info, namespace, name, replace, options, subresource=subresource, shares_live=False),
                False,
            )
        except NotFound:
            if not may_create:
                raise
        return await self.create(info, namespace, obj, options), True

    async def patch(
        self, info: KindInfo, namespace: str, name: str, patch: Patch, options: WriteOptions, *, subresource: str = ""
    ) -> tuple[bytes, bool]:
        """Patch an object or its status; an apply may create it. The bytes, and whether it was created."""

        def patched(live: Object) -> tuple[Object, bool]:
            wanted = patch.applied_to(info, live, options, now=self._access.clock.now(), subresource=subresource)
            check_envelope(info, namespace, name, wanted, may_lack_name=patch.is_apply)
            revision = wanted["metadata"].get("resourceVersion") or ""
            if revision and revision != live["metadata"]["resourceVersion"]:
                raise modified(info, name)
            return wanted, patch.pins_revision

        for _ in range(2):
            try:
                changed = await self.change(
                    info, namespace, name, patched, options, subresource=subresource, is_apply=patch.is_apply
                )
            except NotFound:
                if not patch.is_apply or subresource:
                    raise
            else:
                return changed, False
            try:
                return await self._create_applied(info, namespace, name, patch, options), True
            except AlreadyExists:
                continue
        raise modified(info, name)

    async def change(
        self,
        info: KindInfo,
        namespace: str,
        name: str,
        change: Change,
        options: WriteOptions,
        *,
        subresource: str = "",
        is_apply: bool = False,
        shares_live: bool = True,
    ) -> bytes:
        """Write what `change` makes of the live object, again on a newer one when it was overtaken.

        `shares_live` says that what it makes may hold parts of the live object, which then is given as one of its own.
        """
        access = self._access
        for _ in range(access.options.write_attempts_max):
            entry = await access.entry(info, namespace, name)
            value = await access.present_one(info, entry.value)
            old = encoding.decode(value)
            wanted, is_pinned = change(encoding.decode(value) if shares_live else old)
            if access.asks is not None:
                wanted = await self._mutated(info, wanted, old, options, subresource)
            new = prepare_update(
                info, wanted, old, options, now=access.clock.now(), subresource=subresource, is_apply=is_apply
            )
            if new is None:
                if not _is_outdated(info, entry.value, value):
                    return value
                new = old
            if (asked := access.asks) is not None:
                await asked.validate(info, new, old, options, subresource=subresource)
            if hook := access.hooks.get(info.prefix):
                await hook.before_update(new, old, dry_run=options.dry_run)
            try:
                return await self._replace(info, entry, new, options)
            except RevisionConflict as error:
                if is_pinned:
                    raise modified(info, name) from error
            except KeyNotFound as error:
                raise object_not_found(info, name) from error
        raise modified(info, name)

    async def _mutated(
        self, info: KindInfo, obj: Object, old: Object | None, options: WriteOptions, subresource: str = ""
    ) -> Object:
        """Return what admission makes of an object that nobody has validated yet."""
        asked = self._access.asks
        if asked is None or options.user is None:
            return obj
        complete(info, obj, old, options)
        name, namespace = obj["metadata"].get("name", ""), obj["metadata"].get("namespace", "")
        mutated = await asked.mutate(info, obj, old, options, subresource=subresource)
        check_envelope(info, namespace, name, mutated)
        return mutated

    def _held(self, info: KindInfo, obj: Object, now: datetime) -> Object:
        """Return the new object with the finalizers of this process's own controllers."""
        first_finalizers = self._access.first_finalizers
        if first_finalizers is None:
            return obj
        return with_finalizers(info, obj, first_finalizers(info.resource, obj), now=now)

    async def _insert(
        self, info: KindInfo, namespace: str, obj: Object, generate_name: str, options: WriteOptions
    ) -> bytes:
        access, metadata = self._access, obj["metadata"]
        hook = access.hooks.get(info.prefix)
        if hook is not None:
            await hook.before_create(obj, dry_run=options.dry_run)
        for _ in range(_GENERATED_NAMES_MAX):
            key = info.key(namespace, metadata["name"])
            if options.dry_run:
                if await access.store.get(key) is not None:
                    raise already_exists(info, metadata["name"])
                return encoding.without_revision(encoding.encode(info.head, obj))
            body = await access.to_storage(info, obj)
            try:
                entry = await access.store.create(key, body)
            except KeyExists as error:
                if generate_name:
                    metadata["name"] = generate_name[: info.strategy.generate_length_max - 5] + access.entropy.suffix()
                    continue
                if hook is not None:
                    hook.removed(obj)
                raise already_exists(info, metadata["name"]) from error
            except StoreError:
                if hook is not None:
                    hook.removed(obj)
                raise
            if hook is not None:
                metadata["resourceVersion"] = str(entry.revision)
                hook.written(obj)
            return await access.present_one(info, entry.value)
        raise already_exists(info, metadata["name"])

    async def _replace(self, info: KindInfo, entry: Entry, new: Object, options: WriteOptions) -> bytes:
        access = self._access
        if options.dry_run:
            return encoding.join(encoding.encode(info.head, new), entry.revision)
        body = await access.to_storage(info, new)
        hook = access.hooks.get(info.prefix)
        if has_to_go(info, new):
            written = await access.store.delete(entry.key, body, entry.revision)
            if hook is not None:
                hook.removed(new)
        else:
            written = await access.store.update(entry.key, body, entry.revision)
            if hook is not None:
                new["metadata"]["resourceVersion"] = str(written.revision)
                hook.written(new)
        return await access.present_one(info, written.value)

    async def _create_applied(
        self, info: KindInfo, namespace: str, name: str, patch: Patch, options: WriteOptions
    ) -> bytes:
        """Create what an apply describes; a pinned uid cannot be met, a resourceVersion says nothing."""
        now = self._access.clock.now()
        obj = patch.as_new(info)
        check_envelope(info, namespace, name, obj, may_lack_name=True)
        obj["metadata"].pop("resourceVersion", None)
        if uid := obj["metadata"].get("uid"):
            raise Conflict(
                f'Operation cannot be fulfilled on {info.group_resource} "{name}": uid mismatch: the provided object'
                f" specified uid {uid}, and no existing object was found",
                details=details(info, name),
            )
        if info.resource.namespaced:
            await self._check_namespace(info, namespace, name)
        applied = patch.applied_to(info, None, options, now=now, subresource="")
        check_envelope(info, namespace, name, applied, may_lack_name=True)
        if self._access.asks is not None:
            applied = await self._mutated(info, applied, None, options)
        managed = applied["metadata"].get("managedFields")
        prepare_create(info, applied, options, now=now, uid=self._access.entropy.uid())
        if managed:
            applied["metadata"]["managedFields"] = managed
        applied = self._held(info, applied, now)
        if (asked := self._access.asks) is not None:
            await asked.validate(info, applied, None, options)
        return await self._insert(info, namespace, applied, "", options)

    async def _check_namespace(self, info: KindInfo, namespace: str, name: str) -> None:
        """Refuse new objects in a namespace that is absent or being deleted."""
        entry = await self._access.store.get(f"/core/namespaces/{namespace}")
        if entry is None:
            raise NotFound(f'namespaces "{namespace}" not found', details={"name": namespace, "kind": "namespaces"})
        if b'"deletionTimestamp":"' in entry.value and encoding.metadata_of(entry.value).get("deletionTimestamp"):
            raise Forbidden(
                f'{info.group_resource} "{name}" is forbidden: unable to create new content in namespace {namespace}'
                " because it is being terminated",
                details={
                    **details(info, name),
                    "causes": [
                        cause(
                            "NamespaceTerminating", f"namespace {namespace} is being terminated", "metadata.namespace"
                        )
                    ],
                },
            )


def _is_outdated(info: KindInfo, stored: bytes, presented: bytes) -> bool:
    """Tell whether an unchanged object is written all the same, because what is stored of it is of an older kind."""
    if info.conversion is None:
        return False
    return not stored.startswith(info.storage_head) or (info.head == info.storage_head and stored != presented)
