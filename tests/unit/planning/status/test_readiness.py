"""When a workload in a member counts as updated and ready."""

from typing import Any

import pytest

from federation.planning.status.readiness import Counts, Readiness, assess_readiness, count_pods

READY = {"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "readyReplicas": 3, "availableReplicas": 3}


def a_workload(kind: str = "Deployment", **status: Any) -> dict[str, Any]:
    return {"kind": kind, "metadata": {"generation": 2}, "spec": {"replicas": 3}, "status": {**READY, **status}}


@pytest.mark.parametrize(
    ("status", "problem"),
    [
        ({}, ""),
        ({"observedGeneration": 1}, "its controller has not observed the change yet"),
        ({"updatedReplicas": 1}, "1 of 3 replicas are updated"),
        ({"updatedReplicas": None}, "0 of 3 replicas are updated"),
        ({"replicas": 4}, "1 old replicas are being removed"),
        ({"availableReplicas": 2}, "2 of 3 replicas are ready"),
        ({"availableReplicas": None, "readyReplicas": 1}, "1 of 3 replicas are ready"),
        ({"updatedReadyReplicas": 0}, "0 of 3 replicas are ready"),
        ({"conditions": [{"type": "Progressing", "status": "False", "reason": "Other"}]}, ""),
    ],
)
def test_the_first_unmet_condition_is_the_problem(status: dict[str, Any], problem: str) -> None:
    assert assess_readiness(a_workload(**status), "Deployment") == Readiness(problem)


def test_a_controller_that_has_given_up_has_failed() -> None:
    condition = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}
    found = assess_readiness(a_workload(conditions=[condition], updatedReplicas=1), "Deployment")
    assert found == Readiness("its progress deadline is exceeded", has_failed=True)


def test_absent_and_null_fields_count_as_zero_and_absent_replicas_as_one() -> None:
    assert count_pods({}, "Deployment") == Counts(1, 0, 0, 0)
    assert count_pods({"kind": None, "spec": None, "status": None}, "Deployment") == Counts(1, 0, 0, 0)
    assert assess_readiness({"spec": {"replicas": 0}}, "Deployment") == Readiness()


def test_counts_of_a_wrong_type_or_sign_are_zero() -> None:
    status = {"replicas": -1, "updatedReplicas": "3", "readyReplicas": True, "observedGeneration": "x"}
    obj = {"metadata": {"generation": "2"}, "spec": {"replicas": "many"}, "status": status}
    assert count_pods(obj, "Deployment") == Counts(0, 0, 0, 0)
    assert assess_readiness({**obj, "status": [], "metadata": None}, "Deployment") == Readiness()


def test_a_daemon_set_counts_by_nodes() -> None:
    status = {"desiredNumberScheduled": 4, "currentNumberScheduled": 4, "updatedNumberScheduled": 2}
    assert count_pods({"status": status}, "DaemonSet") == Counts(4, 4, 2, 0)
