"""From objects to sets of field paths: what a configuration names, and what changed between two states. Pure.

Follows structured-merge-diff: lists are atomic, sets or keyed as the schema says; a new container is itself in the set
of changes unless Go would hold it empty anyway (`Schema.by_value`). The identity and the system's part of metadata
belong to nobody. Equal parts are skipped by comparing them whole, so the cost follows the size of the change.
"""

from collections.abc import Iterable
from typing import Any, Final

import orjson

from federation.registry.fieldtrie import SELF, WHOLE, Trie, readable
from federation.registry.schema.model import ANY, ANYTHING, LIST, STRING, STRUCT, Schema

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


class KeyMissingError(ValueError):
    """An item of a keyed list or a set has no identity of its own: no key, or the same as another one."""


def element_of(field: Schema, item: Any) -> str:
    """Return the path element of a list item; KeyMissingError when a key field is missing and has no default."""
    if field.list_type == "set":
        return "v:" + orjson.dumps(item).decode()
    keys = field.list_map_keys
    if not isinstance(item, dict):
        raise KeyMissingError("associative list may not have non-map elements")
    if len(keys) == 1:
        value = item.get(keys[0], _ABSENT)
        if value.__class__ is str:
            return f'k:{{"{keys[0]}":{orjson.dumps(value).decode()}}}'
    named = {}
    for key in sorted(keys):
        value = item.get(key)
        if value is None:
            default = field.items.properties[key].default if field.items and key in field.items.properties else None
            if default is None or default.__class__ not in (str, int, bool):
                raise KeyMissingError(
                    f"associative list with keys has an element that omits key field {orjson.dumps(key).decode()}"
                    " (and doesn't have default value)"
                )
            value = default
        named[key] = value
    return "k:" + orjson.dumps(named).decode()


def by_element(field: Schema, items: Iterable[Any]) -> dict[str, Any]:
    """Return a list's items by their path elements, in order; KeyMissingError also for two items with one identity."""
    found: dict[str, Any] = {}
    for item in items:
        element = element_of(field, item)
        if element in found:
            raise KeyMissingError(f"duplicate entries for key {readable(element)}")
        found[element] = item
    return found


def field_of(schema: Schema, name: str) -> Schema:
    """Return the schema of a field; what the schema does not know is anything."""
    return schema.properties.get(name) or schema.additional or ANYTHING


def added(field: Schema, value: Any) -> Trie:
    """Return the node of a field that was not there before: itself and everything in it."""
    if field.is_atomic or not value:
        return {}
    if value.__class__ is dict:
        node: Trie = {SELF: {}}
        for name in sorted(value):
            inner = value[name]
            if inner is not None:
                node["f:" + name] = added(field_of(field, name), inner)
        return node
    if field.kind != LIST or value.__class__ is not list:
        return {}
    try:
        items = by_element(field, value)
    except KeyMissingError:
        return {}
    node = {SELF: {}}
    for element in sorted(items):
        node[element] = added(field.items or ANYTHING, items[element])
    return node


def added_object(schema: Schema, obj: dict[str, Any]) -> Trie:
    """Return all paths of a new object."""
    return changes(schema, {}, obj)[0]


def changes(schema: Schema, old: dict[str, Any], new: dict[str, Any]) -> tuple[Trie, Trie]:
    """Return (paths added or modified, paths removed) between two states of an object, without what nobody owns."""
    changed: Trie = {}
    removed: Trie = {}
    for name, value in new.items():
        before = old.get(name)
        if before is value or name in _IDENTITY:
            continue
        if name == "metadata":
            field = field_of(schema, name)
            changed_below: Trie = {}
            removed_below: Trie = {}
            _compare_maps(field, _owned_metadata(before), _owned_metadata(value), changed_below, removed_below)
            if changed_below:
                changed["f:metadata"] = changed_below
            if removed_below:
                removed["f:metadata"] = removed_below
        elif before != value:
            _compare(schema, name, before, value, changed, removed)
    for name in old.keys() - new.keys() - _IDENTITY:
        _remove(field_of(schema, name), "f:" + name, old[name], changed, removed)
    return changed, removed


def _owned_metadata(metadata: Any) -> dict[str, Any]:
    if not metadata:
        return {}
    return {name: value for name, value in metadata.items() if name not in SYSTEM_METADATA}


def _compare(schema: Schema, name: str, before: Any, value: Any, changed: Trie, removed: Trie) -> None:
    """Compare one field that differs."""
    field = field_of(schema, name)
    element = "f:" + name
    if value is None:
        removed[element] = WHOLE
        return
    if field.is_atomic or not isinstance(value, dict | list):
        changed[element] = {}
        return
    if before is None and field.by_value and value.__class__ is dict:
        before = {}  # Go holds it anyway, so that only what is in it is new
    if before is None:
        node = added(field, value)
        if value.__class__ is list and schema.native and name in schema.required:
            node.pop(SELF, None)  # Go writes such a list as null when it is empty: the list itself is not new
        changed[element] = node
        return
    if before.__class__ is not value.__class__:
        changed[element] = {}
        return
    changed_below: Trie = {}
    removed_below: Trie = {}
    if value.__class__ is dict:
        _compare_maps(field, before, value, changed_below, removed_below)
    elif not _compare_lists(field, before, value, changed_below, removed_below):
        changed[element] = {}
        return
    if changed_below:
        changed[element] = changed_below
    if removed_below:
        removed[element] = removed_below


def _compare_maps(field: Schema, before: dict[str, Any], value: dict[str, Any], changed: Trie, removed: Trie) -> None:
    for name, inner in value.items():
        old = before.get(name)
        if old is not inner and old != inner:
            _compare(field, name, old, inner, changed, removed)
    if len(before) > len(value) or not before.keys() <= value.keys():
        for name, old in before.items():
            if name not in value:
                _remove(field_of(field, name), "f:" + name, old, changed, removed)


def _remove(field: Schema, element: str, old: Any, changed: Trie, removed: Trie) -> None:
    if not field.by_value or field.is_atomic or old.__class__ is not dict:
        removed[element] = WHOLE
        return
    removed_below: Trie = {}  # Go holds the struct on, empty: only what was in it is gone
    _compare_maps(field, old, {}, changed, removed_below)
    if removed_below:
        removed[element] = removed_below


def _compare_lists(field: Schema, before: list[Any], value: list[Any], changed: Trie, removed: Trie) -> bool:
    """Compare keyed lists or sets; False when items have no identity, so that the list counts as one field."""
    if field.kind != LIST:
        return False
    try:
        old_items, new_items = by_element(field, before), by_element(field, value)
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
        changed_below: Trie = {}
        removed_below: Trie = {}
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


def named(schema: Schema, config: dict[str, Any], ignored: frozenset[str], errors: list[str]) -> Trie:
    """Return the paths that an applied configuration names; what the schema does not allow is put into `errors`."""
    result: Trie = {}
    for name in sorted(config):
        if name in _IDENTITY or name in ignored:
            continue
        value = config[name]
        if name == "metadata" and isinstance(value, dict):
            value = _owned_metadata(value)
            if not value:
                continue
        _name_field(schema, name, value, "", result, errors)
    return result


def _name_field(schema: Schema, name: str, value: Any, path: str, result: Trie, errors: list[str]) -> None:
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
    node = _name_value(field, value, path + "." + name, errors)
    if node:
        result["f:" + name] = {SELF: {}, **node} if is_key and value.__class__ is dict else node
    elif is_key or not ((value.__class__ is dict and value) or (value.__class__ is list and field.kind == LIST)):
        result["f:" + name] = {}


def _name_value(field: Schema, value: Any, path: str, errors: list[str]) -> Trie:
    """Return the paths below a value; `{}` for one that has none."""
    node: Trie = {}
    if value.__class__ is dict:
        if field.kind == LIST:
            errors.append(f"{path}: expected list, got map")
            return node
        for name in sorted(value):
            _name_field(field, name, value[name], path, node, errors)
        return node
    if value.__class__ is not list:
        if field.kind != ANY:
            errors.append(f"{path}: expected {'list' if field.kind == LIST else 'map'}, got {_shown(value)}")
        return node
    if field.kind != LIST:
        if field.kind != ANY:
            errors.append(f"{path}: expected map, got list")
        return node
    try:
        items = by_element(field, value)
    except KeyMissingError as error:
        errors.append(f"{path}: {error}")
        return node
    for element in sorted(items):
        inner = items[element]
        if inner.__class__ is dict and field.items is not None and not field.items.is_atomic:
            node[element] = {SELF: {}, **_name_value(field.items, inner, path + readable(element), errors)}
        else:
            node[element] = {}
    return node


def _shown(value: Any) -> str:
    return orjson.dumps(value).decode()
