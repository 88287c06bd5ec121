"""Divisions of single topologies, and the reasons why there is none."""

from typing import Any

import pytest

from federation.features.uniteddeployment.rules.allocation import SubsetState, allocate
from federation.features.uniteddeployment.rules.subsetcounts import AllocationError, Problem, sum_if_all
from federation.features.uniteddeployment.rules.unitedstatus import v1alpha1_fields

LOST = SubsetState(replicas=3, is_reachable=False)


def a_spec(replicas: int | None, *subsets: dict[str, Any]) -> dict[str, Any]:
    return {
        "replicas": replicas,
        "topology": {"subsets": [{"name": n, **s} for n, s in zip("abc", subsets, strict=False)]},
    }


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        (a_spec(None, {"replicas": 1}, {}), Problem.NO_TOTAL),
        (a_spec(1, {"replicas": 2}), Problem.SUM_TOO_LARGE),
        (a_spec(3, {"replicas": 2}), Problem.SUM_TOO_SMALL),
        (a_spec(3, {"minReplicas": 2, "maxReplicas": 1}, {}), Problem.MIN_ABOVE_MAX),
        (a_spec(3, {"minReplicas": 2, "maxReplicas": "many"}, {}), Problem.MIN_ABOVE_MAX),
    ],
)
def test_counts_that_do_not_fit_have_a_reason(spec: dict[str, Any], problem: Problem) -> None:
    with pytest.raises(AllocationError) as raised:
        allocate(spec, {})
    assert raised.value.problem == problem


def test_a_lost_subset_without_a_count_keeps_its_replicas_beside_those_with_one() -> None:
    assert allocate(a_spec(5, {"replicas": 2}, {}), {"b": LOST}) == {"a": 2, "b": 3}
    assert allocate(a_spec(9, {"replicas": 2}, {}), {"b": LOST}) == {"a": 2, "b": 3}
    assert allocate(a_spec(9, {"replicas": 2}, {}, {}), {"b": LOST}) == {"a": 2, "b": 3, "c": 4}
    assert allocate(a_spec(2, {}, {}), {"b": LOST}) == {"a": 0, "b": 3}


def test_percentages_of_everything_divide_everything_unless_openkruise_rounds() -> None:
    spec = a_spec(4, {"replicas": "33%"}, {"replicas": "33%"}, {"replicas": "34%"})
    assert allocate(spec, {}) == {"a": 1, "b": 1, "c": 2}
    with pytest.raises(AllocationError) as raised:
        allocate(spec, {}, is_strict=True)
    assert raised.value.problem == Problem.SUM_TOO_SMALL


def test_a_status_without_subsets_has_no_maps() -> None:
    assert v1alpha1_fields({"updatedRevision": "web-1"}) == {"updateStatus": {"updatedRevision": "web-1"}}


@pytest.mark.parametrize(("values", "expected"), [([], None), ([None], None), ([1, None], None), ([0], 0), ([1, 2], 3)])
def test_a_sum_needs_all_of_its_values(values: list[int | None], expected: int | None) -> None:
    assert sum_if_all(values) == expected
