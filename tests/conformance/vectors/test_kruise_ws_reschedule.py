"""Subsets are marked and waiting pods are moved as in the vectors."""

from typing import Any

from tests.support.spreads import NOW, a_spread, seconds_ago, vector_pod
from tests.support.vectors import each_case, filled, load

from federation.apimachinery.conditions import find
from federation.planning.workloadspread.adoption import group_pods
from federation.planning.workloadspread.status import compute_status


@each_case(load("kruise-ws-reschedule"))
def test_subsets_are_marked_as_in_the_vectors(case: dict[str, Any]) -> None:
    given = filled(case["input"], subsets=[], scheduleStrategy={}, oldConditions={}, pods=[])
    expected = filled(case["expected"], schedulable={}, podsLeft=[])
    strategy = dict(given["scheduleStrategy"])
    if strategy.get("type") == "AdaptiveWithoutSeconds":
        strategy = {"type": "Adaptive", "adaptive": {}}
    old = [{"name": name, **_conditions(condition)} for name, condition in given["oldConditions"].items()]
    spread = a_spread(given["subsets"], scheduleStrategy=strategy) | {"status": {"subsetStatuses": old}}
    pods = [vector_pod(pod) for pod in given["pods"]]
    groups = group_pods(spread, pods, {}, 0, lambda pod, _patch: pod).groups
    result = compute_status(spread, groups, 0, NOW)
    failed = {pod["metadata"]["name"] for pod in result.failed}
    found = {
        status["name"]: (find(status.get("conditions"), "Schedulable") or {}).get("status")
        for status in result.status["subsetStatuses"]
    }
    assert found == {name: expected["schedulable"].get(name) for name in found}
    assert [pod["metadata"]["name"] for pod in pods if pod["metadata"]["name"] not in failed] == expected["podsLeft"]


def _conditions(given: Any) -> dict[str, Any]:
    if not given:
        return {}
    reason = "PodUnschedulable" if given.get("status") == "False" else "Sufficient"
    since = seconds_ago(next((value for key, value in given.items() if "age" in key.lower()), None) or 0)
    condition = {"type": "Schedulable", "status": given.get("status"), "reason": reason, "lastTransitionTime": since}
    return {"conditions": [condition]}
