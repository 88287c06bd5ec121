"""Missing replicas get a place, and nothing that runs is moved for their sake."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.scheduling.engine import Decision, Engine, Outcome
from federation.scheduling.framework.profile import DEFAULT_PROFILE
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.framework.testing import NOW, a_cluster, a_divided_unit
from federation.scheduling.framework.types import Change, Cluster
from federation.scheduling.hope import Hope, hope_of
from federation.scheduling.shortage import is_short, with_added_only
from federation.scheduling.snapshot import Snapshot

COUNTS = st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 9))
ENGINE = Engine(load_plugins())


def a_decision(placements: dict[str, int | None], *, wanted: int, current: dict[str, int | None]) -> Decision:
    unit = a_divided_unit(wanted, current=current)
    outcome = Outcome.SCHEDULED if placements else Outcome.NO_FEASIBLE_CLUSTER
    return Decision(outcome, "because", unit, Snapshot(0, ()), placements=placements)


@given(COUNTS, COUNTS, st.integers(0, 40))
def test_nothing_is_taken_and_no_more_added_than_is_missing(
    current: dict[str, int | None], decided: dict[str, int | None], wanted: int
) -> None:
    decision = with_added_only(a_decision(decided, wanted=wanted, current=current))
    held, placed = sum(n or 0 for n in current.values()), {c: n or 0 for c, n in decision.placements.items()}
    assert decision.is_success
    assert all(placed[name] >= (count or 0) for name, count in current.items())
    assert all(placed[name] <= max(current.get(name) or 0, decided.get(name) or 0) for name in placed)
    assert sum(placed.values()) <= max(held, wanted)
    assert decision.unplaced == max(0, wanted - sum(placed.values()))


def test_a_decision_that_only_adds_stays_as_it_is_and_another_one_says_what_it_left() -> None:
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


def decide(*clusters: Cluster, **unit: Any) -> tuple[Decision, Hope]:
    decision = ENGINE.decide(a_divided_unit(9, **unit), Snapshot(1, clusters), DEFAULT_PROFILE, now=NOW)
    return decision, hope_of(decision, ENGINE.framework(DEFAULT_PROFILE), NOW)


@pytest.mark.parametrize("weights", [{}, {"east": 1, "west": 1}])
def test_what_is_short_at_limits_hopes_for_all_but_room(weights: dict[str, int]) -> None:
    east, west = a_cluster("east").with_nodes(1, cpu="9"), a_cluster("west").with_nodes(1, cpu="9").unready()
    decision, hope = decide(east.built(), west.built(), max_replicas={"east": 2, "west": 2}, weights=weights)
    assert is_short(decision)
    assert hope.is_helped_by("west", Change.READINESS)
    assert hope.is_helped_by("east", Change.TAINTS)
    assert hope.is_helped_by("elsewhere", Change.MEMBERSHIP)
    assert not hope.is_helped_by("west", Change.TAINTS | Change.RESOURCES)
    assert not hope.is_helped_by("east", Change.RESOURCES)


def test_where_only_sums_are_known_a_full_cluster_may_lack_nothing_but_room() -> None:
    full = a_cluster("west").offering(cpu="9").free(cpu="0").built()
    decision, hope = decide(a_cluster("east").offering(cpu="9").built(), full, max_replicas={"east": 2})
    assert decision.placements == {"east": 2}
    assert hope.is_helped_by("west", Change.RESOURCES)


def test_who_is_sticky_lacks_nothing() -> None:
    decision, _ = decide(a_cluster("east").built(), max_replicas={"east": 2}, sticky=True)
    assert decision.unplaced == 7
    assert not is_short(decision)
