"""Equality of JSON values where it decides what is written: Python finds 1 equal to true, and 0 to false. Pure.

Built-in kinds need none of it, their fields never take both; a custom resource's free fields do, and so do patches.
"""

from typing import Any


def is_same(left: Any, right: Any) -> bool:
    """Tell whether two JSON values are the same; 1 and 1.0 are, 1 and true are not."""
    # What Python finds different is different; only the rest is worth a walk.
    return left is right or (bool(left == right) and _has_same_booleans(left, right))


def _has_same_booleans(left: Any, right: Any) -> bool:
    """Tell whether equal values have their booleans in the same places."""
    if isinstance(left, dict):
        return all(_has_same_booleans(value, right[key]) for key, value in left.items())
    if isinstance(left, list):
        return all(map(_has_same_booleans, left, right))
    return isinstance(left, bool) is isinstance(right, bool)
