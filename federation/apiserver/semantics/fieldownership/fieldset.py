"""Set operations on field sets in their FieldsV1 form: nested mappings by path element. Pure.

`f:replicas` is a field, `k:{"name":"nginx"}` an item of a list of type map, `v:"x"` an item of a set, `i:0` an index.
A child `{}` means that the path is in the set; `.` means the same for a path with more paths below. A function returns
its first argument if the result equals it. `fielddiff.py` computes sets, `managedfields.py` stores them.
"""

from collections.abc import Iterator
from typing import Any, Final

import orjson

FieldSet = dict[str, Any]

WHOLE: Final[FieldSet] = {"*": {}}
"""A path with everything below it; only as the second operand of `difference` and `intersection`, never stored."""

SELF: Final = "."


def is_member(node: FieldSet) -> bool:
    """Return True if the path of this node is in the set."""
    return not node or SELF in node


def union(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the union of two sets. Only for roots, where `{}` is the empty set."""
    if not left:
        return right
    if not right or left is right:
        return left
    return _union(left, right)


def _union(left: FieldSet, right: FieldSet) -> FieldSet:
    if left is right or left == right:
        return left
    if not left:
        return right if SELF in right else {SELF: {}, **right}
    if not right:
        return left if SELF in left else {SELF: {}, **left}
    result = None
    grows = False
    for element, below in right.items():
        mine = left.get(element)
        if mine is None:
            result = result or dict(left)
            result[element] = below
            grows = True
        elif mine is not below:
            merged = _union(mine, below) if element != SELF else mine
            if merged is not mine:
                result = result or dict(left)
                result[element] = merged
    if result is None:
        return left
    return dict(sorted(result.items())) if grows else result


def sort_elements(field_set: FieldSet) -> FieldSet:
    """Return the set with its elements in the order of Kubernetes."""
    return {element: sort_elements(field_set[element]) if field_set[element] else {} for element in sorted(field_set)}


def difference(left: FieldSet, right: FieldSet) -> FieldSet:
    """Return the paths of `left` that are not in `right`, without elements that have no path left."""
    result = None
    for element, below in right.items():
        mine = left.get(element)
        if mine is None:
            continue
        rest = _node_difference(mine, below)
        if rest is not mine:
            result = dict(left) if result is None else result
            if rest is None:
                del result[element]
            else:
                result[element] = rest
    return left if result is None else result


def _node_difference(mine: FieldSet, other: FieldSet) -> FieldSet | None:
    """Return the difference of two nodes, None if it is empty."""
    if other is WHOLE:
        return None
    if not mine:
        return None if is_member(other) else mine
    if not other:
        if SELF not in mine:
            return mine
        rest = {element: below for element, below in mine.items() if element != SELF}
        return rest or None
    rest = difference(mine, other)
    if len(rest) == 1 and SELF in rest:
        return {}
    return rest or None


def intersection(owned: FieldSet, changed: FieldSet) -> FieldSet:
    """Return the paths that are in both sets."""
    found: FieldSet = {}
    for element, change in changed.items():
        mine = owned.get(element)
        if mine is None:
            continue
        if change is WHOLE:
            found[element] = mine
        elif element == SELF or not change:
            if is_member(mine):
                found[element] = {}
        elif not mine:
            if SELF in change:
                found[element] = {}
        else:
            below = intersection(mine, change)
            if below:
                found[element] = below
    return found


def paths(field_set: FieldSet) -> Iterator[str]:
    """Yield the paths in readable form, for example `.spec.containers[name="nginx"].image`, parents first."""
    yield from _paths(field_set, "")


def _paths(field_set: FieldSet, prefix: str) -> Iterator[str]:
    elements = sorted(field_set.keys() - {SELF})
    for element in elements:
        if is_member(field_set[element]):
            yield prefix + format_element(element)
    for element in elements:
        yield from _paths(field_set[element], prefix + format_element(element))


def format_element(element: str) -> str:
    """Return one path element in readable form."""
    kind, _, rest = element.partition(":")
    if kind == "f":
        return f".{rest}"
    if kind == "v":
        return f"[={rest}]"
    if kind == "k":
        keys = orjson.loads(rest)
        return "[" + ",".join(f"{name}={orjson.dumps(value).decode()}" for name, value in keys.items()) + "]"
    return f"[{rest}]"


def is_field_set(value: object) -> bool:
    """Return True if a value from a client is a valid field set."""
    if not isinstance(value, dict):
        return False
    for element, below in value.items():
        if element[:2] not in _KINDS and element != SELF:
            return False
        # Most elements have nothing below.
        if below != {} and (element == SELF or not is_field_set(below)):
            return False
    return True


_KINDS = frozenset({"f:", "k:", "v:", "i:"})
