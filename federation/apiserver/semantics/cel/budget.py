"""The cost limit of one evaluation of a CEL expression: an upper bound of time and memory, before it runs. Pure.

The CEL runtime has no limit of memory and holds the interpreter until it returns. So an expression runs only if its
bound is within a limit. The bound follows the values through the syntax tree: data have their real sizes, computed
values the sizes that follow. Times are rounded up from measurements on a slow core. `map()` and `filter()` are
quadratic, because the runtime copies the list for each item that they add.

`costestimate.py` has kube-apiserver's estimate, which decides about CustomResourceDefinitions and knows no data.

Decision: docs/decisions/0084-expressions-have-a-budget.md
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from federation.apiserver.semantics.cel.bounds import SCALAR_BYTES, Bound, join
from federation.apiserver.semantics.cel.checkedexpr import Node
from federation.apiserver.semantics.cel.functioncosts import apply_function

ITERATIONS_MAX: Final = 10_000
"""The runtime stops after this many iterations of all loops of an expression together."""
_STEP_US: Final = 0.06
_COPIED_ITEM_US, _COPIED_ITEM_BYTES = 0.05, 16
_CONVERTED_US: Final = 0.5
"""For each value of a result that becomes Python's."""


@dataclass(frozen=True, slots=True)
class Limit:
    """The most that one evaluation may take."""

    time_ms: float
    bytes: int


@dataclass(frozen=True, slots=True)
class Cost:
    """The bound of one evaluation."""

    time_ms: float
    bytes: float

    def excess(self, limit: Limit) -> str:
        """Return how the cost exceeds a limit, "" if it does not."""
        if self.bytes > limit.bytes:
            return f"estimated memory of {_shown(self.bytes)} bytes exceeds the limit of {limit.bytes} bytes"
        if self.time_ms > limit.time_ms:
            return f"estimated cost of {_shown(self.time_ms)} ms exceeds the limit of {limit.time_ms:g} ms"
        return ""


TENANT_LIMIT: Final = Limit(time_ms=10, bytes=8 * 1024 * 1024)
"""Of gates and device selectors, which users of namespaces write."""
ADMISSION_LIMIT: Final = Limit(time_ms=50, bytes=32 * 1024 * 1024)
"""Of policies, match conditions, validation rules and status rules, which administrators write."""


def largest_data() -> Bound:
    """Return the bound of a value of which nothing is known but the limits of a request."""
    return Bound(3 * 1024 * 1024, 100_000, is_assumed=True)


def assumed_data() -> Bound:
    """Return the bound of data without a schema when an expression is written.

    With the largest request no loop would be accepted; larger data than this meet the limit when they are evaluated.
    """
    return Bound(128, 32, is_assumed=True)


def estimate(tree: Node, names: Mapping[str, Bound], *, is_result_data: bool) -> Cost:
    """Return the bound of evaluating an expression over values with these bounds.

    `is_result_data` is True if the result may be a list, map or text.
    """
    estimator = _Estimator()
    result = estimator.visit(tree, dict(names), 1)
    if is_result_data:
        estimator.charge(1, result.cells * _CONVERTED_US + result.size * 0.001, result.size * 4)
    return Cost(estimator.time_us / 1000, estimator.made)


class _Estimator:
    """Adds up the costs of one expression."""

    def __init__(self) -> None:
        self.time_us = 0.0
        self.made = 0.0

    def charge(self, times: float, time_us: float, made: float = 0) -> None:
        """Add the cost of an operation that happens `times` times."""
        self.time_us += times * time_us
        self.made += times * made

    def visit(self, node: Node, names: dict[str, Bound], times: float) -> Bound:
        """Return the bound of a node's value and add its cost; it is evaluated at most `times` times."""
        self.charge(times, _STEP_US)
        match node.kind:
            case "const":
                return Bound() if node.value is None else Bound.of((node.value,))
            case "ident":
                return names.get(node.name) or Bound.of(())
            case "select":
                assert node.target is not None
                target = self.visit(node.target, names, times)
                return Bound() if node.is_test else target.at(node.name)
            case "list" | "map":
                return self._literal(node, names, times)
            case "loop":
                return self._loop(node, names, times)
        operands = node.parts if node.target is None else (node.target, *node.parts)
        given = [self.visit(operand, names, times) for operand in operands]
        done = apply_function(node.name, given)
        self.charge(times, done.time_us, done.made)
        return done.result

    def _literal(self, node: Node, names: dict[str, Bound], times: float) -> Bound:
        parts = [self.visit(part, names, times) for part in node.parts]
        self.charge(times, 0.2 * len(parts), 2 * SCALAR_BYTES * len(parts))
        count = len(parts) if node.kind == "list" else len(parts) // 2
        inner = parts if node.kind == "list" else parts[1::2] + parts[::2]
        return Bound(SCALAR_BYTES + sum(part.size for part in parts), count, join(inner) if inner else Bound())

    def _loop(self, node: Node, names: dict[str, Bound], times: float) -> Bound:
        assert node.target is not None
        start, condition, step, result = node.parts
        over = self.visit(node.target, names, times)
        first = self.visit(start, names, times)
        # cel.bind() is a loop over nothing.
        is_binding = node.target.kind == "list" and not node.target.parts
        count = 0 if is_binding else min(over.count, ITERATIONS_MAX)
        accumulated = first
        if count:
            inner = {**names, node.name: over.keys(), node.accumulator: first}
            each = min(times * count, ITERATIONS_MAX)
            self.visit(condition, inner, each)
            if start.kind == "list":
                accumulated = self._collected(step, inner, count, each)
            else:
                self.visit(step, inner, each)
        return self.visit(result, {**names, node.accumulator: accumulated}, times)

    def _collected(self, step: Node, names: dict[str, Bound], count: float, each: float) -> Bound:
        """Return the bound of the list that `map()` or `filter()` makes; `step` adds one item to it, or none."""
        if step.name == "_?_:_":
            self.visit(step.parts[0], names, each)
            step = step.parts[1]
        item = self.visit(step.parts[1], names, each).items()
        # Each item copies the list that was made so far.
        self.charge(each, _COPIED_ITEM_US * count / 2 + 0.5, _COPIED_ITEM_BYTES * count / 2 + 64)
        return Bound(SCALAR_BYTES + count * item.size, count, item)


def _shown(number: float) -> str:
    return "unlimited" if math.isinf(number) else f"{number:,.0f}".replace(",", " ")
