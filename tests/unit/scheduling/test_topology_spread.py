"""Topology constraints in whole decisions: counted domains, messages, selected clusters."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from federation.scheduling.engine import Decision, Engine, Outcome
from federation.scheduling.explain import to_explanation
from federation.scheduling.framework.clustergroup import ClusterGroup
from federation.scheduling.framework.migrations import AutoMigration, CustomMigration
from federation.scheduling.framework.profile import DEFAULT_PROFILE, with_strategy
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.framework.testing import NOW, ClusterBuilder, a_cluster, a_divided_unit, a_unit
from federation.scheduling.framework.topology import closed_for, domains_of
from federation.scheduling.framework.types import ReplicasStrategy, SchedulingUnit, Toleration
from federation.scheduling.policyspec import to_constraints
from federation.scheduling.snapshot import Snapshot
from federation.scheduling.webhooks.v1beta1payload import Payload

ENGINE = Engine(load_plugins())
STRATEGIES = pytest.mark.parametrize("strategy", list(ReplicasStrategy))


def spread(key: str = "region", skew: int = 1, **more: Any) -> dict[str, Any]:
    return {"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": "DoNotSchedule", **more}


def softly(key: str = "region", skew: int = 1) -> dict[str, Any]:
    return spread(key, skew) | {"whenUnsatisfiable": "ScheduleAnyway"}


def in_region(name: str, region: str | None, zone: str = "") -> ClusterBuilder:
    labels = {key: value for key, value in (("region", region), ("zone", zone)) if value}
    return a_cluster(name).labelled(**labels)


def decide(unit: SchedulingUnit, *clusters: ClusterBuilder) -> Decision:
    profile = with_strategy(DEFAULT_PROFILE, is_binpack=unit.strategy is ReplicasStrategy.BINPACK)
    return ENGINE.decide(unit, Snapshot(1, tuple(builder.built() for builder in clusters)), profile, now=NOW)


def divided(replicas: int, *constraints: Mapping[str, Any], **fields: Any) -> SchedulingUnit:
    return a_divided_unit(replicas, topology_spread=to_constraints(constraints), **fields)


def placed(decision: Decision, *names: str) -> list[int]:
    return [decision.placements.get(name) or 0 for name in names]


EU_AND_US = (in_region("e1", "eu"), in_region("e2", "eu"), in_region("u1", "us"))


@STRATEGIES
def test_regions_are_even_however_many_clusters_they_have(strategy: ReplicasStrategy) -> None:
    decision = decide(divided(8, spread(), strategy=strategy, priorities={"e1": 5}), *EU_AND_US)
    first, second, us = placed(decision, "e1", "e2", "u1")
    assert first + second == us == 4
    assert second == (0 if strategy is ReplicasStrategy.BINPACK else 2)


def test_weights_count_inside_of_a_domain_only() -> None:
    decision = decide(divided(12, spread(), weights={"e1": 2, "e2": 1, "u1": 9}), *EU_AND_US)
    assert placed(decision, "e1", "e2", "u1") == [4, 2, 6]


def test_a_domain_at_its_maximum_limits_the_others_and_is_reported() -> None:
    decision = decide(divided(10, spread(skew=2), max_replicas={"u1": 2}), *EU_AND_US)
    assert placed(decision, "e1", "e2", "u1") == [2, 2, 2]
    assert decision.unplaced == 4
    assert decision.reason.endswith("4 of 10 replicas have no place within maxSkew 2 of topology key region")
    explanation = to_explanation(decision)
    assert explanation["topology"] == [
        {
            "topologyKey": "region",
            "maxSkew": 2,
            "whenUnsatisfiable": "DoNotSchedule",
            "domains": {"eu": 4, "us": 2},
            "skew": 2,
        }
    ]
    assert explanation["unplacedBecause"] == "maxSkew 2 of topology key region"


@pytest.mark.parametrize(
    "fields",
    [
        {"max_replicas": {"u1": 0}},
        {"custom_migration": CustomMigration({"u1": 0})},
        {"weights": {"e1": 1, "e2": 1}},
    ],
    ids=["maxReplicas 0", "moved away by the user", "no weight"],
)
def test_a_domain_that_may_hold_nothing_does_not_count(fields: dict[str, Any]) -> None:
    decision = decide(divided(10, spread(), **fields), *EU_AND_US)
    assert placed(decision, "e1", "e2", "u1") == [5, 5, 0]
    (entry,) = to_explanation(decision)["topology"]
    assert (entry["domains"], entry["skew"], entry["notAllowed"]) == ({"eu": 10, "us": 0}, 0, ["us"])


def test_replicas_in_clusters_without_a_weight_stay_and_limit_no_domain() -> None:
    weights, current = {"e1": 1, "e2": 1}, {"e1": 1, "u1": 3}
    assert decide(divided(4, spread(), weights=weights, current=current), *EU_AND_US).placements == current
    grown = decide(divided(12, spread(), weights=weights, current=current), *EU_AND_US)
    assert placed(grown, "u1") == [3]
    assert sum(placed(grown, "e1", "e2")) == 9
    moved = divided(4, spread(), weights=weights, current=current, avoid_disruption=False)
    assert placed(decide(moved, *EU_AND_US), "e1", "e2", "u1") == [2, 2, 0]


@pytest.mark.parametrize("shut", ["unready", "tainted"])
def test_a_domain_that_is_unready_or_tainted_does_not_hold_the_others_down(shut: str) -> None:
    us = in_region("u1", "us")
    us = us.unready() if shut == "unready" else us.tainted("maintenance")
    unit = divided(12, spread(), current={"e1": 2, "e2": 1, "u1": 3})
    decision = decide(unit, in_region("e1", "eu"), in_region("e2", "eu"), us)
    eu = placed(decision, "e1", "e2")
    assert (sum(eu), placed(decision, "u1")) == (9, [3])
    (entry,) = to_explanation(decision)["topology"]
    assert (entry["notCounted"], entry["skew"]) == (["us"], 0)


def test_a_region_that_comes_back_gets_the_next_replicas_and_takes_none_away() -> None:
    current = {"e1": 3, "e2": 3}
    assert decide(divided(6, spread(), current=current), *EU_AND_US).placements == current
    assert placed(decide(divided(9, spread(), current=current), *EU_AND_US), "e1", "e2", "u1") == [3, 3, 3]
    moved = decide(divided(6, spread(), current=current, avoid_disruption=False), *EU_AND_US)
    assert placed(moved, "u1") == [3]


def test_a_scale_down_takes_from_the_domains_with_the_most() -> None:
    current = {"e1": 4, "e2": 4, "u1": 2}
    assert sum(placed(decide(divided(6, spread(), current=current), *EU_AND_US), "e1", "e2")) == 4
    assert placed(decide(divided(6, spread(), current=current), *EU_AND_US), "u1") == [2]


def test_with_too_few_domains_each_gets_max_skew_at_most() -> None:
    decision = decide(divided(10, spread(skew=3, minDomains=3)), *EU_AND_US)
    assert (sum(placed(decision, "e1", "e2")), placed(decision, "u1"), decision.unplaced) == (3, [3], 4)
    assert "maxSkew 3 of topology key region (it has 2 of at least 3 domains)" in decision.reason


def test_clusters_without_the_label_get_nothing_or_the_rest() -> None:
    clusters = (*EU_AND_US, in_region("x", None))
    assert placed(decide(divided(8, spread()), *clusters), "x") == [0]
    assert placed(decide(divided(8, softly()), *clusters), "x") == [0]
    full = {"e1": 1, "e2": 1, "u1": 1}
    assert placed(decide(divided(8, softly(), max_replicas=full), *clusters), "x") == [5]
    decision = decide(divided(8, spread(), max_replicas=full), *clusters)
    assert (decision.unplaced, placed(decision, "x")) == (5, [0])
    assert decision.reason.endswith("have no place within the clusters with a label region")
    held = decide(divided(8, spread(), current={"x": 2}), *clusters)
    assert placed(held, "x") == [2]


def test_a_missing_topology_label_is_reported() -> None:
    decision = decide(divided(8, spread("rack")), *EU_AND_US)
    assert decision.outcome is Outcome.NO_REPLICAS_PLACED
    assert decision.reason == "the clusters with a label rack leave no room for any of 8 replicas"


def test_zones_are_even_inside_of_each_region() -> None:
    clusters = [
        in_region("e1", "eu", "a"),
        in_region("e2", "eu", "b"),
        in_region("e3", "eu", "c"),
        in_region("u1", "us", "a"),
    ]
    decision = decide(divided(12, spread(), spread("zone")), *clusters)
    assert placed(decision, "e1", "e2", "e3", "u1") == [2, 2, 2, 6]
    domains = to_explanation(decision)["topology"][1]["domains"]
    assert domains == {"eu/a": 2, "eu/b": 2, "eu/c": 2, "us/a": 6}


def test_replicas_use_free_capacity_within_the_skew_and_are_pending_evenly_beyond_it() -> None:
    clusters = (
        in_region("e1", "eu").with_nodes(10, cpu="1"),
        in_region("u1", "us").with_nodes(2, cpu="1"),
    )
    request = {"cpu": 1000}
    assert placed(decide(divided(8, spread(skew=4), request=request), *clusters), "e1", "u1") == [6, 2]
    assert placed(decide(divided(8, spread(skew=2), request=request), *clusters), "e1", "u1") == [5, 3]
    assert placed(decide(divided(14, softly(), request=request), *clusters), "e1", "u1") == [10, 4]


def test_minimums_come_first_as_far_as_the_skew_allows() -> None:
    minimums = {"e1": 4, "e2": 2}
    for skew, eu in ((1, 3), (2, 4), (9, 6)):
        decision = decide(divided(6, spread(skew=skew), min_replicas=minimums), *EU_AND_US)
        assert sum(placed(decision, "e1", "e2")) == eu
    assert sum(placed(decide(divided(6, softly(), min_replicas=minimums), *EU_AND_US), "e1", "e2")) == 6


def test_replicas_that_a_member_cannot_run_move_as_far_as_the_skew_allows() -> None:
    migration = AutoMigration(estimated_capacity={"u1": 1}, scheduled_replicas={"e1": 2, "e2": 2, "u1": 1})
    unit = divided(8, spread(skew=2), current={"e1": 2, "e2": 2, "u1": 4}, auto_migration=migration)
    decision = decide(unit, *EU_AND_US)
    assert sum(placed(decision, "e1", "e2")) == 5
    assert placed(decision, "u1") == [3]


def copied(*constraints: Mapping[str, Any], **fields: Any) -> SchedulingUnit:
    return a_unit(topology_spread=to_constraints(constraints), **fields)


FIVE = (*EU_AND_US, in_region("e3", "eu"), in_region("a1", "ap"), in_region("x", None))


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        (copied(spread(), max_clusters=3), ["a1", "e1", "u1"]),
        (copied(spread(), max_clusters=9), ["a1", "e1", "e2", "u1"]),
        (copied(spread()), ["a1", "e1", "e2", "u1"]),
        (copied(softly()), ["a1", "e1", "e2", "e3", "u1", "x"]),
        (copied(softly(), max_clusters=4), ["a1", "e1", "e2", "u1"]),
        (copied(spread(skew=2, minDomains=4)), ["a1", "e1", "e2", "u1"]),
        (copied(spread(), max_clusters=3, current={"e3": None}), ["a1", "e3", "u1"]),
        (copied(spread(), max_clusters=3, current={"e3": None}, avoid_disruption=False), ["a1", "e1", "u1"]),
        (copied(spread(), max_clusters=2, current={"e2": None, "e3": None, "u1": None}), ["e2", "u1"]),
    ],
)
def test_duplicate_mode_spreads_over_domains(unit: SchedulingUnit, expected: Sequence[str]) -> None:
    assert sorted(decide(unit, *FIVE).placements) == expected


def test_a_cluster_that_gets_no_copy_says_why() -> None:
    decision = decide(copied(spread()), *FIVE)
    assert decision.remarks["MaxCluster"]["e3"] == (
        "no place within maxSkew 1 of topology key region and the clusters with a label region",
    )
    assert to_explanation(decision)["topology"][0]["domains"] == {"ap": 1, "eu": 2, "us": 1}


def test_duplicate_mode_without_a_cluster_is_reported() -> None:
    decision = decide(copied(spread("rack")), *FIVE)
    assert decision.outcome is Outcome.NO_FEASIBLE_CLUSTER
    assert decision.reason == "MaxCluster: no cluster has a place within the clusters with a label rack"


def test_divided_replicas_get_clusters_in_every_region() -> None:
    decision = decide(divided(9, spread(), max_clusters=3), *FIVE)
    assert decision.placements == {"a1": 3, "e1": 3, "u1": 3}


def test_webhook_requests_have_the_policys_constraints() -> None:
    constraints = [spread(minDomains=2), softly("zone", 3)]
    payload = Payload(frozenset({"policy"}), frozenset(), {})
    assert payload.unit(divided(3, *constraints))["policy"]["topologySpread"] == constraints
    assert "topologySpread" not in payload.unit(divided(3))["policy"]


def test_domains_are_cached_until_a_label_changes() -> None:
    clusters = ClusterGroup.of([builder.built() for builder in EU_AND_US])
    constraints = to_constraints([spread()])
    kept = domains_of(constraints, clusters)
    assert domains_of(constraints, clusters) is kept
    moved = (in_region("e1", "us").built(), *clusters[1:])
    found = {str(child): child.clusters for child in domains_of(constraints, moved).root.children}
    assert found == {"eu": ("e2",), "us": ("e1", "u1")}
    other = {
        str(child): child.clusters for child in domains_of(to_constraints([spread("zone")]), clusters).root.parts()
    }
    assert other == {"(no label)": ("e1", "e2", "u1")}


def test_labels_that_many_policies_spread_over_do_not_pile_up_with_a_cluster() -> None:
    cluster = a_cluster("e1").labelled(region="eu").built()
    for number in range(3000):
        domains_of(to_constraints([spread(f"level-{number}")]), (cluster,))
    assert len(cluster.memo) < 1100


@pytest.mark.parametrize(
    ("effect", "kept_out"), [("NoSchedule", True), ("NoExecute", True), ("PreferNoSchedule", False)]
)
def test_a_taint_that_only_advises_against_a_cluster_does_not_close_it(effect: str, kept_out: bool) -> None:
    advised = in_region("east", "eu").tainted("busy", effect=effect)
    both = advised.tainted("old", effect="PreferNoSchedule") if effect != "PreferNoSchedule" else advised
    assert closed_for(a_unit(), [both.built()]) == (frozenset({"east"}) if kept_out else frozenset())
    tolerating = a_unit(tolerations=(Toleration("busy", "Exists"),))
    assert closed_for(tolerating, [both.built()]) == frozenset()


def test_the_minimum_of_a_cluster_without_the_label_does_not_draw_replicas_to_its_region() -> None:
    clusters = (
        in_region("e1", "eu", "a"),
        in_region("ex", "eu"),
        in_region("u1", "us", "b"),
        in_region("u2", "us", "c"),
    )
    decision = decide(divided(3, softly(), spread("zone"), min_replicas={"ex": 4}), *clusters)
    assert placed(decision, "e1", "ex", "u1", "u2") == [1, 0, 1, 1]
