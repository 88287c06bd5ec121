"""What quotas and limit ranges of a cluster leave for an application."""

from typing import Any

import pytest

from federation.planning.applications.room import lacking_room

POD = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}]}


def a_quota(hard: dict[str, str], used: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "q"}, "spec": {"hard": hard, **spec}, "status": {"used": used or {}}}


def a_range(most: dict[str, str], type_: str = "Container") -> dict[str, Any]:
    return {"metadata": {"name": "r"}, "spec": {"limits": [{"type": type_, "max": most}]}}


@pytest.mark.parametrize(
    ("quota", "expected"),
    [
        (a_quota({"pods": "3"}), []),
        (a_quota({"pods": "3"}, {"pods": "1"}), ["ResourceQuota q leaves 2 pods, and 3 are needed"]),
        (a_quota({"requests.cpu": "2"}, {"requests.cpu": "500m"}), []),
        (a_quota({"cpu": "1"}), ["ResourceQuota q leaves 1 cpu, and 1500m are needed"]),
        (a_quota({"requests.memory": "1Gi"}, {"requests.memory": "2Gi"}), ["ResourceQuota q leaves 0 requests.memory, and 3Gi are needed"]),
        (a_quota({"count/secrets": "0", "limits.cpu": "0"}), []),
        (a_quota({"pods": "0"}, scopes=["BestEffort"]), []),
        (a_quota({"pods": "0"}, scopeSelector={"matchExpressions": []}), []),
        ({"metadata": {"name": "q"}}, []),
    ],
)  # fmt: skip
def test_a_quota_leaves_room_or_is_named(quota: dict[str, Any], expected: list[str]) -> None:
    assert lacking_room(POD, 3, [quota], []) == expected


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        (a_range({"cpu": "1"}), []),
        (a_range({"cpu": "250m"}), ["LimitRange r allows 250m cpu, and container c has 500m"]),
        (a_range({"cpu": "250m"}, "Pod"), []),
        (a_range({"example.com/gpu": "1"}), []),
        ({"metadata": {"name": "r"}}, []),
    ],
)
def test_a_limit_range_forbids_larger_containers(limits: dict[str, Any], expected: list[str]) -> None:
    assert lacking_room(POD, 1, [], [limits]) == expected
