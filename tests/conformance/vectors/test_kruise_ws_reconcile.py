"""One reconcile gives the statuses and deletion costs of the vectors, also after subsets changed places."""

from collections.abc import Mapping
from typing import Any

from tests.support.spreads import NOW, a_spread, seconds_ago, vector_pod
from tests.support.vectors import each_case, filled, load

from federation.planning.workloadspread.adoption import group_pods
from federation.planning.workloadspread.deletioncosts import changed_costs
from federation.planning.workloadspread.status import compute_status
from federation.planning.workloadspread.totals import has_pods, is_selected, total_replicas

RECORDS = ("creatingPods", "deletingPods")


def _records(given: Mapping[str, Any] | None) -> dict[str, Any]:
    return {
        field: {pod: seconds_ago(age or 0) for pod, age in ((given or {}).get(field) or {}).items()}
        for field in RECORDS
    }


def _summary(status: Mapping[str, Any]) -> tuple[Any, ...]:
    records = (sorted(status.get(field) or ()) for field in RECORDS)
    return (status.get("name"), status.get("missingReplicas") or 0, *records)


@each_case(load("kruise-ws-reconcile"))
def test_a_reconcile_gives_the_statuses_and_costs_of_the_vectors(case: dict[str, Any]) -> None:
    given = filled(case["input"], targetRef={}, subsets=[], pods=[], oldSubsetStatuses={}, latestVersion="")
    expected = filled(case["expected"], subsetStatuses=[], deletionCost={})
    kind = given["targetRef"].get("kind") or ""
    old = [{"name": name, **_records(records)} for name, records in given["oldSubsetStatuses"].items()]
    spread = a_spread(given["subsets"], kind, targetFilter=given.get("targetFilter"))
    spread["status"] = {"subsetStatuses": old}
    workload = _workload(given)
    total = total_replicas(spread, workload, scale=workload)
    pods = [pod for pod in map(vector_pod, given["pods"]) if has_pods(workload) and is_selected(spread, pod)]
    groups = group_pods(spread, pods, {}, total, lambda pod, _patch: pod).groups
    statuses = compute_status(spread, groups, total, NOW).status["subsetStatuses"]
    assert [(_summary(status), status["replicas"]) for status in statuses] == [
        (_summary(status), status.get("replicas") or 0) for status in expected["subsetStatuses"]
    ]
    costs = changed_costs(spread, groups, given["latestVersion"] or "versionIgnored", total)
    assert costs == {name: str(cost) for name, cost in filled(expected["deletionCost"]).items()}


def _workload(given: Mapping[str, Any]) -> dict[str, Any] | None:
    if given.get("workloadObject") is not None:
        return dict(given["workloadObject"])
    if given.get("workload") is None:
        return None
    replicas = given["workload"].get("replicas") or 0
    metadata = {"deletionTimestamp": seconds_ago(1) if given["workload"].get("deleting") else None}
    return {"metadata": metadata, "spec": {"replicas": replicas, "parallelism": replicas}}


@each_case(load("kruise-ws-subset-sequence"))
def test_statuses_follow_their_subsets_by_name(case: dict[str, Any]) -> None:
    given = filled(case["input"], specOrder=[], maxReplicas=None, oldStatus=[], pods=[])
    subsets = [{"name": name, "maxReplicas": given["maxReplicas"]} for name in given["specOrder"]]
    spread = a_spread(subsets)
    spread["status"] = {"subsetStatuses": [{**status, **_records(status)} for status in given["oldStatus"]]}
    pods = [vector_pod(pod) for pod in given["pods"]]
    groups = group_pods(spread, pods, {}, 0, lambda pod, _patch: pod).groups
    statuses = compute_status(spread, groups, 0, NOW).status["subsetStatuses"]
    expected = case["expected"].get("subsetStatuses") or []
    assert list(map(_summary, statuses)) == list(map(_summary, expected))
