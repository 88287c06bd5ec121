"""Events of workloads and pods concern the WorkloadSpreads of the vectors."""

from collections.abc import Mapping
from typing import Any

from tests.support.spreads import a_pod, with_controller
from tests.support.vectors import each_case, filled, load

from federation.planning.workloadspread.watchevents import has_workload_changed, spread_of_pod, spread_of_workload


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
        workload = given.get("workload") or {}
        found = spread_of_workload(
            [_spread(spread) for spread in given["workloadSpreads"]],
            {**workload, "metadata": {"name": workload.get("name")}},
        )
        assert (found and found["metadata"]["name"]) == expected.get("workloadSpread")


def _spread(given: Mapping[str, Any]) -> dict[str, Any]:
    metadata = {
        "name": given.get("name"),
        "deletionTimestamp": "2026-01-01T00:00:00Z" if given.get("deleting") else None,
    }
    return {"metadata": metadata, "spec": {"targetRef": given.get("targetRef")}}


def _pod_event(text: str) -> tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]:
    pod = a_pod("test-pod-0", "subset-a", phase="Running")
    if "without the annotation" in text:
        return None, with_controller({"metadata": {"name": "test-pod-0"}, "spec": {}})
    if "delete" in text:
        return pod, None
    if "create" in text:
        return None, pod
    if "without activity" not in text:
        return pod, {**pod, "status": {"phase": "Succeeded"}}
    return pod, {**pod, "status": {"phase": "Running", "podIP": "10.0.0.1"}}


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
            return old, {**old, "spec": {field: 2 if "+1" in text else 1}}
