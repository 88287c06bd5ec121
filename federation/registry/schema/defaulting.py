"""Walks over an object along its schema: which fields are unknown, dropping them, filling defaults.

Built-in kinds lose every field that Go's structs do not have. Custom resources follow their structural schema: nothing
is dropped below `x-kubernetes-preserve-unknown-fields`, an embedded resource keeps its envelope, defaults fill absent
fields, and a null that the schema does not allow is dropped. Reading costs one lookup per field when nothing is wrong.
Validation is `validation.py`; the built-in kinds' defaults are `defaults.py`.
"""

import copy
from typing import Any

from federation.registry.schema.model import ANY, LIST, MAP, NO_DEFAULT, STRING, STRUCT, Schema

_ENVELOPE = frozenset({"apiVersion", "kind", "metadata"})


def unknown_fields(schema: Schema, obj: Any) -> list[str]:
    """Return the paths of fields that the schema does not know, e.g. `spec.containers[0].imagee`, in document order."""
    if is_known(schema, obj):
        return []
    found: list[str] = []
    _walk(schema, obj, "", found, drop=False)
    return found


def prune(schema: Schema, obj: Any) -> list[str]:
    """Remove unknown fields in place and return their paths."""
    if is_known(schema, obj):
        return []
    found: list[str] = []
    _walk(schema, obj, "", found, drop=True)
    return found


def is_known(schema: Schema, value: Any) -> bool:
    """Tell whether every field of the value is in the schema; wrong types are not its question."""
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
            if field.kind < STRING and inner is not None and not is_known(field, inner):
                return False
        return True
    if kind == LIST:
        items = schema.items
        if items is None or items.kind >= STRING or type(value) is not list:
            return True
        return all(is_known(items, inner) for inner in value)
    if kind == MAP:
        additional = schema.additional
        if additional is None or additional.kind >= STRING or type(value) is not dict:
            return True
        return all(is_known(additional, inner) for inner in value.values())
    return True


def _walk(schema: Schema, value: Any, path: str, found: list[str], *, drop: bool) -> None:
    kind = schema.kind
    if kind == LIST:
        if schema.items is not None and isinstance(value, list):
            for index, inner in enumerate(value):
                _walk(schema.items, inner, f"{path}[{index}]", found, drop=drop)
        return
    if kind not in (STRUCT, MAP) or not isinstance(value, dict):
        return
    for name in list(value):
        below = f"{path}.{name}" if path else name
        field = schema.child(name)
        if field is not None:
            _walk(field, value[name], below, found, drop=drop)
        elif not schema.preserve_unknown and not (schema.embedded_resource and name in _ENVELOPE):
            found.append(below)
            if drop:
                del value[name]


def apply_defaults(schema: Schema, obj: Any) -> None:
    """Fill absent fields with a structural schema's defaults, in place; each gets a copy of its own.

    A null that the schema does not allow counts as absent: it gives way to the default, or disappears.
    """
    if schema.native:
        return
    if isinstance(obj, dict):
        _default_fields(schema, obj)
    elif isinstance(obj, list) and schema.items is not None and schema.items.kind < STRING:
        for value in obj:
            apply_defaults(schema.items, value)


def _default_fields(schema: Schema, obj: dict[str, Any]) -> None:
    fields = schema.properties
    gone = None
    for name, value in obj.items():
        field = fields.get(name) or schema.additional
        if field is None:
            continue
        if value is None:
            if not field.nullable and not field.native and field.kind != ANY:
                gone = [name] if gone is None else [*gone, name]
        elif field.kind < STRING:
            apply_defaults(field, value)
    for name in gone or ():
        del obj[name]
    if schema.has_defaults:
        for name, field in fields.items():
            if field.has_defaults and field.default is not NO_DEFAULT and name not in obj:
                obj[name] = copy.deepcopy(field.default)
                apply_defaults(field, obj[name])
