"""The index of WorkloadSpreads by workload, and the stored quotas."""

from typing import Any

import pytest

from federation.api import names
from federation.features.workloadspread.rules.compiledspread import compile_spread
from federation.features.workloadspread.spreadshape import ClusterSpreads
from federation.planning.placement.subsetquotas import SubsetClusters, SubsetSpread
from federation.scheduling.names import UNSCHEDULABLE_SUBSETS
from federation.scheduling.snapshot import Snapshot
from federation.scheduling.workloadspreads import (
    spread_of_unit,
    stored_caps,
    stored_name,
    stored_quotas,
    stored_running,
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
    index, federated = ClusterSpreads(), a_federated()
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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"east": {"a": 2, "b": 0}}', {"east": {"a": 2, "b": 0}}),
        ('{"east": {"a": -2}}', {}),
        ('{"east": {"a": 2}, "west": 3}', {}),
        ("[]", {}),
        ("{", {}),
    ],
)
def test_running_replicas_of_unschedulable_subsets_are_read(text: str, expected: dict[str, Any]) -> None:
    federated = a_federated()
    federated["metadata"]["annotations"][UNSCHEDULABLE_SUBSETS] = text
    assert stored_running(federated) == expected
    assert spread_of_unit(compile_spread(a_spread()), federated, 5, Snapshot(1, ())).running == expected


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
    assert (stored_caps(a_federated(text)), stored_name(a_federated(text))) == ({}, "")
