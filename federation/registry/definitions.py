"""CustomResourceDefinitions at work: naming conditions, serving and un-serving kinds, emptying them before the end.

Every process follows the stored definitions and keeps its own `Kinds` current; the process that writes one serves it
before it answers. Conditions are part of the write itself, so that `Established` is true in the answer already. A
definition is checked here and not in its strategy, because that may take longer than one request may keep the others
waiting; what is checked is in `validation/definitions.py` and `schema/acceptance.py`.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

import orjson

from federation.api.resources import CRDS, Object, Resource
from federation.base.clock import to_rfc3339
from federation.base.errors import AlreadyExists, ApiError, NotFound, invalid
from federation.registry import encoding
from federation.registry.access import Access
from federation.registry.conversion import Conversion
from federation.registry.deletes import Deleter
from federation.registry.kinds import ALL_VERBS, KindInfo, PrinterColumn, ScalePaths
from federation.registry.options import DeleteOptions, WriteOptions
from federation.registry.schema.acceptance import schema_checks
from federation.registry.schema.structural import from_openapi
from federation.registry.strategies.crds import CLEANUP_FINALIZER, CustomStrategy
from federation.registry.validation.definitions import (
    is_true,
    schemas_by_path,
    validate_definition,
    validate_definition_update,
)
from federation.registry.validation.fields import Causes
from federation.registry.writes import Writer
from federation.store.interface import EventType

_PREFIX = f"/{CRDS.group}/{CRDS.plural}/"
_RETRY_S = 0.5


class Definitions:
    """Keeps `Kinds` and the stored CustomResourceDefinitions in step. A `Hook` of that kind."""

    def __init__(self, access: Access, writer: Writer, deleter: Deleter) -> None:
        self._access = access
        self._writer = writer
        self._deleter = deleter
        self._served: dict[str, tuple[int, bool]] = {}
        """By uid: the generation that is served, and whether it is terminating."""
        self._shipped: frozenset[str] = frozenset()
        """Names of the definitions that are being installed."""
        access.hooks[_PREFIX] = self

    async def load(self) -> int:
        """Serve every stored definition and return the revision that this is the state of."""
        page = await self._access.store.list(_PREFIX)
        for entry in page.entries:
            self.written(encoding.decode(entry.value))
        return page.revision

    async def run(self) -> None:
        """Follow the stored definitions until cancelled, and empty those that are being deleted."""
        revision = await self.load()
        for entry in (await self._access.store.list(_PREFIX)).entries:
            await self._clean_up(encoding.decode(entry.value))
        async for batch in self._access.store.watch(_PREFIX, revision):
            for event in batch:
                obj = encoding.decode(event.value)
                if event.type is EventType.DELETED:
                    self.removed(obj)
                    continue
                self.written(obj)
                await self._clean_up(obj)

    async def install(self, manifests: Sequence[Object]) -> None:
        """Create or update each definition to its manifest's spec.

        Their rules are not checked here, where that would load the library for them: whoever ships them tests them.
        """
        self._shipped = frozenset(manifest["metadata"]["name"] for manifest in manifests)
        try:
            await self._install(manifests)
        finally:
            self._shipped = frozenset()

    async def _install(self, manifests: Sequence[Object]) -> None:
        info = self._access.kinds.lookup(CRDS.group, CRDS.version, CRDS.plural)
        for manifest in manifests:
            name = manifest["metadata"]["name"]
            try:
                await self._writer.create(info, "", _copy(manifest), WriteOptions())
            except AlreadyExists:
                wanted = _copy(manifest)

                def updated(live: Object, wanted: Object = wanted) -> tuple[Object, bool]:
                    return {**live, "spec": wanted["spec"]}, False

                await self._writer.change(info, "", name, updated, WriteOptions())

    async def before_create(self, obj: Object, *, dry_run: bool) -> None:
        del dry_run
        await self._complete(obj, validate_definition(obj))

    async def before_update(self, new: Object, old: Object, *, dry_run: bool) -> None:
        del dry_run
        if new["spec"] != old["spec"]:
            await self._complete(new, validate_definition_update(new, old))

    def written(self, obj: Object) -> None:
        """Serve the definition's versions, when it is established."""
        metadata, spec = obj["metadata"], obj["spec"]
        group, plural = spec["group"], spec["names"]["plural"]
        terminating = bool(metadata.get("deletionTimestamp"))
        state = (metadata.get("generation", 0), terminating)
        if self._served.get(metadata["uid"]) == state or not is_true(obj, "Established"):
            return
        self._served[metadata["uid"]] = state
        # Every object was written under the first generation of a definition that has no other.
        since = int(metadata["resourceVersion"]) if metadata.get("generation", 1) > 1 else 0
        infos = kind_infos(obj, is_terminating=terminating, current_since=since)
        self._access.kinds.replace(group, plural, infos)

    def removed(self, obj: Object) -> None:
        """Stop serving a definition that is gone."""
        if self._served.pop(obj["metadata"]["uid"], None) is not None:
            self._access.kinds.replace(obj["spec"]["group"], obj["spec"]["names"]["plural"], [])

    async def _complete(self, obj: Object, causes: Causes) -> None:
        """Check the schemas as well (Invalid) and write names and conditions into the status."""
        spec, now = obj["spec"], to_rfc3339(self._access.clock.now())
        for version, path in schemas_by_path(spec.get("versions") or []):
            for check in schema_checks(version, path, checks_rules=obj["metadata"]["name"] not in self._shipped):
                causes += check()
                await asyncio.sleep(0)  # half a megabyte takes a while, and others wait
        if causes:
            raise invalid("CustomResourceDefinition", CRDS.group, obj["metadata"]["name"], causes)
        status = dict(obj.get("status") or {})
        conflict = self._name_conflict(obj)
        stored = list(status.get("storedVersions") or ())
        storage = next(version["name"] for version in spec["versions"] if version.get("storage"))
        status["storedVersions"] = stored if storage in stored else [*stored, storage]
        status["acceptedNames"] = {} if conflict else dict(spec["names"])
        accepted = ("False", "NameConflict", conflict) if conflict else ("True", "NoConflicts", "no conflicts found")
        established = (
            ("False", "NotAccepted", "not all names are accepted")
            if conflict
            else ("True", "InitialNamesAccepted", "the initial names have been accepted")
        )
        conditions = status.get("conditions") or []
        conditions = set_condition(conditions, "NamesAccepted", accepted, now)
        status["conditions"] = set_condition(conditions, "Established", established, now)
        obj["status"] = status

    def _name_conflict(self, obj: Object) -> str:
        """Return which name is taken by another resource of the group, "" when none is."""
        spec = obj["spec"]
        group, wanted = spec["group"], spec["names"]
        plural = wanted["plural"]
        for info in self._access.kinds.all():
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
        """Delete the instances of a terminating definition, then let it go."""
        metadata = obj["metadata"]
        if not metadata.get("deletionTimestamp") or CLEANUP_FINALIZER not in (metadata.get("finalizers") or ()):
            return
        info = self._access.kinds.find(obj["spec"]["group"], obj["spec"]["names"]["plural"])
        if info is not None and info.is_custom:
            await self._delete_instances(info)
        crds = self._access.kinds.lookup(CRDS.group, CRDS.version, CRDS.plural)

        def finished(live: Object) -> tuple[Object, bool]:
            kept = [name for name in live["metadata"].get("finalizers") or () if name != CLEANUP_FINALIZER]
            live["metadata"]["finalizers"] = kept
            return live, False

        try:
            await self._writer.change(crds, "", metadata["name"], finished, WriteOptions())
        except NotFound:
            return

    async def _delete_instances(self, info: KindInfo) -> None:
        """Delete all objects of a kind and wait for those that have finalizers."""
        pause_s = 0.05
        while entries := (await self._access.store.list(info.prefix)).entries:
            for entry in entries:
                namespace, _, name = entry.key[len(info.prefix) :].rpartition("/")
                try:
                    await self._deleter.delete(info, namespace, name, DeleteOptions())
                except ApiError:
                    continue
            if not (await self._access.store.list(info.prefix, limit=1)).entries:
                return
            await self._access.clock.sleep(pause_s)
            pause_s = min(pause_s * 2, _RETRY_S)


def kind_infos(definition: Object, *, is_terminating: bool = False, current_since: int = 0) -> list[KindInfo]:
    """Return one KindInfo per served version of a definition, the storage version first.

    `current_since` is the revision since which objects are written under the definition as it is.
    """
    spec = definition["spec"]
    names = spec["names"]
    storage = next(version["name"] for version in spec["versions"] if version.get("storage"))
    converting = spec.get("conversion") or {}
    conversion = Conversion(
        group=spec["group"],
        kind=names["kind"],
        storage_version=storage,
        sources={
            version["name"]: partial(from_openapi, version["schema"]["openAPIV3Schema"]) for version in spec["versions"]
        },
        current_since=current_since,
        webhook=converting.get("webhook") if converting.get("strategy") == "Webhook" else None,
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
                strategy=CustomStrategy(has_status="status" in subresources),
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


def set_condition(
    conditions: list[dict[str, Any]], kind: str, state: tuple[str, str, str], now: str
) -> list[dict[str, Any]]:
    """Return the conditions with one of them at (status, reason, message); the time moves when the status does."""
    status, reason, message = state
    before = next((condition for condition in conditions if condition["type"] == kind), None)
    moment = before["lastTransitionTime"] if before and before["status"] == status else now
    changed = {"type": kind, "status": status, "lastTransitionTime": moment, "reason": reason, "message": message}
    return [*(condition for condition in conditions if condition["type"] != kind), changed]


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
