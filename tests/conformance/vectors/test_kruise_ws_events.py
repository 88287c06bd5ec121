"""Events of workloads and pods concern the WorkloadSpreads of the vectors."""

from collections.abc import Mapping
from typing import Any

import pytest
from tests.support.spreads import a_pod, seconds_ago, vector_pod, with_controller
from tests.support.vectors import each_case, facts, filled, load

from federation.features.workloadspread.rules.watchevents import has_workload_changed, spread_of_pod, spread_of_workload


@each_case(load("kruise-ws-events"))
def test_events_concern_the_spreads_of_the_vectors(case: dict[str, Any]) -> None:
    given, expected = filled(case["input"], workloadSpreads=[]), filled(case["expected"])
    if given.get("podEvent"):
        assert (spread_of_pod(*_pod_event(given["podEvent"])) is not None) == bool(expected.get("enqueued"))
    elif given.get("workloadEvent"):
        wanted = bool(expected.get("enqueued_each", expected.get("enqueued")))
        kind = str(given.get("kind") or "")
        assert [has_workload_changed(*_workload_event(event, kind)) for event in given["workloadEvent"]] == [
            wanted for _ in given["workloadEvent"]
        ]
    else:
        spreads = [_spread(spread) for spread in given["workloadSpreads"]]
        found = spread_of_workload(spreads, _workload(given.get("workload") or {}))
        assert (found and found["metadata"]["name"]) == expected.get("workloadSpread")


def _spread(given: Mapping[str, Any]) -> dict[str, Any]:
    given = facts(given, name="", targetRef=None, deleting=False)
    deletion = "2026-01-01T00:00:00Z" if given["deleting"] else None
    return {
        "metadata": {"name": given["name"], "deletionTimestamp": deletion},
        "spec": {"targetRef": given["targetRef"]},
    }


def _workload(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the object of an event; its owner is one reference or several, in the fields of one or of metadata."""
    keys = ("owner", "ownerRef", "ownerReference", "controller", "ownerRefs", "owners", "ownerReferences")
    given = facts(given, apiVersion="", kind="", name="", metadata={}, **dict.fromkeys(keys))
    owners: list[Any] = []
    for key in keys:
        owners += given[key] if isinstance(given[key], list) else [given[key]] if given[key] else []
    metadata = {"name": given["name"], "ownerReferences": [{"controller": True, **owner} for owner in owners]}
    return {"apiVersion": given["apiVersion"], "kind": given["kind"], "metadata": metadata | dict(given["metadata"])}


def _pod_event(text: str) -> tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]:
    pod = a_pod("test-pod-0", "subset-a", phase="Running")
    text = text.lower()
    if "without the annotation" in text:
        return None, with_controller({"metadata": {"name": "test-pod-0"}, "spec": {}})
    if "without activity" in text or "unchanged" in text or "same" in text:
        return pod, {**pod, "status": {"phase": "Running", "podIP": "10.0.0.1"}}
    if "podscheduled" in text or "unschedulable" in text:
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        return pod, {**pod, "status": {"phase": "Running", "conditions": [condition]}}
    if "version" in text:
        old, new = (
            vector_pod({"name": "test-pod-0", "subset": "subset-a", "phase": "Running", "version": version})
            for version in ("v1", "v2")
        )
        return old, new
    if "inactive" in text or "succeeded" in text or "failed" in text:
        phase = "Failed" if "failed" in text else "Succeeded"
        return pod, {**pod, "status": {"phase": phase}}
    if "terminating" in text or "deletiontimestamp" in text:
        return pod, {**pod, "metadata": {**pod["metadata"], "deletionTimestamp": seconds_ago(1)}}
    if "delete" in text:
        return pod, None
    if "create" in text or "add" in text:
        return None, pod
    pytest.fail(f"the adapter does not know the event {text!r}")


def _workload_event(text: str, kind: str) -> tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]:
    field = "parallelism" if kind.startswith("Job") else "replicas"
    old: dict[str, Any] = {"kind": kind.partition("(")[0], "spec": {field: 1}}
    match text.split(maxsplit=1)[0]:
        case "create":
            return None, old
        case "delete":
            return old, None
        case _ if "revision" in text.lower():
            annotations = {"annotations": {"deployment.kubernetes.io/revision": "2"}}
            return old, {**old, "metadata": annotations, "status": {"updateRevision": "2"}}
        case _:
            is_changed = "replicas" in text or "parallelism" in text
            return old, {**old, "spec": {field: 2 if is_changed else 1}}
