"""JSON merge patch (RFC 7386): apply one, and create the one that leads from one object to another. Pure.

Both work copy on write and skip shared parts by identity. A merge patch cannot express a value of null; `without_nulls`
removes them beforehand.
"""

from collections.abc import Mapping
from typing import Any

from federation.apimachinery.equality import is_json_equal

_ABSENT = object()


def apply_merge_patch(current: Any, patch: Any) -> Any:
    """Return `current` with `patch` merged in: null removes, mappings merge, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(current) if isinstance(current, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            merged[key] = apply_merge_patch(merged.get(key), value)
        else:
            merged[key] = value
    return merged


def create_merge_patch(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return the patch that turns `old` into `new`; empty when they are equal."""
    patch: dict[str, Any] = {} if old.keys() <= new.keys() else {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key, _ABSENT)
        if before is value or (value.__class__ is str and before == value) or is_json_equal(before, value):
            continue
        if (before.__class__ is dict or isinstance(before, Mapping)) and (
            value.__class__ is dict or isinstance(value, Mapping)
        ):
            patch[key] = create_merge_patch(before, value)
        else:
            patch[key] = value
    return patch


def without_nulls(value: Any) -> Any:
    """Return the value without map entries that are null; the same value, uncopied, when there are none."""
    kind = value.__class__
    if kind is str or kind is int:
        return value
    if kind is dict or isinstance(value, Mapping):
        changed = {
            key: kept for key, part in value.items() if (kept := without_nulls(part)) is not part or part is None
        }
        if not changed:
            return value
        return {key: changed.get(key, part) for key, part in value.items() if part is not None}
    if isinstance(value, list):
        items = [without_nulls(item) for item in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    return value
