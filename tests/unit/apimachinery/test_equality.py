"""JSON equality, where Python's would lose a change."""

from typing import Any

import pytest

from federation.apimachinery.equality import is_json_equal


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (1, 1, True),
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        ({"a": [1, {"b": True}]}, {"a": [1, {"b": True}]}, True),
        ({"a": [1, {"b": True}]}, {"a": [1, {"b": 1}]}, False),
        ({"a": 0}, {"a": False}, False),
        ([1], [1, 2], False),
        ({"a": [1.0]}, {"a": [1]}, True),
        ({"a": 1}, {"b": 1}, False),
        ("1", 1, False),
        (None, False, False),
        (None, None, True),
    ],
)
def test_true_is_not_one(left: Any, right: Any, same: bool) -> None:
    assert is_json_equal(left, right) is same
    assert is_json_equal(right, left) is same
