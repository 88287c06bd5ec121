"""Numbers of groups of clusters: what is selected, what runs where, and what is refused."""

from typing import Any

import pytest

from federation.scheduling.engine import Decision, Engine, Outcome
from federation.scheduling.framework.groupcounts import may_be_added
from federation.scheduling.framework.profile import DEFAULT_PROFILE
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.framework.testing import NOW, a_cluster, a_divided_unit, a_unit
from federation.scheduling.framework.types import Cluster, ReplicasStrategy, SchedulingUnit
from federation.scheduling.policyspec import to_group_limits
from federation.scheduling.snapshot import Snapshot

ENGINE = Engine(load_plugins())
ZONE = "zone"


def cluster(name: str, zone: str = "", **labels: str) -> Cluster:
    given = {**labels, **({ZONE: zone} if zone else {})}
    return a_cluster(name).labelled(**given).with_nodes(20, cpu="1", memory="4Gi").built()


FLEET = (cluster("a1", "a"), cluster("a2", "a"), cluster("b1", "b"), cluster("c1", "c"), cluster("none"))


def decide(unit: SchedulingUnit, fleet: tuple[Cluster, ...] = FLEET) -> Decision:
    return ENGINE.decide(unit, Snapshot(1, fleet), DEFAULT_PROFILE, now=NOW)


def limited(*constraints: dict[str, Any]) -> dict[str, Any]:
    return {"group_limits": to_group_limits(constraints), "request": {"cpu": 100}}


def zones(least: int = 1, most: int | None = None) -> dict[str, Any]:
    return {"topologyKey": ZONE, "minGroups": least, **({"maxGroups": most} if most else {})}


@pytest.mark.parametrize(
    ("constraints", "fields", "placed"),
    [
        ([zones(most=1)], {}, {"a1", "a2"}),
        ([zones(most=2)], {}, {"a1", "a2", "b1"}),
        ([zones(least=2)], {}, {"a1", "a2", "b1", "c1"}),
        ([zones(least=2)], {"max_clusters": 2}, {"a1", "b1"}),
        ([zones(least=3)], {"max_clusters": 3}, {"a1", "b1", "c1"}),
        ([zones(most=1), {"minGroups": 2}], {}, {"a1", "a2"}),
        ([{"minGroups": 2, "maxGroups": 2}], {}, {"a1", "a2"}),
        # What runs stays within the limits, whatever the scores say.
        ([zones(most=1)], {"current": {"c1": None}}, {"c1"}),
        ([zones(least=2)], {"current": {"c1": None}, "max_clusters": 2}, {"a1", "c1"}),
    ],
)
def test_clusters_are_selected_within_the_limits(
    constraints: list[Any], fields: dict[str, Any], placed: set[str]
) -> None:
    assert set(decide(a_unit(**limited(*constraints), **fields)).placements) == placed


@pytest.mark.parametrize(
    ("constraints", "fields", "reason"),
    [
        ([zones(least=4)], {}, "spreadConstraints: at least 4 values of zone (there are 3)"),
        ([zones(least=2)], {"max_clusters": 1}, "no choice of clusters in at most 1 clusters satisfies all of them"),
        ([{"topologyKey": "rack"}], {}, "at least 1 values of rack (there are 0)"),
        ([{"minGroups": 9}], {}, "at least 9 clusters (there are 5)"),
    ],
)
def test_without_enough_groups_nothing_is_placed(constraints: list[Any], fields: dict[str, Any], reason: str) -> None:
    decision = decide(a_unit(**limited(*constraints), **fields))
    assert decision.outcome is Outcome.NO_FEASIBLE_CLUSTER
    assert reason in decision.reason


def test_excluded_clusters_are_told_why() -> None:
    decision = decide(a_unit(**limited(zones(most=1))))
    remarks = decision.remarks["spreadConstraints"]
    assert remarks["b1"] == ("at most 1 values of zone are allowed, and others come first",)
    assert remarks["none"] == ("it has no label zone",)


@pytest.mark.parametrize(
    ("replicas", "fields", "zones_used"),
    [
        (6, {}, {"a", "b", "c"}),
        (2, {}, {"a", "b"}),
        (1, {}, {"a"}),
        (6, {"strategy": ReplicasStrategy.BINPACK}, {"a", "b", "c"}),
        (6, {"weights": {"a1": 5}}, {"a", "b", "c"}),
        # Its policy did not ask for three zones before.
        (4, {"current": {"a1": 4}}, {"a", "b", "c"}),
    ],
)
def test_replicas_are_in_as_many_groups_as_there_are_replicas_for(
    replicas: int, fields: dict[str, Any], zones_used: set[str]
) -> None:
    decision = decide(a_divided_unit(replicas, **limited(zones(least=3)), **fields))
    assert decision.outcome is Outcome.SCHEDULED, decision.reason
    assert {name[0] for name in decision.placements} == zones_used
    assert sum(count or 0 for count in decision.placements.values()) == replicas


def test_what_satisfies_the_limits_stays_as_it_is() -> None:
    current = {"a1": 1, "b1": 4, "c1": 1}
    decision = decide(a_divided_unit(6, **limited(zones(least=3, most=3)), current=current))
    assert decision.placements == current


def test_a_lost_group_leaves_the_rest_where_it_is() -> None:
    """Nothing moves to fewer groups than the policy asks for."""
    unit = a_divided_unit(4, **limited(zones(least=3)), current={"a1": 2, "b1": 1, "c1": 1})
    decision = decide(unit, FLEET[:3])
    assert not decision.is_success
    assert "at least 3 values of zone (there are 2)" in decision.reason


@pytest.mark.parametrize(
    ("constraint", "placed", "name", "expected"),
    [
        (zones(most=1), ["a1"], "a2", True),
        (zones(most=1), ["a1"], "b1", False),
        (zones(most=2), ["a1"], "b1", True),
        (zones(most=2), ["a1"], "none", False),
        (zones(most=2), ["a1"], "unknown", False),
        (zones(most=1), ["unknown"], "b1", True),
    ],
)
def test_one_more_cluster_stays_within_the_limits(
    constraint: dict[str, Any], placed: list[str], name: str, expected: bool
) -> None:
    clusters = {each.name: each for each in FLEET}
    assert may_be_added(a_unit(**limited(constraint)), clusters, placed, name) is expected
    assert may_be_added(a_unit(), clusters, placed, name) is True, "without a limit"
