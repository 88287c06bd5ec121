"""The order of a list after a strategic merge patch: what the patch says first, then what the live list had. Pure.

Items that the patch (or its `$setElementOrder`) names come in its order, the others in the live order; the two are
interleaved by their places in the live list, best effort, as Kubernetes does.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import orjson

from federation.base.errors import BadRequest


def quoted(text: str) -> str:
    """Return a text as Go's %q prints it."""
    return orjson.dumps(text).decode()


def identity(value: Any) -> Hashable:
    """Return what two values share exactly when they are the same JSON scalar."""
    return (type(value) is bool, value) if not isinstance(value, dict | list) else orjson.dumps(value)


def _identities(items: Sequence[Any], key: str) -> list[Hashable]:
    if not key:
        return [identity(item) for item in items]
    return [identity(item.get(key)) if isinstance(item, Mapping) else identity(item) for item in items]


def check(name: str, patch: Sequence[Any], order: Sequence[Any], key: str) -> None:
    """Raise BadRequest unless every item of the patch's list is in `order`, and in the same order."""
    plain = [item for item in patch if not (isinstance(item, Mapping) and "$patch" in item)]
    wanted = _identities(order, key)
    position = 0
    for item in _identities(plain, key):
        while position < len(wanted) and wanted[position] != item:
            position += 1
        if position == len(wanted):
            raise BadRequest(
                f"The order in patch list:\n{_shown(plain)}\n doesn't match $setElementOrder list for {name}:\n"
                f"{_shown(order)}\n"
            )
        position += 1


def restore(items: list[Any], order: Sequence[Any], live: Sequence[Any], key: str) -> list[Any]:
    """Return `items` in their final order: those in `order` as there, interleaved with the rest by live place."""
    ranks = {name: rank for rank, name in reversed(list(enumerate(_identities(order, key))))}
    places = {name: place for place, name in reversed(list(enumerate(_identities(live, key))))}
    named = _identities(items, key)
    right = sorted((pair for pair in zip(named, items, strict=True) if pair[0] in ranks), key=lambda p: ranks[p[0]])
    left = [pair for pair in zip(named, items, strict=True) if pair[0] not in ranks]
    left.sort(key=lambda pair: places.get(pair[0], len(places)))
    result: list[Any] = []
    next_left = next_right = 0
    while next_left < len(left) and next_right < len(right):
        mine, other = places.get(left[next_left][0]), places.get(right[next_right][0])
        if mine is not None and other is not None and mine < other:
            result.append(left[next_left][1])
            next_left += 1
        else:
            result.append(right[next_right][1])
            next_right += 1
    result += [item for _, item in left[next_left:]]
    result += [item for _, item in right[next_right:]]
    return result


def _shown(value: Any) -> str:
    return orjson.dumps(value).decode()
