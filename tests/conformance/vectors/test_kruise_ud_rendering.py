"""Workloads, partitions, defaults and statuses of a UnitedDeployment are what the vectors say."""

from collections.abc import Mapping
from typing import Any

from tests.support.vectors import each_case, filled, load

from federation.api import names
from federation.apiserver.semantics.validation.podpatches import patch_pod
from federation.planning.uniteddeployment import uniteddefaults, unitedstatus
from federation.planning.uniteddeployment.subsetpods import count_updated
from federation.planning.uniteddeployment.subsettemplate import Target, name_prefix, render_pods, render_workload
from federation.planning.uniteddeployment.subsetworkload import next_partitions, observe_workload, partition_on_delete
from federation.planning.uniteddeployment.workloadkinds import KINDS, WorkloadKind, applies_partition


def _kind(name: str | None) -> WorkloadKind:
    template = {
        "StatefulSet": "statefulSetTemplate",
        "StatefulSet.apps": "statefulSetTemplate",
        "StatefulSet.apps.kruise.io": "advancedStatefulSetTemplate",
        "AdvancedStatefulSet": "advancedStatefulSetTemplate",
        "CloneSet": "cloneSetTemplate",
        "CloneSet.apps.kruise.io": "cloneSetTemplate",
    }.get(name or "", "deploymentTemplate")
    return next(kind for kind in KINDS if kind.template == template)


def _pod(revision: str | None, *, ready: bool = False, active: bool = True) -> dict[str, Any]:
    labels = {names.SUBSET_REVISION_LABEL: revision} if revision else {}
    return {
        "metadata": {
            "name": "pod",
            "labels": labels,
            **({} if active else {"deletionTimestamp": "2026-01-01T00:00:00Z"}),
        },
        "spec": {},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True" if ready else "False"}]},
    }


def _pods(given: Any) -> list[dict[str, Any]]:
    return [
        _pod(pod.get("revision"), ready=bool(pod.get("ready")), active=pod.get("active") is not False)
        for pod in given or ()
    ]


def _assert_contains(actual: Any, expected: Any) -> None:
    if isinstance(expected, Mapping):
        assert isinstance(actual, Mapping)
        for key, value in expected.items():
            _assert_contains(actual.get(key), value)
    else:
        assert actual == expected


def _united(given: Mapping[str, Any], kind: WorkloadKind) -> dict[str, Any]:
    given = filled(given, name="ud", selector={}, templateMetadata={}, subset={})
    return {
        "metadata": {"name": given["name"], "namespace": "default", "uid": "uid"},
        "spec": {
            "selector": given["selector"],
            "template": {
                kind.template: {
                    "metadata": given["templateMetadata"],
                    "spec": {"template": {"metadata": {}, "spec": {"containers": [{"name": "main", "image": "a"}]}}},
                }
            },
        },
    }


def _check_workload(given: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    kind = _kind(given.get("kind"))
    ud = filled(given.get("ud") or {}, subset={})
    subset = filled(ud["subset"], name="subset")
    target = Target(given.get("revision") or "", given.get("replicas") or 0, given.get("partition") or 0)
    workload = render_workload(_united(ud, kind), subset, kind, target, patch_pod)
    facts = {
        "workload.labels contains": workload["metadata"]["labels"],
        "workload.annotations contains": workload["metadata"]["annotations"],
        "podTemplate.annotations contains": workload["spec"]["template"]["metadata"].get("annotations") or {},
        "podTemplate.labels contains": workload["spec"]["template"]["metadata"]["labels"],
        "selector.matchLabels contains": workload["spec"]["selector"]["matchLabels"],
        "spec.replicas": workload["spec"]["replicas"],
        "partition applied": applies_partition(kind, workload),
    }
    for key, value in expected.items():
        if key == "generateName":
            assert value is None or workload["metadata"]["name"].startswith(value)
        elif value is not None:
            _assert_contains(facts[key], value)


@each_case(load("kruise-ud-subset-template"))
def test_a_subset_is_rendered_like_in_the_reference(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    if "kind" in given:
        _check_workload(given, expected)
    elif "podTemplate" in given:
        template = filled(given["podTemplate"] or {}, metadata={}, spec={})
        pods = render_pods(template, {"name": "subset", "patch": given.get("patch")}, "rev", patch_pod)
        container = ((pods.get("spec") or {}).get("containers") or [{}])[0]
        facts = {
            "spec.containers[0].image": container.get("image"),
            "spec.containers[0].resources.limits": (container.get("resources") or {}).get("limits"),
        }
        for key, value in expected.items():
            assert value is None or facts[key] == value
    elif given.get("udName") and given.get("subsetName"):
        assert name_prefix(given["udName"], given["subsetName"]) == expected.get("generateName")


@each_case(load("kruise-ud-observe-subset"))
def test_a_workload_is_read_like_in_the_reference(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    workload = filled(given.get("workload") or {}, kind="", labels={}, spec={}, status={})
    found = observe_workload(
        _kind(workload["kind"]),
        {"metadata": {"labels": workload["labels"]}, "spec": workload["spec"], "status": workload["status"]},
        _pods(given.get("pods")),
        given.get("updatedRevision") or "",
    )
    assert found.subset == (expected.get("subsetName") or "")
    assert found.replicas == (expected.get("replicas") or 0)
    assert found.partition == (expected.get("partition") or 0)
    status = {
        "observedGeneration": found.observed_generation,
        "replicas": found.status_replicas,
        "readyReplicas": found.ready,
        "updatedReplicas": found.updated,
        "updatedReadyReplicas": found.updated_ready,
        "updatedRevision": found.revision,
    }
    wanted = filled(expected.get("status") or {}, **{key: type(value)() for key, value in status.items()})
    assert status == wanted


@each_case(load("kruise-ud-partitions"))
def test_partitions_are_computed_like_in_the_reference(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    match given.get("function"):
        case "currentPartitionOnDelete":
            pods = [_pod(revision) for revision in given.get("podRevisions") or ()]
            assert partition_on_delete(pods, given.get("updatedRevision") or "") == (expected.get("partition") or 0)
        case "calculateUpdatedReplicas":
            updated = count_updated(_pods(given.get("pods")), given.get("updatedRevision") or "")
            assert updated == (expected.get("updatedReplicas") or 0, expected.get("updatedReadyReplicas") or 0)
        case "nextPartitions":
            replicas = given.get("nextReplicas") or {}
            assert next_partitions(given.get("updateStrategy"), replicas) == (expected.get("partitions") or {})


@each_case(load("kruise-ud-defaults"))
def test_defaults_are_set_like_in_the_reference(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    defaulted = uniteddefaults.default_united({"spec": given.get("spec") or {}, "status": given.get("status")})
    _assert_contains(defaulted["spec"], expected.get("spec") or {})
    assert (defaulted.get("status") or {}) == (expected.get("status") or {})
    topology, wanted = given.get("spec") or {}, expected.get("spec") or {}
    if topology.get("topology") and wanted.get("topology"):
        assert defaulted["spec"]["topology"] == wanted["topology"]


@each_case(load("kruise-api-conversion"))
def test_a_status_is_converted_like_in_the_reference(case: dict[str, Any]) -> None:
    given, expected = case["input"], case["expected"]
    if given.get("kind") == "WorkloadSpread" or "status" not in given:
        return
    status, direction = given["status"] or {}, given.get("direction")
    if direction == "toV1alpha1":
        _assert_contains({**status, **unitedstatus.v1alpha1_fields(status)}, expected)
        return
    hub = unitedstatus.hub_status(status)
    if direction == "roundTrip":
        again = unitedstatus.hub_status({**hub, **unitedstatus.v1alpha1_fields(hub)})
        assert again["subsetStatuses"] == hub["subsetStatuses"]
    if isinstance(expected.get("subsetStatuses"), Mapping):
        entries = {entry["name"]: entry for entry in hub.get("subsetStatuses") or ()}
        assert entries.keys() == expected["subsetStatuses"].keys()
        _assert_contains(entries, expected["subsetStatuses"])
    if expected.get("updatedRevision"):
        assert hub.get("updatedRevision") == expected["updatedRevision"]
