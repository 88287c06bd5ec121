"""Pods have the deletion costs of the vectors."""

from typing import Any

from tests.support.spreads import vector_pod
from tests.support.vectors import each_case, filled, load

from federation.planning.workloadspread.deletioncosts import outside_costs, subset_costs
from federation.planning.workloadspread.subsets import resolve_limit


@each_case(load("kruise-ws-deletion-cost"))
def test_deletion_costs_are_those_of_the_vectors(case: dict[str, Any]) -> None:
    given = filled(case["input"], subsetCount=0, subsetIndex=0, maxReplicas=None, workloadReplicas=0, pods=[])
    pods = [vector_pod(pod) for pod in given["pods"]]
    if given.get("isFakeSubset"):
        costs = outside_costs(pods, given["subsetCount"])
    else:
        limit = resolve_limit(given["maxReplicas"], given["workloadReplicas"])
        costs = subset_costs(pods, index=given["subsetIndex"], count=given["subsetCount"], limit=limit)
    assert costs == filled(case["expected"].get("deletionCost") or {})
