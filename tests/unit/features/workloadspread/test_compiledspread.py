"""WorkloadSpreads as the scheduler reads them: limits, clusters, tolerations and hashes."""

from typing import Any

import pytest

from federation.api.federatedtype import default_type_configs, from_config
from federation.features.workloadspread.names import CLUSTER_NAME_TERM
from federation.features.workloadspread.rules.compiledspread import compile_spread
from federation.features.workloadspread.spreadshape import ClusterSpreads, with_tolerations
from federation.planning.placement.subsetquotas import SubsetClusters
from federation.scheduling.framework.types import Cluster, GroupVersionKind
from federation.scheduling.policyspec import compile_policy
from federation.scheduling.snapshot import Snapshot
from federation.scheduling.unit import build_unit
from federation.scheduling.workloadspreads import spread_of_unit


def a_spread(name: str = "web", *subsets: dict[str, Any], **spec: Any) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    listed = list(subsets) or [{"name": "all"}]
    metadata = {"name": name, "namespace": "default"}
    return {"metadata": metadata, "spec": {"targetRef": target, "subsets": listed, **spec}}


def a_federated(**template: Any) -> dict[str, Any]:
    metadata = {"name": "web-deployments.apps", "namespace": "default"}
    source = {"apiVersion": "apps/v1beta2", "kind": "Deployment", "metadata": {"name": "web"}, **template}
    return {"metadata": metadata, "spec": {"template": source}}


@pytest.mark.parametrize("limit", ["1.5%", "many", True])
def test_a_malformed_limit_has_no_effect_and_a_reason(limit: Any) -> None:
    index = ClusterSpreads()
    assert "maxReplicas" in index.put(a_spread("web", {"name": "a", "maxReplicas": limit}))
    assert index.find(a_federated()) is None


def test_a_patch_that_is_nested_too_deeply_has_no_effect_and_a_reason() -> None:
    patch: dict[str, Any] = {}
    for _ in range(300):
        patch = {"a": patch}
    assert ClusterSpreads().put(a_spread("web", {"name": "a", "patch": patch})).startswith("spec.subsets[0].patch: ")


def test_pods_have_the_tolerations_of_all_subsets() -> None:
    first, second = ({"name": name, "tolerations": [{"key": name, "operator": "Exists"}]} for name in "ab")
    compiled = compile_spread(a_spread("web", first, second))
    pods = {"spec": {"tolerations": [{"key": "own", "operator": "Exists"}], "containers": []}}
    federated = a_federated(apiVersion="apps/v1", spec={"replicas": 3, "template": pods})
    policy, snapshot = compile_policy({"metadata": {"name": "p"}, "spec": {}}), Snapshot(1, ())
    type_ = from_config(next(each for each in default_type_configs() if each["metadata"]["name"] == "deployments.apps"))
    unit = build_unit(federated, type_, policy, snapshot)
    needs = [each.node_needs for each in (with_tolerations(unit, compiled), unit)]
    assert [[toleration.key for toleration in each.tolerations] for each in needs] == [["own", "a", "b"], ["own"]]


def test_the_hash_covers_the_division_and_not_the_pods() -> None:
    plain, patched, larger = (
        compile_spread(a_spread("web", {"name": "a", **fields})).hash({}, 5, Snapshot(1, ()))
        for fields in ({"maxReplicas": 3}, {"maxReplicas": 3, "patch": {"metadata": {}}}, {"maxReplicas": 4})
    )
    assert plain == patched != larger


def test_the_hash_changes_with_the_clusters_of_a_subset_once_they_are_known() -> None:
    key = "cluster.kubeadmiral.io/vendor"
    term = {"matchExpressions": [{"key": key, "operator": "In", "values": ["cloud"]}]}
    spread = compile_spread(a_spread("web", {"name": "a", "requiredNodeSelector": term}, {"name": "rest"}))

    def hash_with(*clusters: Cluster) -> str:
        return spread.hash({}, 5, Snapshot(1, clusters))

    known = {"api_types": frozenset({GroupVersionKind("apps", "v1", "Deployment")})}
    east, cloud = Cluster("east", **known), Cluster("east", labels={"vendor": "cloud"}, **known)
    assert hash_with(east) == hash_with() == hash_with(Cluster("east", labels={"vendor": "cloud"}))
    assert hash_with(east) == hash_with(Cluster("east", labels={"vendor": "own"}, **known))
    assert hash_with(cloud) != hash_with(east)


def test_the_hash_changes_with_the_total_that_a_filter_names() -> None:
    spread = compile_spread(a_spread("web", targetFilter={"replicasPathList": ["spec.x"]}))
    assert len({spread.hash({"spec": {"x": x}}, 5, Snapshot(1, ())) for x in (1, 2)}) == 2


def test_percentages_are_of_the_federated_total_and_clusters_of_the_snapshot() -> None:
    named = {"matchExpressions": [{"key": CLUSTER_NAME_TERM, "operator": "In", "values": ["east"]}]}
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
