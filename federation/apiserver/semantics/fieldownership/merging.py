"""Merge an apply configuration into the live object, and prune fields that lost their last owner. Pure.

`merge_object` is structured-merge-diff's Merge: scalars and atomic values are replaced, maps and lists of type map are
merged in the order of the configuration. `prune_unowned` is its prune step. Both copy on write and return the input
itself if nothing changes, which makes a repeated apply cheap.
"""

from collections.abc import Callable
from typing import Any, Final

from federation.apimachinery.equality import is_json_equal
from federation.apiserver.semantics.fieldownership.fielddiff import (
    KeyMissingError,
    field_schema,
    holds_null,
    items_by_element,
    path_element,
)
from federation.apiserver.semantics.fieldownership.fieldset import SELF, WHOLE, FieldSet, is_member
from federation.apiserver.semantics.schema.model import ANYTHING, LIST, Schema

_SET_BY_SERVER: Final = frozenset({"creationTimestamp", "generation", "managedFields", "selfLink"})


_Removal = tuple[FieldSet, list[FieldSet]] | None
"""None removes an element; otherwise the fields to prune below it and the sets of their owners."""


def merge_object(
    schema: Schema, live: dict[str, Any], config: dict[str, Any], ignored: frozenset[str]
) -> tuple[dict[str, Any], FieldSet]:
    """Return the merged object and the fields that were added or changed, without top-level fields in `ignored`."""
    changed: FieldSet = {}
    merged = None
    for name, value in config.items():
        if name in ignored:
            continue
        if name == "metadata" and isinstance(value, dict):
            value = {key: inner for key, inner in value.items() if key not in _SET_BY_SERVER}  # noqa: PLW2901  # narrowed
        before = live.get(name)
        after = _merge_field(schema, name, before, value, changed)
        if after is not before:
            merged = dict(live) if merged is None else merged
            if after is None:
                del merged[name]
            else:
                merged[name] = after
    return (live if merged is None else merged), changed


def _merge_field(schema: Schema, name: str, before: Any, value: Any, changed: FieldSet) -> Any:
    """Return the new value of the field; None removes it, unless the field holds nulls."""
    if before is value:
        return before
    element = "f:" + name
    if value is None:
        if before is not None:
            changed[element] = WHOLE
        return None
    field = field_schema(schema, name)
    if before is None:
        if not field.by_value or value.__class__ is not dict:
            changed[element] = WHOLE
            return _without_nulls(field, value)
        before = {}  # Go holds an empty struct, so only the fields in it are new
    if field.is_atomic or value.__class__ is not before.__class__ or not isinstance(value, dict | list):
        if before == value and (before.__class__ is value.__class__ or bool not in (before.__class__, value.__class__)):
            return before
        changed[element] = {}
        return _without_nulls(field, value)
    changed_below: FieldSet = {}
    merge: Callable[[Schema, Any, Any, FieldSet], Any] = _merge_maps if value.__class__ is dict else _merge_lists
    after = merge(field, before, value, changed_below)
    if changed_below:
        changed[element] = changed_below if SELF not in changed_below else {}
    return after


def _merge_maps(field: Schema, before: dict[str, Any], value: dict[str, Any], changed: FieldSet) -> dict[str, Any]:
    merged = None
    for name, inner in value.items():
        old = before.get(name)
        after = _merge_field(field, name, old, inner, changed)
        is_null = after is None and holds_null(field_schema(field, name))
        if after is not old or (after is None and (name in before) is not is_null):
            merged = dict(before) if merged is None else merged
            if after is None and not is_null:
                del merged[name]
            else:
                merged[name] = after
    return before if merged is None else merged


def _merge_lists(field: Schema, before: list[Any], value: list[Any], changed: FieldSet) -> list[Any]:
    try:
        if field.kind != LIST:
            raise KeyMissingError
        old_items, new_items = items_by_element(field, before), items_by_element(field, value)
    except KeyMissingError:
        if is_json_equal(before, value):
            return before
        changed[SELF] = {}
        return value
    items = field.items or ANYTHING
    merged: dict[str, Any] = {}
    is_unchanged = True
    for element, item in new_items.items():
        old = old_items.get(element)
        if old is None:
            merged[element] = _without_nulls(items, item)
            changed[element] = WHOLE
            is_unchanged = False
        elif old is item:
            merged[element] = old
        elif item.__class__ is dict and old.__class__ is dict and not items.is_atomic:
            changed_below: FieldSet = {}
            after = _merge_maps(items, old, item, changed_below)
            if changed_below:
                changed[element] = changed_below
            is_unchanged = is_unchanged and after is old
            merged[element] = after
        else:
            if not is_json_equal(old, item):
                changed[element] = {}
                is_unchanged = False
            merged[element] = item
    order = _order(list(old_items), list(new_items))
    if is_unchanged and len(order) == len(before) and order == list(old_items):
        return before
    return [merged[element] if element in merged else old_items[element] for element in order]


def _order(live: list[str], wanted: list[str]) -> list[str]:
    """Return all elements: configured ones in the wanted order, live-only ones at their position between them."""
    if live == wanted:
        return live
    in_live, in_wanted = set(live), set(wanted)
    order: list[str] = []
    left = right = 0
    while left < len(live) or right < len(wanted):
        if left < len(live):
            element = live[left]
            if element not in in_wanted:
                order.append(element)
                left += 1
                continue
            if right < len(wanted) and wanted[right] != element and wanted[right] in in_live:
                left += 1  # in both lists, at another position of the wanted order
                continue
            if right == len(wanted):
                left += 1
                continue
            if wanted[right] == element:
                left += 1
        order.append(wanted[right])
        right += 1
    return order


def _without_nulls(field: Schema, value: Any) -> Any:
    """Return a value without the null entries that its fields do not hold; the value itself if it has none."""
    if value.__class__ is dict:
        if all(inner is not None and not isinstance(inner, dict | list) for inner in value.values()):
            return value
        return {
            name: _without_nulls(field_schema(field, name), inner)
            for name, inner in value.items()
            if inner is not None or holds_null(field_schema(field, name))
        }
    if value.__class__ is list:
        return [_without_nulls(field.items or ANYTHING, item) for item in value]
    return value


def prune_unowned(schema: Schema, value: Any, last: FieldSet, owners: list[FieldSet], removed: FieldSet) -> Any:
    """Return `value` without the fields of `last` that no set in `owners` has; add them to `removed`.

    A struct field is owned if a field below it is. A map key or list item must be in the set itself
    (structured-merge-diff's EnsureNamedFieldsAreMembers).
    """
    if not isinstance(value, dict | list):
        return value
    removals: dict[str, _Removal] = {}
    for element, below in last.items():
        if element == SELF:
            continue
        owners_below = [owner[element] for owner in owners if element in owner]
        if any(owner == below for owner in owners_below):
            continue
        is_struct_field = element.startswith("f:") and element[2:] in schema.properties
        if is_struct_field or is_member(below):
            is_owned = bool(owners_below) if is_struct_field else any(map(is_member, owners_below))
            if not is_owned:
                removals[element] = None
                continue
        if below:
            removals[element] = (below, owners_below)
    if not removals:
        return value
    return (
        _prune_map(schema, value, removals, removed)
        if isinstance(value, dict)
        else _prune_list(schema, value, removals, removed)
    )


def _prune_map(
    schema: Schema, value: dict[str, Any], removals: dict[str, _Removal], removed: FieldSet
) -> dict[str, Any] | None:
    result = None
    for element, removal in removals.items():
        name = element[2:]
        if element[:2] != "f:" or name not in value:
            continue
        if removal is None:
            removed[element] = WHOLE
            result = dict(value) if result is None else result
            del result[name]
            continue
        removed_below: FieldSet = {}
        after = prune_unowned(field_schema(schema, name), value[name], *removal, removed_below)
        if removed_below:
            removed[element] = removed_below
        if after is not value[name]:
            result = dict(value) if result is None else result
            if after is None:
                del result[name]
            else:
                result[name] = after
    return value if result is None else result or None


def _prune_list(schema: Schema, value: list[Any], removals: dict[str, _Removal], removed: FieldSet) -> list[Any] | None:
    result = []
    items = schema.items or ANYTHING
    is_unchanged = True
    for item in value:
        try:
            element = path_element(schema, item) if schema.list_type in ("map", "set") else ""
        except KeyMissingError:
            element = ""
        if element not in removals:
            result.append(item)
            continue
        removal = removals[element]
        if removal is None:
            removed[element] = WHOLE
            is_unchanged = False
        else:
            removed_below: FieldSet = {}
            after = prune_unowned(items, item, *removal, removed_below)
            if removed_below:
                removed[element] = removed_below
            is_unchanged = is_unchanged and after is item
            if after is not None:
                result.append(after)
    return value if is_unchanged else result or None
