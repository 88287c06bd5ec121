"""Protobuf bodies: the object of every kind equals its JSON form, and malformed bodies are BadRequests.

The vectors are written by Go's own serialisers (federation/apiserver/http/protobuf/generator/vectors).
"""

import base64
import random
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.apimachinery.errors import BadRequest, UnsupportedMediaType
from federation.apiserver.http.decoding import decode_object
from federation.apiserver.http.protobuf import decoder
from federation.apiserver.http.protobuf.decoder import MEDIA_TYPE, decode

LINES = (Path(__file__).parent / "protobuf_vectors.jsonl").read_bytes().splitlines()
VECTORS = [orjson.loads(line) for line in LINES]


def without_nulls(value: Any) -> Any:
    """Return the value without nulls: Go writes null for an absent list or pointer without omitempty."""
    if isinstance(value, dict):
        return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [without_nulls(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize("case", VECTORS, ids=lambda case: f"{case['json']['apiVersion']}/{case['json']['kind']}")
def test_the_object_equals_its_json_form(case: dict[str, Any]) -> None:
    decoded, duplicates = decode_object(base64.b64decode(case["protobuf"]), MEDIA_TYPE)
    assert without_nulls(decoded) == without_nulls(case["json"])
    assert duplicates == []


def field(number: int, payload: bytes) -> bytes:
    return bytes([number << 3 | 2, len(payload)]) + payload


def envelope(api_version: bytes, kind: bytes, raw: bytes) -> bytes:
    return b"k8s\0" + field(1, field(1, api_version) + field(2, kind)) + field(2, raw)


def test_zero_values_follow_go() -> None:
    replicas_zero = field(2, b"\x08\x00")
    assert decode(envelope(b"apps/v1", b"Deployment", replicas_zero))["spec"] == {"replicas": 0}
    metadata = field(1, field(1, b"a") + field(2, b"") + b"\x38\x00" + field(8, b""))
    assert decode(envelope(b"v1", b"ConfigMap", metadata))["metadata"] == {"name": "a"}


def test_unknown_fields_and_negative_numbers() -> None:
    raw = field(2, b"\x08" + b"\xff" * 9 + b"\x01" + b"\xf8\x06\x01")
    assert decode(envelope(b"apps/v1", b"Deployment", raw))["spec"] == {"replicas": -1}


def test_map_entries_without_a_value_are_empty() -> None:
    raw = field(2, field(1, b"k"))
    assert decode(envelope(b"v1", b"ConfigMap", raw))["data"] == {"k": ""}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"k8s\0\x0a\xff",
        b"k8s\0\x0b",
        envelope(b"v1", b"ConfigMap", b"\x0a\x05ab"),
        envelope(b"v1", b"ConfigMap", b"\x0a\x01"),
        envelope(b"v1", b"ConfigMap", b"\x08" + b"\xff" * 11),
        envelope(b"v1", b"ConfigMap", b"\x08\x01"),
        envelope(b"v1", b"ConfigMap", field(1, field(1, b"\xff\xfe"))),
        envelope(b"apps/v1", b"Deployment", field(2, field(1, b"x"))),
        envelope(b"apps/v1", b"ControllerRevision", field(2, field(1, b"{not json"))),
        envelope(b"v1", b"Event", field(6, b"\x08" + b"\xff" * 8 + b"\x7f")),
        b"k8s\0" + field(2, b"") + field(3, b"gzip"),
    ],
)
def test_malformed_bodies_are_bad_requests(body: bytes) -> None:
    with pytest.raises(BadRequest):
        decode(body)


def test_kinds_without_a_layout_are_unsupported() -> None:
    with pytest.raises(UnsupportedMediaType, match=r'"example.com/v1, Kind=Foo" has no protobuf form'):
        decode(envelope(b"example.com/v1", b"Foo", b""))


def test_nesting_is_bounded() -> None:
    """Schemas nested beyond the depth limit."""
    name = "apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaProps"
    not_number = next(n for n, f in decoder._layout().messages[name].items() if f.name == "not")
    body = b""
    for _ in range(200):
        body = _length(not_number << 3 | 2) + _length(len(body)) + body
    with pytest.raises(ValueError, match="exceeded max depth"):
        decoder._read_message(decoder._layout(), name, body, 0, {})


def _length(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


@given(st.integers(0, len(VECTORS) - 1), st.integers(0, 2**32), st.binary(max_size=8))
def test_damaged_bodies_cause_no_other_errors(index: int, seed: int, noise: bytes) -> None:
    body = bytearray(base64.b64decode(VECTORS[index]["protobuf"]))
    place = random.Random(seed).randrange(4, len(body))
    body[place : place + len(noise)] = noise
    try:
        decode(bytes(body))
    except (BadRequest, UnsupportedMediaType):
        return
