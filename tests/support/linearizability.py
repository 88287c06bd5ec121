"""Is the history of one register linearizable? The search of Wing and Gong, with the memory of visited states by Lowe.

An operation takes effect at one moment between its call and its return. `find_violation` looks for an order of these
moments in which each operation finds the value that it reports. It linearizes any operation that was called before the
first pending return, and never visits the same set of linearized operations with the same value twice. Pure.

The search is exponential in the number of writes that overlap, which clients that wait for their answers keep small.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation on the register, and what it reports of its value.

    A read has `seen`, a write `written`, a compare-and-swap both, and one that was refused has `unseen`.
    """

    called_s: float
    returned_s: float = math.inf
    """Infinite when the answer was lost, but the operation took effect."""
    seen: str | None = None
    """The value before the operation."""
    unseen: str | None = None
    """A value that the register did not have."""
    written: str | None = None
    """The value after the operation; None when it does not change the value."""
    where: str = ""
    """The client and server, for the report."""

    def step(self, value: str) -> str | None:
        """Return the value after the operation, None if it cannot happen at this value."""
        if self.seen not in (None, value) or self.unseen == value:
            return None
        return value if self.written is None else self.written


@dataclass(frozen=True, slots=True)
class Violation:
    """The furthest point that any order reached: none of these operations is possible at this value."""

    linearized: int
    value: str
    pending: tuple[Operation, ...]

    def __str__(self) -> str:
        lines = [f"after {self.linearized} operations the value is {self.value!r}, and none of these is possible:"]
        return "\n  ".join([*lines, *map(str, self.pending)])


def find_violation(operations: Sequence[Operation], initial: str) -> Violation | None:
    """Return None if the history is linearizable, else where the search ended."""
    history = sorted(operations, key=lambda operation: operation.called_s)
    # A node is the first operation that is not linearized, a mask of those after it that are, and the value.
    stack = [(0, 0, initial)]
    visited = set(stack)
    furthest = (-1, stack[0])
    while stack:
        node = first, mask, value = stack.pop()
        if first == len(history):
            return None
        furthest = max(furthest, (first + mask.bit_count(), node), key=lambda found: found[0])
        following = [
            (*_advance(first, mask | 1 << offset), after) for offset, after in _steps(history, first, mask, value)
        ]
        stack += [found for found in reversed(following) if found not in visited]
        visited.update(following)
    linearized, (first, mask, value) = furthest
    pending = tuple(history[first + offset] for offset in _candidates(history, first, mask))
    return Violation(linearized, value, pending)


def _steps(history: Sequence[Operation], first: int, mask: int, value: str) -> list[tuple[int, str]]:
    """Return the operations that can be next, and the value after each."""
    steps = []
    for offset in _candidates(history, first, mask):
        operation = history[first + offset]
        after = operation.step(value)
        if after is not None:
            if operation.written is None:
                return [(offset, after)]  # it changes nothing: if any order explains the rest, one with it here does
            steps.append((offset, after))
    return steps


def _candidates(history: Sequence[Operation], first: int, mask: int) -> Iterator[int]:
    """Yield the offsets of the operations that can be next: called before any pending one returned."""
    limit_s = math.inf
    for offset in range(len(history) - first):
        operation = history[first + offset]
        if operation.called_s > limit_s:
            return
        if not mask >> offset & 1:
            limit_s = min(limit_s, operation.returned_s)
            yield offset


def _advance(first: int, mask: int) -> tuple[int, int]:
    while mask & 1:
        first, mask = first + 1, mask >> 1
    return first, mask
