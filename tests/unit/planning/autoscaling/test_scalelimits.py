"""The limits of autoscalers: bounds, policies and stabilisation windows."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.planning.autoscaling.scalelimits import Bounds, History


@given(st.integers(1, 50), st.integers(1, 200), st.integers(1, 20), st.integers(20, 100), st.booleans())
def test_a_step_stays_within_the_bounds(current: int, wanted: int, low: int, high: int, has_behavior: bool) -> None:
    rules = {"policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}], "stabilizationWindowSeconds": 0}
    bounds = Bounds(low, high, {"scaleUp": rules, "scaleDown": rules} if has_behavior else None)
    desired, _, _ = History().limit(min(max(current, low), high), wanted, bounds, 0.0)
    assert low <= desired <= high
    if has_behavior:
        assert abs(desired - min(max(current, low), high)) <= 4


def test_speed_limits_count_what_was_done_lately() -> None:
    rules = {"policies": [{"type": "Percent", "value": 100, "periodSeconds": 60}], "selectPolicy": "Max"}
    bounds = Bounds(1, 100, {"scaleUp": rules, "scaleDown": {"selectPolicy": "Disabled"}})
    history = History()
    desired, _, limited = history.limit(5, 50, bounds, 0.0)
    assert (desired, limited[1]) == (10, "ScaleUpLimit")
    history.record_change(5, 0.0)
    assert history.limit(10, 50, bounds, 30.0)[0] == 10
    assert history.limit(10, 50, bounds, 61.0)[0] == 20
    assert History().limit(10, 1, bounds, 0.0)[0] == 10


QUICK = {"policies": [{"type": "Pods", "value": 4, "periodSeconds": 60}]}


@pytest.mark.parametrize(
    ("current", "wanted", "behavior", "expected", "able", "limited"),
    [
        (5, 5, None, 5, "ReadyForNewScale", "DesiredWithinRange"),
        (5, 10, None, 10, "ReadyForNewScale", "DesiredWithinRange"),
        (5, 11, None, 10, "ReadyForNewScale", "ScaleUpLimit"),
        (1, 9, None, 4, "ReadyForNewScale", "ScaleUpLimit"),
        (9, 21, None, 18, "ReadyForNewScale", "ScaleUpLimit"),
        (15, 21, None, 20, "ReadyForNewScale", "TooManyReplicas"),
        (10, 21, None, 20, "ReadyForNewScale", "TooManyReplicas"),
        (5, 1, None, 2, "ReadyForNewScale", "TooFewReplicas"),
        (10, 3, {"scaleDown": QUICK}, 6, "ReadyForNewScale", "ScaleDownLimit"),
        (10, 6, {"scaleDown": QUICK}, 6, "ReadyForNewScale", "DesiredWithinRange"),
        (6, 1, {"scaleDown": QUICK}, 2, "ReadyForNewScale", "TooFewReplicas"),
        (16, 21, {"scaleUp": QUICK}, 20, "ReadyForNewScale", "TooManyReplicas"),
        (10, 17, {"scaleUp": QUICK}, 14, "ReadyForNewScale", "ScaleUpLimit"),
        (10, 17, {}, 10, "ReadyForNewScale", "ScaleUpLimit"),
    ],
)
def test_the_first_step_and_its_reasons(
    current: int, wanted: int, behavior: dict[str, Any] | None, expected: int, able: str, limited: str
) -> None:
    replicas, is_able, is_limited = History().limit(current, wanted, Bounds(2, 20, behavior), 0.0)
    assert (replicas, is_able[1], is_limited[1]) == (expected, able, limited)


@pytest.mark.parametrize(
    ("behavior", "recent", "wanted", "age_s", "expected", "able"),
    [
        (None, 8, 4, 299, 8, "ScaleDownStabilized"),
        (None, 8, 4, 300, 4, "ReadyForNewScale"),
        (None, 8, 6, 299, 8, "ScaleDownStabilized"),
        (
            {"scaleUp": {**QUICK, "stabilizationWindowSeconds": 60}, "scaleDown": QUICK},
            6,
            8,
            59,
            6,
            "ScaleUpStabilized",
        ),
        ({"scaleUp": {**QUICK, "stabilizationWindowSeconds": 60}, "scaleDown": QUICK}, 6, 8, 60, 8, "ReadyForNewScale"),
        (
            {"scaleUp": QUICK, "scaleDown": {**QUICK, "stabilizationWindowSeconds": 60}},
            6,
            4,
            59,
            5,
            "ScaleDownStabilized",
        ),
        ({"scaleUp": QUICK, "scaleDown": {**QUICK, "stabilizationWindowSeconds": 60}}, 6, 4, 60, 4, "ReadyForNewScale"),
        ({"scaleUp": QUICK, "scaleDown": QUICK}, 6, 8, 0.5, 8, "ReadyForNewScale"),
    ],
)
def test_recent_recommendations_hold_a_change_back(
    behavior: dict[str, Any] | None, recent: int, wanted: int, age_s: float, expected: int, able: str
) -> None:
    history, bounds = History(), Bounds(1, 20, behavior)
    history.limit(5, recent, bounds, 0.0)
    replicas, is_able, _ = history.limit(5, wanted, bounds, age_s)
    assert (replicas, is_able[1]) == (expected, able)


def test_changes_count_for_half_an_hour() -> None:
    history = History()
    history.record_change(5, 0.0)
    history.record_change(-3, 10.0)
    history.record_change(1, 1805.0)
    assert history.changes == [(10.0, -3), (1805.0, 1)]


def test_a_disabled_direction_does_not_change_whatever_its_policies_say() -> None:
    rules = {**QUICK, "selectPolicy": "Disabled", "stabilizationWindowSeconds": 0}
    bounds = Bounds(1, 20, {"scaleUp": rules, "scaleDown": rules})
    assert History().limit(5, 9, bounds, 0.0)[0] == 5
    assert History().limit(5, 1, bounds, 0.0)[0] == 5
