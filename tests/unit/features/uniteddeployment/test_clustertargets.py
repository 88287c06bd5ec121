"""Target clusters come from the registry, and become scheduling annotations of the subset's workload."""

from typing import Any

import pytest

from federation.api import names
from federation.features.uniteddeployment.rules.clustertargets import (
    policy_labels,
    registered_clusters,
    target_annotations,
    target_of,
)
from federation.features.uniteddeployment.rules.workloadkinds import KINDS

CLUSTERS: list[dict[str, Any]] = [
    {"metadata": {"name": "east", "labels": {"region": "eu"}}},
    {"metadata": {"name": "north"}},
]
OURS = {"apiVersion": "core.kubeadmiral.io/v1alpha1", "kind": "FederatedCluster"}
SKETCHED = {"apiVersion": "clusterregistry.k8s.io/v1alpha1", "kind": "Cluster"}


@pytest.mark.parametrize(
    ("registry", "expected"),
    [
        (None, {("default", "east"), ("default", "north")}),
        ({"selector": {"region": "eu"}}, {("default", "east")}),
        ({"selector": {"region": "us"}}, set()),
        ({"namespaces": ["a", "b"], "selector": {"region": "eu"}}, {("a", "east"), ("b", "east")}),
        ({"clusterType": OURS, "selector": {"region": "eu"}}, {("default", "east")}),
        ({"clusterType": {"kind": "FederatedCluster"}, "selector": {"region": "eu"}}, {("default", "east")}),
        ({"clusterType": SKETCHED, "selector": {"region": "eu"}}, {("default", "east")}),
        ({"clusterType": {"kind": "Cluster"}}, set()),
        ({"namespaces": [], "selector": None}, {("default", "east"), ("default", "north")}),
    ],
)
def test_a_registry_selects_clusters_by_label_in_each_of_its_namespaces(
    registry: dict[str, Any] | None, expected: set[tuple[str, str]]
) -> None:
    assert registered_clusters({"topology": {"clusterRegistry": registry}}, CLUSTERS) == expected


def test_a_target_cluster_pins_the_whole_workload() -> None:
    subset = {"name": "a", "targetCluster": {"name": "east"}}
    assert target_of(subset) == ("default", "east")
    assert target_annotations(subset) == {
        names.SCHEDULING_MODE: "Duplicate",
        names.PLACEMENTS: '[{"cluster":"east"}]',
    }
    assert target_of({"name": "a"}) is None
    assert target_annotations({"name": "a", "targetCluster": None}) == {}


def test_policy_labels_of_the_united_deployment_precede_those_of_its_template() -> None:
    template = {"metadata": {"labels": {names.PROPAGATION_POLICY_LABEL: "a", names.OVERRIDE_POLICY_LABEL: "o"}}}
    united = {
        "metadata": {"labels": {names.PROPAGATION_POLICY_LABEL: "b", "app": "web"}},
        "spec": {"template": {"deploymentTemplate": template}},
    }
    expected = {names.PROPAGATION_POLICY_LABEL: "b", names.OVERRIDE_POLICY_LABEL: "o"}
    assert policy_labels(united, KINDS[-1]) == expected
