"""Whether ClusterDisruptionBudgets allow a drain."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from federation.planning.failover.clusterbudgets import (
    WAVE_MAX,
    BudgetedCluster,
    DisruptionBudgets,
    budgeted_clusters,
    disruptions_of,
    find_blocked,
    is_open,
    next_opening,
)

NOW = datetime(2026, 1, 2, 22, 30, tzinfo=UTC)
"""A Friday."""


def _cluster(name: str, *, ready: bool = True, drained_s: float | None = None, **labels: str) -> BudgetedCluster:
    drained_at = None if drained_s is None else NOW - timedelta(seconds=drained_s)
    return BudgetedCluster(name, labels, ready, drained_at)


def _budget(most: Any, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "all"}, "spec": {"maxUnavailable": most, **spec}}


def _is_allowed(name: str, clusters: list[BudgetedCluster], *budgets: dict[str, Any]) -> bool:
    return find_blocked(name, clusters, budgets, NOW) is None


THREE = [_cluster("a"), _cluster("b"), _cluster("c")]


def test_without_a_budget_every_drain_is_allowed() -> None:
    assert _is_allowed("a", THREE)


@pytest.mark.parametrize(("most", "expected"), [(0, False), (1, True), ("0%", False), ("1%", True), ("100%", True)])
def test_the_limit_is_a_number_or_a_percentage_rounded_up(most: Any, expected: bool) -> None:  # a table
    assert _is_allowed("a", THREE, _budget(most)) is expected


def test_unready_clusters_and_earlier_drains_count_and_later_ones_do_not() -> None:
    first, second = _cluster("a", drained_s=60), _cluster("b", drained_s=30)
    assert _is_allowed("a", [first, second, _cluster("c")], _budget(1))
    assert not _is_allowed("b", [first, second, _cluster("c")], _budget(1))
    assert _is_allowed("b", [first, second, _cluster("c")], _budget(2))
    assert not _is_allowed("a", [first, _cluster("c", ready=False)], _budget(1))
    assert not _is_allowed("c", [first, _cluster("c")], _budget(1))


def test_of_two_drains_that_began_at_once_exactly_one_is_allowed() -> None:
    both = [_cluster("a", drained_s=60), _cluster("b", drained_s=60)]
    assert [_is_allowed(name, both, _budget(1)) for name in "ab"] == [True, False]


def test_a_drain_that_has_begun_goes_before_earlier_ones() -> None:
    # Times come from the clocks of clients, in whole seconds: the second to arrive may seem to be the first.
    for seconds in (60, 59, 61):
        begun, other = replace(_cluster("b", drained_s=60), has_begun=True), _cluster("a", drained_s=seconds)
        assert [_is_allowed(name, [other, begun], _budget(1)) for name in "ab"] == [False, True]
    both = [replace(_cluster(name, drained_s=60), has_begun=True) for name in "ab"]
    assert [_is_allowed(name, both, _budget(1)) for name in "ab"] == [True, False], "a budget became smaller"


def test_a_cluster_that_is_not_ready_anyway_may_be_drained() -> None:
    assert _is_allowed("a", [_cluster("a", ready=False), _cluster("b", ready=False)], _budget(0))


def test_only_selected_clusters_count() -> None:
    budget = _budget(1, clusterSelector={"matchLabels": {"region": "eu"}})
    clusters = [_cluster("a", region="eu"), _cluster("b", drained_s=9, region="us"), _cluster("c", region="eu")]
    assert _is_allowed("a", clusters, budget)
    assert not _is_allowed("a", [*clusters, _cluster("d", ready=False, region="eu")], budget)
    assert _is_allowed("b", [*clusters, _cluster("d", ready=False, region="eu")], budget)


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        ({"schedule": "0 22 * * 5", "duration": "2h"}, True),
        ({"schedule": "0 22 * * 5", "duration": "30m"}, False),
        ({"schedule": "30 22 * * 5", "duration": "1s"}, True),
        ({"schedule": "0 22 * * 6", "duration": "2h"}, False),
        ({"schedule": "0 23 * * 5", "duration": "1h", "timeZone": "Europe/Berlin"}, True),
        ({"start": "2026-01-02T22:00:00Z", "end": "2026-01-02T23:00:00Z"}, True),
        ({"start": "2026-01-02T20:00:00Z", "end": "2026-01-02T22:30:00Z"}, False),
    ],
)
def test_windows(window: dict[str, Any], expected: bool) -> None:  # a table
    assert is_open(window, NOW) is expected
    assert _is_allowed("a", THREE, _budget(1, windows=[window])) is expected


def test_a_closed_window_names_its_next_opening() -> None:
    blocked = find_blocked("a", THREE, [_budget(1, windows=[{"schedule": "0 22 * * 6", "duration": "2h"}])], NOW)
    assert blocked is not None
    assert blocked.until == datetime(2026, 1, 3, 22, tzinfo=UTC)
    assert "2026-01-03T22:00:00Z" in blocked.message
    over = {"start": "2026-01-01T00:00:00Z", "end": "2026-01-01T01:00:00Z"}
    assert next_opening(over, NOW) is None
    blocked = find_blocked("a", THREE, [_budget(1, windows=[over])], NOW)
    assert blocked is not None
    assert blocked.until is None
    assert blocked.message.endswith("allows no disruption now: it has no further window")


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"maxUnavailable": None},
        {"maxUnavailable": "half"},
        {"maxUnavailable": -1},
        {"maxUnavailable": True},
        {"maxUnavailable": 1, "windows": [{}]},
        {"maxUnavailable": 1, "windows": [{"schedule": "no schedule", "duration": "1h"}]},
        {"maxUnavailable": 1, "windows": [{"schedule": "* * * * * *", "duration": "1h"}]},
        {"maxUnavailable": 1, "windows": [{"schedule": "0 0 31 2 *", "duration": "1h"}]},
        {"maxUnavailable": 1, "windows": [{"schedule": "0 0 * * *", "duration": "long"}]},
        {"maxUnavailable": 1, "windows": [{"schedule": "0 0 * * *", "duration": "1h", "timeZone": "Nowhere"}]},
        {"maxUnavailable": 1, "windows": [{"start": "2026-01-01T00:00:00Z"}]},
        {"maxUnavailable": 1, "clusterSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}},
    ],
)
def test_a_malformed_budget_allows_nothing_and_says_so(spec: dict[str, Any]) -> None:
    blocked = find_blocked("a", THREE, [{"metadata": {"name": "all"}, "spec": spec}], NOW)
    assert blocked is not None
    assert "malformed" in blocked.message


def test_waves_count_for_drains_and_the_earlier_disruption_goes_first() -> None:
    changed = BudgetedCluster("a", {}, True, changed_at=NOW - timedelta(seconds=60))
    assert not _is_allowed("b", [changed, _cluster("b", drained_s=30)], _budget(1))
    assert _is_allowed("b", [changed, _cluster("b", drained_s=90)], _budget(1))
    assert _is_allowed("a", [changed, _cluster("b")], _budget(1))


def test_a_drain_that_waits_for_a_wave_is_asked_about_again_when_the_wave_counts_no_longer() -> None:
    """Otherwise it waits for an event that may never come."""
    since = NOW - timedelta(seconds=60)
    blocked = find_blocked(
        "b", [_cluster("c"), replace(_cluster("a"), changed_at=since), _cluster("b", drained_s=30)], [_budget(1)], NOW
    )
    assert blocked is not None
    assert blocked.until == since + WAVE_MAX
    lost = find_blocked("b", [_cluster("a", ready=False), _cluster("b", drained_s=30)], [_budget(1)], NOW)
    assert lost is not None
    assert lost.until is None, "a report of the cluster ends that"


def test_a_wrong_number_blocks_the_selected_clusters_only() -> None:
    budget = _budget("x", clusterSelector={"matchLabels": {"region": "eu"}})
    views = [_cluster("a", region="eu"), _cluster("b", region="us")]
    waves = DisruptionBudgets(views, [budget], NOW)
    assert [waves.find_blocked(name) is None for name in "ab"] == [False, True]
    assert [find_blocked(name, views, [budget], NOW) is None for name in "ab"] == [False, True]


def test_a_wave_takes_from_the_budgets_what_drains_and_unready_clusters_leave() -> None:
    clusters = [_cluster("a"), _cluster("b"), _cluster("c", drained_s=1), _cluster("d", ready=False)]
    budgets = DisruptionBudgets(clusters, [_budget(3)], NOW)
    assert budgets.find_blocked("a") is None
    budgets.take("a")
    blocked = budgets.find_blocked("b")
    assert blocked is not None
    assert blocked.message == (
        "ClusterDisruptionBudget all allows 3 unavailable clusters; 3 of 4 clusters are unavailable already"
    )
    # These are unavailable already, so a change of them costs nothing more.
    assert [budgets.find_blocked(name) for name in "acd"] == [None, None, None]


@pytest.mark.parametrize("spec", [{"maxUnavailable": "x"}, {"maxUnavailable": 9, "windows": [{"start": "2026"}]}])
def test_a_malformed_budget_allows_no_wave(spec: dict[str, Any]) -> None:
    budget = {"metadata": {"name": "all"}, "spec": spec}
    blocked = DisruptionBudgets(THREE, [budget], NOW).find_blocked("a")
    assert blocked is not None
    assert "ClusterDisruptionBudget all is malformed" in blocked.message


def test_of_several_rollouts_in_a_cluster_the_first_one_counts() -> None:
    status = {
        "clusters": [
            {"name": "a", "disruptedSince": "2026-01-01T00:00:05Z"},
            {"name": "b"},
            {"name": "c", "disruptedSince": "soon"},
        ]
    }
    later = disruptions_of({"status": status})
    assert later.keys() == {"a"}
    cluster = {
        "metadata": {"name": "a"},
        "status": {
            "conditions": [
                {"type": "Joined", "status": "True"},
                {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"},
            ]
        },
    }
    earlier = {"a": later["a"] - timedelta(seconds=5)}
    (view,) = budgeted_clusters([cluster], [later, earlier], later["a"])
    assert (view.changed_at, view.is_unavailable) == (earlier["a"], True)
    assert disruptions_of({}) == {}


def test_one_open_window_is_enough() -> None:
    is_now, is_tomorrow = ({"schedule": f"0 22 * * {day}", "duration": "2h"} for day in (5, 6))
    assert _is_allowed("a", THREE, _budget(1, windows=[is_now, is_tomorrow]))
    assert not _is_allowed("a", THREE, _budget(1, windows=[is_tomorrow, is_tomorrow]))


def test_of_several_budgets_the_first_by_name_is_the_reason() -> None:
    budgets = [{**_budget(0), "metadata": {"name": name}} for name in ("late", "early")]
    blocked = find_blocked("a", THREE, budgets, NOW)
    assert blocked is not None
    assert blocked.reason == "early"
