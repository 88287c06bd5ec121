"""Compute field sets of objects: the fields of a configuration, and the changes between two states. Pure.

Follows structured-merge-diff: the schema makes a list atomic, a set or a map. A new container is a change itself
unless Go holds it by value (`Schema.by_value`). Nobody owns apiVersion, kind and system metadata. Equal parts are
compared as a whole and skipped, so the cost depends on the size of the change.
"""

from collections.abc import Iterable
from typing import Any, Final

from federation.apimachinery.errors import InvalidInput
from federation.apiserver.semantics.fieldownership.fieldset import SELF, WHOLE, FieldSet, format_element
from federation.apiserver.semantics.schema.model import ANY, ANYTHING, LIST, STRING, STRUCT, Schema
from federation.apiserver.semantics.schema.valuevalidation import to_json

SYSTEM_METADATA: Final = frozenset(
    {
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    }
)
_IDENTITY: Final = frozenset({"apiVersion", "kind"})
_ABSENT: Final = object()


class KeyMissingError(InvalidInput):
    """A list item has no key, or the same key as another item."""


def path_element(field: Schema, item: Any) -> str:
    """Return the path element of a list item; KeyMissingError if a key is missing and has no default."""
    if field.list_type == "set":
        return "v:" + to_json(item)
    keys = field.list_map_keys
    if not isinstance(item, dict):
        raise KeyMissingError("associative list may not have non-map elements")
    if len(keys) == 1:
        value = item.get(keys[0], _ABSENT)
        if value.__class__ is str:
            return f'k:{{"{keys[0]}":{to_json(value)}}}'
    values = {}
    for key in sorted(keys):
        value = item.get(key)
        if value is None:
            default = field.items.properties[key].default if field.items and key in field.items.properties else None
            if default is None or default.__class__ not in (str, int, bool):
                raise KeyMissingError(
                    f"associative list with keys has an element that omits key field {to_json(key)}"
                    " (and doesn't have default value)"
                )
            value = default
        values[key] = value
    return "k:" + to_json(values)


def items_by_element(field: Schema, items: Iterable[Any]) -> dict[str, Any]:
    """Return the items of a list by path element, in order; KeyMissingError also for duplicate keys."""
    found: dict[str, Any] = {}
    for item in items:
        element = path_element(field, item)
        if element in found:
            raise KeyMissingError(f"duplicate entries for key {format_element(element)}")
        found[element] = item
    return found


def field_schema(schema: Schema, name: str) -> Schema:
    """Return the schema of a field; ANYTHING for an unknown field."""
    return schema.properties.get(name) or schema.additional or ANYTHING


def holds_null(field: Schema) -> bool:
    """Return whether a null in the field is a value: in custom resources it can be, in Go it means absent."""
    return field.nullable and not field.native


def added(field: Schema, value: Any) -> FieldSet:
    """Return the node of a new field: the field itself and all fields below."""
    if field.is_atomic or not value:
        return {}
    if value.__class__ is dict:
        node: FieldSet = {SELF: {}}
        for name in sorted(value):
            inner = value[name]
            if inner is not None or holds_null(field_schema(field, name)):
                node["f:" + name] = added(field_schema(field, name), inner)
        return node
    if field.kind != LIST or value.__class__ is not list:
        return {}
    try:
        items = items_by_element(field, value)
    except KeyMissingError:
        return {}
    node = {SELF: {}}
    for element in sorted(items):
        node[element] = added(field.items or ANYTHING, items[element])
    return node


def added_object(schema: Schema, obj: dict[str, Any]) -> FieldSet:
    """Return the field set of a new object."""
    return compare_objects(schema, {}, obj)[0]


def compare_objects(schema: Schema, old: dict[str, Any], new: dict[str, Any]) -> tuple[FieldSet, FieldSet]:
    """Return the fields that were (added or modified, removed) between two states, without system fields."""
    changed: FieldSet = {}
    removed: FieldSet = {}
    for name, value in new.items():
        before = old.get(name)
        if before is value or name in _IDENTITY:
            continue
        if name == "metadata":
            field = field_schema(schema, name)
            changed_below: FieldSet = {}
            removed_below: FieldSet = {}
            _compare_maps(field, _owned_metadata(before), _owned_metadata(value), changed_below, removed_below)
            if changed_below:
                changed["f:metadata"] = changed_below
            if removed_below:
                removed["f:metadata"] = removed_below
        elif before != value:
            _compare(schema, name, before, value, changed, removed)
    for name in old.keys() - new.keys() - _IDENTITY:
        _remove(field_schema(schema, name), "f:" + name, old[name], changed, removed)
    return changed, removed


def _owned_metadata(metadata: Any) -> dict[str, Any]:
    if not metadata:
        return {}
    return {name: value for name, value in metadata.items() if name not in SYSTEM_METADATA}


def _compare(schema: Schema, name: str, before: Any, value: Any, changed: FieldSet, removed: FieldSet) -> None:
    """Compare a field that differs."""
    field = field_schema(schema, name)
    element = "f:" + name
    if value is None and not holds_null(field):
        removed[element] = WHOLE
        return
    if field.is_atomic or not isinstance(value, dict | list):
        changed[element] = {}
        return
    if before is None and field.by_value and value.__class__ is dict:
        before = {}  # Go holds an empty struct, so only the fields in it are new
    if before is None:
        node = added(field, value)
        if value.__class__ is list and schema.native and name in schema.required:
            node.pop(SELF, None)  # Go writes this list as null if it is empty, so the list itself is not new
        changed[element] = node
        return
    if before.__class__ is not value.__class__:
        changed[element] = {}
        return
    changed_below: FieldSet = {}
    removed_below: FieldSet = {}
    if value.__class__ is dict:
        _compare_maps(field, before, value, changed_below, removed_below)
    elif not _compare_lists(field, before, value, changed_below, removed_below):
        changed[element] = {}
        return
    if changed_below:
        changed[element] = changed_below
    if removed_below:
        removed[element] = removed_below


def _compare_maps(
    field: Schema, before: dict[str, Any], value: dict[str, Any], changed: FieldSet, removed: FieldSet
) -> None:
    for name, inner in value.items():
        old = before.get(name)
        if old is not inner and old != inner:
            _compare(field, name, old, inner, changed, removed)
        elif inner is None and name not in before and holds_null(field_schema(field, name)):
            changed["f:" + name] = {}
    if len(before) > len(value) or not before.keys() <= value.keys():
        for name, old in before.items():
            if name not in value:
                _remove(field_schema(field, name), "f:" + name, old, changed, removed)


def _remove(field: Schema, element: str, old: Any, changed: FieldSet, removed: FieldSet) -> None:
    if not field.by_value or field.is_atomic or old.__class__ is not dict:
        removed[element] = WHOLE
        return
    removed_below: FieldSet = {}  # Go keeps an empty struct, so only the fields in it are removed
    _compare_maps(field, old, {}, changed, removed_below)
    if removed_below:
        removed[element] = removed_below


def _compare_lists(field: Schema, before: list[Any], value: list[Any], changed: FieldSet, removed: FieldSet) -> bool:
    """Compare lists of type map or set; return False if the items have no keys and the list is one field."""
    if field.kind != LIST:
        return False
    try:
        old_items, new_items = items_by_element(field, before), items_by_element(field, value)
    except KeyMissingError:
        return False
    items = field.items or ANYTHING
    for element, item in new_items.items():
        old = old_items.get(element)
        if old is item or old == item:
            continue
        if old is None:
            changed[element] = added(items, item)
            continue
        changed_below: FieldSet = {}
        removed_below: FieldSet = {}
        if item.__class__ is dict and not items.is_atomic:
            _compare_maps(items, old, item, changed_below, removed_below)
        else:
            changed[element] = {}
        if changed_below:
            changed[element] = changed_below
        if removed_below:
            removed[element] = removed_below
    for element in old_items:
        if element not in new_items:
            removed[element] = WHOLE
    return True


def to_field_set(schema: Schema, config: dict[str, Any], ignored: frozenset[str], errors: list[str]) -> FieldSet:
    """Return the field set of an apply configuration; append schema violations to `errors`."""
    result: FieldSet = {}
    for name in sorted(config):
        if name in _IDENTITY or name in ignored:
            continue
        value = config[name]
        if name == "metadata" and isinstance(value, dict):
            value = _owned_metadata(value)
            if not value:
                continue
        _add_field(schema, name, value, "", result, errors)
    return result


def _add_field(schema: Schema, name: str, value: Any, path: str, result: FieldSet, errors: list[str]) -> None:
    field = schema.properties.get(name)
    is_key = field is None
    if field is None:
        field = schema.additional
        if field is None:
            if schema.kind == STRUCT and not schema.preserve_unknown:
                errors.append(f"{path}.{name}: field not declared in schema")
                return
            field = ANYTHING
    if value is None or field.kind >= STRING or field.is_atomic:
        result["f:" + name] = {}
        return
    node = _value_field_set(field, value, path + "." + name, errors)
    if node:
        result["f:" + name] = {SELF: {}, **node} if is_key and value.__class__ is dict else node
    elif is_key or not ((value.__class__ is dict and value) or (value.__class__ is list and field.kind == LIST)):
        result["f:" + name] = {}


def _value_field_set(field: Schema, value: Any, path: str, errors: list[str]) -> FieldSet:
    """Return the field set below a value, `{}` if it is empty."""
    node: FieldSet = {}
    if value.__class__ is dict:
        if field.kind == LIST:
            errors.append(f"{path}: expected list, got map")
            return node
        for name in sorted(value):
            _add_field(field, name, value[name], path, node, errors)
        return node
    if value.__class__ is not list:
        if field.kind != ANY:
            errors.append(f"{path}: expected {'list' if field.kind == LIST else 'map'}, got {to_json(value)}")
        return node
    if field.kind != LIST:
        if field.kind != ANY:
            errors.append(f"{path}: expected map, got list")
        return node
    try:
        items = items_by_element(field, value)
    except KeyMissingError as error:
        errors.append(f"{path}: {error}")
        return node
    for element in sorted(items):
        inner = items[element]
        if inner.__class__ is dict and field.items is not None and not field.items.is_atomic:
            node[element] = {SELF: {}, **_value_field_set(field.items, inner, path + format_element(element), errors)}
        else:
            node[element] = {}
    return node
