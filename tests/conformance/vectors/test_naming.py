"""Vectors `naming`, as far as this product has the names: they are those of KubeAdmiral, byte for byte."""

from typing import Any

from tests.support.vectors import each_case, facts, filled, load, with_operations

from federation.features.services.rules import exports
from federation.memberproxy.mergednames import possible_clusters, to_merged
from federation.planning.federatedobject import naming

CASES = load("naming")


@each_case(with_operations(CASES, "federatedObjectName"))
def test_names_of_federated_objects_match_the_vectors(case: dict[str, Any]) -> None:
    given = facts(case["input"], op="", objectName="", ftcName="")
    assert {"name": naming.federated_object_name(given["objectName"], given["ftcName"])} == case["expected"]


@each_case(with_operations(CASES, "sourceClusterLabelValue"))
def test_labels_of_source_clusters_match_the_vectors(case: dict[str, Any]) -> None:
    label = exports.source_label(filled(case["input"], clusterName="")["clusterName"])
    assert label == filled(case["expected"], name="")["name"]


@each_case(with_operations(CASES, "importedEndpointSliceName"))
def test_names_of_imported_slices_match_the_vectors(case: dict[str, Any]) -> None:
    cluster, name = _cluster_and_name(case)
    assert exports.imported_name(cluster, name) == filled(case["expected"], name="")["name"]


@each_case(with_operations(CASES, "derivedServiceFedObjectName"))
def test_long_names_with_a_prefix_are_cut_as_in_the_vectors(case: dict[str, Any]) -> None:
    # We place the Service itself, and have no such object; the rule for long names is the same everywhere.
    _, service = _cluster_and_name(case)
    found = naming.bounded(f"derived-{service}-services", naming.NAME_LENGTH_MAX)
    assert found == filled(case["expected"], name="")["name"]


@each_case(with_operations(CASES, "possibleClusters"))
def test_possible_clusters_of_a_name_match_the_vectors(case: dict[str, Any]) -> None:
    given = facts(case["input"], op="", clusters=[], aggregatedName="")
    assert possible_clusters(given["clusters"], given["aggregatedName"]) == (case["expected"].get("clusters") or [])


@each_case(with_operations(CASES, "makePodUnique"))
def test_pods_of_members_match_the_vectors(case: dict[str, Any]) -> None:
    given = facts(case["input"], op="", cluster="", podName="", nodeName="")
    expected = facts(case["expected"], name="", nodeName="", annotations={})
    pod = {"metadata": {"name": given["podName"]}, "spec": {"nodeName": given["nodeName"]}}
    shown = to_merged(given["cluster"], pod)
    assert shown["metadata"]["name"] == expected["name"]
    assert shown["spec"]["nodeName"] == expected["nodeName"]
    assert shown["metadata"]["annotations"] == expected["annotations"]


@each_case(with_operations(CASES, "makeObjectUnique"))
def test_other_objects_of_members_match_the_vectors(case: dict[str, Any]) -> None:
    cluster, name = _cluster_and_name(case)
    expected = facts(case["expected"], name="", annotations={})
    shown = to_merged(cluster, {"metadata": {"name": name}})
    assert shown["metadata"]["name"] == expected["name"]
    assert shown["metadata"]["annotations"] == (expected["annotations"] or shown["metadata"]["annotations"])


def _cluster_and_name(case: dict[str, Any]) -> tuple[str, str]:
    """Return the two texts of a case: the one whose key speaks of a cluster, and the other."""
    texts = {key: value for key, value in case["input"].items() if key != "op"}
    cluster = "".join(texts.pop(key) for key in list(texts) if "cluster" in key.lower())
    (name,) = texts.values()
    return cluster, name
