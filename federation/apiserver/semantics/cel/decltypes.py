"""CEL types of schema nodes with the largest size of their values, for cost estimates. Pure.

Sizes are bytes of strings and numbers of items or entries. A value without a limit of its own is limited by the largest
request and by the smallest JSON form of its items. The numbers are kube-apiserver's, because they decide which CRDs a
cluster accepts.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

REQUEST_BYTES_MAX: Final = 3 * 1024 * 1024
_COMPUTED: Final = "computed"
_CONSTANT: Final = frozenset({"bool", "double", "int", "timestamp", "duration"})
_SCALARS: Final = {"boolean": ("bool", 4), "number": ("double", 1), "integer": ("int", 1)}
_TIMES: Final = {"date": ("timestamp", 12, 12), "date-time": ("timestamp", 32, 21), "duration": ("duration", 32, 3)}
_META: Final = {
    "kind": {"type": "string"},
    "apiVersion": {"type": "string"},
    "metadata": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}},
    },
}


@dataclass(frozen=True, slots=True)
class DeclType:
    """The type of a value: its kind, its largest size (math.inf: unlimited) and its schema.

    Kinds: text, bytes, list, map, object, int, double, bool, timestamp, duration, other (a type of Kubernetes'
    library), dyn (any type), unknown.
    """

    kind: str
    size: float = math.inf
    raw: Mapping[str, Any] | None = None
    of: "DeclType | None" = None
    """The type of the items of a computed list."""
    place: "DeclType | None" = None
    """Where the sizes of what is within a computed value come from. kube-apiserver finds a size by the path of a value
    from `self`. A computed value has none, so the first step from it leads to `self`, and the next ones on from there.
    """

    def computed(self, root: "DeclType", size: float | None = None) -> "DeclType":
        """Return the type as that of a value without a path, in a rule whose `self` is `root`."""
        return replace(self, size=self.size if size is None else size, place=DeclType(_COMPUTED, of=root))

    def field(self, name: str) -> "DeclType | None":
        """Return the type of a field or map value, None if the schema has no such field."""
        found: DeclType | None = DeclType("unknown", 1)
        if self.kind == "map" and self.raw is not None:
            found = schema_decl_type(self.raw["additionalProperties"])
        elif self.kind == "object" and self.raw is not None:
            described = self.raw.get("properties") or {}
            found = schema_decl_type(described[name]) if name in described else None
        return found if found is None or self.place is None else found._placed(self.place, name)

    def item(self) -> "DeclType":
        """Return the type that a loop over this value iterates: list items or map keys."""
        found = self.of
        if found is None and self.kind == "list" and self.raw is not None:
            found = schema_decl_type(self.raw.get("items") or {})
        if found is None:
            found = DeclType("text", 0) if self.kind == "map" else DeclType("unknown", 1)
        return found if self.place is None else found._placed(self.place, "", is_key=self.kind == "map")

    def _placed(self, above: "DeclType", name: str, *, is_key: bool = False) -> "DeclType":
        """Return the type with the size of what a step leads to from another place."""
        place: DeclType | None = None
        if above.kind == _COMPUTED:
            place = above.of
        elif name:
            place = above.field(name) if above.kind == "object" else None
        elif above.kind == "map":
            place = above.item() if is_key else above.field("")
        elif above.kind == "list" and not is_key:
            place = above.item()
        if place is None:
            return replace(self, size=1 if self.kind in _CONSTANT else math.inf, place=DeclType("none"))
        return replace(self, size=place.size, place=place)


def root_decl_type(raw: Mapping[str, Any], *, is_resource: bool) -> DeclType | None:
    """Return the type of `self` in a rule at this schema; resources have apiVersion, kind and metadata as well."""
    if is_resource or raw.get("x-kubernetes-embedded-resource"):
        raw = {**raw, "type": "object", "properties": {**(raw.get("properties") or {}), **_META}}
    return schema_decl_type(raw)


def schema_decl_type(raw: Mapping[str, Any]) -> DeclType | None:
    """Return the type of a schema's values, None if the schema has no type; rules cannot access such values."""
    if raw.get("x-kubernetes-int-or-string"):
        return DeclType("dyn", REQUEST_BYTES_MAX - 2, raw)
    type_ = raw.get("type")
    if type_ == "array":
        if (smallest := min_json_size(raw.get("items") or {})) is None:
            return None
        return DeclType("list", _limit(raw, "maxItems", (REQUEST_BYTES_MAX - 2) // (smallest + 1)), raw)
    if type_ == "object":
        additional = raw.get("additionalProperties")
        if isinstance(additional, Mapping):
            if (smallest := min_json_size(additional)) is None:
                return None
            return DeclType("map", _limit(raw, "maxProperties", (REQUEST_BYTES_MAX - 2) // (smallest + 6)), raw)
        return DeclType("object", 0, raw)
    if type_ == "string":
        return _text(raw)
    return DeclType(_SCALARS[type_][0], 0, raw) if type_ in _SCALARS else None


def min_json_size(raw: Mapping[str, Any]) -> int | None:
    """Return the bytes of the smallest JSON value of a schema, None if the schema has no type."""
    if raw.get("x-kubernetes-int-or-string"):
        return 1
    type_ = raw.get("type")
    if type_ in _SCALARS:
        return _SCALARS[type_][1]
    if type_ == "string":
        return _TIMES[raw["format"]][2] if raw.get("format") in _TIMES else 2
    if type_ == "array":
        return None if min_json_size(raw.get("items") or {}) is None else 2
    if type_ != "object":
        return None
    if isinstance(raw.get("additionalProperties"), Mapping):
        return None if min_json_size(raw["additionalProperties"]) is None else 2
    size = 2
    fields = raw.get("properties") or {}
    for name in raw.get("required") or ():
        below = fields.get(name)
        if below is not None and below.get("default") is None and (smallest := min_json_size(below)) is not None:
            size += len(name) + smallest + 4
    return size


def _text(raw: Mapping[str, Any]) -> DeclType:
    format_ = raw.get("format")
    if format_ in _TIMES:
        kind, longest, _ = _TIMES[format_]
        return DeclType(kind, longest, raw)
    if format_ == "byte":
        return DeclType("bytes", _limit(raw, "maxLength", REQUEST_BYTES_MAX - 2), raw)
    if raw.get("maxLength") is not None:
        return DeclType("text", max(0, raw["maxLength"]) * 4, raw)
    if raw.get("enum"):
        return DeclType(
            "text", max((len(value.encode()) for value in raw["enum"] if isinstance(value, str)), default=0), raw
        )
    return DeclType("text", REQUEST_BYTES_MAX - 2, raw)


def _limit(raw: Mapping[str, Any], key: str, otherwise: int) -> int:
    given = raw.get(key)
    return otherwise if given is None else max(0, int(given))
