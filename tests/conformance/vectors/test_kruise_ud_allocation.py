"""The division of a UnitedDeployment's replicas gives every subset what the vectors say."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.support.vectors import each_case, filled, load

from federation.planning.uniteddeployment.allocation import SubsetState, allocate, divide_rest
from federation.planning.uniteddeployment.subsetcounts import AllocationError, Problem, parse_count

KINDS = {Problem.SUM_TOO_LARGE.value, Problem.SUM_TOO_SMALL.value}


def _state(given: Mapping[str, Any] | None) -> SubsetState:
    given = filled(
        given or {},
        specReplicas=0,
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
    given = filled(given, replicas=0, subsets=[])
    return {
        "replicas": given["replicas"],
        "topology": {"subsets": given["subsets"], "scheduleStrategy": strategy},
    }


def _check(case: dict[str, Any], divided: Any) -> None:
    """Compare the result of a call with the expectation; a case expects an allocation or an error."""
    expected = filled(case["expected"], error=False, error_kind="", allocation={})
    if not expected["error"]:
        assert divided() == expected["allocation"]
        return
    with pytest.raises(AllocationError) as raised:
        divided()
    if expected["error_kind"] in KINDS:
        assert raised.value.problem == expected["error_kind"]


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
    given = filled(case["input"], current={}, specified={}, replicas=None)
    current = {name: given["current"].get(name) or 0 for name in [*given["current"], *given["specified"]]}
    _check(case, lambda: divide_rest(current, given["replicas"], given["specified"]))


@each_case(load("kruise-ud-specific-percent-sweep"))
def test_strict_percentages_fail_for_the_totals_of_the_reference(case: dict[str, Any]) -> None:
    _check(case, lambda: allocate(_spec(case["input"]), {}, is_strict=True))


@each_case(load("kruise-ud-specific-percent-sweep"))
def test_percentages_that_cover_everything_always_divide_the_total(case: dict[str, Any]) -> None:
    spec = _spec(case["input"])
    subsets = spec["topology"]["subsets"]
    if [subset.get("replicas") for subset in subsets] == ["50%", "25%", "25%"]:
        assert sum(allocate(spec, {}).values()) == spec["replicas"]


@each_case(load("kruise-ud-elastic-allocator"))
def test_minimums_and_maximums_are_filled_like_in_the_reference(case: dict[str, Any]) -> None:
    spec = _spec(case["input"])
    for subset in spec["topology"]["subsets"]:
        subset.setdefault("minReplicas", 0)  # one field of min and max selects this rule
    _check(case, lambda: allocate(spec, {}))


@each_case(load("kruise-ud-adaptive-allocator"))
def test_unschedulable_subsets_keep_their_ready_replicas_like_in_the_reference(case: dict[str, Any]) -> None:
    existing = {name: _state(given) for name, given in (case["input"].get("existing") or {}).items()}
    _check(case, lambda: allocate(_spec(case["input"], {"type": "Adaptive"}), existing))


@each_case(load("kruise-ud-reservation-allocator"))
def test_reserved_pods_get_substitutes_like_in_the_reference(case: dict[str, Any]) -> None:
    strategy = {"type": "Adaptive", "adaptive": {"reserveUnschedulablePods": True}}
    existing = {name: _state(given) for name, given in (case["input"].get("existing") or {}).items()}
    _check(case, lambda: allocate(_spec(case["input"], strategy), existing))
