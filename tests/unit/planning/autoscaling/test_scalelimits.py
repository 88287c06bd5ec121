"""The limits of autoscalers: bounds, policies and stabilisation windows."""

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
