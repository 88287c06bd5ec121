"""JSON patch (RFC 6902) on JSON values, copy on write: only containers on changed paths are copied. Pure.

`apply_json_patch` answers as kube-apiserver does: 400 for a malformed patch, 422 for one that does not apply.
`Document` is the engine; its lenient mode follows KubeAdmiral and serves overrides (`planning/overrides/patches.py`).
The jsonpatch package is not used (docs/decisions/0197-json-patch-copies-what-it-changes.md).
"""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import orjson

from federation.apimachinery.equality import is_json_equal
from federation.apimachinery.errors import (
    BadRequest,
    FederationError,
    Invalid,
    InvalidInput,
    RequestEntityTooLarge,
    cause,
)
from federation.apimachinery.jsonsize import PATH_CHARS_MAX, find_excess
from federation.apimachinery.resources import Object
from federation.apimachinery.textcache import cache_short

OPERATIONS_MAX: Final = 10_000
COPIED_BYTES_MAX: Final = 3 * 1024 * 1024
"""Total size of all values that the `copy` operations of one patch duplicate, as in kube-apiserver."""
SHIFTED_ITEMS_MAX: Final = 50_000_000
"""List items that the operations of one patch move by inserting and removing before them: 50 ms."""
_SHALLOW: Final = 16
"""Operations with shorter paths add at most this many levels to those of their values."""
_NEEDS_VALUE = frozenset({"add", "replace", "test"})
_NEEDS_FROM = frozenset({"move", "copy"})
_OPERATIONS = _NEEDS_VALUE | _NEEDS_FROM | {"remove"}

Keys = Sequence[str]


class PatchError(InvalidInput):
    """An operation that does not apply to the document."""


class TestFailedError(PatchError):
    """A `test` operation whose value differs."""

    __test__ = False  # no class of tests for pytest


class _MissingError(FederationError):
    """A path without a value; the message names the first missing key."""


def apply_json_patch(current: Any, operations: Sequence[Any]) -> Any:
    """Return `current` after all operations, in order; BadRequest, Invalid, RequestEntityTooLarge.

    Operations that may multiply values must leave at most `VALUES_MAX` (`jsonsize.py`).
    """
    if len(operations) > OPERATIONS_MAX:
        raise RequestEntityTooLarge(
            f"The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {len(operations)}"
        )
    document = Document(current)
    try:
        for operation in operations:
            op, path, source = _parse(operation)
            document.apply(op, path, operation.get("value"), source)
        document.check_size()
    except PatchError as error:
        message = "the server rejected our request due to an error in our request"
        causes = [cause("UnexpectedServerResponse", str(error), "patch")]
        raise Invalid(message, details={"causes": causes}) from error
    return document.value


def _parse(operation: Any) -> tuple[str, Keys, Keys]:
    """Return op, path and from (empty when the operation has none); BadRequest for a malformed operation."""
    if not isinstance(operation, dict):
        raise BadRequest("json: cannot unmarshal a patch operation that is not an object")
    op, path, source = operation.get("op"), operation.get("path"), operation.get("from")
    if not isinstance(op, str) or op not in _OPERATIONS:
        raise BadRequest(
            f"Unexpected kind of patch operation: {op!r}; expected one of {', '.join(sorted(_OPERATIONS))}"
        )
    if not isinstance(path, str) or (path and not path.startswith("/")):
        raise BadRequest(f'the path of a "{op}" operation must be "" or start with "/", got {path!r}')
    if len(path) > PATH_CHARS_MAX:
        raise BadRequest(f'the path of a "{op}" operation has more than {PATH_CHARS_MAX} characters')
    if op in _NEEDS_VALUE and "value" not in operation:
        raise BadRequest(f'a "{op}" operation needs a value (path {path})')
    if op not in _NEEDS_FROM:
        return op, parse_pointer(path), ()
    if not isinstance(source, str):
        raise BadRequest(f'a "{op}" operation needs "from" (path {path})')
    return op, parse_pointer(path), parse_pointer(source)


@cache_short(4096)
def parse_pointer(pointer: str) -> tuple[str, ...]:
    """Return the unescaped keys of a JSON pointer; everything before its first slash is ignored."""
    return tuple(key.replace("~1", "/").replace("~0", "~") for key in pointer.split("/")[1:])


def to_pointer(keys: Keys) -> str:
    """Return the JSON pointer of the keys: /spec/replicas."""
    return "".join(f"/{key.replace('~', '~0').replace('/', '~1')}" for key in keys)


class Document:
    """A JSON value that operations change; the initial value and the operations' values stay unchanged.

    `is_lenient` adds what overrides need: `replace` creates a missing map key, and list indexes may be negative.
    """

    __slots__ = ("_copied_bytes", "_is_lenient", "_may_exceed_limits", "_owned", "_root", "_shifted_items")

    def __init__(self, value: Any, *, is_lenient: bool = False) -> None:
        self._root = [value]
        # Ids of the containers that this document created and may change in place. An id cannot be reused for a
        # foreign container: all of those exist before the first operation and outlive the last.
        self._owned: set[int] = set()
        self._copied_bytes = 0
        self._shifted_items = 0
        self._may_exceed_limits = False
        self._is_lenient = is_lenient

    @property
    def value(self) -> Any:
        """The value after the operations so far; it shares its unchanged parts with the initial one."""
        return self._root[0]

    def check_size(self) -> None:
        """Raise PatchError when the operations have built a value that is too large or too deep to be walked.

        Operations with short paths that copy and move nothing only add their own values, so nothing is walked for them.
        """
        if self._may_exceed_limits and (excess := find_excess(self._root[0])):
            raise PatchError(f"the patched document has {excess}")

    def apply(self, op: str, keys: Keys, value: Any = None, source: Keys = ()) -> None:
        """Apply one operation; PatchError when it does not apply or its `op` is unknown."""
        try:
            match op:
                case "add" | "replace":
                    self._put(keys, value, is_replacement=op == "replace")
                case "remove":
                    self._remove(keys)
                case "test":
                    self._test(keys, value)
                case "move":
                    self._may_exceed_limits = True
                    if keys[: len(source)] == source and keys != source:
                        raise _MissingError(f"a value cannot be moved into itself: {to_pointer(source)}")
                    self._put(keys, self._remove(source))
                case "copy":
                    self._put(keys, self._duplicate(source))
                case _:
                    raise PatchError(f"Unexpected kind: {op}")
        except _MissingError as error:
            raise PatchError(f"{op} operation does not apply: {error}") from error

    def _put(self, keys: Keys, value: Any, *, is_replacement: bool = False) -> None:
        if len(keys) > _SHALLOW:
            self._may_exceed_limits = True
        if not keys:
            self._root[0] = value
            return
        container, last = self._own(keys[:-1]), keys[-1]
        if isinstance(container, dict):
            container[last] = value  # also a replacement of an absent key, as in kube-apiserver
        elif is_replacement:
            container[self._index(last, len(container))] = value
        elif last == "-":
            container.append(value)
        else:
            index = self._index(last, len(container) + 1)
            self._count_shifted(len(container) - index)
            container.insert(index, value)

    def _remove(self, keys: Keys) -> Any:
        """Remove the value at `keys` and return it."""
        if not keys:
            value, self._root[0] = self._root[0], None
            return value
        container = self._own(keys[:-1])
        key = self._existing(container, keys[-1])
        if isinstance(container, list):
            self._count_shifted(len(container) - key)
        return container.pop(key)

    def _count_shifted(self, items: int) -> None:
        """Count items that a list operation moves; PatchError beyond the limit."""
        self._shifted_items += items
        if self._shifted_items > SHIFTED_ITEMS_MAX:
            raise PatchError(f"the operations move more than {SHIFTED_ITEMS_MAX} list items: append instead")

    def _duplicate(self, keys: Keys) -> Any:
        value = self._get(keys)
        self._may_exceed_limits = True
        # Without a limit, thirty copies of a value into itself would make a document of gigabytes.
        try:
            self._copied_bytes += len(orjson.dumps(value))
        except TypeError as error:  # orjson's own limit is 254 levels
            raise PatchError(f"the value to copy cannot be written as JSON: {error}") from error
        if self._copied_bytes > COPIED_BYTES_MAX:
            raise PatchError(
                f"Unable to complete the copy, the accumulated size increase of copy is {self._copied_bytes},"
                f" exceeding the limit {COPIED_BYTES_MAX}"
            )
        # Both places now share the containers below the value, so none of them may be changed in place. An owned
        # container's ancestors are owned too, so the walk visits no others.
        shared = [value]
        while shared:
            container = shared.pop()
            if isinstance(container, dict | list) and id(container) in self._owned:
                self._owned.remove(id(container))
                shared.extend(container.values() if isinstance(container, dict) else container)
        return value

    def _test(self, keys: Keys, expected: Any) -> None:
        parent = self._get(keys[:-1])
        is_absent = bool(keys) and isinstance(parent, dict) and keys[-1] not in parent
        if is_absent and expected is not None:
            raise TestFailedError(f"test operation does not apply: doc is missing key: {keys[-1]}")
        if not is_absent and not is_json_equal(self._get(keys), expected):
            raise TestFailedError(f"testing value {to_pointer(keys)} failed: test failed")

    def _get(self, keys: Keys) -> Any:
        value = self._root[0]
        for key in keys:
            value = value[self._existing(value, key)]
        return value

    def _own(self, keys: Keys) -> Any:
        """Return the container at `keys` after replacing it and its ancestors by copies, each at most once."""
        container: Any = self._root
        key: Any = 0
        for following in (*keys, None):
            value = container[key]
            if not isinstance(value, dict | list):
                raise _MissingError(f"doc is missing path: {key} (not an object or list)")
            if id(value) not in self._owned:
                value = container[key] = value.copy()
                self._owned.add(id(value))
            container = value
            if following is not None:
                key = self._existing(container, following)
        return container

    def _existing(self, container: Any, key: str) -> Any:
        """Return the dict key or list index of an item that exists."""
        if isinstance(container, dict):
            if key not in container:
                raise _MissingError(f"doc is missing key: {key}")
            return key
        if isinstance(container, list):
            return self._index(key, len(container))
        raise _MissingError(f"doc is missing path: {key} (not in an object or list)")

    def _index(self, key: str, length: int) -> int:
        """Return the list index; `length` is one more than that of the list where an item may be appended."""
        if self._is_lenient:
            try:
                index = int(key)
            except ValueError:
                raise _MissingError(f"{key!r} is no list index") from None
            index += length if index < 0 else 0
        # Ten digits exceed every list; Python refuses to convert thousands of them.
        elif key.isascii() and key.isdigit() and (key == "0" or key[0] != "0") and len(key) <= 10:
            index = int(key)
        else:
            raise _MissingError(f"{key!r} is no list index")
        if not 0 <= index < length:
            raise _MissingError(f"index {key} is out of range")
        return index


def to_operations(old: Any, new: Any, path: tuple[str, ...] = ()) -> Iterator[Object]:
    """Yield the JSON patch that turns one object into another; lists are replaced as a whole."""
    if not (isinstance(old, dict) and isinstance(new, dict)):
        if old != new:
            yield {"op": "replace", "path": to_pointer(path), "value": new}
        return
    for key in old.keys() - new.keys():
        yield {"op": "remove", "path": to_pointer((*path, key))}
    for key, value in new.items():
        if key in old:
            yield from to_operations(old[key], value, (*path, key))
        else:
            yield {"op": "add", "path": to_pointer((*path, key)), "value": value}
