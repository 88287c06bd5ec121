"""Why an autoscaler of a mode does not act."""

import json
from typing import Any

import pytest

from federation.api import names
from federation.features.autoscaling.rules.hpamodes import WORKS, BoundPolicy, distributed_problem

POLICY = BoundPolicy("PropagationPolicy", "web", {"schedulingMode": "Duplicate"})
LISTED = json.dumps([{"group": "autoscaling", "kind": "HorizontalPodAutoscaler", "name": "web"}])
NOT_FOLLOWING = "[The hpa is not follow the workload.]"


@pytest.mark.parametrize(
    ("followers", "autoscaler", "problem"),
    [
        (LISTED, {}, ""),
        (LISTED, {"name": "other"}, NOT_FOLLOWING),
        (LISTED, {"namespace": "other"}, NOT_FOLLOWING),
        (LISTED, {"annotations": {names.DISABLE_FOLLOWING: "true"}}, NOT_FOLLOWING),
        (LISTED, {"annotations": {names.DISABLE_FOLLOWING: "false"}}, ""),
        ("[]", {}, NOT_FOLLOWING),
        ("nonsense", {}, NOT_FOLLOWING),
    ],
)
def test_a_distributed_autoscaler_follows_its_workload(
    followers: str, autoscaler: dict[str, Any], problem: str
) -> None:
    annotations = {names.RETAIN_REPLICAS: "true", names.FOLLOWERS: followers}
    found = distributed_problem(
        POLICY,
        {"metadata": {"namespace": "shop", "annotations": annotations}},
        {"metadata": {"namespace": "shop", "name": "web", **autoscaler}},
    )
    assert found == (problem or WORKS)
