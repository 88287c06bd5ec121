"""A batch of cases names every case that fails, runs the selected ones and says how many it executed."""

from typing import Any

import pytest
from tests.support.vectorfacts import check_facts
from tests.support.vectors import EXECUTED, Batch, facts, filled

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


def test_a_case_fails_when_a_key_is_not_read() -> None:
    cases = [{"name": "one", "input": {"a": 1, "op": "sum"}, "expected": {"b": {"c": [{"d": 1, "note": "why"}]}}}]

    def reads_nothing(_: dict[str, Any]) -> None:
        pass

    def reads_some(case: dict[str, Any]) -> None:
        assert case["input"]["a"] == case["expected"]["b"]["c"][0].get("e", 1)

    def compares(case: dict[str, Any]) -> None:
        assert {"c": [{"d": filled(case["input"], a=0)["a"], "note": "why"}]} == case["expected"]["b"]

    assert "does not read input.a, expected.b" in str(run(Batch(reads_nothing, cases))[1])
    assert "does not read expected.b.c[0].d" in str(run(Batch(reads_some, cases))[1])
    assert run(Batch(reads_nothing, cases, is_whole=False))[1] is None
    assert run(Batch(compares, cases))[1] is None


def test_beside_an_error_the_zero_values_say_nothing() -> None:
    cases = [{"name": "one", "input": {}, "expected": {"error": True, "replicas": 0, "reason": "x"}}]
    (_, outcome) = run(Batch(lambda case: case["expected"].get("error"), cases))
    assert str(outcome).endswith("does not read expected.reason")


def test_facts_refuse_what_the_adapter_does_not_know() -> None:
    assert facts({"a": None, "note": "x"}, a=1, b=2) == {"a": 1, "b": 2, "note": "x"}
    with pytest.raises(AssertionError, match="does not know c"):
        facts({"c": 1}, a=1)


def test_facts_are_found_by_path() -> None:
    pod = {"metadata": {"labels": {"a.b/c": "1"}}, "spec": {"containers": [{"env": [{"name": "A"}, {"name": "B"}]}]}}
    check_facts(
        pod,
        {
            "metadata.labels.a.b/c": "1",
            "metadata.labels.x": None,
            "spec.containers[0].env as set": ["B", "A"],
            "spec.containers[0].env contains": [{"name": "B"}],
            "spec.containers[1].image": None,
        },
    )
    with pytest.raises(AssertionError, match=r"a\.b/c: 1"):
        check_facts(pod, {"metadata.labels.a.b/c": "2"})
