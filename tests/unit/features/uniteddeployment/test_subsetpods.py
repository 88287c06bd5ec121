"""What the pods of a subset say about its workload."""

from typing import Any

import pytest

from federation.features.uniteddeployment.names import SUBSET_REVISION_LABEL
from federation.features.uniteddeployment.rules.subsetpods import ready_condition, revision_of

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
