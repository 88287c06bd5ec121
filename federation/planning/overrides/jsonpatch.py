"""Applying JSON patches with KubeAdmiral's lenient meaning (spec §8.8), without copying the object.

It deviates from RFC 6902: `replace` of a missing map key creates it (every generated command, env, label and annotation
override needs that), a missing operation means `replace`, list indexes may be negative, and `test` for null passes on a
missing key. Missing parents, missing list items and removal of what is not there are errors.

The argument stays as it was: only the containers along the touched paths are copied, each once per call.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from federation.planning.overrides.errors import OverrideError

Patch = Mapping[str, Any]

FORBIDDEN_PATHS = frozenset(("/metadata/namespace", "/metadata/name", "/metadata/generateName", "/kind"))
"""What an override may not change: the member object would be another object."""


@lru_cache(maxsize=4096)
def parse_pointer(path: str) -> tuple[str, ...]:
    """Return the unescaped keys of a JSON pointer; OverrideError for "" and for what does not start with a slash."""
    if not path.startswith("/"):
        raise OverrideError(f"path {path!r} does not start with a slash")
    return tuple(key.replace("~1", "/").replace("~0", "~") for key in path[1:].split("/"))


def forbidden_paths(patches: Iterable[Patch]) -> list[str]:
    """Return the paths that no override may touch, in order."""
    return [patch["path"] for patch in patches if patch.get("path") in FORBIDDEN_PATHS]


def apply_json_patch(obj: dict[str, Any], patches: Sequence[Patch]) -> dict[str, Any]:
    """Return the object after all operations; OverrideError, and no partial result, when one of them fails.

    The result shares everything untouched with the argument, and values with the patches: treat it as read-only.
    """
    if not patches:
        return obj
    application = _Application(obj)
    for index, patch in enumerate(patches):
        try:
            application.apply(patch)
        except OverrideError as error:
            raise error.within(f"patch {index} ({patch.get('op') or 'replace'} {patch.get('path')})") from error
    return application.root


class _Application:
    """One copy-on-write walk over a document."""

    def __init__(self, root: dict[str, Any]) -> None:
        self.root: dict[str, Any] = dict(root)
        # Held, not only their ids: a dropped copy's id could be given to somebody else's container.
        self._owned: dict[int, Any] = {id(self.root): self.root}

    def apply(self, patch: Patch) -> None:
        keys = parse_pointer(str(patch.get("path") or ""))
        operation = patch.get("op") or "replace"
        if operation == "test":
            _test(self._peek(keys[:-1]), keys[-1], patch.get("value"))
            return
        parent = self._own(keys[:-1])
        match operation:
            case "replace":
                _replace(parent, keys[-1], patch.get("value"))
            case "add":
                _add(parent, keys[-1], patch.get("value"))
            case "remove":
                _remove(parent, keys[-1])
            case _:
                raise OverrideError(f"operation {operation!r} is not supported")

    def _peek(self, keys: Sequence[str]) -> Any:
        container: Any = self.root
        for key in keys:
            container = _child(container, key)
        return container

    def _own(self, keys: Sequence[str]) -> Any:
        """Return the container at the keys, it and all above it being copies of this application's own."""
        container: Any = self.root
        for key in keys:
            child = _child(container, key)
            if id(child) not in self._owned:
                child = dict(child) if isinstance(child, Mapping) else list(child)
                self._owned[id(child)] = child
                container[key if isinstance(container, dict) else _index(container, key)] = child
            container = child
        return container


def _child(container: Any, key: str) -> Any:
    value = container.get(key) if isinstance(container, Mapping) else container[_index(container, key)]
    if not isinstance(value, Mapping | list):
        raise OverrideError(f"there is no map or list at {key!r}")
    return value


def _index(items: Sequence[Any], key: str, *, length: int | None = None) -> int:
    """Return the list position that the key means, negative ones counted from the end of `length` items."""
    size = len(items) if length is None else length
    try:
        index = int(key)
    except ValueError:
        raise OverrideError(f"{key!r} is not a list index") from None
    if not -size <= index < size:
        raise OverrideError(f"list index {key} is out of range")
    return index + size if index < 0 else index


def _replace(parent: Any, key: str, value: Any) -> None:
    if isinstance(parent, dict):
        parent[key] = value
    else:
        parent[_index(parent, key)] = value


def _add(parent: Any, key: str, value: Any) -> None:
    if isinstance(parent, dict):
        parent[key] = value
    elif key == "-":
        parent.append(value)
    else:
        parent.insert(_index(parent, key, length=len(parent) + 1), value)


def _remove(parent: Any, key: str) -> None:
    if isinstance(parent, dict):
        if key not in parent:
            raise OverrideError(f"there is no {key!r} to remove")
        del parent[key]
    else:
        del parent[_index(parent, key)]


def _test(parent: Any, key: str, expected: Any) -> None:
    actual = parent.get(key) if isinstance(parent, Mapping) else parent[_index(parent, key)]
    if not is_json_equal(actual, expected):
        raise OverrideError("the value is not the expected one")


def is_json_equal(left: Any, right: Any) -> bool:
    """Say whether two JSON values are the same; unlike Python's ==, true is not 1."""
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(is_json_equal(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(is_json_equal, left, right))
    return isinstance(left, bool) is isinstance(right, bool) and bool(left == right)
