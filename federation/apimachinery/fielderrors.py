"""Causes of a 422 in Kubernetes' words: one function per kind of field error, and checks that many kinds share.

The texts follow k8s.io/apimachinery's field errors, Go's value formatting included, because tools match on them.
"""

from collections.abc import Iterable, Sequence, Sized
from typing import Any

import orjson

from federation.apimachinery.errors import cause

Causes = list[dict[str, str]]


def show(value: Any) -> str:
    """Return a value as Go's field errors print it: quoted text, plain numbers, JSON for the rest."""
    if isinstance(value, str):
        return orjson.dumps(value).decode()
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    return orjson.dumps(value).decode()


def show_go(value: Any) -> str:
    """Return a list or object as Go's `%#v` writes it, the format of Kubernetes for non-scalar values."""
    if isinstance(value, dict):
        inner = ", ".join(f"{show(key)}:{show_go(value[key])}" for key in sorted(value))
        return f"map[string]interface {{}}{{{inner}}}"
    if isinstance(value, list):
        return f"[]interface {{}}{{{', '.join(map(show_go, value))}}}"
    return show(value)


def invalid_go(field: str, shown: str, message: str) -> dict[str, str]:
    """Return the cause for an invalid value in Go's notation, as from `show_go`."""
    return cause("FieldValueInvalid", f"Invalid value: {shown}: {message}", field)


def invalid(field: str, value: Any, message: str) -> dict[str, str]:
    """Return the cause for an invalid value of the right type."""
    return cause("FieldValueInvalid", f"Invalid value: {show(value)}: {message}", field)


def required(field: str, message: str = "") -> dict[str, str]:
    """Return the cause for a missing field."""
    return cause("FieldValueRequired", f"Required value: {message}" if message else "Required value", field)


def duplicate(field: str, value: Any) -> dict[str, str]:
    """Return the cause for a repeated value."""
    return cause("FieldValueDuplicate", f"Duplicate value: {show(value)}", field)


def forbidden(field: str, message: str) -> dict[str, str]:
    """Return the cause for a field or value that is not allowed."""
    return cause("FieldValueForbidden", f"Forbidden: {message}", field)


def problems_of(field: str, value: Any, problems: Iterable[str]) -> Causes:
    """Return a cause for each problem of a value."""
    return [invalid(field, value, text) for text in problems]


def not_supported(field: str, value: Any, supported: Iterable[str]) -> dict[str, str]:
    """Return the cause for a value outside of a closed set."""
    listed = ", ".join(show(name) for name in sorted(supported))
    return cause("FieldValueNotSupported", f"Unsupported value: {show(value)}: supported values: {listed}", field)


def not_found(field: str, value: Any) -> dict[str, str]:
    """Return the cause for a reference to a missing object."""
    return cause("FieldValueNotFound", f"Not found: {show(value)}", field)


def too_long(field: str, length_max: int) -> dict[str, str]:
    """Return the cause for a value with too many bytes."""
    return cause("FieldValueTooLong", f"Too long: may not be more than {length_max} bytes", field)


def too_many(field: str, items: Sized, most: int) -> Causes:
    """Check that a list, map or set has at most so many items."""
    if len(items) <= most:
        return []
    return [cause("FieldValueTooMany", f"Too many: {len(items)}: must have at most {most} items", field)]


def non_negative(field: str, value: Any) -> Causes:
    """Check that a number is not negative; None is not checked."""
    if isinstance(value, int) and value < 0:
        return [invalid(field, value, "must be greater than or equal to 0")]
    return []


def one_of(field: str, value: Any, supported: Sequence[str]) -> Causes:
    """Check a member of a closed set; None is not checked."""
    return [] if value is None or value in supported else [not_supported(field, value, supported)]


def immutable(field: str, new: Any, old: Any) -> Causes:
    """Check that a field did not change."""
    return [] if new == old else [invalid(field, new, "field is immutable")]
