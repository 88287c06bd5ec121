"""The checker of histories accepts exactly those that some order of the operations explains."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from tests.support.linearizability import Operation, find_violation

VALUES = ("a", "b", "c")


@st.composite
def any_operations(draw: st.DrawFn) -> Operation:
    called_s = draw(st.integers(0, 6))
    returned_s = draw(st.one_of(st.just(math.inf), st.integers(called_s, called_s + 4)))
    value, other = draw(st.sampled_from(VALUES)), draw(st.sampled_from(VALUES))
    shapes = [{"seen": value}, {"written": value}, {"seen": value, "written": other}, {"unseen": value}]
    return Operation(called_s, returned_s, **draw(st.sampled_from(shapes)))


@st.composite
def real_histories(draw: st.DrawFn) -> list[Operation]:
    """A register's own history: operation number n takes effect at the moment n, somewhere between call and return."""
    value, history = "a", []
    late = draw(st.sets(st.integers(0, 29), max_size=3))
    for moment in range(draw(st.integers(1, 30))):
        called_s = moment - draw(st.floats(0, 2))
        returned_s = math.inf if moment in late else draw(st.floats(moment, moment + 2))
        written = f"{moment}"
        kind = draw(st.sampled_from(["read", "write", "swap", "refused"]))
        if kind == "read":
            history.append(Operation(called_s, returned_s, seen=value))
        elif kind == "refused":
            history.append(Operation(called_s, returned_s, unseen="never"))
        else:
            history.append(Operation(called_s, returned_s, seen=value if kind == "swap" else None, written=written))
            value = written
    return draw(st.permutations(history))


def is_explained(order: Sequence[Operation], initial: str) -> bool:
    value: str | None = initial
    latest_call_s = -math.inf
    for operation in order:
        latest_call_s = max(latest_call_s, operation.called_s)
        value = operation.step(value) if value is not None else None
        if value is None or operation.returned_s < latest_call_s:
            return False
    return True


@given(st.lists(any_operations(), max_size=6))
def test_a_history_is_accepted_exactly_if_an_order_explains_it(history: list[Operation]) -> None:
    explained = any(is_explained(order, "a") for order in itertools.permutations(history))
    assert (find_violation(history, "a") is None) == explained


@given(real_histories())
def test_the_history_of_a_register_is_accepted(history: list[Operation]) -> None:
    assert find_violation(history, "a") is None


@given(real_histories(), st.integers(0, 3))
def test_a_read_of_a_value_that_was_replaced_before_is_found(history: list[Operation], delay_s: int) -> None:
    ended = [replace(operation, returned_s=min(operation.returned_s, 99.0)) for operation in history]
    last = Operation(99.1, 99.2, written="last")
    stale = Operation(100.0 + delay_s, 101.0 + delay_s, seen="a")
    violation = find_violation([*ended, last, stale], "a")
    assert violation is not None
    assert violation.value == "last"
    assert stale in violation.pending


def test_a_lost_answer_may_take_effect_late() -> None:
    lost = Operation(0, written="new")
    assert find_violation([lost, Operation(1, 2, seen="old"), Operation(3, 4, seen="new")], "old") is None
    assert find_violation([lost, Operation(1, 2, seen="new"), Operation(3, 4, seen="old")], "old") is not None


def test_a_violation_names_the_value_and_the_operations() -> None:
    violation = find_violation([Operation(0, 1, written="x"), Operation(2, 3, seen="old", where="client 1")], "old")
    assert "after 1 operations the value is 'x'" in str(violation)
    assert "client 1" in str(violation)
