"""Decodes Kubernetes' protobuf envelope and messages to the object that encoding/json makes of the same Go struct.

Pure. Only fields on the wire are visited, so a small object is cheap; unknown fields are skipped, as protobuf requires.
Depth and lengths are checked, and every malformed body is a BadRequest.

Decision: docs/decisions/0174-where-a-library-would-lose-something.md
"""

import base64
import struct
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

import orjson

from federation.apimachinery.clock import to_rfc3339, to_rfc3339_micro
from federation.apimachinery.errors import BadRequest, InvalidInput, UnsupportedMediaType

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
DEPTH_MAX = 128
FIELDS_MAX = 200_000
"""Fields of one body: twice the values of an object, for managed fields."""
_MAGIC = b"k8s\x00"
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_VALUE, _POINTER, _LIST, _MAP = 1, 2, 3, 4
_OMIT_ZERO = 2
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_Raw = bytes | int


class Field(NamedTuple):
    """One field of a message; `name` "" means that its fields are inlined into the parent."""

    name: str
    kind: str
    form: int
    omit: int


Message = dict[int, Field]


class _Malformed(InvalidInput):
    """The bytes do not match the layout."""


def decode(body: bytes) -> dict[str, Any]:
    """Return the object of a protobuf body; BadRequest when malformed, UnsupportedMediaType for unknown kinds."""
    if not body.startswith(_MAGIC):
        raise BadRequest("the object provided is unrecognized: it does not start with the protobuf prefix k8s\\0")
    try:
        api_version, kind, raw = _open(body[len(_MAGIC) :])
        layout = _layout()._replace(fields_left=[FIELDS_MAX])
        name = layout.kinds.get(f"{api_version}/{kind}")
        if name is None:
            raise UnsupportedMediaType(
                f'the body of the request was in an unknown format: "{api_version}, Kind={kind}" has no protobuf form'
                " - accepted media types include: application/json, application/yaml"
            )
        obj = {"kind": kind, "apiVersion": api_version}
        _read_message(layout, name, raw, 0, obj)
    except (_Malformed, UnicodeDecodeError, struct.error, OverflowError, orjson.JSONDecodeError) as error:
        raise BadRequest(f"the object provided is unrecognized: protobuf: {error}") from error
    return obj


class _Layout(NamedTuple):
    kinds: dict[str, str]
    messages: dict[str, Message]
    fields_left: list[int]
    """One number: how many fields the body may still have."""


@lru_cache(maxsize=1)
def _layout() -> _Layout:
    """Read the layout, at the first protobuf body: most servers never receive one."""
    data = orjson.loads(files(__package__).joinpath("messages.json").read_bytes())
    messages = {
        name: {number: Field(json_name, kind, form, omit) for number, json_name, kind, form, omit in fields}
        for name, fields in data["messages"].items()
    }
    return _Layout(data["kinds"], messages, [FIELDS_MAX])


def _open(body: bytes) -> tuple[str, str, bytes]:
    """Return apiVersion, kind and payload of a runtime.Unknown."""
    api_version = kind = ""
    raw = b""
    for number, value in _fields(body):
        if number == 1 and isinstance(value, bytes):
            for inner, text in _fields(value):
                if inner == 1:
                    api_version = _text(text)
                elif inner == 2:
                    kind = _text(text)
        elif number == 2 and isinstance(value, bytes):
            raw = value
        elif number in (3, 4) and value not in (b"", MEDIA_TYPE.encode()):
            raise _Malformed("the envelope holds encoded content")
    return api_version, kind, raw


def _fields(body: bytes) -> Iterator[tuple[int, _Raw]]:
    """Yield (field number, integer or bytes). Kubernetes uses no groups."""
    position, end = 0, len(body)
    while position < end:
        tag, position = _varint(body, position)
        number, wire = tag >> 3, tag & 7
        if wire == _VARINT:
            value, position = _varint(body, position)
            yield number, value
            continue
        if wire == _BYTES:
            size, position = _varint(body, position)
        elif wire == _FIXED64:
            size = 8
        elif wire == _FIXED32:
            size = 4
        else:
            raise _Malformed(f"wire type {wire} of field {number} is not allowed")
        if position + size > end:
            raise _Malformed("unexpected EOF")
        yield number, body[position : position + size]
        position += size


def _varint(body: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(body) or shift > 63:
            raise _Malformed("unexpected EOF" if shift <= 63 else "integer overflow")
        byte = body[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


def _read_message(layout: _Layout, name: str, body: bytes, depth: int, into: dict[str, Any]) -> dict[str, Any]:
    """Add a message's fields to `into` and return it."""
    if depth > DEPTH_MAX:
        raise _Malformed(f"exceeded max depth of {DEPTH_MAX}")
    message = layout.messages[name]
    for number, raw in _fields(body):
        layout.fields_left[0] -= 1
        if layout.fields_left[0] < 0:
            raise _Malformed(f"more than {FIELDS_MAX} fields")
        field = message.get(number)
        if field is None:
            continue
        if not field.name:
            _read_message(layout, field.kind[2:], _bytes(raw), depth + 1, into)
        elif field.form == _LIST:
            into.setdefault(field.name, []).append(_read(layout, field.kind, raw, depth))
        elif field.form == _MAP:
            key, value = _read_entry(layout, field.kind, raw, depth)
            into.setdefault(field.name, {})[key] = value
        else:
            value = _read(layout, field.kind, raw, depth)
            if field.form == _POINTER or not _is_omitted(field, value):
                into[field.name] = value
    return into


def _is_omitted(field: Field, value: Any) -> bool:
    """Return whether encoding/json omits a zero value: omitempty omits scalars, omitzero also structs."""
    if value:
        return False
    return field.omit > 0 if field.kind in _SCALARS else field.omit == _OMIT_ZERO


def _read_entry(layout: _Layout, kind: str, raw: _Raw, depth: int) -> tuple[str, Any]:
    key = ""
    value: Any = None
    for number, part in _fields(_bytes(raw)):
        if number == 1:
            key = _text(part)
        elif number == 2:
            value = _read(layout, kind, part, depth)
    if value is None:
        value = _read(layout, kind, 0 if kind in _NUMBERS else b"", depth)
    return key, value


def _read(layout: _Layout, kind: str, raw: _Raw, depth: int) -> Any:
    """Return one JSON value."""
    if kind.startswith("m:"):
        return _read_message(layout, kind[2:], _bytes(raw), depth + 1, {})
    if kind == "string":
        return _text(raw)
    if kind == "int":
        return _signed(raw)
    if kind == "bool":
        return bool(raw)
    if kind in _SCHEMA_KINDS:
        return _read_schema(layout, kind, _bytes(raw), depth)
    return _READERS[kind](raw)


def _read_schema(layout: _Layout, kind: str, body: bytes, depth: int) -> Any:
    """Return one of apiextensions' unions: a schema, or else a boolean, a list of schemas, a list of strings."""
    allows = False
    others: list[Any] = []
    for number, raw in _fields(body):
        if kind == "schemaorbool" and number == 1:
            allows = bool(raw)
        elif number == (2 if kind == "schemaorbool" else 1):
            return _read_message(layout, _SCHEMA, _bytes(raw), depth + 1, {})
        elif number == 2:
            is_text = kind == "schemaorstrings"
            others.append(_text(raw) if is_text else _read_message(layout, _SCHEMA, _bytes(raw), depth + 1, {}))
    return allows if kind == "schemaorbool" else others


def _bytes(raw: _Raw) -> bytes:
    if not isinstance(raw, bytes):
        raise _Malformed("a message or text was expected, not a number")
    return raw


def _text(raw: _Raw) -> str:
    return _bytes(raw).decode("utf-8")


def _signed(raw: _Raw) -> int:
    if not isinstance(raw, int):
        raise _Malformed("a number was expected")
    raw &= (1 << 64) - 1
    return raw - (1 << 64) if raw >= 1 << 63 else raw


def _numbers(raw: _Raw) -> dict[int, int]:
    return {number: _signed(value) for number, value in _fields(_bytes(raw))}


def _to_datetime(raw: _Raw) -> datetime | None:
    parts = _numbers(raw)
    if not parts:
        return None
    return _EPOCH + timedelta(seconds=parts.get(1, 0), microseconds=parts.get(2, 0) // 1000)


def _read_time(raw: _Raw) -> str | None:
    at = _to_datetime(raw)
    return None if at is None else to_rfc3339(at)


def _read_microtime(raw: _Raw) -> str | None:
    at = _to_datetime(raw)
    return None if at is None else to_rfc3339_micro(at)


def _read_duration(raw: _Raw) -> str:
    nanoseconds = _numbers(raw).get(1, 0)
    seconds, rest = divmod(abs(nanoseconds), 1_000_000_000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    text = (f"{hours}h" if hours else "") + (f"{minutes}m" if hours or minutes else "") + f"{seconds}{fraction}s"
    return f"-{text}" if nanoseconds < 0 else text


def _read_int_or_string(raw: _Raw) -> int | str:
    kind, number, text = 0, 0, ""
    for field, value in _fields(_bytes(raw)):
        if field == 1:
            kind = _signed(value)
        elif field == 2:
            number = _signed(value)
        elif field == 3:
            text = _text(value)
    return text if kind == 1 else number


def _read_quantity(raw: _Raw) -> str:
    """Return field 1, a string."""
    found = ""
    for number, value in _fields(_bytes(raw)):
        if number == 1:
            found = _text(value)
    return found or "0"


def _read_raw(raw: _Raw) -> Any:
    """Return field 1, embedded JSON: RawExtension, FieldsV1, JSON."""
    found = b""
    for number, value in _fields(_bytes(raw)):
        if number == 1:
            found = _bytes(value)
    return orjson.loads(found) if found else None


def _read_items(raw: _Raw) -> list[str]:
    return [_text(value) for number, value in _fields(_bytes(raw)) if number == 1]


_NUMBERS = frozenset({"int", "bool"})
_SCALARS = frozenset({"int", "bool", "string", "bytes", "double", "float"})
_SCHEMA = "apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaProps"
_SCHEMA_KINDS = frozenset({"schemaorbool", "schemaorarray", "schemaorstrings"})
_READERS: dict[str, Callable[[_Raw], Any]] = {
    "bytes": lambda raw: base64.b64encode(_bytes(raw)).decode(),
    "double": lambda raw: struct.unpack("<d", _bytes(raw))[0],
    "float": lambda raw: struct.unpack("<f", _bytes(raw))[0],
    "time": _read_time,
    "microtime": _read_microtime,
    "duration": _read_duration,
    "intorstring": _read_int_or_string,
    "quantity": _read_quantity,
    "raw": _read_raw,
    "items": _read_items,
}
