"""Vectors `naming`: generated names are those of KubeAdmiral, byte for byte."""

from typing import Any

import pytest
from tests.support.vectors import case_id, load

from federation.planning import naming


def _run(case: dict[str, Any]) -> dict[str, Any]:
    match case["op"]:
        case "federatedObjectName":
            return {"name": naming.federated_object_name(case["objectName"], case["ftcName"])}
        case "importedEndpointSliceName":
            return {"name": naming.imported_endpoint_slice_name(*_strings(case))}
        case "derivedServiceFedObjectName":
            return {"name": naming.derived_service_object_name(*_strings(case))}
        case "sourceClusterLabelValue":
            return {"name": naming.source_cluster_label_value(case["clusterName"])}
        case "possibleClusters":
            return {"clusters": naming.possible_clusters(case["clusters"], case["aggregatedName"])}
        case "makePodUnique":
            pod = {"metadata": {"name": case["podName"]}, "spec": {"nodeName": case["nodeName"]}}
            result = naming.to_aggregated_pod(pod, case["cluster"])
            return {**_named(result), "nodeName": result["spec"]["nodeName"]}
        case "makeObjectUnique":
            names = [value for key, value in case.items() if key.lower().endswith("name")]
            return _named(naming.to_aggregated_object({"metadata": {"name": names[0]}}, case["cluster"]))
    raise AssertionError(case["op"])


def _strings(case: dict[str, Any]) -> list[str]:
    return [value for key, value in case.items() if key != "op"]


def _named(obj: dict[str, Any]) -> dict[str, Any]:
    return {"name": obj["metadata"]["name"], "annotations": obj["metadata"]["annotations"]}


@pytest.mark.parametrize("case", load("naming"), ids=case_id)
def test_generated_names_match_the_vectors(case: dict[str, Any]) -> None:
    assert _run(case["input"]) == case["expected"]
