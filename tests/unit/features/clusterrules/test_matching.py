"""Whether a rule holds in a cluster, and what it says about what the cluster does not report."""

from typing import Any

import pytest

from federation.apimachinery.resources import Object
from federation.features.clusterrules.rules.matching import compile_matching, problems_of

RESOURCES = {
    "allocatable": {"cpu": "10", "memory": "10Gi"},
    "available": {"cpu": "900m"},
    "waiting": {"cpu": "3"},
    "schedulableNodes": 2,
}


def a_cluster(resources: Object | None = None, **conditions: str) -> Object:
    listed = [{"type": type_, "status": status} for type_, status in conditions.items()]
    status = {"conditions": listed, "resources": RESOURCES if resources is None else resources}
    return {"metadata": {"name": "east", "labels": {"tier": "prod"}}, "status": status}


def verdict(cluster: Object, **spec: Any) -> str:
    return compile_matching(spec).judge(cluster).value


def condition(type_: str = "Network", operator: str = "In", *values: str) -> Object:
    return {"conditions": [{"type": type_, "operator": operator, "values": list(values) or ["False"]}]}


@pytest.mark.parametrize(
    ("term", "cluster", "expected"),
    [
        (condition(), a_cluster(Network="False"), "holds"),
        (condition(), a_cluster(Network="True"), "clears"),
        (condition(), a_cluster(), "neither"),
        (condition("Network", "NotIn", "True"), a_cluster(Network="Unknown"), "holds"),
        (condition("Network", "NotIn", "True"), a_cluster(Network="True"), "clears"),
        (condition("Network", "NotIn", "True"), a_cluster(), "neither"),
        ({"clusterLabels": {"matchLabels": {"tier": "prod"}}}, a_cluster(), "holds"),
        ({"clusterLabels": {"matchLabels": {"tier": "test"}}}, a_cluster(), "clears"),
        ({**condition(), "clusterLabels": {"matchLabels": {"tier": "test"}}}, a_cluster(), "clears"),
        ({"metrics": [{"measure": "Free", "resource": "cpu", "below": "10%"}]}, a_cluster(), "holds"),
        ({"metrics": [{"measure": "Free", "resource": "cpu", "below": "9%"}]}, a_cluster(), "clears"),
        ({"metrics": [{"measure": "Free", "resource": "cpu", "below": "1"}]}, a_cluster(), "holds"),
        ({"metrics": [{"measure": "Free", "resource": "memory", "below": "1Gi"}]}, a_cluster(), "holds"),
        ({"metrics": [{"measure": "Free", "resource": "gpu", "below": "1"}]}, a_cluster(), "neither"),
        ({"metrics": [{"measure": "Free", "resource": "cpu", "below": "10%"}]}, a_cluster({}), "neither"),
        ({"metrics": [{"measure": "Waiting", "resource": "cpu", "above": "20%"}]}, a_cluster(), "holds"),
        ({"metrics": [{"measure": "Waiting", "resource": "cpu", "above": 3}]}, a_cluster(), "clears"),
        ({"metrics": [{"measure": "Allocatable", "resource": "cpu", "below": 11}]}, a_cluster(), "holds"),
        ({"metrics": [{"measure": "Nodes", "below": 3}]}, a_cluster(), "holds"),
        ({"metrics": [{"measure": "Nodes", "below": 2}]}, a_cluster(), "clears"),
        ({"metrics": [{"measure": "Nodes", "below": 2}]}, a_cluster({}), "neither"),
    ],
)
def test_a_term_holds_clears_or_says_nothing(term: Object, cluster: Object, expected: str) -> None:
    assert verdict(cluster, when=[term]) == expected


def test_one_term_is_enough_and_without_terms_it_always_holds() -> None:
    assert verdict(a_cluster(Network="True", Disk="False"), when=[condition(), condition("Disk")]) == "holds"
    assert verdict(a_cluster(Network="True"), when=[condition(), condition("Disk")]) == "neither"
    assert verdict(a_cluster()) == "holds"


def test_a_rule_with_terms_for_its_end_stays_between_them() -> None:
    spec: Object = {
        "when": [{"metrics": [{"measure": "Free", "resource": "cpu", "below": "5%"}]}],
        "clearWhen": [{"metrics": [{"measure": "Free", "resource": "cpu", "above": "20%"}]}],
    }
    found = [
        verdict(a_cluster({**RESOURCES, "available": {"cpu": free}}), **spec) for free in ("400m", "900m", "2100m")
    ]
    assert found == ["holds", "neither", "clears"]


@pytest.mark.parametrize(
    ("spec", "selects"),
    [
        ({}, True),
        ({"clusters": ["east", "west"]}, True),
        ({"clusters": ["west"]}, False),
        ({"clusterSelector": {"tier": "prod"}}, True),
        ({"clusterSelector": {"tier": "test"}}, False),
        (
            {"clusterAffinity": [{"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["east"]}]}]},
            False,
        ),
        ({"clusterAffinity": [{"matchExpressions": [{"key": "tier", "operator": "Exists", "values": []}]}]}, True),
        ({"clusters": ["east"], "clusterSelector": {"tier": "test"}}, False),
    ],
)
def test_a_rule_selects_clusters_by_all_its_parts(spec: Object, selects: bool) -> None:
    assert compile_matching(spec).selects(a_cluster()) is selects


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        ({"when": [{"metrics": [{"measure": "Nodes", "below": "10%"}]}]}, ["spec.when[0]"]),
        ({"clearWhen": [condition(), {"metrics": [{"measure": "Free", "below": "many"}]}]}, ["spec.clearWhen[1]"]),
        ({"when": [{"metrics": [{"measure": "Used", "resource": "cpu", "below": 1}]}]}, ["spec.when[0]"]),
        (
            {"clusterAffinity": [{"matchFields": [{"key": "name", "operator": "In", "values": ["a"]}]}]},
            ["spec.clusterAffinity"],
        ),
        ({"when": [condition()], "clusterSelector": {"a": "b"}}, []),
    ],
)
def test_what_cannot_be_read_is_named(spec: Object, fields: list[str]) -> None:
    assert [field for field, _ in problems_of(spec)] == fields
