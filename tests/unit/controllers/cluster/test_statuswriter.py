"""Which conditions of a FederatedCluster are written, and with which times."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from federation.apimachinery.clock import to_rfc3339
from federation.controllers.cluster.statuswriter import ConditionWanted, plan_conditions, refresh_in_s

NOW = datetime(2026, 1, 1, tzinfo=UTC)
READY = ConditionWanted("Ready", "True", "ClusterReady", "ok")


def _held(since_s: float, probed_s: float) -> list[dict[str, Any]]:
    since, probed = (to_rfc3339(NOW + timedelta(seconds=each)) for each in (since_s, probed_s))
    entry = {"type": "Ready", "status": "True", "reason": "ClusterReady", "message": "ok"}
    return [{**entry, "lastTransitionTime": since, "lastProbeTime": probed}]


@pytest.mark.parametrize(
    ("since_s", "probed_s", "written_since_s"),
    [
        pytest.param(-900, -10, None, id="nothing is due"),
        pytest.param(-900, -400, -900, id="an old probe time is refreshed"),
        pytest.param(20, 20, None, id="clocks differ a little"),
        pytest.param(31_536_000, 31_536_000, 0, id="both times are of a clock that was ahead"),
        pytest.param(31_536_000, -10, 0, id="the transition is"),
        pytest.param(-900, 31_536_000, -900, id="the probe is"),
    ],
)
def test_times_of_a_clock_that_was_ahead_are_corrected(
    since_s: float, probed_s: float, written_since_s: float | None
) -> None:
    planned = plan_conditions(_held(since_s, probed_s), [READY], NOW, refresh_s=300)
    expected = None if written_since_s is None else _held(written_since_s, 0)
    assert planned == expected


@pytest.mark.parametrize("probed_s", [0, -10, -299, 30])
def test_published_conditions_are_up_to_date_for_exactly_as_long_as_no_write_is_planned(probed_s: float) -> None:
    held = _held(-900, probed_s)
    left_s = refresh_in_s(held, [READY], NOW, refresh_s=300)
    assert left_s == 300 + probed_s
    for at_s, is_due in ((left_s - 1, False), (left_s, True)):
        planned = plan_conditions(held, [READY], NOW + timedelta(seconds=at_s), refresh_s=300)
        assert (planned is not None) == is_due


def test_conditions_that_are_not_published_are_due_at_once() -> None:
    assert refresh_in_s([], [READY], NOW, refresh_s=300) == 0
