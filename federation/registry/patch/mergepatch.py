"""JSON merge patch (RFC 7386). Pure, copy on write: the result shares what the patch does not touch."""

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
