"""JSON patch (RFC 6902): its operations, its errors in Kubernetes' form, and that inputs stay."""

import copy

import pytest

from federation.apimachinery.errors import BadRequest, Invalid, RequestEntityTooLarge
from federation.apimachinery.jsonpatch import apply_json_patch, to_pointer

DOCUMENT = {"spec": {"replicas": 1, "list": ["a", "b"], "a/b": {"m~n": 1}}, "flag": True}


def patched(*operations):
    before = copy.deepcopy((DOCUMENT, operations))
    result = apply_json_patch(DOCUMENT, list(operations))
    assert (DOCUMENT, operations) == before
    return result


@pytest.mark.parametrize(
    ("operation", "path", "expected"),
    [
        ({"op": "add", "path": "/spec/x", "value": None}, ("spec", "x"), None),
        ({"op": "add", "path": "/spec/list/1", "value": "z"}, ("spec", "list"), ["a", "z", "b"]),
        ({"op": "add", "path": "/spec/list/2", "value": "z"}, ("spec", "list"), ["a", "b", "z"]),
        ({"op": "add", "path": "/spec/list/-", "value": "z"}, ("spec", "list"), ["a", "b", "z"]),
        ({"op": "replace", "path": "/spec/replicas", "value": 5}, ("spec", "replicas"), 5),
        ({"op": "replace", "path": "/spec/none", "value": 5}, ("spec", "none"), 5),
        ({"op": "replace", "path": "/spec/list/0", "value": 5}, ("spec", "list"), [5, "b"]),
        ({"op": "replace", "path": "/spec/a~1b/m~0n", "value": 5}, ("spec", "a/b"), {"m~n": 5}),
        ({"op": "remove", "path": "/spec/list/0"}, ("spec", "list"), ["b"]),
        ({"op": "move", "from": "/spec/list/0", "path": "/spec/list/1"}, ("spec", "list"), ["b", "a"]),
        ({"op": "move", "from": "/spec/replicas", "path": "/spec/n"}, ("spec", "n"), 1),
        ({"op": "copy", "from": "/spec/list", "path": "/spec/twin"}, ("spec", "twin"), ["a", "b"]),
        ({"op": "test", "path": "/spec/list", "value": ["a", "b"]}, ("flag",), True),
        ({"op": "test", "path": "/spec", "value": DOCUMENT["spec"]}, ("flag",), True),
        ({"op": "test", "path": "/none", "value": None}, ("flag",), True),
    ],
)
def test_operations(operation, path, expected):
    value = patched(operation)
    for step in path:
        value = value[step]
    assert value == expected


def test_the_whole_document_can_be_replaced_and_removed():
    assert patched({"op": "replace", "path": "", "value": {"a": 1}}) == {"a": 1}
    assert patched({"op": "remove", "path": ""}) is None


def test_a_copy_does_not_change_with_its_source():
    result = patched(
        {"op": "copy", "from": "/spec", "path": "/twin"},
        {"op": "add", "path": "/spec/list/-", "value": "c"},
        {"op": "remove", "path": "/twin/list/0"},
    )
    assert result["spec"]["list"] == ["a", "b", "c"]
    assert result["twin"]["list"] == ["b"]


@pytest.mark.parametrize(
    ("operation", "text"),
    [
        ({"op": "test", "path": "/flag", "value": 1}, "testing value /flag failed: test failed"),
        ({"op": "test", "path": "/spec/list", "value": ["a"]}, "testing value /spec/list failed"),
        ({"op": "test", "path": "/none", "value": 1}, "test operation does not apply: doc is missing key: none"),
        ({"op": "remove", "path": "/spec/none"}, "remove operation does not apply: doc is missing key: none"),
        ({"op": "remove", "path": "/spec/list/7"}, "index 7 is out of range"),
        ({"op": "add", "path": "/spec/list/01", "value": 1}, "'01' is no list index"),
        ({"op": "add", "path": "/none/x", "value": 1}, "doc is missing key: none"),
        ({"op": "add", "path": "/flag/x", "value": 1}, "doc is missing path"),
        ({"op": "remove", "path": "/flag/x/y"}, "doc is missing path"),
        ({"op": "copy", "from": "/flag/x", "path": "/y"}, "doc is missing path"),
        ({"op": "move", "from": "/spec", "path": "/spec/list"}, "cannot be moved into itself"),
    ],
)
def test_a_patch_that_does_not_apply_is_invalid(operation, text):
    with pytest.raises(Invalid) as caught:
        patched(operation)
    assert caught.value.message == "the server rejected our request due to an error in our request"
    assert text in caught.value.details["causes"][0]["message"]


@pytest.mark.parametrize(
    "operation",
    [
        "x",
        {"op": "delete", "path": "/a"},
        {"op": "add", "path": "a", "value": 1},
        {"op": "add", "value": 1},
        {"op": "add", "path": "/a"},
        {"op": "move", "path": "/a"},
    ],
)
def test_a_malformed_operation_is_a_bad_request(operation):
    with pytest.raises(BadRequest):
        patched(operation)


def test_too_many_operations_are_refused():
    with pytest.raises(RequestEntityTooLarge):
        apply_json_patch({}, [{"op": "remove", "path": "/a"}] * 10_001)


def test_copies_are_limited_in_total_size():
    doubling = [{"op": "copy", "from": "", "path": f"/copy{number}"} for number in range(40)]
    with pytest.raises(Invalid) as caught:
        patched(*doubling)
    assert "exceeding the limit 3145728" in caught.value.details["causes"][0]["message"]


@pytest.mark.parametrize("op", [["add"], {"add": 1}, 5, None, True])
def test_an_operation_is_named_by_text(op):
    with pytest.raises(BadRequest, match="Unexpected kind of patch operation"):
        patched({"op": op, "path": "/flag", "value": 1})


def test_pointers_escape_keys():
    assert to_pointer(("a/b", "c~d")) == "/a~1b/c~0d"


def test_what_a_patch_does_not_touch_is_shared_and_not_copied():
    before = {"spec": {"a": [1]}, "status": {"b": [2]}}
    after = apply_json_patch(before, [{"op": "add", "path": "/spec/c", "value": 1}])
    assert after["status"] is before["status"]
    assert after["spec"]["a"] is before["spec"]["a"]
