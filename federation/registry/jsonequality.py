"""Equality of JSON values where it decides what is checked and written: Python finds 1 equal to true. Pure.

What compares as unchanged is neither validated nor stored, so a boolean must not pass for the number that was there.
"""

from typing import Any

import orjson


def is_same(left: Any, right: Any) -> bool:
    """Tell whether two JSON values are the same; 1 and 1.0 are, 1 and true are not."""
    if left is right:
        return True
    if left != right:
        return False
    # Equal values mostly have the same bytes too, which is quicker to see than where their booleans are.
    return left.__class__ is str or orjson.dumps(left) == orjson.dumps(right) or _has_same_booleans(left, right)


def _has_same_booleans(left: Any, right: Any) -> bool:
    """Tell whether equal values have their booleans in the same places."""
    if isinstance(left, dict):
        return all(_has_same_booleans(value, right[key]) for key, value in left.items())
    if isinstance(left, list):
        return all(map(_has_same_booleans, left, right))
    return isinstance(left, bool) is isinstance(right, bool)
