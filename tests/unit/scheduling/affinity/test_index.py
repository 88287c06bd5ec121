"""The index of workloads: what a rule selects, whom a change concerns, who may go first, and assumed decisions."""

from typing import Any

import pytest

from federation.scheduling.affinity.index import NOBODY, Waiters, Workload, WorkloadIndex
from federation.scheduling.affinity.rules import ObjectRule, compile_workload_rules


def rule(*, is_apart: bool = False, namespace: str = "shop", cluster_wide: bool = True, **term: Any) -> ObjectRule:
    field = "workloadAntiAffinity" if is_apart else "workloadAffinity"
    name = "preferred" if "weight" in term else "required"
    [compiled] = compile_workload_rules({field: {name: [term]}}, is_cluster_wide=cluster_wide)
    made = compiled.for_object(namespace, {"app": "self"})
    assert made is not None
    return made


def with_app(*apps: str, **more: Any) -> dict[str, Any]:
    return {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": list(apps)}]}, **more}


def workload(name: str, *clusters: str, rules: tuple[ObjectRule, ...] = (), namespace: str = "shop") -> Workload:
    key = (namespace, name)
    return Workload(key, namespace, name, {"app": name, "tier": "all"}, frozenset(clusters), rules)


def an_index(*workloads: Workload) -> WorkloadIndex:
    index = WorkloadIndex()
    index.is_active = True
    for each in workloads:
        index.observe(each.key, each)
    return index


@pytest.mark.parametrize(
    ("selecting", "found"),
    [
        (rule(**with_app("db")), {"db"}),
        (rule(**with_app("db", "api")), {"db", "api"}),
        (rule(labelSelector={}), {"db", "api"}),
        (rule(labelSelector={"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["db"]}]}), {"api"}),
        (rule(labelSelector={"matchLabels": {"tier": "all", "app": "api"}}), {"api"}),
        (rule(matchLabelKeys=["app"]), set()),
        (rule(**with_app("db"), namespaces=["other"]), {"secret"}),
        (rule(labelSelector={}, namespaces=["*"]), {"db", "api", "secret"}),
    ],
    ids=["one", "some", "all", "none-of", "two-labels", "own-value", "other-namespace", "all-namespaces"],
)
def test_a_rule_selects_workloads_by_labels_and_namespace(selecting: ObjectRule, found: set[str]) -> None:
    secret = Workload(("other", "secret"), "other", "secret", {"app": "db"})
    index = an_index(workload("db"), workload("api"), secret)
    assert {each.name for each in index.selected(selecting, but=None)} == found


def test_a_tenants_policy_does_not_reach_other_namespaces_even_if_it_names_some() -> None:
    selecting = rule(**with_app("db"), namespaces=["other", "*"], cluster_wide=False)
    assert selecting.namespaces == {"shop"}


def test_an_object_without_a_label_key_is_not_concerned() -> None:
    spec = {"workloadAffinity": {"required": [{"matchLabelKeys": ["group"]}]}}
    [compiled] = compile_workload_rules(spec, is_cluster_wide=False)
    assert compiled.for_object("shop", {"app": "web"}) is None
    made = compiled.for_object("shop", {"group": "one"})
    assert made is not None
    assert made.text == "group=one"


def test_it_knows_nothing_until_a_policy_has_a_rule() -> None:
    index = WorkloadIndex()
    assert index.observe(("shop", "db"), workload("db", "east")) is NOBODY
    index.assume(workload("db", "east"))
    assert len(index) == 0


TOGETHER = workload("web", rules=(rule(**with_app("db")),))
APART = workload("web", rules=(rule(is_apart=True, **with_app("db")),))


@pytest.mark.parametrize(
    ("owner", "before", "after", "to_check", "to_retry"),
    [
        (TOGETHER, None, workload("db", "east"), set(), {"web"}),
        (TOGETHER, workload("db", "east"), workload("db", "east", "west"), set(), {"web"}),
        (TOGETHER, workload("db", "east"), workload("db", "west"), {"web"}, set()),
        (TOGETHER, workload("db", "east"), None, {"web"}, set()),
        (TOGETHER, workload("db", "east"), workload("db", "east"), set(), set()),
        (TOGETHER, None, workload("api", "east"), set(), set()),
        (APART, None, workload("db", "east"), set(), set()),
        (APART, workload("db", "east"), workload("db", "west"), set(), {"web"}),
        (APART, workload("db", "east"), None, set(), {"web"}),
    ],
    ids=["placed", "grows", "moves", "gone", "same", "stranger", "apart-placed", "apart-moves", "apart-gone"],
)
def test_a_change_concerns_those_with_a_rule_about_it(
    owner: Workload, before: Workload | None, after: Workload | None, to_check: set[str], to_retry: set[str]
) -> None:
    index = an_index(owner, *([before] if before else []))
    key = (after or before or owner).key
    waiters = index.observe(key, after)
    assert waiters == Waiters(
        frozenset(("shop", name) for name in to_check), frozenset(("shop", name) for name in to_retry)
    )


def test_those_that_a_workload_keeps_away_are_retried_when_it_leaves() -> None:
    jealous = workload("db", "east", rules=(rule(is_apart=True, **with_app("web")),))
    index = an_index(jealous, workload("web"))
    moved = workload("db", "west", rules=jealous.rules)
    assert index.observe(jealous.key, moved).to_retry == {("shop", "web")}


def needs(name: str, *others: str) -> Workload:
    return workload(name, rules=tuple(rule(**with_app(other)) for other in others))


@pytest.mark.parametrize(
    ("workloads", "first"),
    [
        ([needs("a", "a")], {"a"}),
        ([needs("a", "b"), needs("b", "a")], {"a", "b"}),
        ([needs("a", "b"), needs("b", "c"), needs("c", "a")], {"a", "b", "c"}),
        ([needs("a", "b"), needs("b", "c"), needs("c", "b")], {"b", "c"}),
        ([needs("a", "b"), needs("b")], set()),
        ([needs("a", "b")], set()),
    ],
    ids=["itself", "each-other", "ring", "beside-a-ring", "one-way", "missing"],
)
def test_of_a_group_that_waits_for_itself_any_may_go_first(workloads: list[Workload], first: set[str]) -> None:
    index = an_index(*workloads)
    found = {each.name for each in workloads if each.rules and index.may_be_first(each, each.rules[0])}
    assert found == first


def test_the_search_for_a_ring_has_an_end() -> None:
    chain = [needs(f"w{at}", f"w{at + 1}") for at in range(1000)]
    index = an_index(*chain)
    assert not index.may_be_first(chain[0], chain[0].rules[0])


def test_a_decision_counts_before_it_is_observed_and_old_events_do_not_undo_it() -> None:
    index = an_index(workload("db"), TOGETHER)
    index.assume(workload("db", "east"))
    assert clusters_of(index, "db") == {"east"}
    index.observe(("shop", "db"), workload("db"))  # an event of before the write
    assert clusters_of(index, "db") == {"east"}
    assert index.observe(("shop", "db"), workload("db", "east")).to_retry == {("shop", "web")}
    index.observe(("shop", "db"), workload("db", "west"))
    assert clusters_of(index, "db") == {"west"}


def test_a_decision_that_could_not_be_written_is_taken_back() -> None:
    index = an_index(workload("db", "east"))
    index.assume(workload("db", "west"))
    index.forget(("shop", "db"))
    assert clusters_of(index, "db") == {"east"}
    index.forget(("shop", "db"))
    assert clusters_of(index, "db") == {"east"}


def test_removed_workloads_leave_nothing_behind() -> None:
    index = an_index(TOGETHER, workload("db", "east"))
    for name in ("web", "db"):
        index.observe(("shop", name), None)
    assert not len(index)
    assert not index._by_label
    assert not index._rules


def clusters_of(index: WorkloadIndex, name: str) -> frozenset[str]:
    found = index.get(("shop", name))
    assert found is not None
    return found.clusters
