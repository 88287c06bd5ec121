"""kube-apiserver's cost estimate of CEL expressions: an upper bound that is known before they run. Pure.

One unit is about one step of an evaluation. Loops are multiplied by the largest number of items, string functions by
the largest length that the schema allows. A CRD with a rule above the limit is refused, so no object can make the
server spend seconds on it. The costs are those of cel-go's checker and of Kubernetes' library, because they decide
which CRDs a cluster accepts; a function without a cost there costs one unit. Where this module knows less about a type
than cel-go, the estimate is lower, never higher.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from federation.apiserver.semantics.cel.checkedexpr import RESERVED_WORDS, Node
from federation.apiserver.semantics.cel.decltypes import DeclType

_UNKNOWN: Final = DeclType("unknown", 1)
_TRUTH, _NUMBER, _OTHER = DeclType("bool", 1), DeclType("int", 1), DeclType("other", 1)
_COMPARISONS: Final = frozenset({"_==_", "_!=_"})
_ORDERS: Final = frozenset({"_<_", "_<=_", "_>_", "_>=_"})
_TEXTUAL: Final = frozenset({"text", "bytes"})
_SAME_LENGTH: Final = frozenset({"lowerAscii", "upperAscii", "substring", "trim"})
_PARSERS: Final = frozenset({"url", "quantity", "ip", "cidr", "semver"})
_CHECKS: Final = frozenset({"isQuantity", "isIP", "isCIDR", "isSemver"})
_ADDRESS_COSTS: Final = {"containsIP": 4, "containsCIDR": 7}
"""Addresses and prefixes have at most 16 bytes."""
_FORMAT_COST: Final = 32
"""The longest regular expression of a named format, by a quarter of its letters."""
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
class CostEstimator:
    """Estimates the cost of one expression."""

    names: Mapping[str, DeclType]
    """The types of the variables."""
    undefined: dict[int, str] = field(default_factory=dict)
    """Selections of fields that the schema does not have: the error by node id."""

    @property
    def _root(self) -> DeclType:
        return self.names["self"]

    def estimate(self, tree: Node) -> float:
        """Return the largest cost of evaluating the expression, math.inf if it has no bound."""
        return self._visit(tree, dict(self.names))[0]

    def _visit(self, node: Node, names: dict[str, DeclType]) -> tuple[float, DeclType]:
        match node.kind:
            case "const":
                return 0, _constant(node)
            case "ident":
                return 1, names.get(node.name, _UNKNOWN)
            case "select":
                return self._select(node, names)
            case "list":
                visited = [self._visit(part, names) for part in node.parts]
                of = visited[0][1] if visited else None
                made = DeclType("list", of=of).computed(self._root, len(visited))
                return 10 + sum(cost for cost, _ in visited), made
            case "map":
                return 30 + sum(self._visit(part, names)[0] for part in node.parts), DeclType(
                    "map", len(node.parts) / 2
                )
            case "loop":
                return self._loop(node, names)
        return self._call(node, names)

    def _select(self, node: Node, names: dict[str, DeclType]) -> tuple[float, DeclType]:
        assert node.target is not None
        cost, decl = self._visit(node.target, names)
        found = decl.field(_unescaped(node.name))
        if found is None:
            self.undefined[node.id] = f"undefined field '{node.name}'"
            found = _UNKNOWN
        elif decl.raw is not None and (kind := _TYPE_NAMES.get(decl.kind)):
            self.undefined[node.id] = f"type '{kind}' does not support field selection"
        if node.is_test:
            return cost, _TRUTH
        return cost + (decl.kind != "dyn"), found

    def _loop(self, node: Node, names: dict[str, DeclType]) -> tuple[float, DeclType]:
        assert node.target is not None
        start, condition, step, result = node.parts
        range_cost, over = self._visit(node.target, names)
        start_cost, accumulated = self._visit(start, names)
        inner = {**names, node.name: over.item(), node.accumulator: accumulated}
        step_cost, stepped = self._visit(step, inner)
        each = self._visit(condition, inner)[0] + step_cost
        result_cost, found = self._visit(result, {**names, node.accumulator: accumulated})
        if accumulated.kind == "list" and node.name != "#unused":
            found = stepped.computed(self._root, over.size)  # of filter() or map()
        return range_cost + start_cost + _times(over.size, each) + result_cost, found

    def _call(self, node: Node, names: dict[str, DeclType]) -> tuple[float, DeclType]:
        visited = [self._visit(part, names) for part in node.parts]
        given = [decl for _, decl in visited]
        cost = sum(cost for cost, _ in visited)
        name = node.name
        if name in ("_&&_", "_||_"):
            return cost, _TRUTH
        if name == "_?_:_":
            larger = max(given[1], given[2], key=lambda decl: decl.size)
            return visited[0][0] + max(visited[1][0], visited[2][0]), larger.computed(self._root)
        if name in ("_[_]", "_[?_]", "_?._"):
            return cost + 1, _element(given[0])
        if node.target is None:
            more, decl = _function(name, given)
        else:
            if name == "replace" and node.parts[0].kind != "const":
                given[0] = DeclType("text", 0)  # the shortest text to replace makes the longest result
            target_cost, target = self._visit(node.target, names)
            more, decl = _member(name, target, given)
            cost += target_cost
        return cost + more, decl.computed(self._root)


def _function(name: str, given: list[DeclType]) -> tuple[float, DeclType]:
    """Return the cost and result of an operator or a global function."""
    if name in _COMPARISONS:
        return _per_letter(min(decl.size for decl in given)), _TRUTH
    if name in _ORDERS:
        is_text = any(decl.kind in _TEXTUAL for decl in given)
        return (_per_letter(min(decl.size for decl in given)) if is_text else 1), _TRUTH
    if name == "_+_":
        return _sum(*given)
    if name == "@in":
        return (given[1].size if given[1].kind == "list" else 1), _TRUTH
    if name in _PARSERS or name in _CHECKS:
        return _per_letter(given[0].size), _OTHER if name in _PARSERS else _TRUTH
    if name == "ip.isCanonical":
        return _per_letter(given[0].size * 2), _TRUTH
    if name == "bytes":
        return _per_letter(given[0].size), DeclType("bytes", given[0].size * 4)
    if name == "string":
        return 1, DeclType("text", given[0].size if given[0].kind in _TEXTUAL else math.inf)
    return 1, _NUMBER if name in ("size", "int", "uint", "double", "-_", "_-_", "_*_", "_/_", "_%_") else _UNKNOWN


def _member(name: str, target: DeclType, given: list[DeclType]) -> tuple[float, DeclType]:
    """Return the cost and result of a member function."""
    size = target.size
    first = given[0].size if given else 0
    match name:
        case "matches":
            return _per_letter(size + 1) * math.ceil(first / 4), _TRUTH
        case "find" | "findAll":
            decl = DeclType("text", size) if name == "find" else DeclType("list", size, of=DeclType("text", size))
            return _per_letter(size + 1) * math.ceil(first / 4), decl
        case "contains":
            return _per_letter(size) * _per_letter(first), _TRUTH
        case "startsWith" | "endsWith":
            return _per_letter(first), _TRUTH
        case "split":
            return _per_letter(size * 2), DeclType("list", size, of=DeclType("text", size))
        case "replace":
            return _per_letter(size * 2), DeclType("text", _replaced(size, first, given[1].size))
        case "containsIP" | "containsCIDR":
            parsed = _per_letter(first) if given[0].kind == "text" else 0
            return _ADDRESS_COSTS[name] + parsed, _TRUTH
        case "validate":
            return _times(_per_letter(first), _FORMAT_COST), _OTHER
        case "join":
            letters = _times(size, target.item().size) + _times(max(0, size - 1), first)
            return _per_letter(letters), DeclType("text", letters)
        case "format":
            return _per_letter(size), DeclType("text", 1)
    if name in _SAME_LENGTH:
        return _per_letter(size), DeclType("text", size)
    if name in _LIST_FUNCTIONS:
        if target.kind == "list":
            each = 1 + _per_letter(target.item().size) if target.item().kind in _TEXTUAL else 1
            return _times(size, each), _UNKNOWN
        return _per_letter(size), _NUMBER
    return 1, _NUMBER if name == "size" else _UNKNOWN


def _replaced(size: float, old: float, new: float) -> float:
    """Return the largest length of a text after a replacement; an empty text is found around each letter."""
    if not old:
        return size + _times(size + 1, new)
    return size if new <= old else _times(math.ceil(size / old) if math.isfinite(size) else size, new)


def _sum(left: DeclType, right: DeclType) -> tuple[float, DeclType]:
    size = left.size + right.size
    if left.kind in _TEXTUAL or right.kind in _TEXTUAL:
        return _per_letter(size), DeclType("text", size)
    if left.kind == "list" or right.kind == "list":
        known = next((decl.item() for decl in (left, right) if decl.item().kind != "unknown"), None)
        return 1, DeclType("list", size, of=known)
    return 1, _NUMBER


def _element(decl: DeclType) -> DeclType:
    """Return the type of an indexed list item or map value."""
    if decl.kind == "map":
        return decl.field("") or _UNKNOWN
    return decl.item() if decl.kind == "list" else _UNKNOWN


def _constant(node: Node) -> DeclType:
    if isinstance(node.value, str):
        return DeclType("text", len(node.value))
    return _TRUTH if isinstance(node.value, bool) else _NUMBER


def _per_letter(size: float) -> float:
    return math.inf if math.isinf(size) else math.ceil(size * 0.1)


def _times(count: float, cost: float) -> float:
    return 0 if count == 0 or cost == 0 else count * cost


def _unescaped(name: str) -> str:
    if name.startswith("__") and name.endswith("__") and name[2:-2] in RESERVED_WORDS:
        return name[2:-2]
    for escaped, letter in (("__dot__", "."), ("__dash__", "-"), ("__slash__", "/"), ("__underscores__", "__")):
        name = name.replace(escaped, letter)
    return name
