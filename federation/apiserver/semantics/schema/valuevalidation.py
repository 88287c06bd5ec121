"""Check one value against one schema node: its type and its constraints, without the values below. Pure.

The texts are those of kube-openapi (custom resources) and of Kubernetes' field errors (built-in kinds).
"""

from itertools import islice
from typing import Any, Final

import orjson

from federation.apimachinery.base64text import decode_base64
from federation.apimachinery.errors import cause
from federation.apimachinery.fielderrors import Causes, too_many
from federation.apimachinery.quantity import INT64_MAX, INT64_MIN
from federation.apiserver.semantics.schema.formats import has_format, is_micro_time, is_quantity, is_time
from federation.apiserver.semantics.schema.listkeys import duplicates
from federation.apiserver.semantics.schema.model import (
    BOOLEAN,
    BYTES,
    INT_OR_STRING,
    INTEGER,
    LIST,
    NUMBER,
    QUANTITY,
    STRING,
    TIME,
    Schema,
)

DUPLICATES_MAX: Final = 100
"""Duplicate items of one list that are reported."""
_INT32_MAX: Final = 2**31 - 1
_EXACT_FLOAT_MAX: Final = (1 << 53) - 1
"""The largest integer up to which floats are exact; a larger float is not accepted as an integer."""
_TYPE_INVALID: Final = "FieldValueTypeInvalid"
_INVALID: Final = "FieldValueInvalid"
_TYPE_NAMES: Final = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    dict: "object",
    list: "array",
    type(None): "null",
}


def type_name(value: Any) -> str:
    """Return the JSON type of a value; an integer beyond 64 bits is a number, as in Go."""
    if type(value) is int and not INT64_MIN <= value <= INT64_MAX:
        return "number"
    return _TYPE_NAMES.get(type(value), "object")


def to_json(value: Any) -> str:
    """Return a value as JSON text."""
    return orjson.dumps(value).decode()


def has_type(schema: Schema, value: Any) -> bool:
    """Return True if a scalar has the node's type; quantities and times of built-in kinds must parse."""
    kind = schema.kind
    type_ = value.__class__
    if kind == STRING:
        return type_ is str
    if kind == BYTES:
        return type_ is str and _is_base64(value)
    if kind == INTEGER:
        if type_ is int:
            limit = _INT32_MAX if schema.native and schema.format == "int32" else INT64_MAX
            return bool(-limit - 1 <= value <= limit)
        return type_ is float and not schema.native and abs(value) <= _EXACT_FLOAT_MAX and bool(value.is_integer())
    if kind == BOOLEAN:
        return type_ is bool
    if kind == NUMBER:
        return type_ is int or type_ is float
    if kind == INT_OR_STRING:
        return type_ is str or (type_ is int and (not schema.native or -_INT32_MAX - 1 <= value <= _INT32_MAX))
    if kind == QUANTITY:
        return (type_ is str and is_quantity(value) is not None) or type_ is int or type_ is float
    if kind == TIME:
        return type_ is str and bool(is_micro_time(value) if schema.format == "micro-time" else is_time(value))
    return True


def _is_base64(value: str) -> bool:
    try:
        decode_base64(value)
    except ValueError:
        return False
    return True


def time_error(value: str, fraction: str = "") -> str:
    """Return the error of Go's time parser for a text that is not an RFC 3339 time.

    `fraction` is the layout of the fraction of the second, ".000000" for a MicroTime.
    """
    layout = f"2006-01-02T15:04:05{fraction}Z07:00"
    rest, part = value, "2006"
    for length, fixed, name in ((4, "-", "2006"), (2, "-", "01"), (2, "T", "02"), (2, ":", "15"), (2, ":", "04")):
        if not rest[:length].isdigit() or len(rest) < length:
            part = name
            break
        if name in _RANGES and not _RANGES[name][0] <= int(rest[:length]) <= _RANGES[name][1]:
            return f"parsing time {to_json(value)}: {_RANGES[name][2]} out of range"
        rest, part = rest[length:], fixed
        if not rest.startswith(fixed):
            break
        rest = rest[1:]
    else:
        rest, part = _unparsed(rest, fraction)
    return f'parsing time {to_json(value)} as "{layout}": cannot parse {to_json(rest)} as "{part}"'


_RANGES = {"01": (1, 12, "month"), "15": (0, 23, "hour"), "04": (0, 59, "minute")}


def _unparsed(rest: str, fraction: str) -> tuple[str, str]:
    """Return what Go's parser cannot read of the seconds and the time zone, and the part of the layout it expects."""
    if not rest[:2].isdigit():
        return rest, "05"
    rest = rest[2:]
    if fraction:
        digits = len(fraction) - 1
        if rest[:1] not in {".", ","} or not rest[1 : digits + 1].isdigit() or len(rest) <= digits:
            return rest, fraction
        return rest[digits + 1 :], "Z07:00"
    if rest[:1] in {".", ","} and rest[1:2].isdigit():
        rest = rest[1:].lstrip("0123456789")
    return rest, "Z07:00"


def constraints(schema: Schema, value: Any, path: str) -> Causes:
    """Return the constraints of the node itself that a value of the right type violates."""
    if not schema.has_constraints:
        return []
    causes: Causes = []
    if schema.enum is not None and not _is_listed(value, schema.enum):
        listed = ", ".join(to_json(choice) for choice in schema.enum)
        causes.append(
            cause("FieldValueNotSupported", f"Unsupported value: {to_json(value)}: supported values: {listed}", path)
        )
    type_ = value.__class__
    if type_ is str:
        _check_string(schema, value, path, causes)
    elif type_ is int or type_ is float:
        _check_number(schema, value, path, causes)
    elif type_ is list:
        _check_list(schema, value, path, causes)
    elif type_ is dict:
        count = len(value)
        if schema.min_properties is not None and count < schema.min_properties:
            causes.append(_invalid(path, value, f"should have at least {schema.min_properties} properties"))
        if schema.max_properties is not None:
            causes += too_many(path, value, schema.max_properties)
    return causes


def _is_listed(value: Any, choices: tuple[Any, ...]) -> bool:
    return any(value == choice and (type(value) is bool) == (type(choice) is bool) for choice in choices)


def _invalid(path: str, value: Any, text: str) -> dict[str, str]:
    return cause(_INVALID, f"Invalid value: {to_json(value)}: {path} in body {text}", path)


def _check_string(schema: Schema, value: str, path: str, causes: Causes) -> None:
    if schema.max_length is not None and len(value) > schema.max_length:
        causes.append(cause("FieldValueTooLong", f"Too long: may not be more than {schema.max_length} bytes", path))
    if schema.min_length is not None and len(value) < schema.min_length:
        causes.append(_invalid(path, value, f"should be at least {schema.min_length} chars long"))
    if schema.pattern is not None and schema.pattern.search(value) is None:
        causes.append(_invalid(path, value, f"should match '{schema.pattern_text}'"))
    if schema.format and not schema.native and schema.kind == STRING and not has_format(value, schema.format):
        text = f"Invalid value: {to_json(value)}: {path} in body must be of type {schema.format}: {to_json(value)}"
        causes.append(cause(_TYPE_INVALID, text, path))


def _check_number(schema: Schema, value: float, path: str, causes: Causes) -> None:
    low, high, step = schema.minimum, schema.maximum, schema.multiple_of
    if low is not None and (value < low or (schema.exclusive_minimum and value == low)):
        relation = "greater than" if schema.exclusive_minimum else "greater than or equal to"
        causes.append(_invalid(path, value, f"should be {relation} {_format_number(low)}"))
    if high is not None and (value > high or (schema.exclusive_maximum and value == high)):
        relation = "less than" if schema.exclusive_maximum else "less than or equal to"
        causes.append(_invalid(path, value, f"should be {relation} {_format_number(high)}"))
    if step and not _is_multiple(value, step):
        causes.append(_invalid(path, value, f"should be a multiple of {_format_number(step)}"))


def _is_multiple(value: float, step: float) -> bool:
    try:
        quotient = value / step
        return abs(quotient - round(quotient)) < 1e-9
    except OverflowError:  # 1e308 / 1e-308 is infinite
        return False


def _format_number(number: float) -> str:
    return str(int(number)) if float(number).is_integer() else str(number)


def _check_list(schema: Schema, value: list[Any], path: str, causes: Causes) -> None:
    count = len(value)
    if schema.min_items is not None and count < schema.min_items:
        causes.append(_invalid(path, value, f"should have at least {schema.min_items} items"))
    if schema.max_items is not None:
        causes += too_many(path, value, schema.max_items)
    if schema.unique_items and len({to_json(item) for item in value}) < count:
        causes.append(_invalid(path, value, "shouldn't contain duplicates"))
    if schema.kind == LIST and not schema.native and schema.list_type in ("set", "map"):
        for index, identity in islice(duplicates(schema, value), DUPLICATES_MAX):
            causes.append(cause("FieldValueDuplicate", f"Duplicate value: {to_json(identity)}", f"{path}[{index}]"))
