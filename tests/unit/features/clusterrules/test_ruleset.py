"""The taints and states of a cluster that follow from all rules."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from federation.api import names
from federation.apimachinery.resources import Object
from federation.features.clusterrules.names import CLUSTER_RULES
from federation.features.clusterrules.rules.ruleset import ClusterPlan, Rule, compile_rule, plan_cluster
from federation.features.clusterrules.rules.taints import plan_ruled_taints, taint_problems

NOW = datetime(2026, 7, 1, tzinfo=UTC)
DOWN = [{"conditions": [{"type": "Network", "values": ["False"]}]}]
TAINT = {"key": "network", "effect": "NoExecute"}


def a_cluster(name: str = "east", network: str = "False", taints: Any = (), **annotations: str | None) -> Object:
    found = [{"type": names.CLUSTER_JOINED, "status": "True"}, {"type": "Network", "status": network}]
    given = {key: value for key, value in annotations.items() if value is not None}
    return {
        "metadata": {"name": name, "labels": {}, "annotations": given},
        "spec": {"taints": list(taints)},
        "status": {"conditions": found},
    }


def a_policy(name: str = "net", **spec: Any) -> Rule:
    body = {"taints": [TAINT], "when": DOWN, "holdSeconds": 0, "clearSeconds": 0, **spec}
    return compile_rule({"metadata": {"name": name}, "spec": body}, "ClusterTaintPolicy")


def a_remedy(*actions: Object, name: str = "net", **spec: Any) -> Rule:
    body = {"actions": list(actions), "when": DOWN, "holdSeconds": 0, "clearSeconds": 0, **spec}
    return compile_rule({"metadata": {"name": name}, "spec": body}, "Remedy")


def after(cluster: Object, plan: ClusterPlan, network: str | None = None) -> Object:
    """Return the cluster after the plan was written."""
    status = network or cluster["status"]["conditions"][1]["status"]
    return a_cluster(cluster["metadata"]["name"], status, plan.taints, **plan.annotations)


def test_taints_come_and_go_with_the_rule_and_its_mark() -> None:
    cluster = a_cluster()
    plan = plan_cluster(cluster, [a_policy()], [], NOW)
    assert plan.taints == [{**TAINT, "timeAdded": "2026-07-01T00:00:00Z"}]
    assert plan.annotations[names.RULED_TAINTS] == "network:NoExecute"
    assert [change.is_active for change in plan.changes] == [True]
    cluster = after(cluster, plan)
    again = plan_cluster(cluster, [a_policy()], [], NOW + timedelta(hours=1))
    assert (again.is_changed, again.changes) == (False, ())
    ended = plan_cluster(after(cluster, plan, "True"), [a_policy()], [], NOW)
    assert (ended.taints, set(ended.annotations.values())) == ([], {None})
    assert [change.is_active for change in ended.changes] == [False]


def test_without_the_rule_its_taints_go() -> None:
    cluster = after(a_cluster(), plan_cluster(a_cluster(), [a_policy()], [], NOW))
    plan = plan_cluster(cluster, [], [], NOW)
    assert plan.is_changed
    assert (plan.taints, set(plan.annotations.values())) == ([], {None})


def test_a_rule_that_does_not_select_the_cluster_any_more_ends_there() -> None:
    cluster = after(a_cluster(), plan_cluster(a_cluster(), [a_policy()], [], NOW))
    assert plan_cluster(cluster, [a_policy(clusters=["west"])], [], NOW).taints == []


def test_a_malformed_rule_changes_nothing() -> None:
    cluster = after(a_cluster(), plan_cluster(a_cluster(), [a_policy()], [], NOW))
    broken = a_policy(when=[{"metrics": [{"measure": "Odd", "resource": "cpu", "below": 1}]}])
    assert "measure 'Odd'" in broken.problem
    assert not plan_cluster(cluster, [broken], [], NOW).is_changed
    assert not plan_cluster(a_cluster(), [broken], [], NOW).is_changed


def test_taints_of_people_are_left_alone() -> None:
    by_hand = {**TAINT, "value": "mine"}
    plan = plan_cluster(a_cluster(taints=[by_hand]), [a_policy()], [], NOW)
    assert (plan.taints, plan.annotations[names.RULED_TAINTS]) == ([by_hand], None)


def test_a_taint_that_somebody_removes_comes_back_unless_people_remove_it() -> None:
    written = plan_cluster(a_cluster(), [a_policy()], [], NOW)
    removed = a_cluster(taints=[], **written.annotations)
    assert len(plan_cluster(removed, [a_policy()], [], NOW).taints) == 1
    manual = a_policy(removal="Manual")
    quiet = a_cluster(network="True", taints=written.taints, **written.annotations)
    assert not plan_cluster(quiet, [manual], [], NOW).is_changed, "nobody has removed it"
    done = plan_cluster(a_cluster(network="True", **written.annotations), [manual], [], NOW)
    assert (done.taints, done.annotations[CLUSTER_RULES]) == ([], None)


@pytest.mark.parametrize(
    ("most", "others", "is_active"),
    [("50%", 0, True), ("50%", 1, False), ("50%", 3, True), (1, 3, False), (2, 1, True), (0, 0, False)],
)
def test_a_rule_is_active_in_a_limited_number_of_clusters(most: int | str, others: int, is_active: bool) -> None:
    rule = a_policy(maxClusters=most)
    always = a_policy(maxClusters="100%")
    found = [a_cluster(f"c{number}") for number in range(others)]
    active = [after(each, plan_cluster(each, [always], [], NOW)) for each in found[:1]]
    plan = plan_cluster(a_cluster(), [rule], [*active, *found[1:]], NOW)
    assert bool(plan.taints) is is_active
    assert plan.annotations[CLUSTER_RULES] is not None


def test_a_remedy_cordons_taints_and_cuts_traffic() -> None:
    taint = {"type": "Taint", "taint": {"key": "sick", "effect": "NoSchedule", "value": "yes"}}
    remedy = a_remedy({"type": "Cordon"}, taint, {"type": "CutTraffic"}, {"type": "Event", "message": "call ops"})
    plan = plan_cluster(a_cluster(), [remedy], [], NOW)
    assert {each["key"] for each in plan.taints} == {names.TAINT_UNSCHEDULABLE, "sick"}
    assert plan.annotations[names.TRAFFIC_CUT] == "Remedy/net"
    assert plan.changes[0].rule.events == ("call ops",)
    cordoned = {"key": names.TAINT_UNSCHEDULABLE, "effect": "NoSchedule"}
    by_hand = plan_cluster(a_cluster(taints=[cordoned]), [a_remedy({"type": "Cordon"})], [], NOW)
    assert by_hand.annotations[names.RULED_TAINTS] is None, "somebody else's cordon outlives the remedy"


def test_a_rule_that_must_hold_first_looks_again_then() -> None:
    plan = plan_cluster(a_cluster(), [a_policy(holdSeconds=60)], [], NOW)
    assert (plan.taints, plan.recheck_s) == ([], 60)


def test_of_two_rules_with_one_taint_the_first_by_name_decides_and_each_ends_alone() -> None:
    first = a_policy("a", taints=[{**TAINT, "value": "1"}])
    second = a_policy("b", taints=[{**TAINT, "value": "2"}], when=None)
    plan = plan_cluster(a_cluster(), [second, first], [], NOW)
    assert [each["value"] for each in plan.taints] == ["1"]
    later = plan_cluster(after(a_cluster(), plan, "True"), [second, first], [], NOW + timedelta(hours=1))
    assert [(each["value"], each["timeAdded"]) for each in later.taints] == [("2", "2026-07-01T00:00:00Z")]


def test_taints_of_the_control_plane_are_refused() -> None:
    assert [at for at, _ in taint_problems([TAINT, {"key": names.TAINT_DRAIN}, {"key": names.TAINT_NOT_READY}])] == [
        1,
        2,
    ]


def test_ruled_taints_that_are_gone_are_not_listed() -> None:
    plan = plan_ruled_taints([], frozenset({"gone:NoSchedule"}), [], NOW)
    assert (plan.taints, plan.ruled) == ([], frozenset())
