"""The algebra of field sets."""

import pytest

from federation.registry.fieldtrie import (
    WHOLE,
    difference,
    in_element_order,
    is_trie,
    overlap,
    paths,
    readable,
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


def test_what_does_not_change_is_the_very_same_set():
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
def test_overlap(owned, changed, shared):
    assert overlap(owned, changed) == shared


@pytest.mark.parametrize(
    ("element", "text"),
    [
        ("f:spec", ".spec"),
        ('k:{"containerPort":80,"protocol":"TCP"}', '[containerPort=80,protocol="TCP"]'),
        ('v:"a/b"', '[="a/b"]'),
        ("i:3", "[3]"),
    ],
)
def test_elements_read_as_in_conflicts(element, text):
    assert readable(element) == text


def test_paths_come_in_the_order_of_kubernetes():
    trie = {"f:b": {".": {}, "f:z": {}}, "f:a": {"f:y": {}}, "f:c": {}}
    assert list(paths(trie)) == [".b", ".c", ".a.y", ".b.z"]


def test_elements_are_written_in_order():
    assert list(in_element_order({"k:{}": {}, "f:b": {"f:c": {}, ".": {}}, "f:a": {}})) == ["f:a", "f:b", "k:{}"]


@pytest.mark.parametrize("broken", ["x", {"a": {}}, {"f:a": 1}, {".": {"f:a": {}}}, {"f:a": {"b": {}}}])
def test_what_is_no_set_is_told_apart(broken):
    assert not is_trie(broken)
    assert is_trie({"f:a": {".": {}, 'v:"x"': {}}})
