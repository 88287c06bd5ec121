"""Why pods do not run."""

from typing import Any

import pytest

from federation.planning.applications.notrunning import why_not_running


def a_workload(**conditions: str) -> dict[str, Any]:
    """A workload with conditions by type: their status, and a message after a colon."""
    found = []
    for type_, text in conditions.items():
        status, _, message = text.partition(":")
        found.append({"type": type_, "status": status, "reason": f"{type_}Reason", "message": message})
    return {"metadata": {"name": "web"}, "status": {"conditions": found}}


def a_pod(**status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "web-1"}, "status": status}


def pod_condition(type_: str, message: str, reason: str = "Why") -> dict[str, Any]:
    return a_pod(conditions=[{"type": type_, "status": "False", "reason": reason, "message": message}])


WAITING = {"name": "c", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}}


@pytest.mark.parametrize(
    ("workload", "pods", "expected"),
    [
        (None, [], "it is not there yet"),
        (a_workload(), [], ""),
        ({"metadata": {}}, [a_pod()], "pod web-1 is starting"),
        (a_workload(ReplicaFailure="True:no PriorityClass gold"), [], "no PriorityClass gold"),
        (a_workload(ReplicaFailure="True"), [], "ReplicaFailureReason"),
        (a_workload(ReplicaFailure="False:x", Progressing="False:deadline exceeded"), [], "deadline exceeded"),
        (a_workload(Progressing="False"), [], "ProgressingReason"),
        (a_workload(), [pod_condition("PodScheduled", "0/3 nodes fit")], "pod web-1 is not scheduled: 0/3 nodes fit"),
        (
            a_workload(),
            [pod_condition("PodScheduled", "", "Unschedulable")],
            "pod web-1 is not scheduled: Unschedulable",
        ),
        (a_workload(), [pod_condition("PodScheduled", "", "")], "pod web-1 is not scheduled"),
        (
            a_workload(),
            [a_pod(containerStatuses=[WAITING])],
            "pod web-1: container c is in ImagePullBackOff: no such image",
        ),
        (
            a_workload(),
            [a_pod(initContainerStatuses=[{"state": {}}, WAITING])],
            "pod web-1: container c is in ImagePull",
        ),
        (a_workload(), [a_pod(phase="Running")], "pod web-1 runs and is not ready"),
        (a_workload(), [{}, {"metadata": "x", "status": []}], "pod  is starting"),
        (a_workload(ReplicaFailure=f"True:{'x' * 400}"), [], "x" * 300 + "…"),
    ],
)
def test_the_first_reason_of_kubernetes_is_given(
    workload: dict[str, Any] | None, pods: list[dict[str, Any]], expected: str
) -> None:
    found = why_not_running(workload, pods)
    assert found.startswith(expected)
    assert bool(found) is bool(expected)
