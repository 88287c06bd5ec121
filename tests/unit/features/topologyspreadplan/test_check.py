"""Each rule of the checker, and what its violation says."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from federation.features.topologyspreadplan.names import PLANNED, REASON_REFUSED
from federation.features.topologyspreadplan.rules.check import (
    Distribution,
    Node,
    Pod,
    Violation,
    changes,
    check,
    live_states,
)
from federation.features.topologyspreadplan.rules.evaluation import check_observed, plan_observed
from federation.features.topologyspreadplan.rules.observation import Member, awaits_constraints, observe
from federation.features.topologyspreadplan.rules.planner import Plan, plan_service, run, search_from
from federation.features.topologyspreadplan.rules.shardedservice import Service, Zone


def a_plan(zones: str = "abc", nodes: int = 2, shards: int = 4, **fields: Any) -> Plan:
    return run(plan_service(Service(tuple(Zone(name, nodes) for name in zones), shards, **fields)))


def nodes_of(plan: Plan, *lost: str, more: str = "") -> tuple[Node, ...]:
    names = [(f"{zone.name}{number}", zone.name) for zone in plan.service.zones for number in range(zone.nodes)]
    return tuple(Node("", name, zone, name not in lost) for name, zone in [*names, *((n, n[0]) for n in more.split())])


def spread(plan: Plan, *shards: str, more: str = "", lost: tuple[str, ...] = (), waiting: bool = False) -> Distribution:
    """Return pods on nodes: a string per shard with the node of each pod, `-` for a pending one."""
    pods = tuple(
        Pod("", f"redis-{shard}-{ordinal}", shard, "" if node == "-" else node, is_unschedulable=not waiting)
        for shard, text in enumerate(shards)
        for ordinal, node in enumerate(text.split())
    )
    return Distribution(nodes_of(plan, *lost, more=more), pods)


def rules(found: list[Violation]) -> list[str]:
    return [f"{each.rule} {each.domain}".rstrip() for each in found]


EVEN = ("a0 b0", "b1 c0", "c1 a1", "a0 b0")


def test_an_even_distribution_has_no_violation() -> None:
    plan = a_plan()
    assert check(plan, spread(plan, *EVEN)) == []


@pytest.mark.parametrize(
    ("shards", "expected"),
    [
        (("a0 a1", "b1 c0", "c1 b0", "a0 b0"), ["V1 a: redis-0"]),
        (("a0 b0", "a0 c0", "a0 c1", "a1 b1"), ["V2 a0", "V3 a"]),
        (("a0 b0", "a1 b1", "a0 b0", "b1 a1"), ["V3 a", "V3 b", "V5 c", "V6"]),
    ],
)
def test_crowded_zones_and_nodes_are_reported(shards: tuple[str, ...], expected: list[str]) -> None:
    plan = a_plan()
    assert rules(check(plan, spread(plan, *shards))) == expected


def test_pods_outside_the_allowed_zones_are_reported() -> None:
    plan = a_plan()
    found = check(plan, spread(plan, "x0 b0", *EVEN[1:], more="x0"))
    assert rules(found) == ["V5 x"]
    assert (found[0].count, found[0].limit) == (1, 0)


def test_two_zones_must_be_equal_and_three_may_differ_up_to_a_limit() -> None:
    pair = a_plan("ab", 4)
    assert rules(check(pair, spread(pair, "a0 b0", "a1 b1", "a2 b2", "a3 a0"))) == ["V1 a: redis-3", "V4"]
    strict = a_plan(difference_max=1)
    assert rules(check(strict, spread(strict, "a0 b0", "a1 b1", "a0 b0", "c0 b1"))) == ["V3 b", "V6"]


def test_nothing_is_said_about_balance_while_pods_are_created() -> None:
    plan = a_plan()
    assert check(plan, spread(plan, "a0", "b0", waiting=True)) == []
    assert check(plan, spread(plan, "a0 -", "b0 -", "a1 -", "b1 -", waiting=True)) == []
    assert rules(check(plan, spread(plan, "a0 -", "b0 -", "a1 -", "b1 -"))) == ["V5 c"]


def test_a_pending_pod_without_a_feasible_node_is_critical() -> None:
    plan = a_plan(shards=3)
    lost = spread(plan, "a0 b0", "a1 c0", "b1 -", lost=("c1",))
    assert "V7 redis-2-1" in rules(check(plan, lost))
    returned = spread(plan, "a0 b0", "a1 c0", "b1 -")
    assert "V7 redis-2-1" not in rules(check(plan, returned))


def test_the_deadlock_of_the_document_is_proven_from_its_live_state() -> None:
    plan = a_plan(shards=3)
    free = Plan(plan.service, plan.limits, plan.skews, plan.outcome, plan.avoidance, (("a", "b", "c"),) * 3)
    for last, text in (("-", "a deadlock is reachable"), ("a1", "deadlock: the constraints allow no node")):
        live = spread(free, "a0 b0", f"b1 {last}", "c1 -")
        searches = [run(search_from(state, free.skews)) for state in live_states(free, live)]
        [found] = [each for each in check(free, live, searches=searches) if each.rule == "V8"]
        assert found.message.startswith(text)
    assert live_states(free, spread(free, "a0 b0", "b1 c0", "c1 a1")) == []


def test_too_few_nodes_and_outdated_stateful_sets_are_reported() -> None:
    plan = a_plan(nodes=1, shards=3)
    found = check(plan, spread(plan, "a0 b0", "b0 c0", "c0 a0"), outdated={"redis-1": "old"})
    assert rules(found) == ["V2 a0", "V2 b0", "V2 c0", "V9", "V10 redis-1"]
    assert (found[3].count, found[3].limit) == (3, 6)


def test_changes_are_by_rule_and_domain() -> None:
    one, other = Violation("V2", "warning", "a0", "4"), Violation("V2", "warning", "a0", "5")
    assert changes([one.key], [other]) == ([], [])
    assert changes([("V3", "a")], [one]) == ([one], [("V3", "a")])


def a_node(name: str, zone: str, **status: Any) -> dict[str, Any]:
    labels = {"failure-domain.beta.kubernetes.io/zone": zone}
    ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    return {"metadata": {"name": name, "labels": labels}, "spec": {}, "status": ready | status}


def a_pod(name: str, node: str, owner: str, **metadata: Any) -> dict[str, Any]:
    references = [{"kind": "StatefulSet", "name": owner, "controller": True}]
    return {
        "metadata": {"name": name, "namespace": "default", "ownerReferences": references, **metadata},
        "spec": {"nodeName": node} if node else {},
        "status": {"phase": "Running" if node else "Pending"},
    }


def a_set(number: int, **spec: Any) -> dict[str, Any]:
    labels = {"app": "redis", "shard": str(number)}
    template = {"metadata": {"labels": labels}, "spec": {}}
    return {"metadata": {"name": f"redis-{number}", "namespace": "default"}, "spec": {"template": template, **spec}}


PLAN = {
    "metadata": {"name": "redis", "namespace": "default"},
    "spec": {
        "selector": {"matchLabels": {"app": "redis"}},
        "shardLabel": "shard",
        "zones": [{"name": zone} for zone in "abc"],
    },
}


def test_objects_of_members_become_one_distribution() -> None:
    nodes = [a_node(f"{zone}{number}", zone) for zone in "abc" for number in (0, 1)]
    pods = [
        a_pod("redis-0-0", "a0", "redis-0"),
        a_pod("redis-0-1", "a1", "redis-0"),
        a_pod("redis-1-0", "b0", "redis-1", deletionTimestamp="2026-01-01T00:00:00Z"),
        a_pod("web-0", "a0", "web"),
        a_pod("redis-0-9", "a0", "redis-0", namespace="other"),
        {"metadata": {"name": "bare", "namespace": "default"}},
    ]
    status = {"replicas": 2, "updatedReplicas": 1, "currentRevision": "a", "updateRevision": "b"}
    members = [Member("east", nodes, pods, [{**a_set(0), "status": status}])]
    sets = [a_set(number, replicas=2) for number in (10, 1, 0)]
    observation = observe(PLAN, [*sets, {"metadata": {"name": "bare"}, "spec": None}], members)
    assert [shard.name for shard in observation.shards] == ["redis-0", "redis-1", "redis-10"]
    assert observation.zone_key == "failure-domain.beta.kubernetes.io/zone"
    assert observation.service.clusters == ("east",)
    assert len(observation.distribution.pods) == 2
    plan = run(plan_observed(observation))
    found = run(check_observed(observation, plan, {"redis-1": "refused"}))
    assert rules(list(found)) == ["V1 a: redis-0", "V10 redis-0", "V10 redis-1"]


@pytest.mark.parametrize("absent", [{}, {"spec": None, "status": None}, {"spec": {}, "status": {}}])
def test_objects_without_fields_are_read(absent: dict[str, Any]) -> None:
    node = {"metadata": {"name": "a0", "labels": None}, **absent}
    pod = {"metadata": {"name": "redis-0-0", "namespace": "default", "ownerReferences": None}, **absent}
    observation = observe(PLAN, [a_set(0)], [Member("east", [node], [pod], [{"metadata": {"name": "x"}, **absent}])])
    plan = run(plan_observed(observation))
    assert [finding.reason for finding in plan.findings if finding.is_refused] == ["NoNodes"]
    assert run(check_observed(observation, plan)) == []


def test_a_new_stateful_set_waits_for_its_constraints() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    new = {**a_set(0), "apiVersion": "apps/v1", "kind": "StatefulSet"}
    new["metadata"] |= {"creationTimestamp": "2026-01-01T00:00:00Z"}
    refused = {"conditions": [{"type": PLANNED, "reason": REASON_REFUSED}]}
    lacking = {"violations": [{"rule": "V10", "domain": "redis-0"}]}
    assert awaits_constraints(new, [PLAN], now)
    assert awaits_constraints(new, [{**PLAN, "status": refused}, PLAN], now)
    assert not awaits_constraints(new, [{**PLAN, "status": refused}], now)
    assert not awaits_constraints(new, [{**PLAN, "status": lacking}], now)
    assert not awaits_constraints(new, [], now)
    assert not awaits_constraints(new, [PLAN], now + timedelta(seconds=11))
    assert not awaits_constraints({**new, "kind": "Deployment"}, [PLAN], now)
    other = {**PLAN, "spec": {**PLAN["spec"], "selector": {"matchLabels": {"app": "web"}}}}
    assert not awaits_constraints(new, [other, {"metadata": {}, "spec": None, "status": None}], now)
    new["spec"]["template"]["spec"]["topologySpreadConstraints"] = [{}]
    assert not awaits_constraints(new, [PLAN], now)
