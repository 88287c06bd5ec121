"""The division of a UnitedDeployment's replicas gives every subset what the vectors say."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.support.vectors import each_case, facts, filled, load

from federation.features.uniteddeployment.rules.allocation import SubsetState, allocate, divide_rest
from federation.features.uniteddeployment.rules.subsetcounts import (
    AllocationError,
    Problem,
    parse_count,
    specified_counts,
)


def _state(given: Mapping[str, Any] | None) -> SubsetState:
    given = facts(
        given,
        specReplicas=0,
        statusReplicas=0,  # neither rule reads these two counts
        pendingPods=0,
        readyReplicas=0,
        reservedPods=0,
        unschedulable=False,
        markedAsUnschedulable=False,
    )
    return SubsetState(
        replicas=given["specReplicas"],
        ready=given["readyReplicas"],
        reserved=given["reservedPods"],
        is_schedulable=not given["unschedulable"],
        was_schedulable=not given["markedAsUnschedulable"],
    )


def _spec(given: Mapping[str, Any], strategy: Mapping[str, Any] | None = None) -> dict[str, Any]:
    topology = {"subsets": given["subsets"], "scheduleStrategy": strategy}
    return {"replicas": given["replicas"] or 0, "topology": topology}


def _check(expected: Mapping[str, Any], divided: Any) -> None:
    """Compare the result of a call with the expectation; a case expects an allocation or an error."""
    if not expected["error"]:
        assert divided() == expected["allocation"]
        return
    with pytest.raises(AllocationError) as raised:
        divided()
    if expected["error_kind"] in set(Problem):
        assert raised.value.problem == expected["error_kind"]


def _expected(case: dict[str, Any], **more: Any) -> dict[str, Any]:
    return facts(case["expected"], error=False, error_kind="", allocation={}, **more)


@each_case(load("kruise-ud-parse-replicas"))
def test_a_count_is_read_like_the_reference(case: dict[str, Any]) -> None:
    expected = filled(case["expected"], error=False, result=0)
    given = case["input"]
    if expected["error"]:
        with pytest.raises(AllocationError):
            parse_count(given.get("value"), given.get("replicas"))
    else:
        value = given["value"] if given.get("value") is not None else 0
        assert parse_count(value, given.get("replicas")) == expected["result"]


@each_case(load("kruise-ud-specific-allocator"))
def test_the_rest_is_shared_like_in_the_reference(case: dict[str, Any]) -> None:
    given = facts(case["input"], current={}, specified={}, replicas=None)
    current = {name: given["current"].get(name) or 0 for name in [*given["current"], *given["specified"]]}
    _check(_expected(case), lambda: divide_rest(current, given["replicas"], given["specified"]))


@each_case(load("kruise-ud-specific-percent-sweep"))
def test_strict_percentages_fail_for_the_totals_of_the_reference(case: dict[str, Any]) -> None:
    given, expected = facts(case["input"], replicas=0, subsets=[]), _expected(case, parsed={})
    spec = _spec(given)
    _check(expected, lambda: allocate(spec, {}, is_strict=True))
    if expected["parsed"]:
        counts = specified_counts(given["subsets"], spec["replicas"], is_strict=True)
        wanted = expected["parsed"]
        assert (counts if isinstance(wanted, Mapping) else list(counts.values())) == wanted


@each_case(load("kruise-ud-specific-percent-sweep"), is_whole=False)
def test_percentages_that_cover_everything_always_divide_the_total(case: dict[str, Any]) -> None:
    spec = _spec(filled(case["input"], replicas=0, subsets=[]))
    subsets = spec["topology"]["subsets"]
    if [subset.get("replicas") for subset in subsets] == ["50%", "25%", "25%"]:
        assert sum(allocate(spec, {}).values()) == spec["replicas"]


@each_case(load("kruise-ud-elastic-allocator"))
def test_minimums_and_maximums_are_filled_like_in_the_reference(case: dict[str, Any]) -> None:
    spec = _spec(facts(case["input"], replicas=0, subsets=[]))
    # One field of min and max selects this rule.
    spec["topology"]["subsets"] = [{"minReplicas": 0, **subset} for subset in spec["topology"]["subsets"]]
    _check(_expected(case), lambda: allocate(spec, {}))


@each_case(load("kruise-ud-adaptive-allocator"))
def test_unschedulable_subsets_keep_their_ready_replicas_like_in_the_reference(case: dict[str, Any]) -> None:
    given = facts(case["input"], replicas=0, subsets=[], existing={})
    existing = {name: _state(state) for name, state in given["existing"].items()}
    _check(_expected(case), lambda: allocate(_spec(given, {"type": "Adaptive"}), existing))


@each_case(load("kruise-ud-reservation-allocator"))
def test_reserved_pods_get_substitutes_like_in_the_reference(case: dict[str, Any]) -> None:
    given = facts(case["input"], replicas=0, subsets=[], existing={})
    strategy = {"type": "Adaptive", "adaptive": {"reserveUnschedulablePods": True}}
    existing = {name: _state(state) for name, state in given["existing"].items()}
    _check(_expected(case), lambda: allocate(_spec(given, strategy), existing))
