"""Refuse expressions that put an optional value where it becomes data. Pure.

The CEL runtime aborts the process when a map with an optional value is converted to Python, as a result or as an
argument of one of our functions. So an optional value is followed from where it is made through the syntax tree, and
an expression that puts it into a list or map, or passes it to a function, is not compiled. The compiler's types do not
suffice: for data of unknown type they are dynamic. Kubernetes' own expressions unwrap optional values with orValue(),
or omit them with `?`.
"""

from typing import Final

from federation.apiserver.semantics.cel.checkedexpr import Node, find_optional_nodes, parse_checked_expr

_MAKERS: Final = frozenset({"optional.of", "optional.none", "optional.ofNonZeroValue", "_?._", "_[?_]"})
_UNWRAPPING: Final = frozenset({"hasValue", "value", "or", "orValue"})
"""Member functions of optional values; of these, `or` and `orValue` take one as an argument."""
_OPERATORS: Final = frozenset({"_?._", "_[?_]", "_[_]", "_==_", "_!=_", "_?_:_", "type", "or", "orValue"})
"""Functions that take an optional value as an argument."""


def find_misplaced_optional(serialized: bytes) -> int | None:
    """Return the offset of an optional value that becomes data, None if there is none."""
    tree, places = parse_checked_expr(serialized)
    finder = _Finder(find_optional_nodes(serialized))
    finder.is_optional(tree, frozenset())
    return None if finder.misplaced is None else places.get(finder.misplaced, 0)


class _Finder:
    """Follows optional values through one expression."""

    def __init__(self, typed: frozenset[int]) -> None:
        self.misplaced: int | None = None
        """The node of an optional value that becomes data."""
        self._typed = typed

    def is_optional(self, node: Node, names: frozenset[str]) -> bool:
        """Return whether the node may be an optional value; `names` are the variables that may be one."""
        match node.kind:
            case "loop":
                found = self._visit_loop(node, names)
            case "call":
                found = self._visit_call(node, names)
            case "ident":
                found = node.name in names
            case "select":
                assert node.target is not None
                found = self.is_optional(node.target, names) and not node.is_test
            case _:
                for position, part in enumerate(node.parts):
                    if self.is_optional(part, names) and position not in node.omitted:
                        self.misplaced = part.id
                found = False
        return found or node.id in self._typed

    def _visit_call(self, node: Node, names: frozenset[str]) -> bool:
        parts = [self.is_optional(part, names) for part in node.parts]
        for part, is_optional in zip(node.parts, parts, strict=True):
            if is_optional and node.name not in _OPERATORS:
                self.misplaced = part.id
        if node.target is not None and self.is_optional(node.target, names) and node.name not in _UNWRAPPING:
            self.misplaced = node.target.id
        if node.name in ("_?_:_", "orValue", "_[_]"):
            return any(parts)
        return node.name in _MAKERS or node.name == "or"

    def _visit_loop(self, node: Node, names: frozenset[str]) -> bool:
        assert node.target is not None
        start, condition, step, result = node.parts
        if self.is_optional(node.target, names):
            self.misplaced = node.target.id
        accumulator = frozenset({node.accumulator})
        inner = names - {node.name, node.accumulator}
        if self.is_optional(start, names) or self.is_optional(step, inner):
            inner |= accumulator
        self.is_optional(condition, inner)
        self.is_optional(step, inner)
        return self.is_optional(result, (names - accumulator) | (inner & accumulator))
