"""Ordered groups of clusters: tiers, overflow, what stays, and what returns."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.planning.placement.subsetquotas import SubsetClusters, SubsetSpread
from federation.scheduling.decisiontext import verdict
from federation.scheduling.engine import Decision, Engine, Outcome
from federation.scheduling.explain import to_explanation
from federation.scheduling.explanations import rows
from federation.scheduling.framework.migrations import AutoMigration
from federation.scheduling.framework.orderedgroups import share_of
from federation.scheduling.framework.policygroups import GroupMove
from federation.scheduling.framework.profile import DEFAULT_PROFILE
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.framework.testing import NOW, a_cluster, a_divided_unit, a_unit
from federation.scheduling.framework.types import Cluster, ClusterChange, SchedulingUnit
from federation.scheduling.policyspec import to_groups
from federation.scheduling.queueinghints import return_hint_for
from federation.scheduling.snapshot import Snapshot

ENGINE = Engine(load_plugins())
OWN = {"name": "own", "clusterSelector": {"kind": "own"}}
RENTED = {"name": "rented", "clusterSelector": {"kind": "rented"}, "when": "Overflow"}
FAR = {"name": "far", "clusters": ["far"]}


def cluster(name: str, kind: str = "", cores: int = 4) -> Cluster:
    labels = {"kind": kind} if kind else {}
    return a_cluster(name).labelled(**labels).with_nodes(cores, cpu="1", memory="4Gi").built()


FLEET = (cluster("a", "own"), cluster("b", "own"), cluster("far", cores=30), cluster("r", "rented"))


def unit(
    replicas: int, *groups: dict[str, Any], current: dict[str, int] | None = None, **fields: Any
) -> SchedulingUnit:
    return a_divided_unit(replicas, groups=to_groups(groups), current=current or {}, request={"cpu": 1000}, **fields)


def decide(wanted: SchedulingUnit, fleet: tuple[Cluster, ...] = FLEET) -> Decision:
    return ENGINE.decide(wanted, Snapshot(1, fleet), DEFAULT_PROFILE, now=NOW)


@pytest.mark.parametrize(
    ("replicas", "current", "placed"),
    [
        (8, {}, {"a": 4, "b": 4}),
        (11, {}, {"a": 4, "b": 4, "r": 3}),
        (12, {}, {"a": 4, "b": 4, "r": 4}),
        # What runs counts as room that is taken: the fleet shows its free nodes.
        (10, {"r": 2}, {"a": 4, "b": 4, "r": 2}),
        (3, {"a": 1, "r": 2}, {"a": 1, "r": 2}),
        (2, {"a": 1, "b": 1, "r": 2}, {"a": 1, "b": 1}),
        (1, {"a": 0, "r": 3}, {"r": 1}),
        (13, {}, {"far": 13}),
    ],
)
def test_the_first_group_is_filled_before_the_next(
    replicas: int, current: dict[str, int], placed: dict[str, int]
) -> None:
    assert decide(unit(replicas, OWN, RENTED, FAR, current=current)).placements == placed


def test_the_reason_and_the_explanation_name_the_groups() -> None:
    decision = decide(unit(10, OWN, RENTED))
    assert decision.reason == (
        "3/4 clusters are available: 1 cluster(s) were in none of the policy's cluster groups; in groups own and rented"
    )
    explanation = to_explanation(decision)
    assert explanation["division"]["groups"] == [
        {"name": "own", "asked": 10, "placed": 8},
        {"name": "rented", "asked": 2, "placed": 2},
    ]
    assert {step["group"] for step in explanation["division"]["steps"]} == {"own", "rented"}
    assert explanation["rejected"]["far"]["plugin"] == "ClusterGroups"


def verdicts(decision: Decision) -> dict[str, str]:
    found = rows(to_explanation(decision))
    return {row.name: verdict(row, dict.fromkeys(row.scores, 0), {}, is_over=True) for row in found}


def test_each_cluster_has_its_group_and_unused_groups_say_why() -> None:
    said = verdicts(decide(unit(6, OWN, RENTED, FAR)))
    assert said == {
        "a": "selected, in group own",
        "b": "selected, in group own",
        "r": "available; group rented is not needed: own holds all replicas",
        "far": "available; group far is not needed: own holds all replicas",
    }
    assert verdicts(decide(unit(10, OWN, RENTED, FAR)))["far"] == (
        "available; group far is not needed: own and rented hold all replicas"
    )
    copied = decide(a_unit(groups=to_groups([OWN, RENTED])))
    assert verdicts(copied)["r"] == "available; group rented is not needed: own holds its copies"
    assert verdicts(decide(unit(40, OWN, RENTED)))["r"] == "selected, in group rented"
    full = decide(unit(40, OWN, {**RENTED, "when": "Fallback"}))
    assert verdicts(full)["r"] == "available; group rented is not used: the object is in own"


@pytest.mark.parametrize("move", list(GroupMove))
def test_what_runs_in_no_group_yet_tries_all_of_them(move: GroupMove) -> None:
    found = decide(unit(12, OWN, FAR, group_move=move))
    assert found.placements == {"far": 12}


def test_a_fallback_group_takes_all_or_nothing_while_the_first_one_can_hold_it() -> None:
    fallback = {**RENTED, "when": "Fallback"}
    assert decide(unit(8, OWN, fallback)).placements == {"a": 4, "b": 4}
    no_own = (cluster("far", cores=30), cluster("r", "rented", cores=20))
    assert decide(unit(8, OWN, fallback), no_own).placements == {"r": 8}
    large = (*FLEET[:3], cluster("r", "rented", cores=20))
    assert decide(unit(9, OWN, fallback), large).placements == {"r": 9}


def test_what_fits_nowhere_stays_in_its_group_and_waits_there() -> None:
    fallback = {**RENTED, "when": "Fallback"}
    decision = decide(unit(10, OWN, fallback, current={"r": 3}))
    assert decision.placements.keys() == {"r"}
    decision = decide(unit(10, OWN, fallback))
    assert decision.placements.keys() == {"a", "b"}
    assert sum(decision.waiting.values()) == 2


def test_replicas_stay_in_a_fallback_group_until_the_policy_lets_them_return() -> None:
    fallback = {**RENTED, "when": "Fallback"}
    assert decide(unit(4, OWN, fallback, current={"r": 4})).placements == {"r": 4}
    back = unit(4, OWN, {**fallback, "returnPolicy": "WhenRoom"}, current={"r": 4})
    assert decide(back).placements == {"r": 4}
    assert decide(a_return(back)).placements == {"a": 2, "b": 2}
    stays = unit(4, OWN, fallback, current={"r": 4})
    assert decide(a_return(stays)).placements == {"r": 4}


def a_return(wanted: SchedulingUnit) -> SchedulingUnit:
    fields = {name: getattr(wanted, name) for name in ("shapes", "current", "request")}
    return a_divided_unit(wanted.desired_replicas or 0, group_move=GroupMove.RETURN, **fields)


def test_overflowing_replicas_return_as_far_as_there_is_room() -> None:
    rented = {**RENTED, "returnPolicy": "WhenRoom"}
    fleet = (cluster("a", "own", cores=1), cluster("r", "rented", cores=2))
    before = unit(6, OWN, rented, current={"a": 2, "r": 4})
    assert decide(before, fleet).placements == {"a": 2, "r": 4}
    assert decide(a_return(before), fleet).placements == {"a": 3, "r": 3}


def test_what_a_group_cannot_keep_goes_to_an_earlier_one_with_room() -> None:
    fleet = (cluster("a", "own", cores=4), cluster("r", "rented", cores=0))
    report = AutoMigration(estimated_capacity={"r": 2}, scheduled_replicas={"r": 2})
    before = unit(6, OWN, RENTED, current={"a": 2, "r": 4}, auto_migration=report)
    assert decide(before, fleet).placements == {"a": 4, "r": 2}


def test_unplaced_replicas_are_added_in_the_groups_in_use_only() -> None:
    fallback = {**RENTED, "when": "Fallback"}
    large = (*FLEET[:3], cluster("r", "rented", cores=20))
    stays = unit(12, OWN, fallback, current={"a": 4, "b": 4}, group_move=GroupMove.STAY)
    assert decide(stays, large).placements.keys() == {"a", "b"}


def test_copies_go_to_the_first_group_with_clusters_and_overflow_up_to_the_most_clusters() -> None:
    def copies(most: int | None, *groups: dict[str, Any]) -> set[str]:
        made = a_unit(groups=to_groups(groups), max_clusters=most, desired_replicas=1)
        return set(decide(made).placements)

    assert copies(None, OWN, RENTED) == {"a", "b"}
    assert copies(3, OWN, RENTED) == {"a", "b", "r"}
    assert copies(3, OWN, {**RENTED, "clusters": ["gone"]}) == {"a", "b"}
    assert copies(None, {"name": "none", "clusters": ["gone"]}, FAR) == {"far"}


def test_the_most_clusters_hold_for_all_groups_together() -> None:
    assert decide(unit(6, OWN, RENTED, max_clusters=2)).placements.keys() == {"a", "b"}
    placed = decide(unit(6, {"name": "first", "clusters": ["a"]}, RENTED, max_clusters=2)).placements
    assert placed == {"a": 4, "r": 2}


def test_clusters_of_no_group_get_nothing() -> None:
    decision = decide(unit(2, {"name": "gone", "clusters": ["gone"]}))
    assert decision.outcome is Outcome.NO_FEASIBLE_CLUSTER
    assert decision.reason == "0/4 clusters are available: 4 cluster(s) were in none of the policy's cluster groups"


@pytest.mark.parametrize(
    ("groups", "placements", "clusters"),
    [
        ((OWN, {**RENTED, "returnPolicy": "WhenRoom"}), {"a": 4, "r": 1}, {"a", "b"}),
        ((OWN, {**RENTED, "returnPolicy": "WhenRoom"}), {"a": 4}, None),
        ((OWN, RENTED), {"a": 4, "r": 1}, None),
    ],
)
def test_room_in_an_earlier_group_wakes_what_may_return(
    groups: tuple[dict[str, Any], ...], placements: dict[str, int], clusters: set[str] | None
) -> None:
    total = sum(placements.values())
    hint = return_hint_for(decide(unit(total, *groups, current=placements)))
    assert (hint is None) == (clusters is None)
    if hint is not None and clusters is not None:
        assert {name for name in "abrx" if hint.matches(name, ClusterChange.RESOURCES)} == clusters
        assert hint.matches("x", ClusterChange.MEMBERSHIP)


COUNTS = st.integers(0, 12)


@given(COUNTS, COUNTS, COUNTS)
def test_a_share_is_within_what_is_left_and_leaves_later_groups_theirs(rest: int, held: int, later: int) -> None:
    share = share_of(rest, held, later)
    assert 0 <= share <= rest
    assert share >= min(held, rest)
    assert share in (rest - later, min(held, rest))


@given(
    st.integers(1, 20),
    st.dictionaries(st.sampled_from("abr"), st.integers(0, 6)),
    st.dictionaries(st.sampled_from("abr"), st.integers(0, 6)),
    st.sampled_from(GroupMove),
    st.booleans(),
)
def test_groups_lose_no_replicas_and_move_only_what_may_return(
    wanted: int, current: dict[str, int], cores: dict[str, int], move: GroupMove, returns: bool
) -> None:
    rented = {**RENTED, "returnPolicy": "WhenRoom" if returns else "Never"}
    fleet = tuple(cluster(name, "rented" if name == "r" else "own", cores.get(name, 0)) for name in "abr")
    running = {name: count for name, count in current.items() if count}
    decision = decide(unit(wanted, OWN, rented, current=running, group_move=move), fleet)
    if not decision.is_success:
        return
    placed = decision.placements
    assert sum(count or 0 for count in placed.values()) + decision.unplaced == wanted
    if sum(running.values()) <= wanted and not (returns and move is GroupMove.RETURN):
        assert all((placed.get(name) or 0) >= count for name, count in running.items())
    own = sum(running.get(name, 0) for name in "ab")
    assert sum(placed.get(name) or 0 for name in "ab") >= min(own, wanted)


def test_the_subsets_of_a_workload_spread_hold_in_the_groups_that_have_clusters() -> None:
    spread = SubsetSpread("s", (SubsetClusters("x", 2, frozenset("a")), SubsetClusters("y", None, frozenset("ab"))))
    wanted = unit(6, FAR, OWN, workload_spread=spread)
    decision = decide(wanted, FLEET[:2])
    assert sum(count or 0 for count in decision.placements.values()) == 6
    assert decision.division.explanation["subsets"]["caps"] == {"x": 2}
