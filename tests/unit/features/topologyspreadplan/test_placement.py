"""Clusters of StatefulSets whose zones are in several clusters."""

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.api import names
from federation.features.topologyspreadplan.rules.placement import Placement, has_annotations, plan_placement
from federation.features.topologyspreadplan.rules.planner import Plan, plan_service, run
from federation.features.topologyspreadplan.rules.shardedservice import Service, Zone

TWO = (Zone("a", 3, "east"), Zone("b", 3, "north"))


def a_plan(*zones: Zone, shards: int = 2, replicas: int = 2) -> Plan:
    return run(plan_service(Service(zones or TWO, shards, replicas)))


def limits(placement: Placement) -> dict[str, int]:
    entries = json.loads(placement.annotations[names.PLACEMENTS])
    assert all(entry["preferences"]["weight"] == 1 for entry in entries)
    return {entry["cluster"]: entry["preferences"]["maxReplicas"] for entry in entries}


def given_by_user(*entries: object) -> Mapping[str, str]:
    return {names.PLACEMENTS: json.dumps(entries)}


def test_each_cluster_gets_one_pod_per_zone_of_the_shard() -> None:
    three = a_plan(Zone("a", 2, "east"), Zone("b", 2, "east"), Zone("c", 2, "north"), shards=1, replicas=3)
    placement = plan_placement(three, 0, {})
    assert limits(placement) == {"east": 2, "north": 1}
    assert placement.annotations[names.SCHEDULING_MODE] == "Divide"
    assert placement.annotations[names.MAX_CLUSTERS] == "2"
    assert has_annotations({**placement.annotations, "own": "1"}, placement)
    assert not has_annotations({}, placement)


@given(st.integers(1, 5), st.integers(2, 3), st.lists(st.sampled_from(["east", "north"]), min_size=3, max_size=5))
def test_limits_add_up_to_the_replicas(shards: int, replicas: int, clusters: list[str]) -> None:
    zones = [Zone(f"zone-{number}", 9, cluster) for number, cluster in enumerate(clusters)]
    plan = a_plan(*zones, shards=shards, replicas=replicas)
    for shard in range(len(plan.zones)):
        placement = plan_placement(plan, shard, {})
        if len(set(clusters)) == 1:
            assert placement == Placement()
        else:
            assert sum(limits(placement).values()) == replicas
            assert plan_placement(plan, shard, placement.annotations) == placement, "its own annotation is no user's"


def test_one_cluster_and_further_stateful_sets_are_placed_by_their_policy() -> None:
    assert plan_placement(a_plan(Zone("a", 3, "east"), Zone("b", 3, "east")), 0, {}) == Placement()
    assert plan_placement(a_plan(), 2, {}) == Placement()


@pytest.mark.parametrize(
    "entries",
    [
        [{"cluster": "east"}],
        [{"cluster": "east"}, {"cluster": "north"}],
        [{"cluster": "east", "preferences": {"weight": 1}}, {"cluster": "north", "preferences": None}],
        [{"cluster": "east", "preferences": {"weight": 1}}, {"cluster": "west", "preferences": {"weight": 1}}],
        [],
        [5],
    ],
)
def test_placements_of_a_user_must_not_contradict_the_plan(entries: list[object]) -> None:
    found = plan_placement(a_plan(), 0, given_by_user(*entries))
    assert not found.annotations
    assert "must name east, north, each with a weight" in found.problem


def test_fitting_placements_of_a_user_are_kept() -> None:
    entries = [{"cluster": cluster, "preferences": {"weight": 1}} for cluster in ("north", "east")]
    assert plan_placement(a_plan(), 0, given_by_user(*entries)) == Placement()


@pytest.mark.parametrize("text", ["east", '{"cluster":"east"}', "null"])
def test_placements_that_cannot_be_understood_are_a_problem(text: str) -> None:
    assert plan_placement(a_plan(), 0, {names.PLACEMENTS: text}).problem
