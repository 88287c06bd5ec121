"""What the pods of a subset say about its workload."""

from typing import Any

import pytest

from federation.features.uniteddeployment.names import SUBSET_REVISION_LABEL
from federation.features.uniteddeployment.rules.subsetpods import count_updated, ready_condition, revision_of

READY = {"type": "Ready", "status": "True"}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (None, None),
        ({}, None),
        ({"conditions": [{"type": "PodScheduled", "status": "True"}]}, None),
        ({"conditions": [{"type": "Ready", "status": "False"}]}, None),
        ({"conditions": [READY]}, READY),
    ],
)
def test_a_pod_is_ready_by_its_condition(status: Any, expected: Any) -> None:
    assert ready_condition({"metadata": {"name": "p"}, "status": status}) == expected


@pytest.mark.parametrize(
    "labels", [{}, {"labels": None}, {"labels": {"app": "a"}}, {"labels": {SUBSET_REVISION_LABEL: ""}}]
)
def test_a_pod_without_a_revision_has_none(labels: dict[str, Any]) -> None:
    assert revision_of({"metadata": {"name": "a", **labels}}) == ""


def test_a_pod_has_the_revision_of_its_label() -> None:
    assert revision_of({"metadata": {"labels": {SUBSET_REVISION_LABEL: "r1"}}}) == "r1"


def test_active_pods_of_the_revision_count_and_those_that_are_ready() -> None:
    def pod(revision: str, phase: str = "Running", *, ready: bool = True, **metadata: Any) -> dict[str, Any]:
        status = {"phase": phase, "conditions": [READY] if ready else []}
        return {"metadata": {"labels": {SUBSET_REVISION_LABEL: revision}, **metadata}, "status": status}

    leaving = pod("r2", deletionTimestamp="2026-01-01T00:00:00Z")
    pods = [pod("r2"), pod("r2", ready=False), pod("r1"), pod("r2", "Failed"), pod("r2", "Succeeded"), leaving]
    assert count_updated(pods, "r2") == (2, 1)
