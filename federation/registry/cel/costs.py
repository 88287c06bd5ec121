"""How much work a rule can be at most, before it ever runs: kube-apiserver's cost estimate. Pure.

A unit is about one step of an evaluation. Loops cost as many times as their list can have items by the schema, texts by
the length they can have. A rule that could exceed the limit is refused when its definition is written, so that no
object can make the server spend seconds on it. The prices are those of cel-go's checker and of Kubernetes' library,
because which definitions a cluster accepts depends on them; what neither prices costs one unit. Where we know less of
a type than they do, the estimate is lower, never higher.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from federation.registry.cel.sizes import Shape
from federation.registry.cel.trees import Node

_UNKNOWN: Final = Shape("unknown", 1)
_TRUTH, _NUMBER, _OTHER = Shape("bool", 1), Shape("int", 1), Shape("other", 1)
_COMPARISONS: Final = frozenset({"_==_", "_!=_"})
_ORDERS: Final = frozenset({"_<_", "_<=_", "_>_", "_>=_"})
_TEXTUAL: Final = frozenset({"text", "bytes"})
_SAME_LENGTH: Final = frozenset({"lowerAscii", "upperAscii", "substring", "trim", "url", "replace"})
_PARSERS: Final = frozenset({"quantity", "isQuantity", "ip", "isIP", "cidr", "isCIDR", "isURL"})
_TYPE_NAMES: Final = {
    "text": "string",
    "bytes": "bytes",
    "int": "int",
    "double": "double",
    "bool": "bool",
    "list": "list",
}
_LIST_FUNCTIONS: Final = frozenset({"isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"})


@dataclass(slots=True)
class Estimate:
    """Walks one tree; `undefined` says of selections that no object of the schema can answer why, by their ids."""

    names: Mapping[str, Shape]
    """What is known of the variables."""
    undefined: dict[int, str] = field(default_factory=dict)

    def cost(self, tree: Node) -> float:
        """Return the largest cost of evaluating the expression, math.inf for one without any bound."""
        return self._visit(tree, dict(self.names))[0]

    def _visit(self, node: Node, names: dict[str, Shape]) -> tuple[float, Shape]:
        match node.kind:
            case "const":
                return 0, _constant(node)
            case "ident":
                return 1, names.get(node.name, _UNKNOWN)
            case "select":
                return self._select(node, names)
            case "list":
                visited = [self._visit(part, names) for part in node.parts]
                of = visited[0][1] if visited else _UNKNOWN
                return 10 + sum(cost for cost, _ in visited), Shape("list", len(visited), of=of)
            case "map":
                return 30 + sum(self._visit(part, names)[0] for part in node.parts), Shape("map", len(node.parts) / 2)
            case "loop":
                return self._loop(node, names)
        return self._call(node, names)

    def _select(self, node: Node, names: dict[str, Shape]) -> tuple[float, Shape]:
        assert node.target is not None
        cost, shape = self._visit(node.target, names)
        found = shape.field(_unescaped(node.name))
        if found is None:
            self.undefined[node.id] = f"undefined field '{node.name}'"
            found = _UNKNOWN
        elif shape.raw is not None and (kind := _TYPE_NAMES.get(shape.kind)):
            self.undefined[node.id] = f"type '{kind}' does not support field selection"
        if node.is_test:
            return cost, _TRUTH
        return cost + (shape.kind != "dyn"), found

    def _loop(self, node: Node, names: dict[str, Shape]) -> tuple[float, Shape]:
        assert node.target is not None
        start, condition, step, result = node.parts
        range_cost, over = self._visit(node.target, names)
        start_cost, accumulated = self._visit(start, names)
        inner = {**names, node.name: over.item(), node.accumulator: accumulated}
        each = self._visit(condition, inner)[0] + self._visit(step, inner)[0]
        result_cost, found = self._visit(result, {**names, node.accumulator: accumulated})
        if accumulated.kind == "list" and node.name != "#unused":
            # What filter() leaves are items of what it went over; map() makes anything of them.
            found = Shape("list", over.size, of=_UNKNOWN)
        return range_cost + start_cost + _times(over.size, each) + result_cost, found

    def _call(self, node: Node, names: dict[str, Shape]) -> tuple[float, Shape]:
        visited = [self._visit(part, names) for part in node.parts]
        given = [shape for _, shape in visited]
        cost = sum(cost for cost, _ in visited)
        name = node.name
        if name in ("_&&_", "_||_"):
            return cost, _TRUTH
        if name == "_?_:_":
            larger = max(given[1], given[2], key=lambda shape: shape.size)
            return visited[0][0] + max(visited[1][0], visited[2][0]), larger
        if name in ("_[_]", "_[?_]", "_?._"):
            return cost + 1, _element(given[0])
        if node.target is None:
            more, shape = _function(name, given)
        else:
            target_cost, target = self._visit(node.target, names)
            more, shape = _member(name, target, given)
            cost += target_cost
        return cost + more, shape


def _function(name: str, given: list[Shape]) -> tuple[float, Shape]:
    """Return the price and result of an operator or a function of no object."""
    if name in _COMPARISONS:
        return _per_letter(min(shape.size for shape in given)), _TRUTH
    if name in _ORDERS:
        is_text = any(shape.kind in _TEXTUAL for shape in given)
        return (_per_letter(min(shape.size for shape in given)) if is_text else 1), _TRUTH
    if name == "_+_":
        return _sum(*given)
    if name == "@in":
        return (given[1].size if given[1].kind == "list" else 1), _TRUTH
    if name in _PARSERS or name == "url":
        return (1 if name in _PARSERS else _per_letter(given[0].size)), _OTHER
    if name == "ip.isCanonical":
        return 1, _TRUTH
    if name == "bytes":
        return _per_letter(given[0].size), Shape("bytes", given[0].size * 4)
    if name == "string":
        return 1, Shape("text", given[0].size if given[0].kind in _TEXTUAL else math.inf)
    return 1, _NUMBER if name in ("size", "int", "uint", "double", "-_", "_-_", "_*_", "_/_", "_%_") else _UNKNOWN


def _member(name: str, target: Shape, given: list[Shape]) -> tuple[float, Shape]:
    """Return the price and result of a function that is called on a value."""
    size = target.size
    first = given[0].size if given else 0
    match name:
        case "matches":
            return _per_letter(size + 1) * math.ceil(first / 4), _TRUTH
        case "find" | "findAll":
            shape = Shape("text", size) if name == "find" else Shape("list", size, of=Shape("text", size))
            return _per_letter(size + 1) * math.ceil(first / 4), shape
        case "contains":
            return _per_letter(size) * _per_letter(first), _TRUTH
        case "startsWith" | "endsWith":
            return _per_letter(first), _TRUTH
        case "split":
            return _per_letter(size * 2), Shape("list", size, of=Shape("text", size))
        case "join":
            letters = _times(size, target.item().size) + _times(max(0, size - 1), first)
            return _per_letter(letters), Shape("text", letters)
        case "format":
            return _per_letter(size), Shape("text", 1)
    if name in _SAME_LENGTH:
        return _per_letter(size * (2 if name == "replace" else 1)), Shape("text", size)
    if name in _LIST_FUNCTIONS:
        if target.kind == "list":
            each = 1 + _per_letter(target.item().size) if target.item().kind in _TEXTUAL else 1
            return _times(size, each), _UNKNOWN
        return _per_letter(size), _NUMBER
    return 1, _NUMBER if name == "size" else _UNKNOWN


def _sum(left: Shape, right: Shape) -> tuple[float, Shape]:
    size = left.size + right.size
    if left.kind in _TEXTUAL or right.kind in _TEXTUAL:
        return _per_letter(size), Shape("text", size)
    if left.kind == "list" or right.kind == "list":
        return 1, Shape("list", size, of=_UNKNOWN)
    return 1, _NUMBER


def _element(shape: Shape) -> Shape:
    """Return what an index finds: an item or a value."""
    if shape.kind == "map":
        return shape.field("") or _UNKNOWN
    return shape.item() if shape.kind == "list" else _UNKNOWN


def _constant(node: Node) -> Shape:
    if isinstance(node.value, str):
        return Shape("text", len(node.value.encode()))
    return _TRUTH if isinstance(node.value, bool) else _NUMBER


def _per_letter(size: float) -> float:
    return math.inf if math.isinf(size) else math.ceil(size * 0.1)


def _times(count: float, cost: float) -> float:
    return 0 if count == 0 or cost == 0 else count * cost


def _unescaped(name: str) -> str:
    if name.startswith("__") and name.endswith("__") and name[2:-2].isalpha():
        return name[2:-2]
    for escaped, letter in (("__dot__", "."), ("__dash__", "-"), ("__slash__", "/"), ("__underscores__", "__")):
        name = name.replace(escaped, letter)
    return name
