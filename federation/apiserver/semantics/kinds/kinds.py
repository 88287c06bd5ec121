"""The served kinds, built in or from a CustomResourceDefinition, and their lookup by path or kind.

A `KindInfo` is immutable. A change of a CRD replaces it and increments `Kinds.generation`, by which discovery and
OpenAPI caches are invalidated. `builtin.py` has the built-in kinds; `registry/crdcontroller.py` adds custom kinds.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from federation.apimachinery.errors import NotFound, not_served
from federation.apimachinery.resources import Resource
from federation.apiserver.semantics.cel.rules import ValidationRules, compile_rules
from federation.apiserver.semantics.conversion.autoscalerconversion import AutoscalerConverter
from federation.apiserver.semantics.conversion.conversion import CRConverter
from federation.apiserver.semantics.conversion.eventconversion import EventConverter
from federation.apiserver.semantics.encoding import encoding
from federation.apiserver.semantics.schema.model import Schema
from federation.apiserver.semantics.strategies.base import Strategy

Conversion = CRConverter | EventConverter | AutoscalerConverter

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


@dataclass(frozen=True, slots=True)
class PrinterColumn:
    """One of `additionalPrinterColumns` of a CRD."""

    name: str
    type: str
    json_path: str
    description: str = ""
    format: str = ""
    priority: int = 0


@dataclass(frozen=True, slots=True)
class ScalePaths:
    """The fields of the scale subresource, as dotted paths with a leading dot."""

    spec_replicas: str = ".spec.replicas"
    status_replicas: str = ".status.replicas"
    label_selector: str = ""


@dataclass(frozen=True, eq=False)
class KindInfo:
    """One kind in one served version. Without slots, because `cached_property` needs a `__dict__`."""

    resource: Resource
    singular: str
    list_kind: str
    strategy: Strategy
    schema_source: Callable[[], Schema]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: frozenset[str] = frozenset()
    verbs: tuple[str, ...] = ALL_VERBS
    columns: tuple[PrinterColumn, ...] = ()
    """The columns of a custom resource; for other kinds, columns beside those of their printer."""
    storage_version: str = ""
    scale: ScalePaths | None = None
    is_custom: bool = False
    is_terminating: bool = False
    warning: str = ""
    """Text for a Warning header on every request (deprecated versions)."""
    selectable_fields: tuple[str, ...] = ()
    """JSON paths of a custom resource that field selectors may use."""
    conversion: Conversion | None = None
    """Converts from and to the stored version; None if versions differ only in apiVersion."""
    stored_as: Resource | None = None
    """The stored resource, if this kind serves the objects of another resource."""

    @cached_property
    def schema(self) -> Schema:
        """The schema, compiled at the first use."""
        return self.schema_source()

    @cached_property
    def rules(self) -> ValidationRules | None:
        """The validation rules of a custom resource, None if it has none."""
        return compile_rules(self.schema) if self.is_custom else None

    @cached_property
    def head(self) -> bytes:
        """The bytes before the revision of an object in this version."""
        return encoding.encode_head(self.resource.api_version, self.resource.kind)

    @cached_property
    def storage_head(self) -> bytes:
        """The bytes before the revision of an object in its stored version."""
        resource = self.resource
        if self.stored_as is not None:
            return encoding.encode_head(self.stored_as.api_version, self.stored_as.kind)
        if not self.storage_version or self.storage_version == resource.version:
            return self.head
        return encoding.encode_head(f"{resource.group}/{self.storage_version}", resource.kind)

    @cached_property
    def prefix(self) -> str:
        """The store prefix of all objects of this kind."""
        stored = self.stored_as or self.resource
        return f"/{stored.group or 'core'}/{stored.plural}/"

    def key(self, namespace: str, name: str) -> str:
        """Return an object's store key."""
        return f"{self.prefix}{namespace}/{name}" if self.resource.namespaced else f"{self.prefix}{name}"

    def collection(self, namespace: str) -> str:
        """Return the store prefix of the objects in a namespace, or of all objects for ""."""
        return f"{self.prefix}{namespace}/" if namespace and self.resource.namespaced else self.prefix

    def to_version(self, value: bytes) -> bytes:
        """Return stored bytes with this apiVersion; `conversion` is not applied."""
        return encoding.replace_head(value, self.head)

    @property
    def group_resource(self) -> str:
        """`deployments.apps` or `pods`."""
        return self.resource.group_resource


class Kinds:
    """All served kinds, by group, version and plural name, and by group, version and kind."""

    def __init__(self, builtin: Iterable[KindInfo]) -> None:
        self.generation = 1
        self._by_plural: dict[tuple[str, str, str], KindInfo] = {}
        self._by_kind: dict[tuple[str, str, str], KindInfo] = {}
        self._by_prefix: dict[str, tuple[KindInfo, ...]] = {}
        """Results of `versions_of`; cleared when the kinds change."""
        self._listeners: list[Callable[[], None]] = []
        for info in builtin:
            self._insert(info)

    def lookup(self, group: str, version: str, plural: str) -> KindInfo:
        """Return the kind of a resource path; NotFound if it is not served."""
        info = self._by_plural.get((group, version, plural))
        if info is None:
            raise not_served()
        return info

    def by_kind(self, group: str, version: str, kind: str) -> KindInfo:
        """Return the kind by its name; NotFound if it is not served."""
        info = self.served(group, version, kind)
        if info is None:
            api_version = f"{group}/{version}" if group else version
            raise NotFound(f'no matches for kind "{kind}" in version "{api_version}"')
        return info

    def served(self, group: str, version: str, kind: str) -> KindInfo | None:
        """Return the kind by its name, None if it is not served."""
        return self._by_kind.get((group, version, kind))

    def find(self, group: str, plural: str) -> KindInfo | None:
        """Return a resource in its storage version or else in any version, None if it is not served."""
        found = [i for i in self._by_plural.values() if i.resource.group == group and i.resource.plural == plural]
        for info in found:
            if info.resource.version == info.storage_version:
                return info
        return found[0] if found else None

    def all(self) -> list[KindInfo]:
        """Return every kind in every served version, in the order of registration."""
        return list(self._by_plural.values())

    def versions_of(self, prefix: str) -> tuple[KindInfo, ...]:
        """Return the kinds with this store prefix, in every served version and in the order of registration."""
        found = self._by_prefix.get(prefix)
        if found is None:
            found = self._by_prefix[prefix] = tuple(info for info in self.all() if info.prefix == prefix)
        return found

    def stored(self) -> list[KindInfo]:
        """Return one version per stored resource."""
        seen: dict[str, KindInfo] = {}
        for info in self._by_plural.values():
            seen.setdefault(info.prefix, info)
        return list(seen.values())

    def of_kind(self, kind: str) -> list[Resource]:
        """Return the stored resources of a kind in any group, one version of each."""
        return [info.resource for info in self.stored() if info.resource.kind == kind]

    def replace(self, group: str, plural: str, infos: Iterable[KindInfo]) -> None:
        """Serve exactly `infos` for a resource, or nothing if it is empty, and notify the listeners."""
        self._by_prefix.clear()
        for key in [key for key in self._by_plural if key[0] == group and key[2] == plural]:
            removed = self._by_plural.pop(key)
            self._by_kind.pop((group, key[1], removed.resource.kind), None)
        for info in infos:
            self._insert(info)
        self.generation += 1
        for listener in self._listeners:
            listener()

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call `listener` after every change of the served kinds."""
        self._listeners.append(listener)

    def _insert(self, info: KindInfo) -> None:
        resource = info.resource
        self._by_plural[resource.group, resource.version, resource.plural] = info
        self._by_kind[resource.group, resource.version, resource.kind] = info
