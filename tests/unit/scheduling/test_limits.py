"""Divisions that violate a limit fail, both in process and over HTTP."""

from typing import Any

import orjson
import pytest

from federation.scheduling.engine import Decision, Engine, Outcome
from federation.scheduling.framework.limits import find_violation, limits_of
from federation.scheduling.framework.migrations import AutoMigration, CustomMigration
from federation.scheduling.framework.profile import DEFAULT_PROFILE, Profile, apply_profile
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.framework.testing import NOW, ClusterBuilder, a_cluster, a_divided_unit
from federation.scheduling.framework.types import Division, PluginResponse, SchedulingUnit
from federation.scheduling.policyspec import to_constraints
from federation.scheduling.snapshot import Snapshot
from federation.scheduling.webhooks.configuration import WebhookOptions
from federation.scheduling.webhooks.factory import make_webhook

NAMES = ("e1", "e2", "u1", "x")
PROFILE = apply_profile(DEFAULT_PROFILE, {"spec": {"plugins": {"replicas": {"enabled": [{"name": "p"}]}}}})


def some_clusters() -> dict[str, ClusterBuilder]:
    regions = {"e1": "eu", "e2": "eu", "u1": "us"}
    builders = {name: a_cluster(name).labelled(region=region) for name, region in regions.items()}
    return builders | {"x": a_cluster("x")}


def snapshot(**changed: ClusterBuilder) -> Snapshot:
    return Snapshot(1, tuple(builder.built() for builder in (some_clusters() | changed).values()))


def decide_locally(unit: SchedulingUnit, replicas: dict[str, Any], clusters: Snapshot) -> Decision:
    fake = type("Fake", (), {"replicas": staticmethod(lambda *_: Division(replicas))})()
    engine = Engine(load_plugins().with_plugin("p", lambda _: fake))
    return engine.decide(unit, clusters, PROFILE, now=NOW)


def decide_remotely(
    unit: SchedulingUnit, replicas: dict[str, Any], clusters: Snapshot, profile: Profile = PROFILE, **options: Any
) -> Decision:
    webhook = WebhookOptions("p", "v1beta1", {"replicas": "http://p"}, **options)
    engine = Engine(load_plugins().with_plugin("p", lambda args: make_webhook(webhook, args)))
    run = engine.run(unit, clusters, profile, now=NOW)
    (request,) = next(run)
    asked = orjson.loads(request.body)
    entries = [{"name": told["name"], "replicas": replicas.get(told["name"], 0)} for told in asked["clusters"]]
    answer = {
        "apiVersion": asked["apiVersion"],
        "kind": "PluginResponse",
        "uid": asked["uid"],
        "clusters": entries,
        "unplaced": (unit.desired_replicas or 0) - sum(replicas.values()),
    }
    with pytest.raises(StopIteration) as stop:
        run.send([PluginResponse(200, orjson.dumps(answer))])
    decision: Decision = stop.value.value
    return decision


def a_spread(skew: int = 1, **more: Any) -> Any:
    hard = {"topologyKey": "region", "maxSkew": skew, "whenUnsatisfiable": "DoNotSchedule"}
    return to_constraints([hard | more])


BREACHES: dict[str, tuple[dict[str, Any], dict[str, int], str]] = {
    "maxReplicas": (
        {"max_replicas": {"e1": 4}},
        {"e1": 5, "u1": 1},
        "it gave 5 replicas to e1, which may have 4 at most (maxReplicas)",
    ),
    "a migration": (
        {"custom_migration": CustomMigration({"e1": 1})},
        {"e1": 2, "u1": 4},
        "it gave 2 replicas to e1, which may have 1 at most (a migration limits it)",
    ),
    "minReplicas": (
        {"min_replicas": {"u1": 2}},
        {"e1": 5, "u1": 1},
        "it gave 1 replicas to u1, which needs 2 at least (minReplicas)",
    ),
    "what runs, scaled up": (
        {"current": {"e1": 3, "e2": 2}},
        {"e1": 2, "e2": 2, "u1": 2},
        "it gave 2 replicas to e1, where 3 run and stay (avoidDisruption)",
    ),
    "what runs, scaled down": (
        {"current": {"e1": 5, "e2": 5}},
        {"e1": 5, "u1": 1},
        "it gave 1 replicas to u1, which may have 0 at most (avoidDisruption: a scale-down moves none)",
    ),
    "the skew": (
        {"topology_spread": a_spread()},
        {"e1": 2, "e2": 2, "u1": 2},
        "it gave 4 replicas to domain eu and 2 to us, beyond maxSkew 1 of topology key region",
    ),
    "the skew, scaled down": (
        {"topology_spread": a_spread(), "current": {"e1": 5, "u1": 4}},
        {"e1": 5, "u1": 1},
        "it gave 5 replicas to domain eu and 1 to us, beyond maxSkew 1 of topology key region",
    ),
    "too few domains": (
        {"topology_spread": a_spread(2, minDomains=3)},
        {"e1": 3, "u1": 2},
        "it gave 3 replicas to domain eu, beyond maxSkew 2 of topology key region (it has 2 of at least 3 domains)",
    ),
    "no label": (
        {"topology_spread": a_spread()},
        {"e1": 2, "u1": 2, "x": 1},
        "it gave 1 replicas to clusters without a label region, which DoNotSchedule keeps out",
    ),
}


def test_a_scale_down_moves_none_even_where_the_policy_allows_more() -> None:
    unit = a_divided_unit(4, current={"e1": 3, "e2": 2}, max_replicas={"e1": 9, "e2": 2})
    most = limits_of(unit, snapshot().clusters).most
    assert {name: bound.most for name, bound in most.items()} == {"e1": 3, "e2": 2, "u1": 0, "x": 0}
    assert "avoidDisruption" in most["e1"].because
    assert most["e2"].because == "maxReplicas"


@pytest.mark.parametrize(("fields", "replicas", "reason"), list(BREACHES.values()), ids=list(BREACHES))
def test_a_division_that_violates_a_limit_fails_with_cluster_and_limit(
    fields: dict[str, Any], replicas: dict[str, int], reason: str
) -> None:
    unit, clusters = a_divided_unit(6, **fields), snapshot()
    for decision in (decide_locally(unit, replicas, clusters), decide_remotely(unit, replicas, clusters)):
        assert decision.outcome is Outcome.PLUGIN_FAILED
        assert decision.reason == f"p failed in replicas: {reason}"
        assert not decision.placements
    ignored = decide_remotely(unit, replicas, clusters, is_ignorable=True)
    assert ignored.is_success
    assert ignored.reason.endswith(f"; p was ignored in replicas because {reason}")
    assert find_violation(unit, clusters.clusters, ignored.placements) == ""


KEPT: dict[str, tuple[dict[str, Any], dict[str, int]]] = {
    "nothing is asked for": ({}, {"x": 6}),
    "a preference for evenness": ({"topology_spread": a_spread(whenUnsatisfiable="ScheduleAnyway")}, {"x": 5, "e1": 1}),
    "the skew was broken before": ({"topology_spread": a_spread(), "current": {"e1": 5}}, {"e1": 5, "u1": 1}),
    "a scale-down from the fullest": (
        {"topology_spread": a_spread(), "current": {"e1": 8, "u1": 1}},
        {"e1": 5, "u1": 1},
    ),
    "moves are allowed": ({"current": {"e1": 6}, "avoid_disruption": False}, {"u1": 6}),
    "more runs than is allowed": ({"current": {"e1": 6}, "max_replicas": {"e1": 2}}, {"e1": 2, "u1": 4}),
    "more runs than is allowed, and stays": ({"current": {"e1": 6}, "max_replicas": {"e1": 2}}, {"e1": 6}),
    "all minimums together are too much": ({"min_replicas": {"e1": 4, "u1": 4}}, {"x": 6}),
    "a minimum that does not fit": ({"min_replicas": {"tiny": 4}, "request": {"cpu": 1000}}, {"tiny": 2, "e1": 4}),
    "some stay unplaced": ({"topology_spread": a_spread(), "max_replicas": {"u1": 1}}, {"e1": 2, "u1": 1}),
    "one region may have none": ({"topology_spread": a_spread(), "max_replicas": {"u1": 0}}, {"e1": 6}),
}


@pytest.mark.parametrize(("fields", "replicas"), list(KEPT.values()), ids=list(KEPT))
def test_a_division_within_the_limits_is_accepted(fields: dict[str, Any], replicas: dict[str, int]) -> None:
    unit, clusters = a_divided_unit(6, **fields), snapshot(tiny=a_cluster("tiny").with_nodes(2, cpu="1"))
    for decision in (decide_locally(unit, replicas, clusters), decide_remotely(unit, replicas, clusters)):
        assert decision.placements == replicas, decision.reason


@pytest.mark.parametrize(
    ("replicas", "reason"),
    [
        ({"mars": 1}, "it gave 1 replicas to 'mars', which was not offered"),
        ({"e1": -1}, "it gave -1 replicas to 'e1', not an integer from 0 to 2147483647"),
        ({"e1": True}, "it gave True replicas to 'e1', not an integer from 0 to 2147483647"),
        ({"e1": 2**31}, "it gave 2147483648 replicas to 'e1', not an integer from 0 to 2147483647"),
        ({"e1": 2.0}, "it gave 2.0 replicas to 'e1', not an integer from 0 to 2147483647"),
        ({"e1": 4, "u1": 3}, "it gave out 7 replicas where 6 are wanted"),
    ],
)
def test_a_plugin_in_the_process_cannot_invent_clusters_or_replicas(replicas: dict[str, Any], reason: str) -> None:
    assert decide_locally(a_divided_unit(6), replicas, snapshot()).reason == f"p failed in replicas: {reason}"


def test_an_untolerated_taint_keeps_running_replicas_and_allows_no_more() -> None:
    unit, clusters = a_divided_unit(6, current={"e1": 2}), snapshot(e1=a_cluster("e1").tainted("maintenance"))
    reason = "it gave 3 replicas to e1, which may have 2 at most (its taint maintenance:NoSchedule is not tolerated)"
    assert find_violation(unit, clusters.clusters, {"e1": 3, "u1": 3}) == reason
    assert find_violation(unit, clusters.clusters, {"e1": 2, "u1": 4}) == ""


def test_a_region_that_is_down_does_not_hold_the_others() -> None:
    unit = a_divided_unit(6, topology_spread=a_spread())
    assert find_violation(unit, snapshot().clusters, {"e1": 6}).startswith(
        "it gave 6 replicas to domain eu and 0 to us"
    )
    down = snapshot(u1=a_cluster("u1").labelled(region="us").unready())
    assert find_violation(unit, down.clusters, {"e1": 6}) == ""


def test_zones_count_inside_of_their_region() -> None:
    zones = {"e1": ("eu", "a"), "e2": ("eu", "b"), "u1": ("us", "a")}
    clusters = tuple(a_cluster(name).labelled(region=r, zone=z).built() for name, (r, z) in zones.items())
    zone = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    unit = a_divided_unit(8, topology_spread=(*a_spread(), *to_constraints([zone])))
    assert find_violation(unit, clusters, {"e1": 2, "e2": 2, "u1": 4}) == ""
    reason = "it gave 3 replicas to domain eu/a and 1 to eu/b, beyond maxSkew 1 of topology key zone"
    assert find_violation(unit, clusters, {"e1": 3, "e2": 1, "u1": 4}) == reason


def test_replicas_that_members_cannot_run_are_added_to_the_limits() -> None:
    waiting = AutoMigration(estimated_capacity={"e1": 2})
    unit = a_divided_unit(6, current={"e1": 6}, auto_migration=waiting, max_replicas={"u1": 4})
    clusters = snapshot().clusters
    assert find_violation(unit, clusters, {"e1": 4, "u1": 4}) == ""
    assert find_violation(unit, clusters, {"e1": 4, "u1": 5}).endswith("which may have 4 at most (maxReplicas)")


def test_a_webhook_request_has_the_limits() -> None:
    def told(unit: SchedulingUnit) -> list[dict[str, Any]]:
        webhook = WebhookOptions("p", "v1beta1", {"replicas": "http://p"})
        engine = Engine(load_plugins().with_plugin("p", lambda args: make_webhook(webhook, args)))
        (request,) = next(engine.run(unit, snapshot(), PROFILE, now=NOW))
        return [entry for entry in orjson.loads(request.body)["clusters"] if len(entry) > 1]

    up = a_divided_unit(6, current={"e1": 3}, min_replicas={"e2": 2}, max_replicas={"u1": 4})
    assert told(up) == [
        {"name": "e1", "minReplicas": 3},
        {"name": "e2", "minReplicas": 2},
        {"name": "u1", "maxReplicas": 4},
    ]
    down = a_divided_unit(2, current={"e1": 3, "e2": 1}, min_replicas={"e2": 2})
    assert told(down) == [
        {"name": "e1", "maxReplicas": 3},
        {"name": "e2", "minReplicas": 1, "maxReplicas": 1},
        {"name": "u1", "maxReplicas": 0},
        {"name": "x", "maxReplicas": 0},
    ]
    free = a_divided_unit(2, current={"e1": 3, "e2": 1}, avoid_disruption=False)
    assert told(free) == []
    assert limits_of(free, snapshot().clusters).least == {}


def test_a_minimum_holds_as_far_as_it_fits() -> None:
    unit = a_divided_unit(6, min_replicas={"tiny": 4}, request={"cpu": 1000})
    clusters = snapshot(tiny=a_cluster("tiny").with_nodes(2, cpu="1"))
    for decision in (
        decide_locally(unit, {"tiny": 1, "e1": 5}, clusters),
        decide_remotely(unit, {"tiny": 1, "e1": 5}, clusters),
    ):
        assert "it gave 1 replicas to tiny, which needs 2 at least (minReplicas)" in decision.reason
