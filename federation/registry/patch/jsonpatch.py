"""JSON patch (RFC 6902) with Kubernetes' answers: a malformed patch is a 400, one that does not apply a 422.

Our own rather than the jsonpatch package, because that one copies the whole document and knows neither Kubernetes'
texts nor its limit of operations. Pure, copy on write: only the containers on the changed paths are copied.
"""

from typing import Any, Final

from federation.base.errors import BadRequest, Invalid, RequestEntityTooLarge, cause
from federation.registry.jsonequality import is_same

OPERATIONS_MAX: Final = 10_000
_NEEDS_VALUE = frozenset({"add", "replace", "test"})
_NEEDS_FROM = frozenset({"move", "copy"})
_OPERATIONS = _NEEDS_VALUE | _NEEDS_FROM | {"remove"}


class _MissingError(Exception):
    """A path that leads nowhere; the text says where it ends."""


def json_patch(current: Any, ops: list[Any]) -> Any:
    """Return `current` after all operations, in order; BadRequest, Invalid, RequestEntityTooLarge."""
    if len(ops) > OPERATIONS_MAX:
        raise RequestEntityTooLarge(
            f"The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {len(ops)}"
        )
    owned: set[int] = set()
    root = [current]
    for operation in ops:
        _apply(root, _checked(operation), owned)
    return root[0]


def _checked(operation: Any) -> dict[str, Any]:
    if not isinstance(operation, dict):
        raise BadRequest("json: cannot unmarshal a patch operation that is not an object")
    op, path = operation.get("op"), operation.get("path")
    if not isinstance(op, str) or op not in _OPERATIONS:
        raise BadRequest(
            f"Unexpected kind of patch operation: {op!r}; expected one of {', '.join(sorted(_OPERATIONS))}"
        )
    if not isinstance(path, str) or (path and not path.startswith("/")):
        raise BadRequest(f'the path of a "{op}" operation must be "" or start with "/", got {path!r}')
    if op in _NEEDS_VALUE and "value" not in operation:
        raise BadRequest(f'a "{op}" operation needs a value (path {path})')
    if op in _NEEDS_FROM and not isinstance(operation.get("from"), str):
        raise BadRequest(f'a "{op}" operation needs "from" (path {path})')
    return operation


def _apply(root: list[Any], operation: dict[str, Any], owned: set[int]) -> None:
    op, path = operation["op"], operation["path"]
    try:
        if op == "add":
            _put(root, _tokens(path), operation["value"], owned, must_exist=False)
        elif op == "replace":
            _put(root, _tokens(path), operation["value"], owned, must_exist=True)
        elif op == "remove":
            _take(root, _tokens(path), owned)
        elif op == "test":
            _test(root, path, operation["value"])
        else:
            source, target = _tokens(operation["from"]), _tokens(path)
            if op == "move":
                if target[: len(source)] == source and target != source:
                    raise _MissingError(f"a value cannot be moved into itself: {operation['from']}")
                value = _take(root, source, owned)
            else:
                value = _get(root, source)
                owned.clear()  # the value is in two places now, so nothing below it may be changed in place
            _put(root, target, value, owned, must_exist=False)
    except _MissingError as error:
        _refuse(f"{op} operation does not apply: {error}")


def _test(root: list[Any], path: str, wanted: Any) -> None:
    try:
        found = _get(root, _tokens(path))
    except _MissingError:
        if wanted is None:
            return
        raise
    if not is_same(found, wanted):
        _refuse(f"testing value {path} failed: test failed")


def _refuse(text: str) -> None:
    message = "the server rejected our request due to an error in our request"
    raise Invalid(message, details={"causes": [cause("UnexpectedServerResponse", text, "patch")]})


def _tokens(pointer: str) -> list[str]:
    return [token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]]


def _index(container: list[Any], token: str, *, limit: int) -> int:
    if not token.isascii() or not token.isdigit() or (len(token) > 1 and token[0] == "0"):
        raise _MissingError(f"{token!r} is no list index")
    index = int(token)
    if index >= limit:
        raise _MissingError(f"index {index} of a list of {len(container)} items")
    return index


def _get(root: list[Any], tokens: list[str]) -> Any:
    value = root[0]
    for token in tokens:
        value = _step(value, token)
    return value


def _step(value: Any, token: str) -> Any:
    if isinstance(value, dict):
        if token not in value:
            raise _MissingError(f"doc is missing key: {token}")
        return value[token]
    if isinstance(value, list):
        return value[_index(value, token, limit=len(value))]
    raise _MissingError(f"doc is missing path: {token} (not in an object or list)")


def _open(root: list[Any], tokens: list[str], owned: set[int]) -> Any:
    """Return the container at `tokens`, copied with everything above it unless this patch already made the copy."""
    parent: Any = root
    key: Any = 0
    for token in [*tokens, None]:
        value = parent[key]
        if not isinstance(value, dict | list):
            raise _MissingError(f"doc is missing path: {token} (not in an object or list)")
        if id(value) not in owned:
            value = parent[key] = value.copy()
            owned.add(id(value))
        if token is None:
            return value
        _step(value, token)
        parent = value
        key = token if isinstance(value, dict) else int(token)
    raise AssertionError("unreachable: the last token is None")


def _put(root: list[Any], tokens: list[str], value: Any, owned: set[int], *, must_exist: bool) -> None:
    if not tokens:
        root[0] = value
        return
    container = _open(root, tokens[:-1], owned)
    last = tokens[-1]
    if isinstance(container, dict):
        if must_exist and last not in container:
            raise _MissingError(f"doc is missing key: {last}")
        container[last] = value
    elif must_exist:
        container[_index(container, last, limit=len(container))] = value
    elif last == "-":
        container.append(value)
    else:
        container.insert(_index(container, last, limit=len(container) + 1), value)


def _take(root: list[Any], tokens: list[str], owned: set[int]) -> Any:
    if not tokens:
        value, root[0] = root[0], None
        return value
    container = _open(root, tokens[:-1], owned)
    last = tokens[-1]
    value = _step(container, last)
    if isinstance(container, dict):
        del container[last]
    else:
        del container[int(last)]
    return value
