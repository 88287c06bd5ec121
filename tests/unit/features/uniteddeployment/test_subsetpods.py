"""What the pods of a subset say about its workload."""

from typing import Any

import pytest

from federation.features.uniteddeployment.rules.subsetpods import ready_condition

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
