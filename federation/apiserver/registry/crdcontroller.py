"""The controller of CustomResourceDefinitions: conditions, served kinds, and deletion of instances.

Every process watches the stored definitions and keeps its own `Kinds` up to date; the process that writes a definition
serves it before the request returns. The write itself sets the conditions, so its response is already Established.
CRDs are validated here and not in their strategy, because the validation must yield to other requests;
`semantics/crd/crdvalidation.py` and `schemavalidation.py` implement it.
"""

import asyncio
import contextlib
from collections.abc import Sequence
from functools import partial
from typing import Any

import orjson

from federation.apimachinery.conditions import set_condition
from federation.apimachinery.effect import Effect, is_called
from federation.apimachinery.errors import AlreadyExists, ApiError, NotFound, ValueDamaged, invalid
from federation.apimachinery.fielderrors import Causes
from federation.apimachinery.finalizers import DEFINITION_CLEANUP
from federation.apimachinery.resources import CRDS, Object, Resource
from federation.apiserver.registry.deletions import is_same, precondition, same_uid
from federation.apiserver.semantics.conversion.conversion import CRConverter
from federation.apiserver.semantics.crd.crdvalidation import (
    is_established,
    schemas_with_paths,
    validate_crd,
    validate_crd_update,
)
from federation.apiserver.semantics.crd.schemavalidation import schema_checks
from federation.apiserver.semantics.crd.structural import from_openapi
from federation.apiserver.semantics.encoding import encoding
from federation.apiserver.semantics.kinds.kinds import ALL_VERBS, KindInfo, PrinterColumn, ScalePaths
from federation.apiserver.semantics.strategies.crds import CustomResourceStrategy
from federation.apiserver.store.interface import EventType
from federation.apiserver.verbs.context import VerbContext
from federation.apiserver.verbs.deletes import Deleter
from federation.apiserver.verbs.requestoptions import DeleteOptions, WriteOptions
from federation.apiserver.verbs.writes import Writer, without_finalizer

_PREFIX = f"/{CRDS.group}/{CRDS.plural}/"
_RETRY_S = 0.5
_INSTALLS_MAX = 32
"""Definitions of `install` that are written at the same time."""
_ESTABLISHED = (
    ("True", "NoConflicts", "no conflicts found"),
    ("True", "InitialNamesAccepted", "the initial names have been accepted"),
)
_NOT_ACCEPTED = ("False", "NotAccepted", "not all names are accepted")


class CRDController:
    """Keeps `Kinds` in sync with the stored CustomResourceDefinitions. A `Hook` of that kind."""

    def __init__(self, context: VerbContext, writer: Writer, deleter: Deleter) -> None:
        self._context = context
        self._writer = writer
        self._deleter = deleter
        self._served: dict[str, tuple[int, bool, Effect]] = {}
        """Served generation, whether it is terminating, and the effect of its conversion, by uid."""
        self._loaded: int | None = None
        """The revision from which `run` watches; None when it must load first, as after a watch that failed."""
        self._installing: frozenset[str] = frozenset()
        """Names of the definitions that `install` is writing."""
        context.hooks[_PREFIX] = self

    async def load(self) -> int:
        """Serve every stored definition and return the revision of that list."""
        page = await self._context.store.list(_PREFIX)
        for entry in page.entries:
            self.written(encoding.decode(entry.value))
        self._loaded = page.revision
        return page.revision

    async def run(self) -> None:
        """Watch the stored definitions until cancelled, from where they were loaded at the start."""
        try:
            revision = self._loaded if self._loaded is not None else await self.load()
            async for batch in self._context.store.watch(_PREFIX, revision):
                for event in batch:
                    obj = encoding.decode(event.value)
                    if event.type is EventType.DELETED:
                        self.removed(obj)
                    else:
                        self.written(obj)
        finally:
            self._loaded = None

    async def run_cleanup(self) -> None:
        """Delete the instances of terminating definitions until cancelled; one definition does not wait for another."""
        page = await self._context.store.list(_PREFIX)
        # Schemas are large, and hardly any definition is terminating.
        values = [entry.value for entry in page.entries if b"deletionTimestamp" in entry.value]
        revision, found = page.revision, list(map(encoding.decode, values))
        del page, values  # this loop never ends and must not keep these bytes in memory
        cleaning: set[str] = set()
        async with asyncio.TaskGroup() as group:

            def start(obj: Object) -> None:
                metadata = obj["metadata"]
                uid, is_waiting = metadata["uid"], DEFINITION_CLEANUP in (metadata.get("finalizers") or ())
                if metadata.get("deletionTimestamp") and is_waiting and uid not in cleaning:
                    cleaning.add(uid)
                    task = group.create_task(self._clean_up(obj), name=f"clean up {metadata['name']}")
                    task.add_done_callback(lambda _: cleaning.discard(uid))

            while found:
                start(found.pop())
            async for batch in self._context.store.watch(_PREFIX, revision):
                for event in batch:
                    if event.type is not EventType.DELETED:
                        start(encoding.decode(event.value))

    async def install(self, manifests: Sequence[Object]) -> None:
        """Create or update each definition to its manifest's spec.

        If the manifest has labels, an existing definition without them is not ours, and stays as it is.
        Their schemas are not validated, which would cost a large part of a start; tests of the manifests do that.
        """
        self._installing = frozenset(manifest["metadata"]["name"] for manifest in manifests)
        try:
            await self._install(manifests)
        finally:
            self._installing = frozenset()
        # Those that another process of the same database created since this one started are served, too.
        await self.load()

    async def _install(self, manifests: Sequence[Object]) -> None:
        """Write the definitions at the same time: reads and commits then share their round trips to a database."""
        info = self._context.kinds.lookup(CRDS.group, CRDS.version, CRDS.plural)
        places = asyncio.Semaphore(_INSTALLS_MAX)

        async def install(manifest: Object) -> None:
            async with places:
                await self._install_one(info, manifest)

        await asyncio.gather(*(install(manifest) for manifest in manifests))

    async def _install_one(self, info: KindInfo, manifest: Object) -> None:
        name = manifest["metadata"]["name"]

        def updated(live: Object) -> tuple[Object, bool]:
            wanted = _copy(manifest)
            held = live["metadata"].get("labels") or {}
            if not (wanted["metadata"].get("labels") or {}).items() <= held.items():
                return live, False
            return {**live, "spec": wanted["spec"]}, False

        try:
            await self._writer.change(info, "", name, updated, WriteOptions())
        except NotFound:
            try:
                await self._writer.create(info, "", _copy(manifest), WriteOptions())
            except AlreadyExists:  # by another process that starts, perhaps of another version
                await self._writer.change(info, "", name, updated, WriteOptions())
        except ValueDamaged:
            # The manifest is the whole definition, so a damaged one is replaced.
            await self._deleter.delete(info, "", name, DeleteOptions())
            await self._writer.create(info, "", _copy(manifest), WriteOptions())

    async def before_create(self, obj: Object, *, dry_run: bool) -> None:
        del dry_run
        await self._complete(obj, validate_crd(obj))

    async def before_update(self, new: Object, old: Object, *, dry_run: bool) -> None:
        del dry_run
        if new["spec"] != old["spec"]:
            await self._complete(new, validate_crd_update(new, old))
        elif new.get("status") != old.get("status"):
            self._accept(new)  # a client may have written a status in which the names are not accepted

    def written(self, obj: Object) -> None:
        """Serve the definition's versions if it is established."""
        metadata, spec = obj["metadata"], obj["spec"]
        group, plural = spec["group"], spec["names"]["plural"]
        terminating = bool(metadata.get("deletionTimestamp"))
        effect = self._context.effect_of(CRDS, obj)
        state = (metadata.get("generation", 0), terminating, effect)
        if self._served.get(metadata["uid"]) == state or not is_established(obj):
            return
        self._served[metadata["uid"]] = state
        # Every object was written under the first generation of a definition that has no other.
        since = int(metadata["resourceVersion"]) if metadata.get("generation", 1) > 1 else 0
        infos = kind_infos(obj, is_terminating=terminating, schema_revision=since, effect=effect)
        self._context.kinds.replace(group, plural, infos)

    def removed(self, obj: Object) -> None:
        """Stop serving a removed definition."""
        if self._served.pop(obj["metadata"]["uid"], None) is not None:
            self._context.kinds.replace(obj["spec"]["group"], obj["spec"]["names"]["plural"], [])

    async def _complete(self, obj: Object, causes: Causes) -> None:
        """Validate the schemas and accept the definition; Invalid."""
        is_ours = obj["metadata"]["name"] in self._installing
        for version, path in () if is_ours else schemas_with_paths(obj["spec"].get("versions") or []):
            for check in schema_checks(version, path):
                causes += check()
                await asyncio.sleep(0)  # schemas can have half a megabyte: let other requests run in between
        if causes:
            raise invalid("CustomResourceDefinition", CRDS.group, obj["metadata"]["name"], causes)
        self._accept(obj)

    def _accept(self, obj: Object) -> None:
        """Write names, stored versions and conditions of a valid definition into its status."""
        spec, now = obj["spec"], self._context.clock.now()
        status = dict(obj.get("status") or {})
        conflict = self._name_conflict(obj)
        stored = list(status.get("storedVersions") or ())
        storage = next(version["name"] for version in spec["versions"] if version.get("storage"))
        status["storedVersions"] = stored if storage in stored else [*stored, storage]
        status["acceptedNames"] = {} if conflict else dict(spec["names"])
        accepted, established = _ESTABLISHED
        if conflict:
            accepted, established = ("False", "NameConflict", conflict), _NOT_ACCEPTED
        conditions = status.get("conditions")
        for type_, (state, reason, message) in (("NamesAccepted", accepted), ("Established", established)):
            conditions = set_condition(conditions, type_=type_, status=state, now=now, reason=reason, message=message)
        status["conditions"] = conditions
        obj["status"] = status

    def _name_conflict(self, obj: Object) -> str:
        """Return the message about a name that another resource of the group has, "" when there is none."""
        spec = obj["spec"]
        group, wanted = spec["group"], spec["names"]
        plural = wanted["plural"]
        for info in self._context.kinds.all():
            resource = info.resource
            if resource.group != group:
                continue
            if resource.plural == plural:
                if not info.is_custom:
                    return f'"{plural}" is already in use'
                continue
            taken = {resource.plural, info.singular, *info.short_names}
            for name in (plural, wanted.get("singular"), *(wanted.get("shortNames") or ())):
                if name in taken:
                    return f'"{name}" is already in use'
            for kind in (wanted["kind"], wanted.get("listKind")):
                if kind in {resource.kind, info.list_kind}:
                    return f'"{kind}" is already in use'
        return ""

    async def _clean_up(self, obj: Object) -> None:
        """Delete the instances of a terminating definition, then remove its finalizer."""
        self.written(obj)
        metadata, spec = obj["metadata"], obj["spec"]
        name, uid = metadata["name"], metadata["uid"]
        info = self._context.kinds.find(spec["group"], spec["names"]["plural"])
        crds = self._context.kinds.lookup(CRDS.group, CRDS.version, CRDS.plural)
        with contextlib.suppress(NotFound):
            if info is not None and info.is_custom:
                await self._delete_instances(info, name, uid)
            change = same_uid(uid, without_finalizer(DEFINITION_CLEANUP))
            await self._writer.change(crds, "", name, change, WriteOptions())

    async def _delete_instances(self, info: KindInfo, name: str, uid: str) -> None:
        """Delete all objects of a kind and wait until those with finalizers are removed.

        NotFound when the definition is gone, or another one has its name: the objects listed before are its own.
        """
        store, pause_s = self._context.store, 0.05
        while entries := (await store.list(info.prefix)).entries:
            if not await is_same(store, _PREFIX + name, uid):
                raise NotFound(f"definition {name} is another one now")
            for entry in entries:
                namespace, _, instance = entry.key[len(info.prefix) :].rpartition("/")
                try:
                    await self._deleter.delete(info, namespace, instance, precondition(entry))
                except ApiError:
                    continue
            if not (await store.list(info.prefix, limit=1)).entries:
                return
            await self._context.clock.sleep(pause_s)
            pause_s = min(pause_s * 2, _RETRY_S)


def kind_infos(
    definition: Object,
    *,
    is_terminating: bool = False,
    schema_revision: int = 0,
    effect: Effect = Effect.ALL,
) -> list[KindInfo]:
    """Return one KindInfo per served version of a definition, the storage version first.

    `schema_revision` is the revision since which objects are written under the definition as it is. `effect` is that of
    its conversion webhook.
    """
    spec = definition["spec"]
    names = spec["names"]
    storage = next(version["name"] for version in spec["versions"] if version.get("storage"))
    converting = spec.get("conversion") or {}
    webhook = converting.get("webhook") if converting.get("strategy") == "Webhook" else None
    is_converted = webhook is not None and is_called(webhook["clientConfig"], effect)
    conversion = CRConverter(
        group=spec["group"],
        kind=names["kind"],
        storage_version=storage,
        schema_sources={
            version["name"]: partial(from_openapi, version["schema"]["openAPIV3Schema"]) for version in spec["versions"]
        },
        schema_revision=schema_revision,
        webhook=webhook if is_converted else None,
        is_elsewhere=webhook is not None and not is_converted,
    )
    infos = []
    for version in sorted(spec["versions"], key=lambda version: version["name"] != storage):
        if not version.get("served"):
            continue
        subresources = version.get("subresources") or {}
        scale = subresources.get("scale")
        infos.append(
            KindInfo(
                resource=Resource(
                    spec["group"], version["name"], names["kind"], names["plural"], spec["scope"] == "Namespaced"
                ),
                singular=names.get("singular") or names["kind"].lower(),
                list_kind=names.get("listKind") or names["kind"] + "List",
                strategy=CustomResourceStrategy(has_status="status" in subresources),
                schema_source=partial(conversion.schema, version["name"]),
                short_names=tuple(names.get("shortNames") or ()),
                categories=tuple(names.get("categories") or ()),
                subresources=frozenset(subresources),
                verbs=tuple(verb for verb in ALL_VERBS if not (is_terminating and verb == "create")),
                columns=tuple(_column(column) for column in version.get("additionalPrinterColumns") or ()),
                storage_version=storage,
                scale=_scale_paths(scale) if scale is not None else None,
                is_custom=True,
                is_terminating=is_terminating,
                warning=_deprecation(spec, version),
                conversion=conversion,
                selectable_fields=tuple(field["jsonPath"] for field in version.get("selectableFields") or ()),
            )
        )
    return infos


def _copy(manifest: Object) -> Object:
    copied: Object = orjson.loads(orjson.dumps(manifest))
    return copied


def _column(column: dict[str, Any]) -> PrinterColumn:
    return PrinterColumn(
        column["name"],
        column["type"],
        column["jsonPath"],
        column.get("description", ""),
        column.get("format", ""),
        column.get("priority", 0),
    )


def _scale_paths(scale: dict[str, Any]) -> ScalePaths:
    return ScalePaths(scale["specReplicasPath"], scale["statusReplicasPath"], scale.get("labelSelectorPath") or "")


def _deprecation(spec: Object, version: dict[str, Any]) -> str:
    if not version.get("deprecated"):
        return ""
    kind = spec["names"]["kind"]
    return version.get("deprecationWarning") or f"{spec['group']}/{version['name']} {kind} is deprecated"
