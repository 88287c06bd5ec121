"""How large the values of a schema can become, as far as cost estimates need to know. Pure.

Sizes are lengths of texts in bytes and numbers of items and entries. What has no limit of its own is limited by the
largest request; how many fit in there follows from the smallest form that a value has as JSON. The numbers are
kube-apiserver's, because which definitions it accepts depends on them.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

REQUEST_BYTES_MAX: Final = 3 * 1024 * 1024
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
class Shape:
    """What is known of a value: its kind, the largest size it can have (math.inf: any), and the schema below it.

    Kinds: text, bytes, list, map, object, int, double, bool, timestamp, duration, other (of Kubernetes' own types),
    dyn (of any type), unknown (nobody says).
    """

    kind: str
    size: float = math.inf
    raw: Mapping[str, Any] | None = None
    of: "Shape | None" = None
    """What the items of a computed list are."""

    def field(self, name: str) -> "Shape | None":
        """Return the shape of a field or entry, None when an object of this schema has no such field."""
        if self.kind == "map" and self.raw is not None:
            return shape_of(self.raw["additionalProperties"])
        if self.kind == "object" and self.raw is not None:
            described = self.raw.get("properties") or {}
            return shape_of(described[name]) if name in described else None
        return Shape("unknown", 1)

    def item(self) -> "Shape":
        """Return the shape of what a loop over this value meets: items of lists, keys of maps."""
        if self.of is not None:
            return self.of
        if self.kind == "list" and self.raw is not None:
            return shape_of(self.raw.get("items") or {}) or Shape("unknown", 1)
        return Shape("text", 0) if self.kind == "map" else Shape("unknown", 1)


def root_shape(raw: Mapping[str, Any], *, is_resource: bool) -> Shape | None:
    """Return the shape of `self` in a rule at this schema; every object has its identity beside its own fields."""
    if is_resource or raw.get("x-kubernetes-embedded-resource"):
        raw = {**raw, "type": "object", "properties": {**(raw.get("properties") or {}), **_META}}
    return shape_of(raw)


def shape_of(raw: Mapping[str, Any]) -> Shape | None:
    """Return the shape of a schema's values, None when nothing says their type and rules do not see them."""
    if raw.get("x-kubernetes-int-or-string"):
        return Shape("dyn", REQUEST_BYTES_MAX - 2, raw)
    type_ = raw.get("type")
    if type_ == "array":
        if (smallest := smallest_size(raw.get("items") or {})) is None:
            return None
        return Shape("list", _limit(raw, "maxItems", (REQUEST_BYTES_MAX - 2) // (smallest + 1)), raw)
    if type_ == "object":
        additional = raw.get("additionalProperties")
        if isinstance(additional, Mapping):
            if (smallest := smallest_size(additional)) is None:
                return None
            return Shape("map", _limit(raw, "maxProperties", (REQUEST_BYTES_MAX - 2) // (smallest + 6)), raw)
        return Shape("object", 0, raw)
    if type_ == "string":
        return _text(raw)
    return Shape(_SCALARS[type_][0], 0, raw) if type_ in _SCALARS else None


def smallest_size(raw: Mapping[str, Any]) -> int | None:
    """Return how many bytes the smallest value of a schema takes as JSON, None when nothing says its type."""
    if raw.get("x-kubernetes-int-or-string"):
        return 1
    type_ = raw.get("type")
    if type_ in _SCALARS:
        return _SCALARS[type_][1]
    if type_ == "string":
        return _TIMES[raw["format"]][2] if raw.get("format") in _TIMES else 2
    if type_ == "array":
        return None if smallest_size(raw.get("items") or {}) is None else 2
    if type_ != "object":
        return None
    if isinstance(raw.get("additionalProperties"), Mapping):
        return None if smallest_size(raw["additionalProperties"]) is None else 2
    size = 2
    fields = raw.get("properties") or {}
    for name in raw.get("required") or ():
        below = fields.get(name)
        if below is not None and below.get("default") is None and (smallest := smallest_size(below)) is not None:
            size += len(name) + smallest + 4
    return size


def _text(raw: Mapping[str, Any]) -> Shape:
    format_ = raw.get("format")
    if format_ in _TIMES:
        kind, longest, _ = _TIMES[format_]
        return Shape(kind, longest, raw)
    if format_ == "byte":
        return Shape("bytes", _limit(raw, "maxLength", REQUEST_BYTES_MAX - 2), raw)
    if raw.get("maxLength") is not None:
        return Shape("text", max(0, raw["maxLength"]) * 4, raw)
    if raw.get("enum"):
        return Shape(
            "text", max((len(value.encode()) for value in raw["enum"] if isinstance(value, str)), default=0), raw
        )
    return Shape("text", REQUEST_BYTES_MAX - 2, raw)


def _limit(raw: Mapping[str, Any], key: str, otherwise: int) -> int:
    given = raw.get(key)
    return otherwise if given is None else max(0, int(given))
