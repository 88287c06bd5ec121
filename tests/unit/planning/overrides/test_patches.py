import copy
from typing import Any

import pytest

from federation.planning.overrides.errors import OverrideError
from federation.planning.overrides.patches import apply_patches, forbidden_paths

DOCUMENT: dict[str, Any] = {"a": {"b": 1, "list": [1, 2, 3]}, "c/d": {"e~f": True}, "null": None}


def apply(*patches: dict[str, Any]) -> dict[str, Any]:
    before = copy.deepcopy(DOCUMENT)
    result = apply_patches(DOCUMENT, patches)
    assert before == DOCUMENT, "the argument stays as it was"
    return result


@pytest.mark.parametrize(
    ("patch", "path", "expected"),
    [
        ({"op": "replace", "path": "/a/b", "value": 2}, ("a", "b"), 2),
        ({"path": "/a/b", "value": 2}, ("a", "b"), 2),
        ({"op": "", "path": "/a/b", "value": 2}, ("a", "b"), 2),
        ({"op": "replace", "path": "/a/new", "value": 2}, ("a", "new"), 2),
        ({"op": "replace", "path": "/a/b"}, ("a", "b"), None),
        ({"op": "add", "path": "/a/list/-", "value": 4}, ("a", "list"), [1, 2, 3, 4]),
        ({"op": "add", "path": "/a/list/0", "value": 0}, ("a", "list"), [0, 1, 2, 3]),
        ({"op": "add", "path": "/a/list/3", "value": 4}, ("a", "list"), [1, 2, 3, 4]),
        ({"op": "add", "path": "/a/list/-1", "value": 4}, ("a", "list"), [1, 2, 3, 4]),
        ({"op": "replace", "path": "/a/list/-1", "value": 9}, ("a", "list"), [1, 2, 9]),
        ({"op": "remove", "path": "/a/list/1"}, ("a", "list"), [1, 3]),
        ({"op": "remove", "path": "/a/list/-1"}, ("a", "list"), [1, 2]),
        ({"op": "replace", "path": "/c~1d/e~0f", "value": False}, ("c/d", "e~f"), False),
        ({"op": "test", "path": "/a/missing", "value": None}, ("a", "b"), 1),
        ({"op": "test", "path": "/a/list", "value": [1, 2, 3]}, ("a", "b"), 1),
    ],
)
def test_operations_are_lenient_where_overrides_need_it(
    patch: dict[str, Any], path: tuple[str, ...], expected: Any
) -> None:
    value: Any = apply(patch)
    for key in path:
        value = value[key]
    assert value == expected


@pytest.mark.parametrize(
    "patch",
    [
        {"op": "replace", "path": "/missing/b", "value": 1},
        {"op": "replace", "path": "/null/b", "value": 1},
        {"op": "replace", "path": "/a/b/c", "value": 1},
        {"op": "replace", "path": "/a/list/3", "value": 1},
        {"op": "replace", "path": "/a/list/x", "value": 1},
        {"op": "add", "path": "/a/list/5", "value": 1},
        {"op": "add", "path": "/a/list/-5", "value": 1},
        {"op": "remove", "path": "/a/missing"},
        {"op": "remove", "path": "/a/list/3"},
        {"op": "test", "path": "/a/b", "value": True},
        {"op": "test", "path": "/a/missing", "value": 1},
        {"op": "move", "path": "/a/b"},
        {"op": "replace", "path": "", "value": {}},
        {"op": "replace", "path": "a/b", "value": 1},
    ],
)
def test_a_failing_operation_fails_all_of_them(patch: dict[str, Any]) -> None:
    with pytest.raises(OverrideError, match=r"patch 1 \("):
        apply({"op": "replace", "path": "/a/b", "value": 5}, patch)


def test_only_touched_containers_are_copied_each_once() -> None:
    untouched = {"deep": [1]}
    document = {"touched": {"x": 1}, "untouched": untouched}
    result = apply_patches(document, [{"path": "/touched/x", "value": 2}, {"path": "/touched/y", "value": 3}])
    assert result["untouched"] is untouched
    assert result["touched"] == {"x": 2, "y": 3}
    assert document["touched"] == {"x": 1}
    assert apply_patches(document, []) is document


def test_the_value_of_a_patch_is_not_changed_by_the_next_one() -> None:
    value: dict[str, Any] = {"k": 1}
    result = apply_patches({}, [{"path": "/new", "value": value}, {"path": "/new/k", "value": 2}])
    assert result == {"new": {"k": 2}}
    assert value == {"k": 1}


def test_paths_of_the_identity_are_forbidden() -> None:
    patches = [{"path": "/metadata/name"}, {"path": "/spec"}, {"path": "/kind"}, {"path": "/metadata/namespace"}]
    assert forbidden_paths(patches) == ["/metadata/name", "/kind", "/metadata/namespace"]
