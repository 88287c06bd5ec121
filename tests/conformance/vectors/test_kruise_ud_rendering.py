"""Workloads, partitions, defaults and statuses of a UnitedDeployment are what the vectors say."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.support.vectorfacts import check_facts, contains
from tests.support.vectors import each_case, facts, filled, load

from federation.apimachinery import dotpaths
from federation.apiserver.semantics.validation.podpatches import patch_pod
from federation.features.uniteddeployment.names import SUBSET_REVISION_LABEL
from federation.features.uniteddeployment.rules import uniteddefaults, unitedstatus
from federation.features.uniteddeployment.rules.subsetpods import count_updated
from federation.features.uniteddeployment.rules.subsettemplate import Target, name_prefix, render_pods, render_workload
from federation.features.uniteddeployment.rules.subsetworkload import (
    next_partitions,
    observe_workload,
    partition_on_delete,
)
from federation.features.uniteddeployment.rules.workloadkinds import KINDS, WorkloadKind, applies_partition

TEMPLATES = {
    "StatefulSet": "statefulSetTemplate",
    "StatefulSet.apps": "statefulSetTemplate",
    "StatefulSet.apps.kruise.io": "advancedStatefulSetTemplate",
    "AdvancedStatefulSet": "advancedStatefulSetTemplate",
    "Advanced StatefulSet": "advancedStatefulSetTemplate",
    "CloneSet": "cloneSetTemplate",
    "CloneSet.apps.kruise.io": "cloneSetTemplate",
    "Deployment": "deploymentTemplate",
    "Deployment.apps": "deploymentTemplate",
    "": "deploymentTemplate",
}


def _kind(name: str) -> WorkloadKind:
    return next(kind for kind in KINDS if kind.template == TEMPLATES[name])


def _pod(given: Mapping[str, Any]) -> dict[str, Any]:
    pod = facts(given, name="pod", revision="", ready=False, active=True, deleting=False, phase="Running")
    is_gone = pod["deleting"] or not pod["active"]
    return {
        "metadata": {
            "name": pod["name"],
            "labels": {SUBSET_REVISION_LABEL: pod["revision"]} if pod["revision"] else {},
            **({"deletionTimestamp": "2026-01-01T00:00:00Z"} if is_gone else {}),
        },
        "spec": {},
        "status": {
            "phase": pod["phase"],
            "conditions": [{"type": "Ready", "status": "True" if pod["ready"] else "False"}],
        },
    }


def _pods(given: Any) -> list[dict[str, Any]]:
    return [_pod(pod) for pod in given or ()]


def _united(given: Mapping[str, Any], kind: WorkloadKind) -> dict[str, Any]:
    template = {"metadata": {}, "spec": {"containers": [{"name": "main", "image": "a"}]}}
    return {
        "metadata": {"name": given["name"], "namespace": "default", "uid": "uid"},
        "spec": {
            "selector": given["selector"],
            "template": {
                kind.template: {
                    "metadata": given["templateMetadata"],
                    "spec": {"template": template, **given["templateSpec"]},
                }
            },
        },
    }


def _with_shortcuts(obj: Mapping[str, Any]) -> dict[str, Any]:
    """Return the object; its labels and annotations are also at the root, where facts of the vectors look."""
    metadata = obj.get("metadata") or {}
    return {"labels": metadata.get("labels"), "annotations": metadata.get("annotations"), **obj}


def _rendered_workload(given: Mapping[str, Any]) -> dict[str, Any]:
    given = facts(given, kind="", ud={}, revision="", replicas=0, partition=0)
    kind = _kind(given["kind"])
    ud = facts(given["ud"], name="ud", selector={}, templateMetadata={}, templateSpec={}, subset={})
    subset = {"name": "subset", **ud["subset"]}
    target = Target(given["revision"], given["replicas"], given["partition"])
    workload = render_workload(_united(ud, kind), subset, kind, target, patch_pod)
    spec = workload["spec"]
    is_partitioned = applies_partition(kind, workload)
    return {
        **workload,
        "workload": _with_shortcuts(workload),
        "podTemplate": _with_shortcuts(spec["template"]),
        "selector": spec["selector"],
        "partition applied": is_partitioned,
        "partition": dotpaths.get(workload, kind.partition_path) if is_partitioned and kind.partition_path else None,
    }


def _rendered_pods(given: Mapping[str, Any]) -> dict[str, Any]:
    given = facts(given, podTemplate={}, patch=None, subset={}, nodeSelectorTerm=None, tolerations=None, revision="rev")
    own = {key: given[key] for key in ("patch", "nodeSelectorTerm", "tolerations") if given[key] is not None}
    template = filled(given["podTemplate"], metadata={}, spec={})
    pods = render_pods(template, {"name": "subset", **given["subset"], **own}, given["revision"], patch_pod)
    return {**_with_shortcuts(pods), "podTemplate": _with_shortcuts(pods)}


@each_case(load("kruise-ud-subset-template"))
def test_a_subset_is_rendered_like_in_the_reference(case: dict[str, Any]) -> None:
    given, expected = dict(case["input"]), dict(case["expected"])
    if "podTemplate" in given:
        document = _rendered_pods(given)
    elif "kind" in given or "ud" in given:
        document = _rendered_workload(given)
    else:
        given = facts(given, udName="", subsetName="")
        document = {"metadata": {"name": name_prefix(given["udName"], given["subsetName"])}}
    prefix = expected.pop("generateName", None)
    assert prefix is None or document["metadata"]["name"].startswith(prefix)
    if prefix is not None and "spec" not in document:
        assert document["metadata"]["name"] == prefix
    check_facts(document, expected)


@each_case(load("kruise-ud-observe-subset"))
def test_a_workload_is_read_like_in_the_reference(case: dict[str, Any]) -> None:
    given = facts(case["input"], workload={}, pods=[], updatedRevision="")
    expected = facts(case["expected"], subsetName="", replicas=0, partition=0, status={})
    workload = facts(given["workload"], kind="", name="", labels={}, annotations={}, spec={}, status={})
    metadata = {key: workload[key] for key in ("name", "labels", "annotations")}
    found = observe_workload(
        _kind(workload["kind"]),
        {"metadata": metadata, "spec": workload["spec"], "status": workload["status"]},
        _pods(given["pods"]),
        given["updatedRevision"],
    )
    assert found.subset == expected["subsetName"]
    assert found.replicas == expected["replicas"]
    assert found.partition == expected["partition"]
    status = {
        "observedGeneration": found.observed_generation,
        "replicas": found.status_replicas,
        "readyReplicas": found.ready,
        "updatedReplicas": found.updated,
        "updatedReadyReplicas": found.updated_ready,
        "updatedRevision": found.revision,
    }
    assert status == facts(expected["status"], **{key: type(value)() for key, value in status.items()})


@each_case(load("kruise-ud-partitions"))
def test_partitions_are_computed_like_in_the_reference(case: dict[str, Any]) -> None:
    given, expected = filled(case["input"], updatedRevision=""), case["expected"]
    match given["function"]:
        case "currentPartitionOnDelete":
            pods = [_pod({"revision": revision}) for revision in given.get("podRevisions") or ()]
            pods += _pods(given.get("pods"))
            assert partition_on_delete(pods, given["updatedRevision"]) == (expected.get("partition") or 0)
        case "calculateUpdatedReplicas":
            updated = count_updated(_pods(given.get("pods")), given["updatedRevision"])
            assert updated == (expected.get("updatedReplicas") or 0, expected.get("updatedReadyReplicas") or 0)
        case "nextPartitions":
            replicas = given.get("nextReplicas") or {}
            assert replicas.keys() <= set(given.get("subsets") or replicas)
            assert next_partitions(given.get("updateStrategy"), replicas) == (expected.get("partitions") or {})
        case other:
            pytest.fail(f"the format has a function without an adapter: {other}")


@each_case(load("kruise-ud-defaults"))
def test_defaults_are_set_like_in_the_reference(case: dict[str, Any]) -> None:
    given = facts(case["input"], spec={}, status=None, operation="CREATE", metadata={}, apiVersion="", kind="")
    expected = facts(case["expected"], spec={}, status={})
    assert given["operation"] in {"CREATE", "UPDATE"}  # both are defaulted alike
    defaulted = uniteddefaults.default_united({"spec": given["spec"], "status": given["status"]})
    assert contains(defaulted["spec"], expected["spec"])
    assert (defaulted.get("status") or {}) == expected["status"]
    if given["spec"].get("topology") and expected["spec"].get("topology"):
        assert defaulted["spec"]["topology"] == expected["spec"]["topology"]


@each_case([case for case in load("kruise-api-conversion") if case["input"].get("kind") != "WorkloadSpread"])
def test_a_status_is_converted_like_in_the_reference(case: dict[str, Any]) -> None:
    given = facts(case["input"], direction="toV1beta1", kind="UnitedDeployment", status={})
    status, direction, expected = given["status"], given["direction"], dict(case["expected"])
    hub = unitedstatus.hub_status(status)
    shown = {**hub, **unitedstatus.v1alpha1_fields(hub)}
    if direction == "roundTrip":
        again = unitedstatus.hub_status(shown)
        assert (again.get("subsetStatuses") or []) == (hub.get("subsetStatuses") or [])
        assert again.get("updatedRevision") == hub.get("updatedRevision")
    document = {"toV1alpha1": shown, "toV1beta1": hub}.get(direction, {**shown, **hub})
    if isinstance(expected.get("subsetStatuses"), Mapping):
        document = {**document, "subsetStatuses": {entry["name"]: entry for entry in hub.get("subsetStatuses") or ()}}
        assert document["subsetStatuses"].keys() == expected["subsetStatuses"].keys()
    for key, wanted in expected.items():
        assert contains(document.get(key), wanted), f"{key}: {document.get(key)}"
        assert wanted or not document.get(key), f"{key}: {document[key]}"
