"""Find unknown fields, prune them, and apply the defaults of structural schemas.

Built-in kinds lose every field that Go's structs do not have. In custom resources nothing is pruned below
`x-kubernetes-preserve-unknown-fields`, and an embedded resource keeps apiVersion, kind and metadata. Defaults fill
absent fields; a null in a field that is not nullable is removed. An object without unknown fields costs one lookup per
field. `validation.py` validates; the package `defaults` has the defaults of built-in kinds.
"""

import copy
from dataclasses import dataclass, replace
from typing import Any, Final

from federation.apimachinery.errors import RequestEntityTooLarge
from federation.apimachinery.jsonsize import VALUES_MAX
from federation.apiserver.semantics.schema.model import LIST, MAP, NO_DEFAULT, STRING, STRUCT, Schema

UNKNOWN_FIELDS_MAX: Final = 100
"""Unknown fields that are reported, as in Kubernetes; all are pruned."""
DEFAULT_VALUES_MAX: Final = VALUES_MAX
"""Keys and list items that defaults may add to one object: a list of a thousand items may default a thousand fields."""
_ENVELOPE = frozenset({"apiVersion", "kind", "metadata"})


def prune(schema: Schema, obj: Any, *, is_sorted: bool = False) -> list[str]:
    """Remove unknown fields in place; return their paths, e.g. `spec.containers[0].imagee`.

    The order is kube-apiserver's: for a built-in kind that of the document, or with `is_sorted` that of the sorted
    document; for a custom resource sorted texts, those of its metadata first and of embedded metadata last.
    """
    # Most objects have no unknown field: the first pass builds no paths.
    if has_only_known_fields(schema, obj):
        return []
    found: list[str] = []
    embedded: list[str] = []
    _prune(schema, obj, "", _Found(found, embedded, is_sorted=is_sorted and schema.native))
    if schema.native:
        return found
    return [*sorted(found, key=lambda path: (not path.startswith("metadata."), path)), *sorted(embedded)]


@dataclass(frozen=True, slots=True)
class _Found:
    """Paths of unknown fields, and of those in the metadata of embedded resources."""

    fields: list[str]
    embedded: list[str]
    is_sorted: bool


def has_only_known_fields(schema: Schema, value: Any) -> bool:
    """Return True if the schema has every field of the value; types are not checked."""
    kind = schema.kind
    if kind >= STRING:
        return True
    if kind == STRUCT:
        if type(value) is not dict:
            return True
        fields = schema.properties
        for name, inner in value.items():
            field = fields.get(name)
            if field is None:
                field = schema.additional
                if field is None:
                    if schema.preserve_unknown or (schema.embedded_resource and name in _ENVELOPE):
                        continue
                    return False
            if field.kind < STRING and inner is not None and not has_only_known_fields(field, inner):
                return False
        return True
    if kind == LIST:
        items = schema.items
        if items is None or items.kind >= STRING or type(value) is not list:
            return True
        return all(has_only_known_fields(items, inner) for inner in value)
    if kind == MAP:
        additional = schema.additional
        if additional is None or additional.kind >= STRING or type(value) is not dict:
            return True
        return all(has_only_known_fields(additional, inner) for inner in value.values())
    return True


def _prune(schema: Schema, value: Any, path: str, found: _Found) -> None:
    kind = schema.kind
    if kind == LIST:
        if schema.items is not None and isinstance(value, list):
            for index, inner in enumerate(value):
                _prune(schema.items, inner, f"{path}[{index}]", found)
        return
    if kind not in (STRUCT, MAP) or not isinstance(value, dict):
        return
    for name in sorted(value) if found.is_sorted else list(value):
        below = f"{path}.{name}" if path else name
        field = schema.child(name)
        if field is not None:
            is_embedded = schema.embedded_resource and name == "metadata"
            _prune(field, value[name], below, replace(found, fields=found.embedded) if is_embedded else found)
        elif not schema.preserve_unknown and not (schema.embedded_resource and name in _ENVELOPE):
            if len(found.fields) < UNKNOWN_FIELDS_MAX:
                found.fields.append(below)
            del value[name]


def apply_defaults(schema: Schema, obj: Any) -> None:
    """Fill absent fields with copies of a structural schema's defaults, in place.

    A null in a field that is not nullable is replaced by the default or removed. RequestEntityTooLarge when the
    defaults would add more than `DEFAULT_VALUES_MAX` values.
    """
    _apply_defaults(schema, obj, _Budget())


class _Budget:
    """The values that defaults may still add to one object, and the sizes of the defaults that it has."""

    __slots__ = ("_left", "_sizes")

    def __init__(self) -> None:
        self._left = DEFAULT_VALUES_MAX
        self._sizes: dict[int, int] = {}

    def spend(self, default: Any) -> None:
        if not isinstance(default, dict | list):
            self._left -= 1
        else:
            size = self._sizes.get(id(default))
            if size is None:
                size = self._sizes[id(default)] = _count_values(default)
            self._left -= size
        if self._left < 0:
            raise RequestEntityTooLarge(
                f"the object is too large: defaults of its CustomResourceDefinition would add more than"
                f" {DEFAULT_VALUES_MAX} values (keys and list items); use shorter lists, or smaller defaults"
            )


def _count_values(value: Any) -> int:
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(_count_values, children))


def _apply_defaults(schema: Schema, obj: Any, budget: _Budget) -> None:
    if schema.native:
        return
    if isinstance(obj, dict):
        _default_fields(schema, obj, budget)
    elif isinstance(obj, list) and schema.items is not None and schema.items.kind < STRING:
        for value in obj:
            _apply_defaults(schema.items, value, budget)


def _default_fields(schema: Schema, obj: dict[str, Any], budget: _Budget) -> None:
    fields = schema.properties
    nulls = None
    for name, value in obj.items():
        field = fields.get(name) or schema.additional
        if field is None:
            continue
        if value is None:
            if not field.nullable and not field.native:
                nulls = [name] if nulls is None else [*nulls, name]
        elif field.kind < STRING:
            _apply_defaults(field, value, budget)
    for name in nulls or ():
        del obj[name]
    if schema.has_defaults:
        for name, field in fields.items():
            if field.has_defaults and field.default is not NO_DEFAULT and name not in obj:
                budget.spend(field.default)
                obj[name] = copy.deepcopy(field.default)
                _apply_defaults(field, obj[name], budget)
