"""Simple paths into a schema, as definitions write them: `.spec.name` and `.spec['my-name']`. Pure.

Used by `fieldPath` of validation rules, which may also name keys of maps, and by `selectableFields`, which may not use
brackets. Paths of printer columns are JSONPath and `printers/jsonpath.py`'s.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

_STEP: Final = re.compile(r"\.(?P<name>[^.\[\]]+)|\[(?P<quoted>'(?:[^'\\]|\\.)*')\]")
_ESCAPE: Final = re.compile(r"\\(.)")
_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}


class PathError(ValueError):
    """The text is no path, or leads to no field; the message says which."""


def resolve(path: str, raw: Mapping[str, Any], *, may_use_brackets: bool = True) -> tuple[str, Mapping[str, Any]]:
    """Return a path as causes write it (`spec.name`, `spec.labels[a]`) and the schema it leads to; PathError."""
    found, schema, at = "", raw, 0
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            raise PathError(f"expected [ or . but got: {path[at:]}")
        if step["quoted"] is not None and not may_use_brackets:
            raise PathError("array notation is not allowed")
        name = step["name"] if step["quoted"] is None else _unquoted(step["quoted"])
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
    """Return why `path` leads to no field of the schema, "" when it does."""
    try:
        resolve(path, raw)
    except PathError as error:
        return str(error)
    return ""


def _unquoted(text: str) -> str:
    def unescaped(found: re.Match[str]) -> str:
        if found[1] not in _ESCAPES:
            raise PathError(f"invalid string literal: invalid escape char {found[0]}")
        return _ESCAPES[found[1]]

    return _ESCAPE.sub(unescaped, text[1:-1])
