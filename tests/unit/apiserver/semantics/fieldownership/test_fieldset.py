"""Set operations on field sets."""

import pytest

from federation.apiserver.semantics.fieldownership.fieldset import (
    WHOLE,
    difference,
    format_element,
    intersection,
    is_field_set,
    paths,
    sort_elements,
    union,
)


@pytest.mark.parametrize(
    ("left", "right", "both"),
    [
        ({}, {"f:a": {}}, {"f:a": {}}),
        ({"f:a": {}}, {}, {"f:a": {}}),
        ({"f:a": {}}, {"f:b": {}}, {"f:a": {}, "f:b": {}}),
        ({"f:a": {}}, {"f:a": {"f:x": {}}}, {"f:a": {".": {}, "f:x": {}}}),
        ({"f:a": {"f:x": {}}}, {"f:a": {}}, {"f:a": {".": {}, "f:x": {}}}),
        ({"f:a": {".": {}, "f:x": {}}}, {"f:a": {"f:y": {}}}, {"f:a": {".": {}, "f:x": {}, "f:y": {}}}),
    ],
)
def test_union(left, right, both):
    assert union(left, right) == both


@pytest.mark.parametrize(
    ("left", "right", "rest"),
    [
        ({"f:a": {}}, {"f:b": {}}, {"f:a": {}}),
        ({"f:a": {}}, {"f:a": {}}, {}),
        ({"f:a": {".": {}, "f:x": {}}}, {"f:a": {}}, {"f:a": {"f:x": {}}}),
        ({"f:a": {"f:x": {}}}, {"f:a": {}}, {"f:a": {"f:x": {}}}),
        ({"f:a": {".": {}, "f:x": {}}}, {"f:a": {"f:x": {}}}, {"f:a": {}}),
        ({"f:a": {}}, {"f:a": {"f:x": {}}}, {"f:a": {}}),
        ({"f:a": {}}, {"f:a": {".": {}, "f:x": {}}}, {}),
        ({"f:a": {".": {}, "f:x": {}}, "f:b": {}}, {"f:a": WHOLE}, {"f:b": {}}),
    ],
)
def test_difference(left, right, rest):
    assert difference(left, right) == rest


def test_unchanged_set_is_returned_itself():
    left = {"f:a": {"f:x": {}}}
    assert difference(left, {"f:b": {}}) is left
    assert union(left, {"f:a": {"f:x": {}}}) is left


@pytest.mark.parametrize(
    ("owned", "changed", "shared"),
    [
        ({"f:a": {}}, {"f:a": {}}, {"f:a": {}}),
        ({"f:a": {"f:x": {}}}, {"f:a": {}}, {}),
        ({"f:a": {"f:x": {}, "f:y": {}}}, {"f:a": WHOLE}, {"f:a": {"f:x": {}, "f:y": {}}}),
        ({"f:a": {}}, {"f:a": {".": {}, "f:x": {}}}, {"f:a": {}}),
        ({"f:a": {}}, {"f:a": {"f:x": {}}}, {}),
        ({"f:a": {"f:x": {}, "f:y": {}}}, {"f:a": {"f:y": {}}, "f:b": {}}, {"f:a": {"f:y": {}}}),
    ],
)
def test_intersection(owned, changed, shared):
    assert intersection(owned, changed) == shared


@pytest.mark.parametrize(
    ("element", "text"),
    [
        ("f:spec", ".spec"),
        ('k:{"containerPort":80,"protocol":"TCP"}', '[containerPort=80,protocol="TCP"]'),
        ('v:"a/b"', '[="a/b"]'),
        ("i:3", "[3]"),
    ],
)
def test_path_elements_have_the_format_of_conflicts(element, text):
    assert format_element(element) == text


def test_paths_have_the_order_of_kubernetes():
    field_set = {"f:b": {".": {}, "f:z": {}}, "f:a": {"f:y": {}}, "f:c": {}}
    assert list(paths(field_set)) == [".b", ".c", ".a.y", ".b.z"]


def test_elements_are_sorted():
    assert list(sort_elements({"k:{}": {}, "f:b": {"f:c": {}, ".": {}}, "f:a": {}})) == ["f:a", "f:b", "k:{}"]


@pytest.mark.parametrize("broken", ["x", {"a": {}}, {"f:a": 1}, {".": {"f:a": {}}}, {"f:a": {"b": {}}}])
def test_malformed_set_is_rejected(broken):
    assert not is_field_set(broken)
    assert is_field_set({"f:a": {".": {}, 'v:"x"': {}}})
