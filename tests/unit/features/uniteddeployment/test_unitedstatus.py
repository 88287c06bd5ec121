"""The status of v1beta1 from the fields of both versions."""

from typing import Any

import pytest

from federation.features.uniteddeployment.rules.unitedstatus import hub_status


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        pytest.param(None, {}, id="no status"),
        pytest.param({"subsetReplicas": {"a": 2, "": 1}}, {"a": 2}, id="numbers of v1alpha1"),
        pytest.param(
            {
                "subsetStatuses": [{"name": "a", "replicas": 1}, {"replicas": 9}, {"name": ""}],
                "subsetReplicas": {"a": 2},
            },
            {"a": 2},
            id="v1alpha1 wins, and entries without a name are dropped",
        ),
    ],
)
def test_numbers_of_subsets_come_from_either_version(status: Any, expected: dict[str, int]) -> None:
    entries = hub_status(status).get("subsetStatuses") or []
    assert {entry["name"]: entry.get("replicas") for entry in entries} == expected
