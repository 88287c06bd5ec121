"""Decisions of units with rules about other workloads: where they go, what stays, what follows, and the reasons."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.scheduling.affinity.test_index import an_index, needs, rule, with_app, workload

from federation.scheduling.affinity.index import Workload
from federation.scheduling.affinity.relations import partners_away, relations_of
from federation.scheduling.engine import Decision, Engine, Outcome
from federation.scheduling.framework.profile import DEFAULT_PROFILE
from federation.scheduling.framework.registry import load_plugins
from federation.scheduling.framework.testing import NOW, a_cluster, a_unit
from federation.scheduling.framework.types import Cluster, ClusterChange
from federation.scheduling.queueinghints import queueing_hint_for
from federation.scheduling.snapshot import Snapshot

ENGINE = Engine(load_plugins())
REGION = "region"
FLEET = (
    a_cluster("a").labelled(region="eu").built(),
    a_cluster("b").labelled(region="eu").built(),
    a_cluster("c").labelled(region="us").built(),
    a_cluster("d").built(),
)
BY_NAME = {cluster.name: cluster for cluster in FLEET}
DEAD_A = {**BY_NAME, "a": a_cluster("a").labelled(region="eu").tainted("gone", effect="NoExecute").built()}


def decide(
    own: Workload, *others: Workload, fleet: Mapping[str, Cluster] = BY_NAME, current: tuple[str, ...] = (), **unit: Any
) -> Decision:
    index = an_index(own, *others)
    wanted = a_unit(namespace="shop", name=own.name, current=dict.fromkeys(current), **unit)
    relations = relations_of(index, own, wanted, fleet)
    snapshot = Snapshot(1, tuple(fleet.values()))
    return ENGINE.decide(
        a_unit(namespace="shop", current=dict.fromkeys(current), relations=relations, **unit),
        snapshot,
        DEFAULT_PROFILE,
        now=NOW,
    )


def web(*rules: Any, clusters: tuple[str, ...] = ()) -> Workload:
    return workload("web", *clusters, rules=tuple(rules))


TOGETHER, APART = rule(**with_app("db")), rule(is_apart=True, **with_app("db"))
SAME_REGION, OTHER_REGION = (
    rule(**with_app("db"), topologyKey=REGION),
    rule(is_apart=True, **with_app("db"), topologyKey=REGION),
)


@pytest.mark.parametrize(
    ("own", "db", "placed"),
    [
        (web(TOGETHER), ("a",), {"a"}),
        (web(TOGETHER), ("a", "c"), {"a", "c"}),
        (web(SAME_REGION), ("a",), {"a", "b"}),
        (web(APART), ("a",), {"b", "c", "d"}),
        (web(OTHER_REGION), ("a",), {"c", "d"}),
        (web(SAME_REGION, APART), ("a",), {"b"}),
        (web(TOGETHER), ("gone",), set()),
        (web(TOGETHER), (), set()),
        (web(APART), (), {"a", "b", "c", "d"}),
    ],
    ids=["together", "both", "region", "apart", "other-region", "beside", "unknown-cluster", "waits", "free"],
)
def test_required_rules_decide_where_a_unit_may_go(own: Workload, db: tuple[str, ...], placed: set[str]) -> None:
    assert set(decide(own, workload("db", *db)).placements) == placed


def test_what_must_be_apart_keeps_others_away_without_a_rule_of_theirs() -> None:
    jealous = workload("db", "a", rules=(rule(is_apart=True, **with_app("web"), topologyKey=REGION),))
    decision = decide(web(), jealous)
    assert set(decision.placements) == {"c", "d"}
    assert "2 cluster(s) had db, which must be apart from it by region" in decision.reason


def test_reasons_name_no_workload_of_another_namespace() -> None:
    jealous = workload(
        "secret", "a", namespace="other", rules=(rule(is_apart=True, **with_app("web"), namespaces=["*"]),)
    )
    decision = decide(web(), jealous)
    assert "1 cluster(s) had workloads of other namespaces, which must be apart from it" in decision.reason
    assert "secret" not in decision.reason


@pytest.mark.parametrize(
    ("own", "reason"),
    [
        (web(TOGETHER), "3 cluster(s) had no workload with app in (db), which it must be together with"),
        (web(SAME_REGION), "1 cluster(s) had no label region, by which it must be together with app in (db)"),
        (web(APART), "1 cluster(s) had workloads with app in (db), from which it must be apart"),
        (
            web(rule(**with_app("api"))),
            "4 cluster(s) had to wait for a workload with app in (api), which it must be together with",
        ),
    ],
    ids=["together", "no-label", "apart", "waits"],
)
def test_reasons_name_the_rule(own: Workload, reason: str) -> None:
    assert reason in decide(own, workload("db", "a")).reason


@pytest.mark.parametrize(
    ("own", "others", "best"),
    [
        (web(rule(**with_app("db"), weight=10)), [workload("db", "c")], "c"),
        (web(rule(is_apart=True, **with_app("db", "api"), weight=10, topologyKey=REGION)), [workload("db", "a")], "cd"),
        (
            web(rule(is_apart=True, labelSelector={}, weight=1)),
            [workload("db", "a", "b"), workload("api", "a", "b", "c", "d")],
            "cd",
        ),
        (web(), [workload("db", "b", rules=(rule(**with_app("web"), weight=5),))], "b"),
        (web(), [workload("db", "b", rules=(rule(**with_app("web")),))], "b"),
        (web(), [workload("db", *"abc", rules=(rule(is_apart=True, **with_app("web"), weight=5),))], "d"),
    ],
    ids=["together", "apart-region", "least-crowded", "wanted", "needed", "unwanted"],
)
def test_preferences_count_partners_and_hold_both_ways(own: Workload, others: list[Workload], best: str) -> None:
    [chosen] = decide(own, *others, max_clusters=1).placements
    assert chosen in best


def test_preferences_move_nothing_that_runs() -> None:
    own = web(rule(**with_app("db"), weight=100), clusters=("a",))
    decision = decide(own, workload("db", "c"), current=("a",), max_clusters=1)
    assert set(decision.placements) == {"a"}


def test_what_runs_beside_a_workload_stays_until_it_chooses_anew() -> None:
    own, db = web(APART, clusters=("a",)), workload("db", "a")
    stays = decide(own, db, current=("a",), max_clusters=1)
    assert set(stays.placements) == {"a"}
    (remark,) = stays.remarks["WorkloadAffinity"]["a"]
    assert remark == "it runs beside app in (db), from which it should be apart; what runs stays"
    moved = decide(own, db, current=("a",), max_clusters=1, chooses_anew=True)
    assert set(moved.placements) & {"b", "c", "d"}
    assert not moved.remarks.get("WorkloadAffinity")


def test_it_follows_partners_and_stays_while_none_is_placed() -> None:
    own = web(TOGETHER, clusters=("a",))
    assert set(decide(own, workload("db", "b"), current=("a",)).placements) == {"b"}
    assert set(decide(own, workload("db"), current=("a",)).placements) == {"a"}
    assert decide(own, workload("db"), current=("a",), fleet=DEAD_A).outcome is Outcome.NO_FEASIBLE_CLUSTER


def test_two_that_name_each_other_leave_a_lost_cluster_one_after_the_other() -> None:
    one, other = needs("one", "other"), needs("other", "one")
    both = [workload(each.name, "a", rules=each.rules) for each in (one, other)]
    first = decide(both[0], both[1], current=("a",), fleet=DEAD_A, max_clusters=1)
    assert first.is_success
    [target] = first.placements
    moved = workload("one", target, rules=one.rules)
    assert set(decide(both[1], moved, current=("a",), fleet=DEAD_A).placements) == {target}


@pytest.mark.parametrize(
    ("own", "db", "current", "away"),
    [
        (web(TOGETHER), ("b",), "a", ["a"]),
        (web(TOGETHER), ("a",), "ab", ["b"]),
        (web(SAME_REGION), ("b",), "a", []),
        (web(SAME_REGION), ("c",), "ab", ["a", "b"]),
        (web(TOGETHER), (), "a", []),
        (web(APART), ("a",), "a", []),
        (web(rule(**with_app("db"), weight=3)), ("b",), "a", []),
        (web(TOGETHER), ("a",), "z", []),
    ],
    ids=["moved", "partly", "same-region", "other-region", "nowhere", "apart", "preferred", "unknown-cluster"],
)
def test_only_a_required_partner_that_left_is_a_cause(
    own: Workload, db: tuple[str, ...], current: str, away: list[str]
) -> None:
    assert partners_away(an_index(own, workload("db", *db)), own, current, BY_NAME) == away


def test_reports_of_members_do_not_wake_what_waits_for_a_workload() -> None:
    decision = decide(web(TOGETHER), workload("db"))
    hint = queueing_hint_for(decision, ENGINE.framework(DEFAULT_PROFILE), NOW)
    assert not hint.matches("a", ClusterChange.RESOURCES)
    assert hint.matches("a", ClusterChange.LABELS)
    assert hint.matches("new", ClusterChange.MEMBERSHIP)


NAMES = ("one", "two", "three", "four")
SIDES = st.fixed_dictionaries(
    {},
    optional={name: st.tuples(st.sampled_from(NAMES), st.booleans(), st.sampled_from(("", REGION))) for name in NAMES},
)


@given(SIDES, st.permutations(NAMES))
def test_placements_hold_required_rules_and_settle(sides: dict[str, Any], order: list[str]) -> None:
    """Whatever rules four workloads have about each other: what is placed obeys them, and nothing moves afterwards."""
    made = {name: workload(name) for name in NAMES}
    for name, (partner, is_apart, key) in sides.items():
        term = {**with_app(partner), **({"topologyKey": key} if key else {})}
        made[name] = workload(name, rules=(rule(is_apart=is_apart, **term),))
    for round_ in range(4):
        moved = False
        for name in order:
            own, others = made[name], [each for each in made.values() if each.name != name]
            current = tuple(sorted(own.clusters))
            away = partners_away(an_index(own, *others), own, current, BY_NAME)
            if own.clusters and not away:
                continue
            decision = decide(own, *others, current=current, max_clusters=1)
            if decision.is_success and set(decision.placements) != own.clusters:
                made[name], moved = workload(name, *decision.placements, rules=own.rules), True
        if not moved:
            break
        assert round_ < 3, "it settles"
    for name, (partner, is_apart, key) in sides.items():
        own, other = made[name], made[partner]
        if not own.clusters or not other.clusters or partner == name:
            continue
        places = [{BY_NAME[c].labels.get(key) if key else c for c in each.clusters} - {None} for each in (own, other)]
        if is_apart:
            assert not places[0] & places[1]
        else:
            assert places[0] <= places[1]
