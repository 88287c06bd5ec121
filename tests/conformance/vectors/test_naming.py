"""Vectors `naming`, as far as this product has the names: they are those of KubeAdmiral, byte for byte."""

from typing import Any

from tests.support.vectors import each_case, filled, load

from federation.memberproxy.mergednames import possible_clusters, to_merged
from federation.planning.federatedobject import naming
from federation.planning.multicluster import exports

CASES = [case for case in load("naming") if case["input"]["op"] == "federatedObjectName"]
POSSIBLE = [case for case in load("naming") if case["input"]["op"] == "possibleClusters"]
PODS = [case for case in load("naming") if case["input"]["op"] == "makePodUnique"]
LABELS = [case for case in load("naming") if case["input"]["op"] == "sourceClusterLabelValue"]


@each_case(CASES)
def test_names_of_federated_objects_match_the_vectors(case: dict[str, Any]) -> None:
    given = filled(case["input"], objectName="", ftcName="")
    assert {"name": naming.federated_object_name(given["objectName"], given["ftcName"])} == case["expected"]


@each_case(LABELS)
def test_labels_of_source_clusters_match_the_vectors(case: dict[str, Any]) -> None:
    label = exports.source_label(filled(case["input"], clusterName="")["clusterName"])
    assert label == filled(case["expected"], name="")["name"]


@each_case(POSSIBLE)
def test_possible_clusters_of_a_name_match_the_vectors(case: dict[str, Any]) -> None:
    given = case["input"]
    found = possible_clusters(given.get("clusters") or [], given.get("aggregatedName") or "")
    assert found == (case["expected"].get("clusters") or [])


@each_case(PODS)
def test_pods_of_members_match_the_vectors(case: dict[str, Any]) -> None:
    given = case["input"]
    expected = case["expected"]
    pod = {"metadata": {"name": given.get("podName") or ""}, "spec": {"nodeName": given.get("nodeName") or ""}}
    shown = to_merged(given.get("cluster") or "", pod)
    assert shown["metadata"]["name"] == (expected.get("name") or "")
    assert shown["spec"]["nodeName"] == (expected.get("nodeName") or "")
    assert shown["metadata"]["annotations"] == (expected.get("annotations") or {})
