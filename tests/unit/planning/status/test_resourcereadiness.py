"""When a custom resource in a member is ready."""

from typing import Any

import pytest

from federation.api.federatedtype import FederatedType, PathDefinition
from federation.apimachinery.resources import Resource
from federation.planning.status.readiness import Readiness
from federation.planning.status.resourcereadiness import assess_resource, count_replicas

QUEUE = Resource("example.com", "v1", "Queue", "queues")
PLAIN = FederatedType("q", QUEUE, ())
SCALED = FederatedType(
    "q",
    QUEUE,
    (),
    PathDefinition(
        replicas_spec=("spec", "replicas"),
        replicas_status=("status", "replicas"),
        ready_replicas_status=("status", "ready"),
    ),
)
JUDGED = FederatedType("q", QUEUE, (), health_expression="object.status.isGood")


def compile_(text: str) -> Any:
    assert text == "object.status.isGood"
    return lambda obj: obj["status"]["isGood"] is True


def member(generation: int = 2, **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "q", "generation": generation}, "spec": {"replicas": 3}, "status": status}


def condition(type_: str, status: str, **more: Any) -> dict[str, Any]:
    return {"type": type_, "status": status, **more}


@pytest.mark.parametrize(
    ("type_", "status", "problem"),
    [
        (PLAIN, {}, ""),
        (PLAIN, {"observedGeneration": 1}, "its controller has not observed the change yet"),
        (PLAIN, {"observedGeneration": 2}, ""),
        (
            PLAIN,
            {"conditions": [condition("Ready", "True", observedGeneration=1)]},
            "its controller has not observed the change yet",
        ),
        (PLAIN, {"conditions": [condition("Ready", "True", observedGeneration=2)]}, ""),
        (
            PLAIN,
            {"conditions": [condition("Ready", "False", message="no disk")]},
            "its condition Ready is False: no disk",
        ),
        (PLAIN, {"conditions": [condition("Reconciling", "True")]}, "its condition Reconciling is True"),
        (PLAIN, {"conditions": [condition("Ready", "Unknown")]}, ""),
        (PLAIN, {"conditions": "nonsense"}, ""),
        (SCALED, {"ready": 1}, "1 of 3 replicas are available"),
        (SCALED, {"ready": 3}, ""),
        (SCALED, {"ready": "3"}, "0 of 3 replicas are available"),
        (JUDGED, {"isGood": True, "conditions": [condition("Ready", "False")]}, ""),
        (JUDGED, {"isGood": False}, "the health expression of its kind is false"),
        (JUDGED, {"isGood": True, "observedGeneration": 1}, "its controller has not observed the change yet"),
    ],
)
def test_readiness(type_: FederatedType, status: dict[str, Any], problem: str) -> None:
    assert assess_resource(type_, member(**status), compile_).problem == problem


def test_a_stalled_resource_has_failed() -> None:
    stalled = member(conditions=[condition("Ready", "False"), condition("Stalled", "True", reason="NoQuota")])
    assert assess_resource(PLAIN, stalled, compile_) == Readiness("its condition Stalled is True: NoQuota", True)


def test_a_resource_that_is_being_deleted_is_not_ready() -> None:
    leaving = member()
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert assess_resource(PLAIN, leaving, compile_).problem == "it is being deleted"


def test_counts_come_from_the_paths_of_the_kind() -> None:
    assert tuple(count_replicas(SCALED, member(replicas=4, ready=2))) == (3, 4, 4, 2)
    assert tuple(count_replicas(SCALED, member(replicas=4, ready=-2, updatedReplicas=1))) == (3, 4, 1, 0)
    assert tuple(count_replicas(PLAIN, member())) == (0, 0, 0, 0)
