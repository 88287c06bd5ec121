"""JSON merge patch (RFC 7386), and the patch that turns one value into another. Pure, copy on write."""

from typing import Any


def merge_patch(current: Any, patch: Any) -> Any:
    """Return `current` with `patch` merged in: null removes, mappings merge, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(current) if isinstance(current, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, dict):
            merged[name] = merge_patch(merged.get(name), value)
        else:
            merged[name] = value
    return merged


def create_merge_patch(before: Any, after: Any) -> Any:
    """Return the merge patch with merge_patch(before, patch) == after.

    Only mappings at the top, and nulls inside of `after` have no merge patch (a null means removal).
    """
    patch: dict[str, Any] = {name: None for name in before if name not in after}
    for name, value in after.items():
        if name not in before:
            patch[name] = value
            continue
        old = before[name]
        if isinstance(value, dict) and isinstance(old, dict):
            inner = create_merge_patch(old, value)
            if inner:
                patch[name] = inner
        elif not _same(value, old):
            patch[name] = value
    return patch


def _same(left: Any, right: Any) -> bool:
    # Python's True == 1 and 1 == 1.0 are different JSON; containers are rare enough to be replaced when in doubt.
    return type(left) is type(right) and left == right and not isinstance(left, list | dict)
