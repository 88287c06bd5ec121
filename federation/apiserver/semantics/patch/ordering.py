"""The order of a list after a strategic merge patch. Pure.

Items that the patch or its `$setElementOrder` lists have the order of the patch, other items keep the live order. The
two sequences are interleaved by their positions in the live list, best effort, as in k8s.io/apimachinery.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import orjson

from federation.apimachinery.errors import BadRequest
from federation.apiserver.semantics.schema.valuevalidation import to_json


def scalar_key(value: Any) -> Hashable:
    """Return a key that is equal for equal JSON values; True and 1 differ."""
    return (type(value) is bool, value) if not isinstance(value, dict | list) else orjson.dumps(value)


def _item_keys(items: Sequence[Any], key: str) -> list[Hashable]:
    if not key:
        return [scalar_key(item) for item in items]
    return [scalar_key(item.get(key)) if isinstance(item, Mapping) else scalar_key(item) for item in items]


def validate_set_element_order(name: str, patch: Sequence[Any], order: Sequence[Any], key: str) -> None:
    """Raise BadRequest unless every item of the patch's list is in `order`, and in the same order."""
    plain = [item for item in patch if not (isinstance(item, Mapping) and "$patch" in item)]
    wanted = _item_keys(order, key)
    position = 0
    for item in _item_keys(plain, key):
        while position < len(wanted) and wanted[position] != item:
            position += 1
        if position == len(wanted):
            raise BadRequest(
                f"The order in patch list:\n{to_json(plain)}\n doesn't match $setElementOrder list for {name}:\n"
                f"{to_json(order)}\n"
            )
        position += 1


def normalize_element_order(items: list[Any], order: Sequence[Any], live: Sequence[Any], key: str) -> list[Any]:
    """Return `items` in their final order: listed items as in `order`, the others between them as in `live`."""
    # Reversed, so that the first of several items with one key decides.
    ranks = {name: rank for rank, name in reversed(list(enumerate(_item_keys(order, key))))}
    positions = {name: position for position, name in reversed(list(enumerate(_item_keys(live, key))))}
    pairs = list(zip(_item_keys(items, key), items, strict=True))
    listed = sorted((pair for pair in pairs if pair[0] in ranks), key=lambda pair: ranks[pair[0]])
    others = [pair for pair in pairs if pair[0] not in ranks]
    others.sort(key=lambda pair: positions.get(pair[0], len(positions)))
    result: list[Any] = []
    next_other = next_listed = 0
    while next_other < len(others) and next_listed < len(listed):
        left, right = positions.get(others[next_other][0]), positions.get(listed[next_listed][0])
        if left is not None and right is not None and left < right:
            result.append(others[next_other][1])
            next_other += 1
        else:
            result.append(listed[next_listed][1])
            next_listed += 1
    result += [item for _, item in others[next_other:]]
    result += [item for _, item in listed[next_listed:]]
    return result
