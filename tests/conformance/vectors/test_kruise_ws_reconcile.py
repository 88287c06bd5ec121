"""One reconcile gives the statuses and deletion costs of the vectors, also after subsets changed places."""

from collections.abc import Mapping
from typing import Any

from tests.support.spreads import NOW, RECORDS, a_spread, counted_status, marked, seconds_ago, vector_pod
from tests.support.vectorfacts import contains
from tests.support.vectors import each_case, facts, filled, load

from federation.features.workloadspread.rules.adoption import group_pods
from federation.features.workloadspread.rules.deletioncosts import changed_costs
from federation.features.workloadspread.rules.totals import has_pods, is_selected, total_replicas


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
    given = facts(
        case["input"],
        targetRef={},
        subsets=[],
        pods=[],
        oldSubsetStatuses={},
        oldVersionedSubsetStatuses={},
        latestVersion="",
        targetFilter=None,
        scheduleStrategy=None,
        workload=None,
        workloadObject=None,
        whitelist={},
        nodes={},
    )
    expected = filled(case["expected"], subsetStatuses=[], deletionCost={})
    kind = given["targetRef"].get("kind") or ""
    more = {key: given[key] for key in ("targetFilter", "scheduleStrategy") if given[key] is not None}
    spread = a_spread(given["subsets"], kind, **more)
    versions = {version: _old(entry) for version, entry in given["oldVersionedSubsetStatuses"].items()}
    spread["status"] = {"subsetStatuses": _old(given["oldSubsetStatuses"]), "versionedSubsetStatuses": versions}
    workload = _workload(given)
    path = facts(given["whitelist"], replicasPath="")["replicasPath"]
    total = total_replicas(spread, workload, replicas_path=path, scale=workload)
    pods = [pod for pod in map(vector_pod, given["pods"]) if has_pods(workload) and is_selected(spread, pod)]
    groups = group_pods(spread, pods, {}, total, lambda pod, _patch: pod).groups
    result = counted_status(spread, groups, total, NOW)
    _check_entry(result.status["subsetStatuses"], expected["subsetStatuses"])
    for version, entry in (expected.get("versionedSubsetStatuses") or {}).items():
        _check_entry(result.status["versionedSubsetStatuses"].get(version) or [], entry)
    reasons = [event.reason for event in result.events]
    assert reasons == (expected.get("events") or reasons)
    delay_s = expected.get("requeueAfterSeconds")
    assert delay_s is None or abs((result.requeue_after_s or 0) - delay_s) <= (expected.get("toleranceSeconds") or 0)
    costs = changed_costs(spread, groups, given["latestVersion"] or "versionIgnored", total)
    assert costs == {name: str(cost) for name, cost in filled(expected["deletionCost"]).items()}


def _old(entry: Any) -> list[dict[str, Any]]:
    """Return an old entry, given by name or as a list, as it is stored."""
    named = (
        [{"name": name, **(status or {})} for name, status in entry.items()] if isinstance(entry, Mapping) else entry
    )
    return [marked({**status, **_records(status)}) for status in named]


def _check_entry(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    assert [status["name"] for status in found] == [status.get("name") for status in expected]
    for status, each in zip(found, expected, strict=True):
        wanted = facts(each, name="", replicas=0, missingReplicas=0, creatingPods=[], deletingPods=[], conditions=[])
        assert (_summary(status), status["replicas"]) == (_summary(wanted), wanted["replicas"])
        assert contains(status.get("conditions") or [], wanted["conditions"])


def _workload(given: Mapping[str, Any]) -> dict[str, Any] | None:
    if given["workload"] is None and given["workloadObject"] is None:
        return None
    workload = facts(given["workload"], kind="", name="", replicas=None, deleting=False)
    # A custom workload shows its replicas in a scale, or where the object has them.
    replicas = workload["replicas"]
    spec = {} if replicas is None else {"replicas": replicas, "parallelism": replicas}
    metadata = {"deletionTimestamp": seconds_ago(1)} if workload["deleting"] else {}
    return {"metadata": metadata, "spec": spec} | dict(given["workloadObject"] or {})


@each_case(load("kruise-ws-subset-sequence"))
def test_statuses_follow_their_subsets_by_name(case: dict[str, Any]) -> None:
    given = facts(case["input"], specOrder=[], maxReplicas=None, oldStatus=[], pods=[])
    subsets = [{"name": name, "maxReplicas": given["maxReplicas"]} for name in given["specOrder"]]
    spread = a_spread(subsets)
    spread["status"] = {"subsetStatuses": [{**status, **_records(status)} for status in given["oldStatus"]]}
    pods = [vector_pod(pod) for pod in given["pods"]]
    groups = group_pods(spread, pods, {}, 0, lambda pod, _patch: pod).groups
    statuses = counted_status(spread, groups, 0, NOW).status["subsetStatuses"]
    wanted = [
        {"replicas": status["replicas"], **each}
        for status, each in zip(statuses, case["expected"].get("subsetStatuses") or [], strict=True)
    ]
    _check_entry(statuses, wanted)
