"""Merging an applied configuration into the live object, and taking out what its owner no longer names. Pure.

The first half is structured-merge-diff's Merge: scalars and atomic values replace, maps and keyed lists merge, the
order of the configuration wins. The second is its prune step. Both copy on write and return the very input when
nothing changes, which is what makes a repeated apply cheap.
"""

from collections.abc import Callable
from typing import Any, Final

from federation.registry.fielddiff import KeyMissingError, by_element, element_of, field_of
from federation.registry.fieldtrie import SELF, WHOLE, Trie, is_member
from federation.registry.jsonequality import is_same
from federation.registry.schema.model import ANYTHING, LIST, Schema

_SET_BY_SERVER: Final = frozenset(
    {"creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "managedFields", "selfLink"}
)


_Fate = tuple[Trie, list[Trie]] | None
"""What is to be looked at below an element: what was named there, who names it now. None: the element goes."""


def merge_object(
    schema: Schema, live: dict[str, Any], config: dict[str, Any], ignored: frozenset[str]
) -> tuple[dict[str, Any], Trie]:
    """Return (the merged object, the paths that it changes or adds). Top-level fields in `ignored` are left alone."""
    changed: Trie = {}
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


def _merge_field(schema: Schema, name: str, before: Any, value: Any, changed: Trie) -> Any:
    """Return the field's new value; None removes it."""
    if before is value:
        return before
    element = "f:" + name
    if value is None:
        if before is not None:
            changed[element] = WHOLE
        return None
    field = field_of(schema, name)
    if before is None:
        if not field.by_value or value.__class__ is not dict:
            changed[element] = WHOLE
            return _without_nulls(value)
        before = {}  # Go holds it anyway, so that only what is in it is new
    if field.is_atomic or value.__class__ is not before.__class__ or not isinstance(value, dict | list):
        if before == value and (before.__class__ is value.__class__ or bool not in (before.__class__, value.__class__)):
            return before
        changed[element] = {}
        return _without_nulls(value)
    changed_below: Trie = {}
    merge: Callable[[Schema, Any, Any, Trie], Any] = _merge_maps if value.__class__ is dict else _merge_lists
    after = merge(field, before, value, changed_below)
    if changed_below:
        changed[element] = changed_below if SELF not in changed_below else {}
    return after


def _merge_maps(field: Schema, before: dict[str, Any], value: dict[str, Any], changed: Trie) -> dict[str, Any]:
    merged = None
    for name, inner in value.items():
        old = before.get(name)
        after = _merge_field(field, name, old, inner, changed)
        if after is not old or (after is None and name in before):
            merged = dict(before) if merged is None else merged
            if after is None:
                del merged[name]
            else:
                merged[name] = after
    return before if merged is None else merged


def _merge_lists(field: Schema, before: list[Any], value: list[Any], changed: Trie) -> list[Any]:
    try:
        if field.kind != LIST:
            raise KeyMissingError
        old_items, new_items = by_element(field, before), by_element(field, value)
    except KeyMissingError:
        if is_same(before, value):
            return before
        changed[SELF] = {}
        return value
    items = field.items or ANYTHING
    merged: dict[str, Any] = {}
    is_unchanged = True
    for element, item in new_items.items():
        old = old_items.get(element)
        if old is None:
            merged[element] = _without_nulls(item)
            changed[element] = WHOLE
            is_unchanged = False
        elif old is item:
            merged[element] = old
        elif item.__class__ is dict and old.__class__ is dict and not items.is_atomic:
            changed_below: Trie = {}
            after = _merge_maps(items, old, item, changed_below)
            if changed_below:
                changed[element] = changed_below
            is_unchanged = is_unchanged and after is old
            merged[element] = after
        else:
            if not is_same(old, item):
                changed[element] = {}
                is_unchanged = False
            merged[element] = item
    order = _order(list(old_items), list(new_items))
    if is_unchanged and len(order) == len(before) and order == list(old_items):
        return before
    return [merged[element] if element in merged else old_items[element] for element in order]


def _order(live: list[str], wanted: list[str]) -> list[str]:
    """Return all elements: shared ones in the wanted order, live-only ones where they stand between them."""
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
                left += 1  # shared, but elsewhere in the wanted order
                continue
            if right == len(wanted):
                left += 1
                continue
            if wanted[right] == element:
                left += 1
        order.append(wanted[right])
        right += 1
    return order


def _without_nulls(value: Any) -> Any:
    """Return a value without entries that are null, the very value when it has none."""
    if value.__class__ is dict:
        if all(inner is not None and not isinstance(inner, dict | list) for inner in value.values()):
            return value
        return {name: _without_nulls(inner) for name, inner in value.items() if inner is not None}
    if value.__class__ is list:
        return [_without_nulls(item) for item in value]
    return value


def prune(schema: Schema, value: Any, last: Trie, owners: list[Trie], removed: Trie) -> Any:
    """Return `value` without what `last` names and no set in `owners` does; what went is added to `removed`.

    A struct's field counts as named when anything below it is, a map's key and a list's item only when they are named
    themselves (structured-merge-diff's EnsureNamedFieldsAreMembers).
    """
    if not isinstance(value, dict | list):
        return value
    doomed: dict[str, _Fate] = {}
    for element, below in last.items():
        if element == SELF:
            continue
        holders = [owner[element] for owner in owners if element in owner]
        if any(holder == below for holder in holders):
            continue
        is_struct_field = element.startswith("f:") and element[2:] in schema.properties
        if is_struct_field or is_member(below):
            is_held = bool(holders) if is_struct_field else any(map(is_member, holders))
            if not is_held:
                doomed[element] = None
                continue
        if below:
            doomed[element] = (below, holders)
    if not doomed:
        return value
    return (
        _prune_map(schema, value, doomed, removed)
        if isinstance(value, dict)
        else _prune_list(schema, value, doomed, removed)
    )


def _prune_map(schema: Schema, value: dict[str, Any], doomed: dict[str, _Fate], removed: Trie) -> dict[str, Any] | None:
    result = None
    for element, fate in doomed.items():
        name = element[2:]
        if element[:2] != "f:" or name not in value:
            continue
        if fate is None:
            removed[element] = WHOLE
            result = dict(value) if result is None else result
            del result[name]
            continue
        removed_below: Trie = {}
        after = prune(field_of(schema, name), value[name], *fate, removed_below)
        if removed_below:
            removed[element] = removed_below
        if after is not value[name]:
            result = dict(value) if result is None else result
            if after is None:
                del result[name]
            else:
                result[name] = after
    return value if result is None else result or None


def _prune_list(schema: Schema, value: list[Any], doomed: dict[str, _Fate], removed: Trie) -> list[Any] | None:
    result = []
    items = schema.items or ANYTHING
    is_unchanged = True
    for item in value:
        try:
            element = element_of(schema, item) if schema.list_type in ("map", "set") else ""
        except KeyMissingError:
            element = ""
        if element not in doomed:
            result.append(item)
            continue
        fate = doomed[element]
        if fate is None:
            removed[element] = WHOLE
            is_unchanged = False
        else:
            removed_below: Trie = {}
            after = prune(items, item, *fate, removed_below)
            if removed_below:
                removed[element] = removed_below
            is_unchanged = is_unchanged and after is item
            if after is not None:
                result.append(after)
    return value if is_unchanged else result or None
