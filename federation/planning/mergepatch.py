"""RFC 7386 merge patches between two versions of an object: what has to be sent so that `old` becomes `new`.

Shared parts are skipped by identity, so that comparing an object with a version that was derived from it costs only the
parts that differ. Values of null cannot be expressed in a merge patch; `without_nulls` removes them beforehand.
"""

from collections.abc import Mapping
from typing import Any

_ABSENT = object()


def create(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return the patch that turns `old` into `new`; empty when they are equal."""
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key, _ABSENT)
        if before is value or before == value:
            continue
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            patch[key] = create(before, value)
        else:
            patch[key] = value
    return patch


def apply(current: Any, patch: Any) -> Any:
    """Return `current` with the patch merged in; the result shares what the patch does not touch."""
    if not isinstance(patch, Mapping):
        return patch
    merged = dict(current) if isinstance(current, Mapping) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = apply(merged.get(key), value) if isinstance(value, Mapping) else value
    return merged


def without_nulls(value: Any) -> Any:
    """Return the value without map entries that are null; the same value, uncopied, when there are none."""
    if isinstance(value, Mapping):
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
