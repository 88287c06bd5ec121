"""The WorkloadSpreads of workloads: which one applies, its caps and clusters, and the stored quotas."""

from typing import Any

import pytest

from federation.api import names
from federation.planning.workloadspread.quotas import SubsetClusters, SubsetSpread
from federation.scheduling.framework.types import Cluster
from federation.scheduling.snapshot import Snapshot
from federation.scheduling.workloadspreads import (
    SpreadIndex,
    compile_spread,
    spread_of_unit,
    stored_caps,
    stored_name,
    stored_quotas,
    to_annotation,
)


def a_spread(name: str = "web", *subsets: dict[str, Any], **spec: Any) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    listed = list(subsets) or [{"name": "all"}]
    metadata = {"name": name, "namespace": "default"}
    return {"metadata": metadata, "spec": {"targetRef": target, "subsets": listed, **spec}}


def a_federated(annotation: str | None = None, **template: Any) -> dict[str, Any]:
    metadata = {"name": "web-deployments.apps", "namespace": "default"}
    annotations = {} if annotation is None else {names.WORKLOAD_SPREAD: annotation}
    source = {"apiVersion": "apps/v1beta2", "kind": "Deployment", "metadata": {"name": "web"}, **template}
    return {"metadata": {**metadata, "annotations": annotations}, "spec": {"template": source}}


def test_the_first_by_name_applies_to_its_target_in_any_version() -> None:
    index, federated = SpreadIndex(), a_federated()
    assert index.find(federated) is None
    first, second = a_spread("a"), a_spread("b")
    assert [index.put(second), index.put(first)] == ["", ""]
    found = index.find(federated)
    assert found is not None
    assert found.name == "a"
    index.remove(first)
    found = index.find(federated)
    assert found is not None
    assert found.name == "b"
    index.remove(second)
    index.remove(second)
    assert index.find(federated) is None
    index.put(first)
    assert index.find(a_federated(kind="ReplicaSet")) is None


@pytest.mark.parametrize("limit", ["1.5%", "many", True])
def test_a_malformed_limit_has_no_effect_and_a_reason(limit: Any) -> None:
    index = SpreadIndex()
    assert "maxReplicas" in index.put(a_spread("web", {"name": "a", "maxReplicas": limit}))
    assert index.find(a_federated()) is None


def test_the_hash_covers_the_division_and_not_the_pods() -> None:
    plain = compile_spread(a_spread("web", {"name": "a", "maxReplicas": 3}))
    patched = compile_spread(a_spread("web", {"name": "a", "maxReplicas": 3, "patch": {"metadata": {}}}))
    larger = compile_spread(a_spread("web", {"name": "a", "maxReplicas": 4}))
    assert plain.content_hash == patched.content_hash != larger.content_hash


def test_percentages_are_of_the_federated_total_and_clusters_of_the_snapshot() -> None:
    named = {"matchExpressions": [{"key": names.CLUSTER_NAME_TERM, "operator": "In", "values": ["east"]}]}
    subsets = [{"name": "a", "maxReplicas": "30%", "requiredNodeSelectorTerm": named}, {"name": "b"}]
    snapshot = Snapshot(1, (Cluster("east"), Cluster("west", is_silent=True)))
    found = spread_of_unit(compile_spread(a_spread("web", *subsets)), a_federated(), 5, snapshot)
    every = frozenset(("east", "west"))
    assert found.subsets == (SubsetClusters("a", 2, frozenset({"east"})), SubsetClusters("b", None, every))
    assert found.frozen == {"west"}
    assert found.caps() == {"a": 2}


@pytest.mark.parametrize(("template", "expected"), [({"spec": {"x": 20}}, 20), ({}, 5), ({"spec": {"x": "many"}}, 5)])
def test_the_filter_may_name_another_total(template: dict[str, Any], expected: int) -> None:
    compiled = compile_spread(a_spread("web", targetFilter={"replicasPathList": ["spec.x"]}))
    assert compiled.total(template, 5) == expected


def test_quotas_are_stored_with_the_placement() -> None:
    both = frozenset(("east", "west"))
    spread = SubsetSpread("web", (SubsetClusters("a", 3, both), SubsetClusters("b", None, frozenset({"west"}))))
    text = to_annotation(spread, {"east": 2, "west": 4}, {"a": {"west": 3}})
    federated = a_federated(text)
    assert stored_quotas(federated) == {"a": {"west": 3}, "b": {"west": 1}}
    assert (stored_caps(federated), stored_name(federated)) == ({"a": 3}, "web")
    assert to_annotation(None, {"east": 2}, {}) is None


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"quotas": 3}', '{"quotas": {"east": 3}}', '{"quotas": {"e": {"a": "3"}}}']
)
def test_a_damaged_annotation_counts_as_none(text: str) -> None:
    assert stored_quotas(a_federated(text)) == {}
