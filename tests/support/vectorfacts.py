"""Facts of an object by path, as the vectors state them.

`"spec.containers[0].env contains": [...]` is one fact: a path, and how to compare what is there. Keys with dots, such as
names of labels, need no escape: the longest key that exists is taken.
"""

import re
from collections.abc import Mapping
from typing import Any

_INDEX = re.compile(r"\[([0-9]+)\]\.?")
_END = re.compile(r"[.\[]")
_CONTAINS, _AS_SET = " contains", " as set"


def fact(value: Any, path: str) -> Any:
    """Return the value at a path of keys and indexes, None when there is none."""
    if not path or path == "*":
        return value
    if isinstance(value, list):
        found = _INDEX.match(path)
        assert found, f"{path} is no index of a list"
        place = int(found[1])
        return fact(value[place], path[found.end() :]) if place < len(value) else None
    if not isinstance(value, Mapping):
        return None
    ends = [len(path), *(each.start() for each in reversed(list(_END.finditer(path))))]
    for end in ends:
        if path[:end] in value:
            return fact(value[path[:end]], path[end:].removeprefix("."))
    return None


def check_facts(document: Any, expected: Mapping[str, Any]) -> None:
    """Compare each fact with the document; AssertionError names the first that differs."""
    for key, wanted in expected.items():
        if key.endswith(_CONTAINS):
            found = fact(document, key.removesuffix(_CONTAINS))
            assert contains(found, wanted), f"{key}: {found}"
        elif key.endswith(_AS_SET):
            found = fact(document, key.removesuffix(_AS_SET))
            assert sorted(map(_identity, found or ())) == sorted(map(_identity, wanted or ())), f"{key}: {found}"
        else:
            found = fact(document, key)
            assert found == wanted or not (found or wanted), f"{key}: {found}"


def contains(found: Any, wanted: Any) -> bool:
    """Return True if `found` has everything of `wanted`: the keys of a mapping, and items of a list in any order."""
    if isinstance(wanted, Mapping):
        return isinstance(found, Mapping) and all(contains(found.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list) and isinstance(found, list):
        return all(any(contains(item, each) for item in found) for each in wanted)
    if isinstance(found, list) or (isinstance(found, Mapping) and isinstance(wanted, str)):
        return wanted in found
    if isinstance(found, str) and isinstance(wanted, str):
        return wanted in found
    return bool(found == wanted or not (found or wanted))


def _identity(item: Any) -> str:
    return str(item.get("name", item)) if isinstance(item, Mapping) else str(item)
