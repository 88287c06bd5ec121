"""Equality of JSON values. Python's `==` is not enough: it finds 1 equal to True. Pure.

A value that compares as unchanged is neither validated nor written, so a boolean must not equal the number before it.
"""

from typing import Any

import orjson


def is_json_equal(left: Any, right: Any) -> bool:
    """Return True if two JSON values are equal; 1 equals 1.0 but not true."""
    if left is right:
        return True
    if left != right:
        return False
    kind = left.__class__
    if kind is str:
        return True
    if kind is dict or kind is list:
        # Equal containers mostly have equal bytes, and comparing these is faster than walking the containers.
        return orjson.dumps(left) == orjson.dumps(right) or _has_same_booleans(left, right)
    return isinstance(left, bool) is isinstance(right, bool)


def _has_same_booleans(left: Any, right: Any) -> bool:
    """Return True if two values that are `==` have their booleans in the same places."""
    if isinstance(left, dict):
        return all(_has_same_booleans(value, right[key]) for key, value in left.items())
    if isinstance(left, list):
        return all(map(_has_same_booleans, left, right))
    return isinstance(left, bool) is isinstance(right, bool)
