"""Records in flight requeue the WorkloadSpread after the delays of the vectors."""

from typing import Any

import pytest
from tests.support.spreads import NOW, a_spread, counted_status, seconds_ago, vector_pod
from tests.support.vectors import each_case, facts, filled, load


@each_case(load("kruise-ws-requeue"))
def test_delays_are_those_of_the_vectors(case: dict[str, Any]) -> None:
    given = facts(case["input"], subset={}, pods=[], creatingPods={}, deletingPods={})
    expected = filled(case["expected"], requeueAfterSeconds=0, toleranceSeconds=0)
    name = given["subset"].get("name") or ""
    pods = [vector_pod({"subset": name, **pod}) for pod in given["pods"]]
    records = {
        field: {pod: seconds_ago(age or 0) for pod, age in given[field].items()}
        for field in ("creatingPods", "deletingPods")
    }
    spread = a_spread([given["subset"]]) | {"status": {"subsetStatuses": [{"name": name, **records}]}}
    groups = {"versionIgnored": {name: pods}}
    result = counted_status(spread, groups, 0, NOW)
    assert (result.requeue_after_s or 0) == pytest.approx(
        expected["requeueAfterSeconds"], abs=expected["toleranceSeconds"]
    )
