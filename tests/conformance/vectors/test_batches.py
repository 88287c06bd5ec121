"""A batch of cases names every case that fails, runs the selected ones and says how many it executed."""

from typing import Any

import pytest
from tests.support.vectors import EXECUTED, Batch

CASES = [{"name": "one", "value": 1}, {"name": "two", "value": 2}, {"name": "three", "value": 3}]


def check_odd(case: dict[str, Any]) -> None:
    assert case["value"] % 2, f"{case['value']} is even"


def check_small(case: dict[str, Any]) -> None:
    if case["value"] > 1:
        pytest.skip("too large")


def run(batch: Batch) -> tuple[dict[str, object], BaseException | None]:
    """Return the recorded properties and the outcome of a batch."""
    properties: dict[str, object] = {}
    try:
        batch.run(properties.__setitem__)
    except (AssertionError, pytest.skip.Exception) as outcome:
        return properties, outcome
    return properties, None


def test_a_batch_passes_when_every_case_passes() -> None:
    assert run(Batch(check_odd, [CASES[0], CASES[2]])) == ({EXECUTED: 2}, None)


def test_every_case_that_fails_is_named_and_the_others_run() -> None:
    properties, outcome = run(Batch(check_odd, [{"name": "zero", "value": 0}, *CASES]))
    assert properties == {EXECUTED: 4}
    assert isinstance(outcome, AssertionError)
    first, *lines = str(outcome).splitlines()
    assert first.startswith("2 of 4 cases fail")
    assert [line[: line.index("is even") + 7] for line in lines] == [
        "zero: AssertionError: 0 is even",
        "two: AssertionError: 2 is even",
    ]


def test_a_skipped_case_is_not_counted() -> None:
    assert run(Batch(check_small, CASES)) == ({EXECUTED: 1}, None)


def test_a_batch_without_an_executed_case_is_skipped() -> None:
    properties, outcome = run(Batch(check_small, CASES[1:]))
    assert (properties, str(outcome)) == ({EXECUTED: 0}, "too large")
    properties, outcome = run(Batch(check_odd, CASES, selected="four"))
    assert (properties, str(outcome)) == ({EXECUTED: 0}, "no case has 'four' in its name")


def test_a_case_is_selected_by_a_part_of_its_name() -> None:
    assert run(Batch(check_odd, CASES, selected="thr")) == ({EXECUTED: 1}, None)
