"""What a plan foresees of rules: which clusters get which taint and when, and which wait."""

from datetime import UTC, datetime
from typing import Any

from federation.api import names
from federation.api.resources import CLUSTER_TAINT_POLICIES, FEDERATED_CLUSTERS
from federation.apimachinery.resources import Object
from federation.features.clusterrules.rules.forecast import forecast_rules
from federation.scheduling.whatif.state import ObjectChange, ObjectSet

NOW = datetime(2026, 7, 1, tzinfo=UTC)
SICK = [{"clusterLabels": {"matchLabels": {"sick": "yes"}}}]


def a_cluster(name: str, **labels: str) -> Object:
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": []},
        "status": {"conditions": [{"type": names.CLUSTER_JOINED, "status": "True"}]},
    }


def a_policy(**spec: Any) -> Object:
    taint = {"key": "sick", "effect": "NoExecute"}
    body = {"taints": [taint], "when": SICK, "holdSeconds": 60, "clearSeconds": 300, **spec}
    return {"kind": "ClusterTaintPolicy", "metadata": {"name": "sick"}, "spec": body}


def taints(changes: list[ObjectChange]) -> dict[str, list[str]]:
    assert all(each.after is not None for each in changes)
    return {each.name: [taint["key"] for taint in (each.after or {})["spec"]["taints"]] for each in changes}


def forecast(change: ObjectChange, *clusters: Object, policies: Any = ()) -> tuple[dict[str, list[str]], list[str]]:
    world = ObjectSet({FEDERATED_CLUSTERS: clusters, CLUSTER_TAINT_POLICIES: policies})
    changes, texts = forecast_rules([change], world.with_changes([change]), NOW)
    return taints(changes), texts


def test_a_new_rule_taints_clusters_after_its_time_and_as_many_as_it_may() -> None:
    clusters = [a_cluster("east", sick="yes"), a_cluster("north", sick="yes"), a_cluster("west")]
    change = ObjectChange(CLUSTER_TAINT_POLICIES, "", "sick", None, a_policy(maxClusters=1))
    found, texts = forecast(change, *clusters)
    assert found == {"east": ["sick"]}
    assert texts == [
        "ClusterTaintPolicy/sick is active in east (sick:NoExecute) after 60 s",
        "ClusterTaintPolicy/sick stays out of north: maxClusters allows no more",
    ]


def test_a_label_starts_a_rule_and_its_end_removes_the_taint() -> None:
    label = ObjectChange(FEDERATED_CLUSTERS, "", "east", a_cluster("east"), a_cluster("east", sick="yes"))
    found, texts = forecast(label, a_cluster("east"), a_cluster("west"), policies=[a_policy()])
    assert found == {"east": ["sick"]}
    assert texts == ["ClusterTaintPolicy/sick is active in east (sick:NoExecute) after 60 s"]


def test_what_concerns_no_rule_foresees_nothing_and_a_rule_that_cannot_be_read_says_so() -> None:
    new = ObjectChange(CLUSTER_TAINT_POLICIES, "", "sick", None, a_policy(maxClusters="x"))
    found, texts = forecast(new, a_cluster("east", sick="yes"))
    assert found == {}
    assert len(texts) == 1
    assert texts[0].startswith("ClusterTaintPolicy/sick cannot be read")
    other = ObjectChange(FEDERATED_CLUSTERS, "", "east", a_cluster("east"), a_cluster("east", tier="gold"))
    assert forecast(other, a_cluster("east")) == ({}, [])
