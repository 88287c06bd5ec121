"""Plans of sharded services: modes, refusals, pins, clusters, sizes that cannot be searched."""

import pytest

from federation.features.topologyspreadplan.rules.counting import Maxima, worst_case_bounds
from federation.features.topologyspreadplan.rules.planner import Avoidance, Outcome, Plan, judge_pins, plan_service, run
from federation.features.topologyspreadplan.rules.report import describe, plan_document
from federation.features.topologyspreadplan.rules.search import SearchOutcome
from federation.features.topologyspreadplan.rules.shardedservice import Limits, Mode, Service, Skews, Zone


def a_service(zones: int = 3, nodes: int = 2, shards: int = 3, replicas: int = 2, **fields: object) -> Service:
    return Service(tuple(Zone(f"z{n}", nodes) for n in range(zones)), shards, replicas, **fields)  # type: ignore[arg-type]  # fields of Service


def planned(service: Service, **options: int) -> Plan:
    return run(plan_service(service, **options))


def test_a_reachable_deadlock_is_avoided_by_pins_and_the_smallest_relaxation_is_reported() -> None:
    plan = planned(a_service())
    assert (plan.outcome, plan.avoidance) == (Outcome.FREE, Avoidance.PINNED)
    assert plan.zones == (("z0", "z1"), ("z0", "z2"), ("z1", "z2"))
    assert plan.skews == Skews(1, 2)
    assert plan.relaxation == Skews(2, 2)


def test_the_relaxed_mode_raises_max_skew_only_where_that_is_needed() -> None:
    plan = planned(a_service(mode=Mode.RELAXED))
    assert (plan.avoidance, plan.skews) == (Avoidance.RELAXED, Skews(2, 2))
    assert plan.zones == (("z0", "z1", "z2"),) * 3
    assert planned(a_service(shards=4, mode=Mode.RELAXED)).skews == Skews(2, 3)
    assert planned(a_service(nodes=1, shards=4, mode=Mode.RELAXED)).avoidance is Avoidance.PINNED


@pytest.mark.parametrize(
    ("service", "message"),
    [
        (a_service(replicas=4), "4 pods of a shard need 4 zones with nodes; there are 3"),
        (a_service(zones=1, nodes=2, replicas=3), "3 pods of a shard need 3 nodes; there are 2"),
        (a_service(nodes=0), "no node is in an allowed zone"),
        (a_service(nodes=1, mode=Mode.STRICT), "6 pods with at most 1 per node need 6 nodes; there are 3"),
        (a_service(shards=1, mode=Mode.STRICT), "with 2 pods, the limit per node and per zone is 0"),
        (a_service(shards=0), "there are no shards"),
    ],
)
def test_what_is_impossible_is_refused_and_says_why(service: Service, message: str) -> None:
    plan = planned(service)
    assert (plan.outcome, plan.zones) == (Outcome.REFUSED, ())
    assert message in describe(plan)


def test_limits_that_nodes_cannot_hold_are_reported_and_planned() -> None:
    plan = planned(a_service(zones=1, nodes=5))
    assert plan.outcome is Outcome.FREE
    assert [finding.reason for finding in plan.findings] == ["FewNodes"]


def test_shards_keep_the_zones_of_their_pods() -> None:
    plan = run(plan_service(a_service(), held={0: ["z2"], 1: ["z1", "z2"]}))
    assert plan.zones[1] == ("z1", "z2")
    assert "z2" in plan.zones[0]


def test_weights_pin_every_shard_in_proportion() -> None:
    zones = (Zone("a", 4, weight=2), Zone("b", 4, weight=2), Zone("c", 4, weight=1))
    plan = planned(Service(zones, 5))
    assert plan.avoidance is Avoidance.PINNED
    counts = [sum(name in own for own in plan.zones) for name in "abc"]
    assert counts == [4, 4, 2]


def test_several_clusters_are_pinned_and_get_their_share() -> None:
    zones = (Zone("a", 2, "east"), Zone("b", 2, "east"), Zone("c", 2, "west"))
    plan = planned(Service(zones, 4))
    assert (plan.outcome, plan.avoidance) == (Outcome.FREE, Avoidance.PINNED)
    shares = plan_document(plan, ["redis-0"])["clusters"]
    assert [(each["cluster"], each["zones"], each["pods"]) for each in shares] == [
        ("east", ["a", "b"], 6),
        ("west", ["c"], 2),
    ]
    assert shares[0]["replicas"].keys() == {"redis-0", "#1", "#2", "#3"}


def test_zones_of_two_clusters_get_equal_shares() -> None:
    plan = planned(Service((Zone("a", 4, "east"), Zone("b", 4, "west")), 4))
    assert plan.outcome is Outcome.FREE
    assert {frozenset(zones) for zones in plan.zones} == {frozenset("ab")}
    shares = plan_document(plan, ())["clusters"]
    assert [(each["cluster"], each["pods"]) for each in shares] == [("east", 4), ("west", 4)]


def test_explicit_limits_count_the_pods_of_all_clusters() -> None:
    zones = tuple(Zone(name, 2, cluster) for name, cluster in (("a", "east"), ("b", "north"), ("c", "west")))
    plan = planned(Service(zones, 9, node_max=5, zone_max=6))
    assert (plan.outcome, plan.limits) == (Outcome.FREE, Limits(5, 6))
    assert [sum(name in own for own in plan.zones) for name in "abc"] == [6, 6, 6]
    refused = planned(Service(zones, 9, mode=Mode.STRICT, node_max=2, zone_max=6))
    assert refused.outcome is Outcome.REFUSED
    few = planned(Service(zones, 9, node_max=2, zone_max=6))
    assert "FewNodes" in [finding.reason for finding in few.findings]


def test_each_cluster_is_searched_with_its_own_zones() -> None:
    zones = (Zone("a", 1, "east"), Zone("b", 2, "east"), Zone("c", 1, "east"), Zone("d", 1, "west"))
    service = Service(zones, 5, 3)
    deadlock = (("a", "b", "c"),) * 5
    assert run(judge_pins(service, deadlock, Skews(1, 1), 3_000)) is SearchOutcome.DEADLOCK
    assert run(judge_pins(service, deadlock, Skews(1, 1), 1)) is SearchOutcome.TOO_LARGE
    assert run(judge_pins(service, (("b", "d"),) * 2, Skews(1, 2), 1)) is SearchOutcome.TOO_LARGE
    assert run(judge_pins(service, (("b", "d"),) * 2, Skews(2, 2), 1)) is SearchOutcome.FREE


@pytest.mark.parametrize(("zones", "nodes", "shards"), [(3, 100, 50), (20, 5000, 1000), (1, 5000, 1000)])
def test_large_services_are_decided_by_counting(zones: int, nodes: int, shards: int) -> None:
    plan = planned(a_service(zones, nodes, shards))
    assert plan.outcome is Outcome.FREE
    assert plan.search is not None
    assert plan.search.states == 0
    assert plan.search.maxima.node >= -(-2 * shards // (zones * nodes))


def test_a_search_that_is_too_large_falls_back_to_pins() -> None:
    plan = planned(a_service(zones=3, nodes=1, shards=10), states_max=20)
    assert plan.search is not None
    assert plan.search.verdict == "TooLarge"
    assert plan.outcome in (Outcome.TOO_LARGE, Outcome.FREE)
    assert (plan.avoidance is Avoidance.PINNED) is (plan.outcome is Outcome.FREE)


@pytest.mark.parametrize("zone_skew", [None, 1])
def test_without_nodes_the_worst_case_is_no_pod(zone_skew: int | None) -> None:
    assert worst_case_bounds(a_service(nodes=0, replicas=0), Skews(1, zone_skew)) == Maxima(0, 0)


def test_two_zones_are_enough_to_pin() -> None:
    service = Service((Zone("z0", 1), Zone("z1", 3)), 4, 1)
    assert planned(service).zones == (("z1",), ("z1",), ("z0",), ("z1",))
