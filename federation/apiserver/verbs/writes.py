"""CREATE, UPDATE and PATCH: read, prepare, write, and retry after a concurrent write.

A write with a resourceVersion gets one attempt and then Conflict; one without is retried on the newest state. A write
that changes nothing returns the live object and is not stored. Removing the last finalizer of a terminating object
removes the object. Read `preparation.py` for the changes to the object, `patching.py` for the patch types.
"""

from collections.abc import Callable
from datetime import datetime
from functools import partial

from federation.apimachinery.errors import (
    AlreadyExists,
    ApiError,
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
from federation.apimachinery.fielderrors import invalid as invalid_value
from federation.apimachinery.resources import LEASES, Object
from federation.apiserver.semantics.encoding import encoding
from federation.apiserver.semantics.kinds.kinds import KindInfo
from federation.apiserver.store.interface import Body, Entry
from federation.apiserver.verbs.context import (
    AdmissionChain,
    VerbContext,
    object_already_exists,
    object_modified,
    object_not_found,
    status_details,
)
from federation.apiserver.verbs.decoding import check_fields
from federation.apiserver.verbs.fieldvalidation import check_patched
from federation.apiserver.verbs.patching import MERGE, Patch
from federation.apiserver.verbs.preparation import (
    STATUS_PARTS,
    check_envelope,
    complete,
    must_be_removed,
    prepare_create,
    prepare_update,
    track_create,
    with_finalizers,
)
from federation.apiserver.verbs.requesteraccess import check_access
from federation.apiserver.verbs.requestoptions import WriteOptions, own_user
from federation.apiserver.verbs.sizelimits import check_bytes, check_size

_GENERATED_NAMES_MAX = 8
_LEASE_BYTES_MAX = 4_096

Change = Callable[[Object], tuple[Object, bool]]
"""Maps the live object to (changed object, whether the request names a resourceVersion)."""


def without_finalizer(finalizer: str) -> Change:
    """Return the change that removes a finalizer."""

    def change(live: Object) -> tuple[Object, bool]:
        kept = [name for name in live["metadata"].get("finalizers") or () if name != finalizer]
        live["metadata"]["finalizers"] = kept or None
        return live, False

    return change


class Writer:
    """Writes for one registry."""

    def __init__(self, context: VerbContext) -> None:
        self._context = context

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
            metadata["name"] = prefix[: info.strategy.generate_length_max - 5] + self._context.entropy.suffix()
        if info.resource.namespaced:
            await self._check_namespace(info, namespace, metadata.get("name", ""))
        self._annotate(info, obj, None, options)
        admission = self._context.admission_for(info, options.user)
        now, entries = self._context.clock.now(), None
        if admission is not None and options.user is not None:
            complete(info, obj, None, options)
            entries = track_create(info, obj, options, now=now)
            obj = await _mutate(self._context, admission, info, obj, None, options, is_complete=True)
        defaults, uid = self._context.defaults, self._context.entropy.uid()
        prepare_create(info, obj, options, now=now, uid=uid, entries=entries, defaults=defaults)
        obj = self._with_creation_finalizers(info, obj, now)
        if defaults is not None:
            await defaults.validate(info, obj, None, options, "")
        if admission is not None:
            await admission.validate(info, obj, None, options)
        return await self._insert(info, namespace, obj, prefix, options)

    async def update(
        self, info: KindInfo, namespace: str, name: str, obj: Object, options: WriteOptions, *, subresource: str = ""
    ) -> tuple[bytes, bool]:
        """Replace an object or its status; return its bytes and whether it was created."""
        check_envelope(info, namespace, name, obj)
        revision = obj["metadata"].get("resourceVersion") or ""
        may_create = info.strategy.allow_create_on_update and not subresource

        def replace(live: Object) -> tuple[Object, bool]:
            if not revision and not info.strategy.allow_unconditional_update:
                check_fields(info, obj, options)  # what cannot be decoded is reported first
                causes = [invalid_value("metadata.resourceVersion", 0, "must be specified for an update")]
                raise invalid(info.resource.plural, info.resource.group, name, causes)
            if revision not in {"", live["metadata"]["resourceVersion"]}:
                raise object_modified(info, name)
            return {**obj, "metadata": dict(obj["metadata"])}, bool(revision)

        try:
            return (
                await self.change(info, namespace, name, replace, options, subresource=subresource, shares_live=False),
                False,
            )
        except NotFound:
            if not may_create:
                raise
        self._check_may_create(info, namespace, name, options)
        _check_no_uid(info, name, obj)
        obj["metadata"].pop("resourceVersion", None)
        return await self.create(info, namespace, obj, options), True

    async def patch(
        self, info: KindInfo, namespace: str, name: str, patch: Patch, options: WriteOptions, *, subresource: str = ""
    ) -> tuple[bytes, bool]:
        """Patch an object or its status; return its bytes and whether an apply created it."""

        def patched(live: Object) -> tuple[Object, bool]:
            wanted = patch.applied_to(info, live, options, now=self._context.clock.now(), subresource=subresource)
            check_patched(info, wanted, patch, options)
            check_envelope(info, namespace, name, wanted, may_lack_name=patch.is_apply)
            revision = wanted["metadata"].get("resourceVersion") or ""
            if revision and revision != live["metadata"]["resourceVersion"]:
                raise object_modified(info, name)
            if is_copied:
                wanted["metadata"] = dict(wanted["metadata"])
                if wanted.get("status"):
                    wanted["status"] = dict(wanted["status"])
            return wanted, patch.pins_revision

        # A merge patch copies on write, so a controller's object is parsed once: nothing below the top is filled in.
        is_copied = patch.type == MERGE and options.user is own_user and (info.is_custom or subresource == "status")

        # Twice: an apply may find the object absent, and lose the race to create it.
        for _ in range(2):
            try:
                changed = await self.change(
                    info,
                    namespace,
                    name,
                    patched,
                    options,
                    subresource=subresource,
                    is_apply=patch.is_apply,
                    shares_live=not is_copied,
                    patch_bytes=len(patch.text),
                )
            except NotFound:
                if not patch.is_apply or subresource:
                    raise
                self._check_may_create(info, namespace, name, options)
            else:
                return changed, False
            try:
                return await self._create_applied(info, namespace, name, patch, options), True
            except AlreadyExists:
                continue
        raise object_modified(info, name)

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
        patch_bytes: int = 0,
    ) -> bytes:
        """Apply `change` to the live object and store the result; retry on a newer state after each concurrent write.

        As in kube-apiserver, only the deadline of its request ends the retries: each one means that another writer
        got on. With `shares_live` parts of its argument that are changed in place may be in the result, so `change`
        gets a copy of the live object.
        """
        context = self._context
        while True:
            entry = await context.get_entry(info, namespace, name)
            value = await context.from_storage(info, entry.value)
            options.check_visible(value)
            old = encoding.decode(value)
            wanted, is_pinned = change(encoding.decode(value) if shares_live else old)
            admission, defaults = context.admission_for(info, options.user), context.defaults
            # Two bytes make one value at most, so the result of patching small objects is not walked.
            # Controllers of this process derive larger objects from valid ones, such as a template with its placements.
            is_request = options.user is not None and patch_bytes
            if is_request and patch_bytes + len(value) > 2 * context.options.object_values_max:
                check_size(wanted, context.options.object_values_max)
            if not subresource:
                self._annotate(info, wanted, old, options)
            if admission is not None:
                wanted = await _mutate(context, admission, info, wanted, old, options, subresource)
            new = prepare_update(
                info,
                wanted,
                old,
                options,
                now=context.clock.now(),
                subresource=subresource,
                is_apply=is_apply,
                defaults=defaults,
            )
            if new is None:
                if not _is_outdated(info, entry.value, value):
                    return value
                new = old
            if defaults is not None:
                await defaults.validate(info, new, old, options, subresource)
            if admission is not None:
                await admission.validate(info, new, old, options, subresource=subresource)
            if hook := context.hooks.get(info.prefix):
                await hook.before_update(new, old, dry_run=options.dry_run)
            try:
                return await self._replace(info, entry, new, old, options, subresource)
            except RevisionConflict as error:
                if is_pinned:
                    raise object_modified(info, name) from error
            except KeyNotFound as error:
                raise object_not_found(info, name) from error

    def _check_may_create(self, info: KindInfo, namespace: str, name: str, options: WriteOptions) -> None:
        """Raise Forbidden when an update or apply would create an object that its user may not create."""
        user = options.user
        if user is not None and user is not own_user and not options.is_plan:
            check_access(self._context, info, "create", namespace, name, user())

    def _annotate(self, info: KindInfo, obj: Object, old: Object | None, options: WriteOptions) -> None:
        annotate, user = self._context.annotate, options.user
        if annotate is not None and user is not None and user is not own_user:
            annotate(info.resource, obj, old, user)

    def _with_creation_finalizers(self, info: KindInfo, obj: Object, now: datetime) -> Object:
        context = self._context
        if context.creation_finalizers is None:
            return obj
        names = context.creation_finalizers(info.resource, obj)
        return with_finalizers(info, obj, names, manager=context.creation_finalizers_manager, now=now)

    async def _insert(
        self, info: KindInfo, namespace: str, obj: Object, generate_name: str, options: WriteOptions
    ) -> bytes:
        context, metadata = self._context, obj["metadata"]
        if options.dry_run and options.ignores_taken_name:
            # What the holder of the name uses of a quota is not asked for again.
            taken = await context.store.get(info.key(namespace, metadata["name"]))
            old = encoding.decode(taken.value) if taken is not None else None
            await context.check_charge(info, obj, old, 0, options)
            return encoding.to_bytes_without_revision(encoding.encode(info.head, obj))
        hook = context.hooks.get(info.prefix)
        if hook is not None:
            await hook.before_create(obj, dry_run=options.dry_run)
        for _ in range(_GENERATED_NAMES_MAX):
            key = info.key(namespace, metadata["name"])
            if options.dry_run:
                if await context.store.get(key) is not None:
                    raise object_already_exists(info, metadata["name"])
                body = encoding.encode(info.head, obj)
                size = body_bytes(body)
                self._check_bytes(size, 0, options)
                await context.check_charge(info, obj, None, size, options)
                return encoding.to_bytes_without_revision(body)
            body = await context.to_storage(info, obj)
            size = body_bytes(body)
            try:
                self._check_bytes(size, 0, options)
                entry = await context.store_charged(
                    info, obj, None, size, options, partial(context.store.create, key, body)
                )
            except KeyExists as error:
                if generate_name:
                    metadata["name"] = generate_name[: info.strategy.generate_length_max - 5] + context.entropy.suffix()
                    continue
                if hook is not None:
                    hook.removed(obj)
                raise object_already_exists(info, metadata["name"]) from error
            except (StoreError, ApiError):
                if hook is not None:
                    hook.removed(obj)
                raise
            if hook is not None:
                metadata["resourceVersion"] = str(entry.revision)
                hook.written(obj)
            return await context.from_storage(info, entry.value)
        raise object_already_exists(info, metadata["name"])

    async def _replace(
        self, info: KindInfo, entry: Entry, new: Object, old: Object, options: WriteOptions, subresource: str
    ) -> bytes:
        context = self._context
        if options.dry_run:
            body = encoding.encode(info.head, new)
            size, size_before = body_bytes(body), len(entry.value)
            self._check_bytes(size, size_before, options)
            growth = size - size_before
            await context.check_charge(info, new, old, growth, options, subresource)
            return encoding.to_bytes(body, entry.revision)
        body = await context.to_storage(info, new)
        size, size_before = body_bytes(body), len(entry.value)
        self._check_bytes(size, size_before, options)
        hook = context.hooks.get(info.prefix)
        if must_be_removed(info, new):
            remove = partial(context.store.delete, entry.key, body, entry.revision)
            written = await context.store_charged(info, None, old, -size_before, options, remove)
            if hook is not None:
                hook.removed(new)
        else:
            frees_space = _frees_space(info, new, size)
            update = partial(context.store.update, entry.key, body, entry.revision, frees_space=frees_space)
            growth = size - size_before
            written = await context.store_charged(info, new, old, growth, options, update, subresource=subresource)
            if hook is not None:
                new["metadata"]["resourceVersion"] = str(written.revision)
                hook.written(new)
        return await context.from_storage(info, written.value)

    def _check_bytes(self, size: int, size_before: int, options: WriteOptions) -> None:
        # Controllers of this process derive larger objects from valid ones, such as a template with its overrides.
        if options.user is not None and options.user is not own_user:
            check_bytes(size, size_before, self._context.options.object_bytes_max)

    async def _create_applied(
        self, info: KindInfo, namespace: str, name: str, patch: Patch, options: WriteOptions
    ) -> bytes:
        """Create an applied object that is absent: a given uid is a Conflict, a given resourceVersion is ignored."""
        now = self._context.clock.now()
        obj = patch.as_new()
        check_envelope(info, namespace, name, obj, may_lack_name=True)
        obj["metadata"].pop("resourceVersion", None)
        _check_no_uid(info, name, obj)
        if info.resource.namespaced:
            await self._check_namespace(info, namespace, name)
        applied = patch.applied_to(info, None, options, now=now, subresource="")
        check_patched(info, applied, patch, options)
        check_envelope(info, namespace, name, applied, may_lack_name=True)
        self._annotate(info, applied, None, options)
        admission = self._context.admission_for(info, options.user)
        if admission is not None:
            applied = await _mutate(self._context, admission, info, applied, None, options)
        managed = applied["metadata"].pop("managedFields", [])
        defaults, uid = self._context.defaults, self._context.entropy.uid()
        prepare_create(info, applied, options, now=now, uid=uid, entries=managed, defaults=defaults)
        applied = self._with_creation_finalizers(info, applied, now)
        if defaults is not None:
            await defaults.validate(info, applied, None, options, "")
        if admission is not None:
            await admission.validate(info, applied, None, options)
        return await self._insert(info, namespace, applied, "", options)

    async def _check_namespace(self, info: KindInfo, namespace: str, name: str) -> None:
        """Refuse a new object in a namespace that is absent (NotFound) or terminating (Forbidden)."""
        entry = await self._context.store.get(f"/core/namespaces/{namespace}")
        if entry is None:
            raise NotFound(f'namespaces "{namespace}" not found', details={"name": namespace, "kind": "namespaces"})
        # The substring test spares nearly every create the parsing of its namespace.
        if b'"deletionTimestamp":"' in entry.value and encoding.decode_metadata(entry.value).get("deletionTimestamp"):
            raise Forbidden(
                f'{info.group_resource} "{name}" is forbidden: unable to create new content in namespace {namespace}'
                " because it is being terminated",
                details={
                    **status_details(info, name),
                    "causes": [
                        cause(
                            "NamespaceTerminating", f"namespace {namespace} is being terminated", "metadata.namespace"
                        )
                    ],
                },
            )


def _check_no_uid(info: KindInfo, name: str, obj: Object) -> None:
    """Raise Conflict when an update or apply that would create an object names the uid of another."""
    if uid := obj["metadata"].get("uid"):
        raise Conflict(
            f'Operation cannot be fulfilled on {info.group_resource} "{name}": uid mismatch: the provided object'
            f" specified uid {uid}, and no existing object was found",
            details=status_details(info, name),
        )


async def _mutate(
    context: VerbContext,
    admission: AdmissionChain,
    info: KindInfo,
    obj: Object,
    old: Object | None,
    options: WriteOptions,
    subresource: str = "",
    *,
    is_complete: bool = False,
) -> Object:
    """Return the object after mutating admission, before validation."""
    if options.user is None:
        return obj
    if not is_complete:
        complete(info, obj, old, options)
    if context.defaults is not None and subresource not in STATUS_PARTS:
        context.defaults.mutate(info, obj, old, options)
    name, namespace = obj["metadata"].get("name", ""), obj["metadata"].get("namespace", "")
    mutated = await admission.mutate(info, obj, old, options, subresource=subresource)
    check_envelope(info, namespace, name, mutated)
    return mutated


def body_bytes(body: Body) -> int:
    """Return the size of a body, without the few digits of its revision."""
    return len(body.head) + len(body.tail)


def _frees_space(info: KindInfo, new: Object, size: int) -> bool:
    """Return whether a store without room accepts this update: a deletion needs it, or a controller that deletes."""
    return "deletionTimestamp" in new["metadata"] or (info.resource == LEASES and size <= _LEASE_BYTES_MAX)


def _is_outdated(info: KindInfo, stored: bytes, served: bytes) -> bool:
    """Return whether an unchanged object is written anyway, because it is stored in an outdated version."""
    if info.conversion is None:
        return False
    return not stored.startswith(info.storage_head) or (info.head == info.storage_head and stored != served)
