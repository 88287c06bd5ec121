"""Decoding of request bodies, hostile ones included."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.apimachinery.errors import BadRequest, UnsupportedMediaType
from federation.apiserver.http.decoding import (
    DEPTH_MAX,
    check_patch_size,
    decode_json,
    decode_object,
    decode_yaml,
    find_duplicates,
)

JSON = "application/json"
YAML = "application/yaml"


def test_json_and_yaml_give_the_same_object() -> None:
    expected = {"kind": "ConfigMap", "data": {"a": "1"}, "flags": [True, 2, None, 1.5]}
    assert decode_object(json.dumps(expected).encode(), JSON + "; charset=utf-8") == (expected, [])
    text = b"kind: ConfigMap\ndata: {a: '1'}\nflags: [true, 2, null, 1.5]\n"
    assert decode_object(text, YAML) == (expected, [])


def test_null_is_an_object_without_fields() -> None:
    assert decode_object(b"null", JSON) == ({}, [])
    assert decode_object(b"null", YAML) == ({}, [])


def test_yaml_dates_stay_text_and_keys_become_text() -> None:
    assert decode_yaml(b"a: 2020-01-01\n2: x\ntrue: z\n")[0] == {"a": "2020-01-01", "2": "x", "true": "z"}


@pytest.mark.parametrize(
    ("text", "merged"),
    [
        ("a: &a {x: 1}\nb: {<<: *a, z: 2}\n", {"x": 1, "z": 2}),
        ("a: &a {x: 1}\nb: {x: own, <<: *a}\n", {"x": "own"}),
        ("a: &a {x: 1}\nc: &c {x: 2, z: 3}\nb: {<<: [*a, *c]}\n", {"x": 1, "z": 3}),
        ("b: {'<<': text}\n", {"<<": "text"}),
    ],
)
def test_yaml_merge_keys_add_the_pairs_that_are_absent(text: str, merged: object) -> None:
    assert decode_yaml(text.encode())[0]["b"] == merged


@pytest.mark.parametrize("value", ["text", "[text]"])
def test_yaml_merges_mappings_only(value: str) -> None:
    with pytest.raises(BadRequest, match="YAML"):
        decode_yaml(f"a: {{<<: {value}}}".encode())


def test_yaml_merges_are_counted_because_they_can_double_with_each_level() -> None:
    lines = ["a0: &a0 {x: 1, y: 2}"]
    lines += [f"a{level}: &a{level} {{<<: [*a{level - 1}, *a{level - 1}]}}" for level in range(1, 60)]
    with pytest.raises(BadRequest, match="excessive merging"):
        decode_yaml("\n".join(lines).encode())


def test_yaml_letters_are_truth_values_as_in_kubernetes() -> None:
    assert decode_yaml(b"a: [y, N, 'y', yes]")[0] == {"a": [True, False, "y", True]}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"nope",
        b'{"a":1}}',
        b'{"a":"\xff"}',
        b"[1]",
        b'"x"',
        b"3",
        b'{"a":NaN}',
        b'{"a":' * 100_000,
        b'{"a":' * (DEPTH_MAX + 1) + b"1" + b"}" * (DEPTH_MAX + 1),
        b'{"a":' + b"[" * 1000 + b"]" * 1000 + b"}",
    ],
)
def test_json_that_is_not_an_object_is_a_bad_request(body: bytes) -> None:
    with pytest.raises(BadRequest):
        decode_object(body, JSON)


@pytest.mark.parametrize(
    "body",
    [
        b"a: " + b"9" * 40,
        b"a: [" + b"1," * 200_000 + b"1]",
        b"a: &a0 [x]\n" + b"".join(b"a%d: &a%d [*a%d]\n" % (n, n, n - 1) for n in range(1, 300)),
        b"[" * 100_000,
        b"- " * 10_000,
        b"a: &a [x,x,x,x,x,x,x,x]\n" + b"".join(b"b%d: &b%d [%s]\n" % (i, i, b",".join([b"*b%d" % (i - 1) if i else b"*a"] * 9)) for i in range(9)),
        b"a: &a [*a]",
        b"a: !!python/object/apply:os.system [ls]",
        b"a: !!binary aGk=",
        b"a: .inf",
        b"a: b: c",
        b"\xff\xfe\xfa",
        b"? [a]\n: b",
        b"a: 1\n---\nb: 2",
        b"- a",
        b"\x00",
        b"a: *missing",
        b"%YAML 9.9\n---\na",
    ],
)  # fmt: skip
def test_hostile_or_broken_yaml_is_a_bad_request(body: bytes) -> None:
    with pytest.raises(BadRequest):
        decode_object(body, YAML)


@pytest.mark.parametrize("kind", ["text/plain", "application/cbor"])
def test_other_content_types_are_unsupported(kind: str) -> None:
    with pytest.raises(UnsupportedMediaType, match="accepted media types include: application/json, application/yaml"):
        decode_object(b"{}", kind)


@pytest.mark.parametrize(
    ("body", "names"),
    [
        (b'{"a":1,"a":2}', ["a"]),
        (b'{"a":{"b":1,"b":2},"c":[{"d":1,"d":1}]}', ["a.b", "c[0].d"]),
        (b'{"a" : 1, "a" : 2}', ["a"]),
        (b'{"a":1,"b" :2,"a":3}', ["a"]),
        (b'{"a":"x\\":y","b":"\\"a\\":1"}', []),
        (b'{"a\\\\":1}', []),
        (b'{"a":\n{"b":\t1}}', []),
    ],
)
def test_duplicate_fields_are_found(body: bytes, names: list[str]) -> None:
    assert decode_object(body, JSON)[1] == [f'duplicate field "{name}"' for name in names]


def test_duplicate_yaml_fields_are_found() -> None:
    texts = ['line 2: key "c" already set in map', 'line 3: key "a" already set in map']
    assert decode_yaml(b"a: 1\nb: {c: [x], c: {d: 1}}\na: 2\n")[1] == texts


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)


@given(
    st.dictionaries(st.text(max_size=6), JSON_VALUES, max_size=5),
    st.sampled_from([(",", ":"), (", ", ": "), (" , ", " : ")]),
)
def test_serialised_objects_have_no_duplicate_fields(value: dict[str, Any], separators: tuple[str, str]) -> None:
    body = json.dumps(value, separators=separators).encode()
    assert find_duplicates(body, value) == []


@given(st.binary(max_size=200))
def test_arbitrary_bytes_cause_no_other_errors(body: bytes) -> None:
    for kind in (JSON, YAML):
        try:
            decode_object(body, kind)
        except BadRequest:
            continue


def test_deep_patches_are_refused() -> None:
    deep = b'{"a":' * 200 + b"1" + b"}" * 200
    check_patch_size(b'{"a":[{"b":1}]}', {"a": [{"b": 1}]}, 100_000)
    with pytest.raises(BadRequest, match="nested too deeply"):
        check_patch_size(deep, json.loads(deep), 100_000)
    assert decode_json(b'{"a":' * 100 + b"1" + b"}" * 100)
