"""The replicas of a target and the pods of a filter are those of the vectors."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.support.vectors import each_case, facts, filled, load

from federation.apimachinery.errors import InvalidInput
from federation.apimachinery.selectors import SelectorError
from federation.features.workloadspread.rules.subsets import uses_percentages
from federation.features.workloadspread.rules.totals import is_selected, nested_value, replicas_at, total_replicas

ERRORS = (InvalidInput, SelectorError)


@each_case(load("kruise-ws-replicas-and-filter"))
def test_replicas_and_selections_are_those_of_the_vectors(case: dict[str, Any]) -> None:
    given = facts(
        case["input"],
        function="",
        targetRef={},
        targetFilter={},
        object={},
        path="",
        paths=[],
        labels={},
        percentSubset=True,
        whitelist={},
        workload=None,
        scale=None,
    )
    expected = filled(case["expected"], error=False)
    if expected["error"]:
        with pytest.raises(ERRORS):
            _found(given)
        return
    results = {"nestedField": "value", "isPodSelected": "selected"}
    wanted = expected.get(results.get(given["function"], "replicas"))
    if given["function"] == "isPodSelected" and given["targetFilter"].get("selector") is None:
        # The vector has the webhook of OpenKruise, which selects nothing; its controller, as ours, selects all.
        wanted = True
    assert _found(given) == (wanted or 0)


def _found(given: Mapping[str, Any]) -> Any:
    spread = {"spec": {"targetRef": given["targetRef"], "targetFilter": given["targetFilter"]}}
    match given["function"]:
        case "replicasFromPath":
            return replicas_at(given["object"], given["path"])
        case "replicasFromPathList":
            return sum(replicas_at(given["object"], path) for path in given["paths"])
        case "nestedField":
            return nested_value(given["object"], given["path"])
        case "isPodSelected":
            return is_selected(spread, {"metadata": {"labels": given["labels"]}})
        case "workloadReplicas":
            limit = "50%" if given["percentSubset"] else 5
            if not uses_percentages([{"name": "a", "maxReplicas": limit}]):
                return 0
            path = facts(given["whitelist"], replicasPath="", Group="", Version="", Kind="")["replicasPath"]
            return total_replicas(spread, given["workload"], replicas_path=path, scale=given["scale"])
        case other:
            pytest.fail(f"the format has a function without an adapter: {other}")
