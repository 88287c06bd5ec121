"""Vectors `naming`, as far as this product has the names: they are those of KubeAdmiral, byte for byte."""

from typing import Any

import pytest
from tests.support.vectors import filled, load

from federation.planning.federatedobject import naming
from federation.planning.multicluster import exports

CASES = [case for case in load("naming") if case["input"]["op"] == "federatedObjectName"]
LABELS = [case for case in load("naming") if case["input"]["op"] == "sourceClusterLabelValue"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_names_of_federated_objects_match_the_vectors(case: dict[str, Any]) -> None:
    given = filled(case["input"], objectName="", ftcName="")
    assert {"name": naming.federated_object_name(given["objectName"], given["ftcName"])} == case["expected"]


@pytest.mark.parametrize("case", LABELS, ids=lambda case: case["name"])
def test_labels_of_source_clusters_match_the_vectors(case: dict[str, Any]) -> None:
    label = exports.source_label(filled(case["input"], clusterName="")["clusterName"])
    assert label == filled(case["expected"], name="")["name"]
