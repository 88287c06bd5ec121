"""Sets of field paths, in the very shape in which FieldsV1 stores them: nested mappings, worked on as they are. Pure.

A key is a path element: `f:replicas` a field, `k:{"name":"nginx"}` the item of a keyed list, `v:"x"` a member of a
set, `i:0` an index. A child `{}` says that the path itself is in the set, `.` beside other keys says the same of the
path that has more below. Nothing is decoded or copied but what changes: every function returns its first argument when
that is the answer. How sets come from objects is `fielddiff.py`; who owns them is `managedfields.py`.
"""

from collections.abc import Iterator
from typing import Any, Final

import orjson

Trie = dict[str, Any]

WHOLE: Final[Trie] = {"*": {}}
"""Stands for a path and everything below it, as the second operand of `difference` and `overlap`; never stored."""

SELF: Final = "."


def is_member(node: Trie) -> bool:
    """Tell whether the path of this node is itself in the set."""
    return not node or SELF in node


def union(left: Trie, right: Trie) -> Trie:
    """Return the paths of either set. Roots only: `{}` is the empty set here."""
    if not left:
        return right
    if not right or left is right:
        return left
    return _union(left, right)


def _union(left: Trie, right: Trie) -> Trie:
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


def in_element_order(trie: Trie) -> Trie:
    """Return the same set with its elements in the order in which Kubernetes writes them."""
    return {element: in_element_order(trie[element]) if trie[element] else {} for element in sorted(trie)}


def difference(left: Trie, right: Trie) -> Trie:
    """Return the paths of `left` that are not in `right`; an element that loses its last path disappears."""
    result = None
    for element, below in right.items():
        mine = left.get(element)
        if mine is None:
            continue
        rest = _rest(mine, below)
        if rest is not mine:
            result = dict(left) if result is None else result
            if rest is None:
                del result[element]
            else:
                result[element] = rest
    return left if result is None else result


def _rest(mine: Trie, other: Trie) -> Trie | None:
    """Return what is left of a node; None when nothing is."""
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


def overlap(owned: Trie, changed: Trie) -> Trie:
    """Return the paths that are in both; `{}` when there are none."""
    found: Trie = {}
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
            below = overlap(mine, change)
            if below:
                found[element] = below
    return found


def paths(trie: Trie) -> Iterator[str]:
    """Yield the set's paths as people read them, `.spec.containers[name="nginx"].image`, short ones first."""
    yield from _paths(trie, "")


def _paths(trie: Trie, prefix: str) -> Iterator[str]:
    elements = sorted(trie.keys() - {SELF})
    for element in elements:
        if is_member(trie[element]):
            yield prefix + readable(element)
    for element in elements:
        yield from _paths(trie[element], prefix + readable(element))


def readable(element: str) -> str:
    """Return one path element as people read it."""
    kind, _, rest = element.partition(":")
    if kind == "f":
        return f".{rest}"
    if kind == "v":
        return f"[={rest}]"
    if kind == "k":
        keys = orjson.loads(rest)
        return "[" + ",".join(f"{name}={orjson.dumps(value).decode()}" for name, value in keys.items()) + "]"
    return f"[{rest}]"


def is_trie(value: object) -> bool:
    """Tell whether a value from outside has the shape of a set of paths."""
    if not isinstance(value, dict):
        return False
    return all(
        (element == SELF and below == {}) or (element[:2] in _KINDS and is_trie(below))
        for element, below in value.items()
        if isinstance(element, str)
    )


_KINDS = frozenset({"f:", "k:", "v:", "i:"})
