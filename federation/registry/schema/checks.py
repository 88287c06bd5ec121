"""Checks of one value against one schema node: its type, and the limits that are not about what is below it. Pure.

The texts are those of kube-openapi (custom resources) and of Kubernetes' field errors (built-in kinds).
"""

import base64
import binascii
from typing import Any, Final

import orjson

from federation.api.quantity import INT64_MAX, INT64_MIN
from federation.base.errors import cause
from federation.registry.schema.fielditems import duplicates
from federation.registry.schema.formats import QUANTITY_ERROR, has_format, is_quantity, is_time
from federation.registry.schema.model import (
    BOOLEAN,
    INT_OR_STRING,
    INTEGER,
    LIST,
    NUMBER,
    QUANTITY,
    STRING,
    TIME,
    Schema,
)

__all__ = ["QUANTITY_ERROR", "constraints", "has_type", "show", "time_error", "type_name"]

_INT32_MAX: Final = 2**31 - 1
_EXACT_FLOAT_MAX: Final = (1 << 53) - 1
"""Beyond it not every integer has a float of its own, so that such a number counts as none."""
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
Causes = list[dict[str, str]]


def type_name(value: Any) -> str:
    """Return the JSON type of a value; an integer beyond 64 bits is read as a float, as Go reads it."""
    if type(value) is int and not INT64_MIN <= value <= INT64_MAX:
        return "number"
    return _TYPE_NAMES.get(type(value), "object")


def show(value: Any) -> str:
    """Return a value as field errors print it."""
    return orjson.dumps(value).decode()


def has_type(schema: Schema, value: Any) -> bool:
    """Tell whether a scalar has the node's type; quantities and times of built-in kinds are parsed."""
    kind = schema.kind
    type_ = value.__class__
    if kind == STRING:
        return type_ is str and (schema.format != "byte" or not schema.native or _is_base64(value))
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
        return type_ is str and (not value or is_time(value) is not None)
    return True


def _is_base64(value: str) -> bool:
    try:
        base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return "\n" in value and _is_base64(value.replace("\r", "").replace("\n", ""))
    return True


def time_error(value: str) -> str:
    """Return what Go's time parser says about a text that is no RFC 3339 time."""
    layout = "2006-01-02T15:04:05Z07:00"
    rest, part = value, "2006"
    for length, fixed, name in ((4, "-", "2006"), (2, "-", "01"), (2, "T", "02"), (2, ":", "15"), (2, ":", "04")):
        if not rest[:length].isdigit() or len(rest) < length:
            part = name
            break
        rest, part = rest[length:], fixed
        if not rest.startswith(fixed):
            break
        rest = rest[1:]
    else:
        part = "05" if not rest[:2].isdigit() else "Z07:00"
        rest = rest[2:] if part == "Z07:00" else rest
    return f'parsing time {show(value)} as "{layout}": cannot parse {show(rest)} as "{part}"'


def constraints(schema: Schema, value: Any, path: str) -> Causes:
    """Return what a value of the right type violates of the node's own limits."""
    if not schema.has_constraints:
        return []
    causes: Causes = []
    if schema.enum is not None and not _is_listed(value, schema.enum):
        listed = ", ".join(show(choice) for choice in schema.enum)
        causes.append(
            cause("FieldValueNotSupported", f"Unsupported value: {show(value)}: supported values: {listed}", path)
        )
    type_ = value.__class__
    if type_ is str:
        _check_text(schema, value, path, causes)
    elif type_ is int or type_ is float:
        _check_number(schema, value, path, causes)
    elif type_ is list:
        _check_list(schema, value, path, causes)
    elif type_ is dict:
        count = len(value)
        if schema.min_properties is not None and count < schema.min_properties:
            causes.append(_wrong(path, value, f"should have at least {schema.min_properties} properties"))
        if schema.max_properties is not None and count > schema.max_properties:
            causes.append(_too_many(path, count, schema.max_properties))
    return causes


def _is_listed(value: Any, choices: tuple[Any, ...]) -> bool:
    return any(value == choice and (type(value) is bool) == (type(choice) is bool) for choice in choices)


def _wrong(path: str, value: Any, text: str) -> dict[str, str]:
    return cause(_INVALID, f"Invalid value: {show(value)}: {path} in body {text}", path)


def _too_many(path: str, count: int, limit: int) -> dict[str, str]:
    return cause("FieldValueTooMany", f"Too many: {count}: must have at most {limit} items", path)


def _check_text(schema: Schema, value: str, path: str, causes: Causes) -> None:
    if schema.max_length is not None and len(value) > schema.max_length:
        causes.append(cause("FieldValueTooLong", f"Too long: may not be more than {schema.max_length} bytes", path))
    if schema.min_length is not None and len(value) < schema.min_length:
        causes.append(_wrong(path, value, f"should be at least {schema.min_length} chars long"))
    if schema.pattern is not None and schema.pattern.search(value) is None:
        causes.append(_wrong(path, value, f"should match '{schema.pattern_text}'"))
    if schema.format and not schema.native and schema.kind == STRING and not has_format(value, schema.format):
        text = f"Invalid value: {show(value)}: {path} in body must be of type {schema.format}: {show(value)}"
        causes.append(cause(_TYPE_INVALID, text, path))


def _check_number(schema: Schema, value: float, path: str, causes: Causes) -> None:
    low, high, step = schema.minimum, schema.maximum, schema.multiple_of
    if low is not None and (value < low or (schema.exclusive_minimum and value == low)):
        relation = "greater than" if schema.exclusive_minimum else "greater than or equal to"
        causes.append(_wrong(path, value, f"should be {relation} {_plain(low)}"))
    if high is not None and (value > high or (schema.exclusive_maximum and value == high)):
        relation = "less than" if schema.exclusive_maximum else "less than or equal to"
        causes.append(_wrong(path, value, f"should be {relation} {_plain(high)}"))
    if step and not _is_multiple(value, step):
        causes.append(_wrong(path, value, f"should be a multiple of {_plain(step)}"))


def _is_multiple(value: float, step: float) -> bool:
    quotient = value / step
    return abs(quotient - round(quotient)) < 1e-9


def _plain(number: float) -> str:
    return str(int(number)) if float(number).is_integer() else str(number)


def _check_list(schema: Schema, value: list[Any], path: str, causes: Causes) -> None:
    count = len(value)
    if schema.min_items is not None and count < schema.min_items:
        causes.append(_wrong(path, value, f"should have at least {schema.min_items} items"))
    if schema.max_items is not None and count > schema.max_items:
        causes.append(_too_many(path, count, schema.max_items))
    if schema.unique_items and len({show(item) for item in value}) < count:
        causes.append(_wrong(path, value, "shouldn't contain duplicates"))
    if schema.kind == LIST and not schema.native and schema.list_type in ("set", "map"):
        for index, identity in duplicates(schema, value):
            causes.append(cause("FieldValueDuplicate", f"Duplicate value: {show(identity)}", f"{path}[{index}]"))
