"""Encodes the OpenAPI 2 document as protobuf, the only form in which kubectl and client-go read it. Pure.

The layout is that of gnostic's openapiv2.proto, as far as this server's documents need it. Values without a fixed type
(defaults, enums, extensions) are YAML texts there; JSON is YAML. Keywords without a field are omitted, as gnostic does.
"""

from collections.abc import Callable, Iterable, Mapping
from struct import pack
from typing import Any, Final

import orjson

MEDIA_TYPE: Final = b"application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
ACCEPTED: Final = frozenset({MEDIA_TYPE, MEDIA_TYPE.replace(b".v1.0", b"@v1.0")})
"""The media type and its older spelling, which clients send."""

_Encode = Callable[[int, Any], bytes]
"""Encodes a value as the field with this number."""
_Message = Callable[[Any], bytes]
_Fields = Mapping[str, tuple[int, _Encode]]


def encode_document(document: Mapping[str, Any]) -> bytes:
    """Return the protobuf message of an OpenAPI 2 document."""
    return _document(document)


def _varint(value: int) -> bytes:
    out = bytearray()
    value &= (1 << 64) - 1
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _delimited(number: int, payload: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(payload)) + payload


def _text(number: int, value: str) -> bytes:
    return _delimited(number, value.encode()) if value else b""


def _texts(number: int, values: Iterable[str]) -> bytes:
    return b"".join(_delimited(number, value.encode()) for value in values)


def _integer(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(int(value)) if value else b""


def _double(number: int, value: float) -> bytes:
    return _varint(number << 3 | 1) + pack("<d", value) if value else b""


def _any(number: int, value: Any) -> bytes:
    return _delimited(number, _text(2, orjson.dumps(value).decode() + "\n"))


def _anys(number: int, values: Iterable[Any]) -> bytes:
    return b"".join(_any(number, value) for value in values)


def _type(number: int, value: str) -> bytes:
    return _delimited(number, _text(1, value))


def _one(message: _Message) -> _Encode:
    return lambda number, value: _delimited(number, message(value))


def _many(message: _Message) -> _Encode:
    return lambda number, values: b"".join(_delimited(number, message(value)) for value in values)


def _named(value_of: _Encode, number: int = 1) -> _Message:
    """Return the encoder of a map: a repeated field `number` of names (1) and values (2)."""
    return lambda values: b"".join(
        _delimited(number, _text(1, name) + value_of(2, value)) for name, value in values.items()
    )


def _message(fields: _Fields, extensions: int = 0) -> _Message:
    """Return the encoder of a message; `extensions` is the field of its `x-` keywords."""

    def encode(value: Mapping[str, Any]) -> bytes:
        parts = []
        for key, inner in value.items():
            field = fields.get(key)
            if field is not None:
                parts.append(field[1](field[0], inner))
            elif extensions and key.startswith("x-"):
                parts.append(_delimited(extensions, _text(1, key) + _any(2, inner)))
        return b"".join(parts)

    return encode


def _schema(value: Mapping[str, Any]) -> bytes:
    return _schema_fields(value)


def _additional(number: int, value: Any) -> bytes:
    return _delimited(number, _integer(2, value) if isinstance(value, bool) else _delimited(1, _schema(value)))


def _items(number: int, value: Any) -> bytes:
    return _delimited(number, _delimited(1, _schema(value)))


def _limits(first: int) -> _Fields:
    """Return the limits of a parameter, whose fields have consecutive numbers from its `type`."""
    encoders: dict[str, _Encode] = {
        "type": _text, "format": _text, "items": _any, "collectionFormat": _text, "default": _any,
        "maximum": _double, "exclusiveMaximum": _integer, "minimum": _double, "exclusiveMinimum": _integer,
        "maxLength": _integer, "minLength": _integer, "pattern": _text, "maxItems": _integer, "minItems": _integer,
        "uniqueItems": _integer, "enum": _anys, "multipleOf": _double,
    }  # fmt: skip
    return {name: (first + index, encode) for index, (name, encode) in enumerate(encoders.items()) if name != "items"}


_schema_fields: Final = _message(
    {
        "$ref": (1, _text), "format": (2, _text), "title": (3, _text), "description": (4, _text), "default": (5, _any),
        "multipleOf": (6, _double), "maximum": (7, _double), "exclusiveMaximum": (8, _integer),
        "minimum": (9, _double), "exclusiveMinimum": (10, _integer), "maxLength": (11, _integer),
        "minLength": (12, _integer), "pattern": (13, _text), "maxItems": (14, _integer), "minItems": (15, _integer),
        "uniqueItems": (16, _integer), "maxProperties": (17, _integer), "minProperties": (18, _integer),
        "required": (19, _texts), "enum": (20, _anys), "additionalProperties": (21, _additional), "type": (22, _type),
        "items": (23, _items), "properties": (25, _one(_named(_one(_schema)))),
    },
    extensions=31,
)  # fmt: skip
_HEAD: Final[_Fields] = {"required": (1, _integer), "in": (2, _text), "description": (3, _text), "name": (4, _text)}
_query: Final = _message({**_HEAD, "allowEmptyValue": (5, _integer), **_limits(6)}, extensions=23)
_path_parameter: Final = _message({**_HEAD, **_limits(5)}, extensions=22)
_body: Final = _message(
    {
        "description": (1, _text), "name": (2, _text), "in": (3, _text), "required": (4, _integer),
        "schema": (5, _one(_schema)),
    },
    extensions=6,
)  # fmt: skip


def _parameter(value: Mapping[str, Any]) -> bytes:
    match value["in"]:
        case "body":
            parameter = _delimited(1, _body(value))
        case "query":
            parameter = _delimited(2, _delimited(3, _query(value)))
        case "path":
            parameter = _delimited(2, _delimited(4, _path_parameter(value)))
        case place:
            raise ValueError(f"parameters in {place} have no encoding: add their field to the layout")
    return _delimited(1, parameter)


def _response_schema(number: int, value: Any) -> bytes:
    return _delimited(number, _delimited(1, _schema(value)))


_response: Final = _message({"description": (1, _text), "schema": (2, _response_schema)}, extensions=5)
_requirement: Final = _named(lambda number, values: _delimited(number, _texts(1, values)))
_operation: Final = _message(
    {
        "tags": (1, _texts), "summary": (2, _text), "description": (3, _text), "operationId": (5, _text),
        "produces": (6, _texts), "consumes": (7, _texts), "parameters": (8, _many(_parameter)),
        "responses": (9, _one(_named(lambda number, value: _delimited(number, _delimited(1, _response(value)))))),
        "schemes": (10, _texts), "deprecated": (11, _integer), "security": (12, _many(_requirement)),
    },
    extensions=13,
)  # fmt: skip
_VERBS: Final = ("get", "put", "post", "delete", "options", "head", "patch")
_path: Final = _message(
    {
        **{verb: (number, _one(_operation)) for number, verb in enumerate(_VERBS, 2)},
        "parameters": (9, _many(_parameter)),
    },
    extensions=10,
)
_api_key: Final = _message(
    {"type": (1, _text), "name": (2, _text), "in": (3, _text), "description": (4, _text)}, extensions=5
)
_document: Final = _message(
    {
        "swagger": (1, _text),
        "info": (2, _one(_message({"title": (1, _text), "version": (2, _text), "description": (3, _text)}))),
        "paths": (8, _one(_named(_one(_path), 2))),
        "definitions": (9, _one(_named(_one(_schema)))),
        "security": (12, _many(_requirement)),
        "securityDefinitions": (
            13,
            _one(_named(lambda number, value: _delimited(number, _delimited(2, _api_key(value))))),
        ),
    },
    extensions=16,
)
