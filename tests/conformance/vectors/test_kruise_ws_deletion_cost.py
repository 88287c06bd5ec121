"""Pods have the deletion costs of the vectors."""

from typing import Any

from tests.support.spreads import vector_pod
from tests.support.vectors import each_case, facts, filled, load

from federation.features.workloadspread.rules.deletioncosts import outside_costs, subset_costs
from federation.features.workloadspread.rules.subsets import resolve_limit


@each_case(load("kruise-ws-deletion-cost"))
def test_deletion_costs_are_those_of_the_vectors(case: dict[str, Any]) -> None:
    given = facts(
        case["input"],
        subsetCount=0,
        subsetIndex=0,
        maxReplicas=None,
        workloadReplicas=0,
        pods=[],
        isFakeSubset=False,
        isLatestVersion=True,
    )
    pods = [vector_pod(pod) for pod in given["pods"]]
    if given["isFakeSubset"]:
        costs = outside_costs(pods, given["subsetCount"])
    else:
        limit = resolve_limit(given["maxReplicas"], given["workloadReplicas"])
        index = given["subsetIndex"] if given["isLatestVersion"] else given["subsetCount"] - 1 - given["subsetIndex"]
        costs = subset_costs(pods, index=index, count=given["subsetCount"], limit=limit)
    assert costs == filled(case["expected"].get("deletionCost") or {})
