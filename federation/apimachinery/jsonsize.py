"""Limits on the size of JSON values: number of values, nesting depth, length of paths. Pure.

A value costs a hundred times more memory than its byte of text, and code that walks it builds a path for every part,
so bytes alone do not limit memory and time. `has_more_values` counts in bytes before anything is parsed;
`find_excess` walks a parsed value and stops at the first limit that it exceeds. `apiserver/http/decoding.py` and
`apiserver/verbs/writes.py` apply the limits to requests, `jsonpatch.py` to the result of a patch, `client/body.py` and
`client/watchdecoder.py` that of values to answers of servers.
"""

import re
from typing import Any, Final

VALUES_MAX: Final = 100_000
"""Default limit of keys and list items of one object. The largest real CustomResourceDefinitions have 1.35 MB and about
70,000. One value costs up to 330 bytes of memory and 5 microseconds of validation."""
DEPTH_MAX: Final = 128
"""Nesting depth of an object. Kubernetes' deepest kinds stay below 40."""
PATH_CHARS_MAX: Final = 4096
"""Total length of the keys above a mapping or list. Error messages and field sets repeat them for everything below."""
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


def has_more_values(data: bytes, values_max: int) -> bool:
    """Return True if JSON text holds more than `values_max` keys and list items. A small text costs one comparison."""
    # A value and its comma take two bytes.
    if not may_have_more_values(data, values_max):
        return False
    # Text in strings may look like values.
    return _count_values(_STRING.sub(b"", data)) > values_max


def may_have_more_values(data: bytes, values_max: int) -> bool:
    """Return True if JSON text may hold more than `values_max` values, counting text in strings too.

    Millions of strings cost seconds to leave out, so long answers of servers are measured by this.
    """
    return len(data) > 2 * values_max and _count_values(data) > values_max


def _count_values(data: bytes) -> int:
    """Return an upper bound of the values, exact without strings and white space: a filled container has commas + 1."""
    return (
        data.count(b",") + data.count(b"{") + data.count(b"[") - data.count(b"{}") - data.count(b"[]")
    )  # fmt: skip


def find_excess(value: Any, *, values_max: int = VALUES_MAX) -> str:
    """Return the limit that a parsed value exceeds, as "more than 128 levels", "" when it keeps all of them."""
    level: list[tuple[Any, int]] = [(value, 0)]
    count = depth = 0
    while level:
        depth += 1
        below: list[tuple[Any, int]] = []
        for container, path_chars in level:
            if path_chars > PATH_CHARS_MAX:
                return f"keys of more than {PATH_CHARS_MAX} characters above a mapping or list"
            if isinstance(container, dict):
                count += len(container)
                below += [
                    (child, path_chars + len(key))
                    for key, child in container.items()
                    if child.__class__ is dict or child.__class__ is list
                ]
            elif isinstance(container, list):
                count += len(container)
                below += [
                    (child, path_chars) for child in container if child.__class__ is dict or child.__class__ is list
                ]
            # Copies may share parts, so a small document can have billions of values: stop early.
            if count > values_max:
                return f"more than {values_max} values (keys and list items)"
        if depth > DEPTH_MAX:
            return f"more than {DEPTH_MAX} levels"
        level = below
    return ""


def without_managed_fields(obj: dict[str, Any]) -> dict[str, Any]:
    """Return an object without its managed fields, which the server adds and which do not count."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return obj
    return {**obj, "metadata": {name: value for name, value in metadata.items() if name != "managedFields"}}
