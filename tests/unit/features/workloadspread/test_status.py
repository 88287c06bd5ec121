"""The status of a WorkloadSpread: records, versions, marks."""

from datetime import timedelta
from typing import Any

import pytest
from tests.support.spreads import NOW, a_pod, a_spread, counted_status, seconds_ago

from federation.features.workloadspread.rules.status import SpreadEvent

A3_B = [{"name": "a", "maxReplicas": 3}, {"name": "b"}]
ADAPTIVE = {"type": "Adaptive", "adaptive": {"rescheduleCriticalSeconds": 5}}


def _with_entry(version: str, *statuses: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return a_spread(A3_B, **spec) | {"status": {"versionedSubsetStatuses": {version: list(statuses)}}}


def _waiting(name: str, subset: str, age_s: float) -> dict[str, Any]:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    pod = a_pod(name, subset, phase="Pending", conditions=[condition])
    pod["metadata"]["creationTimestamp"] = seconds_ago(age_s)
    return pod


def test_records_that_grow_too_old_are_reported_and_removed() -> None:
    old = {
        "name": "a",
        "creatingPods": {"late": seconds_ago(30), "new": seconds_ago(29)},
        "deletingPods": {"pod-0": seconds_ago(15), "pod-1": seconds_ago(14), "gone": seconds_ago(1)},
    }
    groups = {"v1": {"a": [a_pod("pod-0", "a"), a_pod("pod-1", "a")]}}
    result = counted_status(_with_entry("v1", old), groups, 9, NOW)
    assert result.status["versionedSubsetStatuses"]["v1"][0] == {
        "name": "a",
        "replicas": 2,
        "missingReplicas": 1,
        "maxReplicas": 3,
        "creatingPods": {"new": seconds_ago(29)},
        "deletingPods": {"pod-1": seconds_ago(14)},
    }
    assert result.events == (
        SpreadEvent("Warning", "DeletePodFailed", "pod pod-0 was not deleted within 15 seconds"),
        SpreadEvent("Warning", "CreatePodFailed", "pod late was not created within 30 seconds"),
    )
    assert result.requeue_after_s == 1


def test_records_and_marks_of_a_clock_that_is_far_ahead_expire() -> None:
    old = {"name": "a", "creatingPods": {"ahead": seconds_ago(-20), "far": seconds_ago(-86_400)}}
    mark = {"type": "Schedulable", "status": "False", "lastTransitionTime": seconds_ago(-86_400)}
    spread = _with_entry("v1", old, scheduleStrategy=ADAPTIVE)
    spread["status"]["subsetStatuses"] = [{"name": "a", "conditions": [mark]}]
    status = counted_status(spread, {"v1": {}}, 9, NOW).status
    assert status["versionedSubsetStatuses"]["v1"][0]["creatingPods"] == {"ahead": seconds_ago(-20)}
    assert [condition["status"] for condition in status["subsetStatuses"][0]["conditions"]] == ["True"]


def test_a_pod_that_was_recorded_by_id_is_recognized_by_its_annotation() -> None:
    old = {"name": "a", "creatingPods": {"id-1": seconds_ago(1), "id-2": seconds_ago(1)}}
    groups = {"v1": {"a": [a_pod("web-x", "a", uid="id-1")]}}
    entry = counted_status(_with_entry("v1", old), groups, 9, NOW).status["versionedSubsetStatuses"]["v1"]
    assert entry[0]["creatingPods"] == {"id-2": seconds_ago(1)}
    assert entry[0]["missingReplicas"] == 1


@pytest.mark.parametrize(("age_s", "is_kept"), [(1, True), (31, False)])
def test_a_version_without_pods_is_kept_while_it_has_records(age_s: float, is_kept: bool) -> None:
    spread = _with_entry("v1", {"name": "a", "creatingPods": {"pod-0": seconds_ago(age_s)}})
    assert ("v1" in counted_status(spread, {"v2": {"": []}}, 9, NOW).status["versionedSubsetStatuses"]) is is_kept
    versions = counted_status(spread, {"v2": {"": [a_pod("x")]}}, 9, NOW).status["versionedSubsetStatuses"]
    assert "v2" in versions


def test_records_without_a_readable_time_expire() -> None:
    old = {"name": "a", "creatingPods": {"x": None, "y": "yesterday"}}
    result = counted_status(_with_entry("v1", old), {}, 9, NOW)
    assert result.status["versionedSubsetStatuses"] == {}
    assert len(result.events) == 2


def test_one_mark_counts_for_all_versions_and_outlives_them() -> None:
    spread = a_spread(A3_B, scheduleStrategy=ADAPTIVE)
    waiting = {"v1": {"a": [_waiting("pod-0", "a", 10)]}, "v2": {"a": [a_pod("pod-1", "a")]}}
    result = counted_status(spread, waiting, 9, NOW)
    assert [pod["metadata"]["name"] for pod in result.failed] == ["pod-0"]
    versions = result.status["versionedSubsetStatuses"]
    for entry in (result.status["subsetStatuses"], versions["v1"], versions["v2"]):
        assert [status["conditions"][0]["status"] for status in entry] == ["False", "True"]
    later = counted_status(spread | {"status": result.status}, {}, 9, NOW + timedelta(seconds=100))
    assert later.status["subsetStatuses"][0]["conditions"] == result.status["subsetStatuses"][0]["conditions"]
    assert later.requeue_after_s == 200
    last = counted_status(spread | {"status": later.status}, {}, 9, NOW + timedelta(seconds=300))
    assert last.status["subsetStatuses"][0]["conditions"][0]["status"] == "True"
    assert last.events == (SpreadEvent("Normal", "RecoverSchedulable", "subset a is schedulable again"),)


def test_a_mark_is_kept_while_pods_wait_and_starts_no_new_time() -> None:
    spread = a_spread(A3_B, scheduleStrategy=ADAPTIVE)
    groups = {"v1": {"a": [_waiting("pod-0", "a", 10)]}}
    first = counted_status(spread, groups, 9, NOW).status
    again = counted_status(spread | {"status": first}, groups, 9, NOW + timedelta(seconds=400)).status
    assert again["subsetStatuses"][0]["conditions"] == first["subsetStatuses"][0]["conditions"]


def test_the_next_look_is_when_the_next_pod_has_waited_for_too_long() -> None:
    spread = a_spread(A3_B, scheduleStrategy=ADAPTIVE)
    pods = [_waiting("pod-0", "a", 2), _waiting("pod-1", "a", 1), _waiting("pod-2", "b", 4)]
    groups = {"v1": {"a": pods[:2], "b": pods[2:]}}
    assert counted_status(spread, groups, 9, NOW).requeue_after_s == 3
    due = counted_status(spread, {"v1": {"a": [_waiting("pod-0", "a", 5)]}}, 9, NOW)
    assert len(due.failed) == 1


@pytest.mark.parametrize(
    "change",
    [
        {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
        {"spec": {"nodeName": "node-1"}},
        {"status": {"phase": "Running"}},
        {"status": {"phase": "Pending", "conditions": []}},
        {
            "status": {
                "phase": "Pending",
                "conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}],
            }
        },
    ],
    ids=["terminating", "assigned", "running", "new", "gated"],
)
def test_other_pods_do_not_wait(change: dict[str, Any]) -> None:
    pod = {**_waiting("pod-0", "a", 60), **change}
    result = counted_status(a_spread(A3_B, scheduleStrategy=ADAPTIVE), {"v1": {"a": [pod]}}, 9, NOW)
    assert result.failed == ()
    assert result.requeue_after_s is None


def test_a_mark_without_time_ends_and_fixed_spreads_have_none() -> None:
    marked = [{"name": "a", "conditions": [{"type": "Schedulable", "status": "False"}]}]
    status = {"subsetStatuses": marked}
    recovered = counted_status(a_spread(A3_B, scheduleStrategy=ADAPTIVE) | {"status": status}, {}, 9, NOW)
    assert recovered.status["subsetStatuses"][0]["conditions"][0]["reason"] == "Sufficient"
    for strategy in (None, {"type": "Fixed"}, {"type": "Adaptive"}, {"type": "Adaptive", "adaptive": {}}):
        fixed = counted_status(a_spread(A3_B, scheduleStrategy=strategy) | {"status": status}, {}, 9, NOW)
        assert all("conditions" not in entry for entry in fixed.status["subsetStatuses"])


def test_the_generation_is_observed() -> None:
    spread = a_spread(A3_B)
    spread["metadata"]["generation"] = 7
    assert counted_status(spread, {}, 0, NOW).status["observedGeneration"] == 7


def test_the_last_subset_of_a_delivered_spread_reports_and_keeps_its_pods() -> None:
    pods = {"v1": {"b": [_waiting("pod-0", "b", 6), _waiting("pod-1", "b", 4), a_pod("pod-2", "b", node="n")]}}
    spread = a_spread(A3_B, scheduleStrategy=ADAPTIVE)
    spread["metadata"]["labels"] = {"kubeadmiral.io/managed": "true"}
    result = counted_status(spread, pods, 9, NOW)
    first, last = result.status["subsetStatuses"]
    assert (last["conditions"][0]["status"], last["unschedulableReplicas"], last["replicas"]) == ("False", 1, 3)
    assert "unschedulableReplicas" not in first
    assert result.failed == ()
    recovered = counted_status(spread | {"status": result.status}, {}, 9, NOW + timedelta(seconds=300))
    assert recovered.status["subsetStatuses"][1]["conditions"][0]["status"] == "True"
    own = counted_status({**spread, "metadata": {"name": "ws"}}, pods, 9, NOW).status["subsetStatuses"][1]
    assert (own["conditions"][0]["status"], "unschedulableReplicas" in own) == ("True", False)
