"""Subsets are marked and waiting pods are moved as in the vectors."""

from typing import Any

from tests.support.spreads import NOW, a_spread, counted_status, seconds_ago, vector_pod
from tests.support.vectors import each_case, facts, filled, load

from federation.apimachinery.conditions import find
from federation.features.workloadspread.rules.adoption import group_pods


@each_case(load("kruise-ws-reschedule"))
def test_subsets_are_marked_as_in_the_vectors(case: dict[str, Any]) -> None:
    given = facts(case["input"], subsets=[], scheduleStrategy={}, oldConditions={}, pods=[])
    expected = filled(case["expected"], schedulable={}, podsLeft=[])
    strategy = dict(given["scheduleStrategy"])
    if strategy.get("type") == "AdaptiveWithoutSeconds":
        strategy = {"type": "Adaptive", "adaptive": {}}
    old = [{"name": name, **_conditions(condition)} for name, condition in given["oldConditions"].items()]
    spread = a_spread(given["subsets"], scheduleStrategy=strategy) | {"status": {"subsetStatuses": old}}
    pods = [vector_pod(pod) for pod in given["pods"]]
    groups = group_pods(spread, pods, {}, 0, lambda pod, _patch: pod).groups
    result = counted_status(spread, groups, 0, NOW)
    failed = {pod["metadata"]["name"] for pod in result.failed}
    found = {
        status["name"]: (find(status.get("conditions"), "Schedulable") or {}).get("status")
        for status in result.status["subsetStatuses"]
    }
    assert found == {name: expected["schedulable"].get(name) for name in found}
    assert [pod["metadata"]["name"] for pod in pods if pod["metadata"]["name"] not in failed] == expected["podsLeft"]
    requeue_s = expected.get("requeueAfterSeconds")
    assert requeue_s is None or abs((result.requeue_after_s or 0) - requeue_s) <= (
        expected.get("toleranceSeconds") or 0
    )
    reasons = [event.reason for event in result.events]
    assert reasons == (expected.get("events") or reasons)


def _conditions(given: Any) -> dict[str, Any]:
    if not given:
        return {}
    given = facts(given, type="Schedulable", status="", reason="", ageSeconds=0, age=0)
    reason = given["reason"] or ("PodUnschedulable" if given["status"] == "False" else "Sufficient")
    since = seconds_ago(given["ageSeconds"] or given["age"])
    return {
        "conditions": [
            {"type": "Schedulable", "status": given["status"], "reason": reason, "lastTransitionTime": since}
        ]
    }
