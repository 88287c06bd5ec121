"""Resolve simple paths in a schema: `.spec.name` and `.spec['my-name']`. Pure.

`fieldPath` of validation rules may also contain map keys; `selectableFields` may not use brackets. The JSONPath of
printer columns is in `apimachinery/jsonpath.py`.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from federation.apimachinery.errors import InvalidInput

_STEP: Final = re.compile(r"\.(?P<name>[^.\[\]]+)|\[(?P<quoted>'(?:[^'\\]|\\.)*')\]")
_ESCAPE: Final = re.compile(r"\\(.)")
_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}


class PathError(InvalidInput):
    """The path has a syntax error or no field of the schema matches it."""


def resolve(path: str, raw: Mapping[str, Any], *, may_use_brackets: bool = True) -> tuple[str, Mapping[str, Any]]:
    """Return the path in the format of causes (`spec.name`, `spec.labels[a]`) and its schema; PathError."""
    found, schema, at = "", raw, 0
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            raise PathError(f"expected [ or . but got: {path[at:]}")
        if step["quoted"] is not None and not may_use_brackets:
            raise PathError("array notation is not allowed")
        name = step["name"] if step["quoted"] is None else _unquote(step["quoted"])
        if schema.get("properties"):
            below = schema["properties"].get(name)
            found += f".{name}"
        else:
            below = schema.get("additionalProperties")
            found += f"[{name}]"
        if not isinstance(below, Mapping):
            raise PathError("does not refer to a valid field")
        schema, at = below, step.end()
    return found.removeprefix("."), schema


def field_path_problem(path: str, raw: Mapping[str, Any]) -> str:
    """Return the error of a path that no field of the schema matches, "" if one does."""
    try:
        resolve(path, raw)
    except PathError as error:
        return str(error)
    return ""


def _unquote(text: str) -> str:
    def unescape(found: re.Match[str]) -> str:
        if found[1] not in _ESCAPES:
            raise PathError(f"invalid string literal: invalid escape char {found[0]}")
        return _ESCAPES[found[1]]

    return _ESCAPE.sub(unescape, text[1:-1])
