"""Unplaced replicas are placed without moving running ones."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.scheduling.engine import Decision, Engine, Outcome
from federation.scheduling.framework.profile import DEFAULT_PROFILE
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.framework.testing import NOW, a_cluster, a_divided_unit
from federation.scheduling.framework.types import Cluster, ClusterChange
from federation.scheduling.pendingreplicas import has_unplaced_replicas, with_added_only
from federation.scheduling.queueinghints import QueueingHint, queueing_hint_for
from federation.scheduling.snapshot import Snapshot

COUNTS = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 9))
ENGINE = Engine(load_plugins())


def a_decision(placements: dict[str, int | None], *, wanted: int, current: dict[str, int | None]) -> Decision:
    unit = a_divided_unit(wanted, current=current)
    outcome = Outcome.SCHEDULED if placements else Outcome.NO_FEASIBLE_CLUSTER
    return Decision(outcome, "because", unit, Snapshot(0, ()), placements=placements)


@given(COUNTS, COUNTS, st.integers(0, 40))
def test_nothing_is_removed_and_only_missing_replicas_are_added(
    current: dict[str, int | None], decided: dict[str, int | None], wanted: int
) -> None:
    decision = with_added_only(a_decision(decided, wanted=wanted, current=current))
    held, placed = sum(n or 0 for n in current.values()), {c: n or 0 for c, n in decision.placements.items()}
    assert decision.is_success
    assert all(placed[name] >= (count or 0) for name, count in current.items())
    assert all(placed[name] <= max(current.get(name) or 0, decided.get(name) or 0) for name in placed)
    assert sum(placed.values()) <= max(held, wanted)
    assert decision.unplaced == max(0, wanted - sum(placed.values()))


def test_a_decision_that_only_adds_is_unchanged_and_another_reports_the_rest() -> None:
    same = a_decision({"a": 2, "b": 2}, wanted=4, current={"a": 2})
    assert with_added_only(same).placements == same.placements
    assert with_added_only(same).reason == "because"
    moving = with_added_only(a_decision({"b": 4}, wanted=4, current={"a": 3}))
    assert moving.placements == {"a": 3, "b": 1}
    assert moving.reason == "because; what runs stays where it is"
    nowhere = with_added_only(a_decision({}, wanted=4, current={"a": 3}))
    assert (nowhere.outcome, nowhere.placements, nowhere.unplaced) == (Outcome.SCHEDULED, {"a": 3}, 1)
    broken = replace(nowhere, outcome=Outcome.PLUGIN_FAILED)
    assert with_added_only(broken) is broken


def decide(*clusters: Cluster, **unit: Any) -> tuple[Decision, QueueingHint]:
    decision = ENGINE.decide(a_divided_unit(9, **unit), Snapshot(1, clusters), DEFAULT_PROFILE, now=NOW)
    return decision, queueing_hint_for(decision, ENGINE.framework(DEFAULT_PROFILE), NOW)


@pytest.mark.parametrize("weights", [{}, {"east": 1, "west": 1}])
def test_a_shortage_at_limits_is_requeued_on_all_changes_but_resources(weights: dict[str, int]) -> None:
    east, west = a_cluster("east").with_nodes(1, cpu="9"), a_cluster("west").with_nodes(1, cpu="9").unready()
    decision, hint = decide(east.built(), west.built(), max_replicas={"east": 2, "west": 2}, weights=weights)
    assert has_unplaced_replicas(decision)
    assert hint.matches("west", ClusterChange.READINESS)
    assert hint.matches("east", ClusterChange.TAINTS)
    assert hint.matches("elsewhere", ClusterChange.MEMBERSHIP)
    assert not hint.matches("west", ClusterChange.TAINTS | ClusterChange.RESOURCES)
    assert not hint.matches("east", ClusterChange.RESOURCES)


def test_a_shortage_with_sums_only_is_requeued_on_resources_too() -> None:
    full = a_cluster("west").offering(cpu="9").free(cpu="0").built()
    decision, hint = decide(a_cluster("east").offering(cpu="9").built(), full, max_replicas={"east": 2})
    assert decision.placements == {"east": 2}
    assert hint.matches("west", ClusterChange.RESOURCES)


def test_a_sticky_unit_has_no_shortage() -> None:
    decision, _ = decide(a_cluster("east").built(), max_replicas={"east": 2}, sticky=True)
    assert decision.unplaced == 7
    assert not has_unplaced_replicas(decision)
