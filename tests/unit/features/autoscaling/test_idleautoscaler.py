"""When the condition of an idle autoscaler is written, replaced and removed."""

from datetime import UTC, datetime
from typing import Any

import pytest

from federation.api import names
from federation.features.autoscaling.rules.idleautoscaler import plan_conditions, target_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LATER = datetime(2026, 1, 2, tzinfo=UTC)
ABLE = {"type": "AbleToScale", "status": "True", "reason": "SucceededGetScale"}
OTHER = {"type": names.SCALING_ACTIVE, "status": "False", "reason": "FailedGetResourceMetric"}


def a_scaler(*conditions: Any) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    metadata = {"name": "web", "namespace": "default"}
    return {"metadata": metadata, "spec": {"scaleTargetRef": target}, "status": {"conditions": list(conditions)}}


def test_the_condition_is_added_once_and_others_stay() -> None:
    added = plan_conditions(a_scaler(ABLE), is_idle=True, now=NOW)
    assert added is not None
    assert added[0] == ABLE
    assert (added[1]["type"], added[1]["status"]) == (names.SCALING_ACTIVE, "False")
    assert (added[1]["reason"], added[1]["lastTransitionTime"]) == ("FederatedWorkload", "2026-01-01T00:00:00Z")
    assert plan_conditions(a_scaler(*added), is_idle=True, now=LATER) is None
    assert plan_conditions(a_scaler(*added), is_idle=False, now=LATER) == [ABLE]
    assert plan_conditions(a_scaler(ABLE), is_idle=False, now=LATER) is None


@pytest.mark.parametrize("is_idle", [True, False])
def test_the_condition_of_another_controller_stays(is_idle: bool) -> None:
    assert plan_conditions(a_scaler(OTHER), is_idle=is_idle, now=NOW) is None


def test_a_target_may_lack_everything() -> None:
    assert target_of({"metadata": {"name": "web"}}) == ("", "", "", "")
    assert target_of(a_scaler()) == ("apps", "Deployment", "default", "web")
