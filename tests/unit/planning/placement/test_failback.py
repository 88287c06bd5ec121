"""Replicas on trial: more where capacity is free again, and no fewer elsewhere."""

from dataclasses import replace
from functools import partial

from federation.planning.placement.binpack import plan_binpack
from federation.planning.placement.capacity import FreeCapacity, plan_by_capacity
from federation.planning.placement.failback import Offers, _find_irreplaceable, plan_with_trials
from federation.planning.placement.nearest import plan_nearest
from federation.planning.placement.replicas import Demand, Plan, Preference, Steps

AWAY = Demand(
    6,
    ("a", "b", "c"),
    dict.fromkeys("abc", Preference(1)),
    key="default/web",
    current={"a": 3, "b": 3},
    estimated={"c": 0},
)


def test_a_cluster_gets_as_much_of_its_offer_as_the_batch_and_its_weight_allow() -> None:
    def totals(offered: int, batch: int) -> dict[str, int]:
        return plan_with_trials(plan_nearest, AWAY, Offers({"c": offered}, batch)).totals()

    assert totals(1, 9) == {"a": 3, "b": 3, "c": 1}
    assert totals(9, 1) == {"a": 3, "b": 3, "c": 1}
    assert totals(9, 9) == {"a": 3, "b": 3, "c": 2}
    assert totals(0, 9) == totals(9, 0) == {"a": 3, "b": 3, "c": 0}


def test_the_batch_is_shared_and_goes_where_most_is_missing() -> None:
    demand = replace(AWAY, total=8, current={"a": 8}, estimated={"b": 0, "c": 0})
    weights = {"a": Preference(2), "b": Preference(1), "c": Preference(2)}
    plan = plan_with_trials(plan_nearest, replace(demand, preferences=weights), Offers({"b": 5, "c": 3}, 4))
    assert plan.totals() == {"a": 8, "b": 1, "c": 3}


def test_bounds_hold_for_replicas_on_trial_too() -> None:
    bounded = replace(AWAY, preferences={**AWAY.preferences, "c": Preference(1, maximum=1)})
    assert plan_with_trials(plan_nearest, bounded, Offers({"c": 2}, 9)).totals()["c"] == 1
    capped = replace(AWAY, limited={"c": 0})
    assert plan_with_trials(plan_nearest, capped, Offers({"c": 2}, 9)).totals()["c"] == 0


def test_a_cluster_with_its_share_takes_no_offer() -> None:
    steps: Steps = []
    there = replace(AWAY, current={"a": 2, "b": 2, "c": 2}, estimated={"c": 2})
    assert plan_with_trials(plan_nearest, there, Offers({"c": 2}, 9), steps).totals() == {"a": 2, "b": 2, "c": 2}
    assert "return" not in [step["step"] for step in steps]


def test_the_trace_shows_replicas_on_trial() -> None:
    steps: Steps = []
    plan_with_trials(plan_nearest, AWAY, Offers({"c": 2}, 1), steps)
    assert steps[-1]["step"] == "return"
    assert steps[-1]["onTrial"] == {"c": 1}


def test_bin_packed_replicas_return_too() -> None:
    demand = replace(
        AWAY, preferences={c: Preference() for c in "abc"}, current={"b": 6}, scheduled={"b": 6}, estimated={"a": 0}
    )
    assert plan_binpack(demand).totals() == {"b": 6}
    assert plan_with_trials(plan_binpack, demand, Offers({"a": 6}, 2)).totals() == {"a": 2, "b": 6}


def test_running_replicas_stay_until_their_replacements_run() -> None:
    """What is believed of c is behind: its replicas run again, and those that b got instead do not run yet."""
    behind = replace(AWAY, current={"a": 2, "b": 4, "c": 2}, estimated={"c": 0}, ready={"a": 2, "b": 2, "c": 2})
    steps: Steps = []
    assert plan_nearest(behind).totals() == {"a": 2, "b": 4, "c": 0}
    assert plan_with_trials(plan_nearest, behind, Offers(), steps).totals() == {"a": 2, "b": 4, "c": 2}
    assert steps[-1] == {"step": "hold", "untilOthersRun": {"c": 2}}
    run = replace(behind, ready={"a": 2, "b": 4, "c": 2})
    assert plan_with_trials(plan_nearest, run, Offers()).totals() == {"a": 2, "b": 4, "c": 0}


def test_running_replicas_do_not_stay_beyond_bounds_or_the_total() -> None:
    running = replace(AWAY, current={"a": 6}, ready={"a": 6}, estimated={})
    bounded = replace(running, preferences={**AWAY.preferences, "a": Preference(1, maximum=2)}, avoid_disruption=False)
    assert plan_with_trials(plan_nearest, bounded, Offers()).totals()["a"] == 2
    capped = replace(running, limited={"a": 1})
    assert plan_with_trials(plan_nearest, capped, Offers()).totals()["a"] == 1
    fewer = replace(running, total=3)
    assert plan_with_trials(plan_nearest, fewer, Offers()).totals() == {"a": 3, "b": 0, "c": 0}


def test_running_replicas_beyond_the_estimate_stay_even_if_unplaced() -> None:
    bounds = {"a": Preference(1), "b": Preference(2, 1, 1)}
    behind = Demand(4, ("a", "b"), bounds, "default/web", {"a": 2, "b": 1}, {"a": 0, "b": 1}, ready={"a": 2, "b": 1})

    def timid(demand: Demand, steps: Steps | None = None) -> Plan:
        return Plan({"a": 0, "b": 1}, {"a": 1})

    assert plan_with_trials(timid, behind, Offers()).totals() == {"a": 2, "b": 1}
    on_purpose = replace(behind, estimated={})
    assert plan_with_trials(timid, on_purpose, Offers()).totals() == {"a": 1, "b": 1}


def test_replicas_that_wait_in_a_cluster_use_its_offer_up() -> None:
    waiting = replace(AWAY, current={"a": 2, "b": 2, "c": 2}, estimated={"a": 2, "b": 2, "c": 0})
    assert plan_nearest(waiting).totals()["c"] == 2
    assert plan_with_trials(plan_nearest, waiting, Offers({"c": 2}, 2)).totals() == plan_nearest(waiting).totals()


def test_a_started_trial_runs_to_its_end_although_it_uses_the_free_capacity() -> None:
    begun = Demand(1, ("b", "c"), {"b": Preference(0, 1)}, "default/web", {"b": 1, "c": 1}, {"b": 0})
    for free in ({"b": 1, "c": 1}, {"b": 0, "c": 1}):
        planner = partial(plan_by_capacity, FreeCapacity(free, free, {"b": 1, "c": 2}))
        assert plan_with_trials(planner, begun, Offers({"b": 1}, 1)).totals() == {"b": 1, "c": 1}


def test_without_estimates_no_more_stay_in_all_clusters_together_than_are_placed_elsewhere() -> None:
    held = {"a": 3, "b": 3}
    demand = Demand(6, ("a", "b", "c"), dict.fromkeys("abc", Preference(1)), current=held, ready=held)
    assert _find_irreplaceable(demand, {"c": 4}, None) == {"a": 3, "b": 1}
    assert _find_irreplaceable(replace(demand, estimated={"a": 3, "b": 3}), {"c": 4}, None) == held
    assert _find_irreplaceable(replace(demand, estimated={"b": 3}), {"c": 2}, None) == {"a": 2, "b": 3}
    assert _find_irreplaceable(demand, {"a": 3, "b": 3}, None) == {}
