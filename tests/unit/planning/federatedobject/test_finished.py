"""When an object has finished, what is kept of its end, and when its time to live ends."""

from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest

from federation.api import names
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.resources import Object
from federation.planning.federatedobject.finished import (
    _RULES,
    STATUS_BYTES_MAX,
    end_told,
    evidence,
    evidence_by_cluster,
    evidence_of_event,
    expires_at,
    has_finished_everywhere,
    has_succeeded,
    last_status,
    may_finish,
    run_of,
    shows_end,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def _condition(type_: str, status: str = "True") -> Object:
    return {"conditions": [{"type": type_, "status": status}]}


STATUSES = [
    ("batch", "Job", {}, None),
    ("batch", "Job", _condition("SuccessCriteriaMet"), None),
    ("batch", "Job", _condition("Complete", "False"), None),
    ("batch", "Job", _condition("Complete"), True),
    ("batch", "Job", _condition("Failed"), False),
    ("batch", "Job", _condition("Succeeded", "False"), None),
    ("", "Pod", {"phase": "Running"}, None),
    ("", "Pod", {"phase": "Succeeded"}, True),
    ("", "Pod", {"phase": "Failed"}, False),
    ("argoproj.io", "Workflow", {"phase": "Running"}, None),
    ("argoproj.io", "Workflow", {"phase": "Succeeded"}, True),
    ("argoproj.io", "Workflow", {"phase": "Error"}, False),
    ("tekton.dev", "PipelineRun", _condition("Succeeded", "Unknown"), None),
    ("tekton.dev", "PipelineRun", _condition("Succeeded"), True),
    ("tekton.dev", "PipelineRun", _condition("Succeeded", "False"), False),
    ("ray.io", "RayJob", {"jobDeploymentStatus": "Running"}, None),
    ("ray.io", "RayJob", {"jobDeploymentStatus": "Suspended"}, None),
    ("ray.io", "RayJob", {"jobDeploymentStatus": "Complete"}, True),
    ("kubeflow.org", "PyTorchJob", _condition("Failed"), False),
    ("batch.volcano.sh", "Job", {"state": {"phase": "Aborted"}}, None),
    ("batch.volcano.sh", "Job", {"state": {"phase": "Completed"}}, True),
    ("apps", "Deployment", _condition("Complete"), None),
    ("batch", "Job", {"conditions": "lies"}, None),
    ("ray.io", "RayJob", {"jobDeploymentStatus": ["lies"]}, None),
    ("batch", "Job", "lies", None),
    ("batch", "Job", {"conditions": ["lies"]}, None),
]


@pytest.mark.parametrize(("group", "kind", "status", "expected"), STATUSES)
def test_an_object_has_finished_when_its_kind_says_so(
    group: str, kind: str, status: Any, expected: bool | None
) -> None:
    assert has_succeeded((group, kind), {"status": status}) is expected


def _federated(template: Object, uid: str = "u1", **clusters: Object) -> Object:
    entries = [{"cluster": name, "status": "OK", "finished": each} for name, each in clusters.items()]
    owner = {"apiVersion": "v1", "kind": template["kind"], "name": "x", "uid": uid, "controller": True}
    placement = [{"controller": "scheduler", "placement": [{"cluster": name} for name in ("east", "north")]}]
    return {
        "metadata": {"name": "x", "ownerReferences": [owner]},
        "spec": {"template": template, "placements": placement},
        "status": {"clusters": entries},
    }


def _job(**spec: Any) -> Object:
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"}, "spec": spec}


def _workflow(**spec: Any) -> Object:
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"name": "x"}, "spec": spec}


def test_another_source_is_another_run() -> None:
    assert run_of(_federated(_job())) != run_of(_federated(_job(), uid="u2"))


def test_a_job_is_the_same_run_whatever_changes_and_a_custom_kind_only_while_its_spec_is_the_same() -> None:
    assert run_of(_federated(_job())) == run_of(_federated(_job(parallelism=2)))
    assert run_of(_federated(_workflow())) != run_of(_federated(_workflow(entrypoint="other")))
    labelled = {**_workflow(), "metadata": {"name": "x", "labels": {"a": "b"}}}
    assert run_of(_federated(_workflow())) == run_of(_federated(labelled))


def _ended(template: Object, status: Object, after_s: float = 0.0) -> Object:
    live = {**template, "status": status}
    return evidence(_federated(template), live, NOW + timedelta(seconds=after_s))


def test_evidence_of_another_run_does_not_count() -> None:
    ended = _ended(_job(), _condition("Complete"))
    assert evidence_by_cluster(_federated(_job(), east=ended)) == {"east": ended}
    assert evidence_by_cluster(_federated(_job(), uid="u2", east=ended)) == {}
    assert not has_finished_everywhere(_federated(_job(), east=ended))
    assert has_finished_everywhere(_federated(_job(), east=ended, north=ended))


def test_evidence_has_the_last_status() -> None:
    assert _ended(_job(), _condition("Complete"))["status"] == last_status(_condition("Complete"))


def test_a_new_value_of_the_annotation_is_another_run() -> None:
    for template in (_job(), _workflow()):
        plain, again, later = (_federated(template) for _ in range(3))
        again["metadata"]["annotations"] = {names.RUN_AGAIN: "2026-01-01"}
        later["metadata"]["annotations"] = {names.RUN_AGAIN: "2026-01-02"}
        assert len({run_of(plain), run_of(again), run_of(later)}) == 3


@pytest.mark.parametrize(
    ("kind", "reason", "expected"),
    [
        ("Job", "Completed", True),
        ("Job", "BackoffLimitExceeded", False),
        ("Job", "SuccessfulCreate", None),
        ("Workflow", "WorkflowSucceeded", True),
        ("Workflow", "WorkflowNodeSucceeded", None),
        ("Workflow", "WorkflowFailed", False),
        ("PipelineRun", "PipelineRunTimeout", False),
        ("PyTorchJob", "PyTorchJobSucceeded", True),
        ("SparkApplication", "SparkApplicationFailed", False),
    ],
)
def test_an_event_tells_an_end_by_its_reason(kind: str, reason: str, expected: bool | None) -> None:
    assert end_told(kind, reason) is expected


@pytest.mark.parametrize(("group", "kind"), sorted(_RULES))
@pytest.mark.parametrize("succeeded", [True, False])
def test_the_evidence_of_an_event_is_a_status_of_the_kind(group: str, kind: str, succeeded: bool) -> None:
    template = {"apiVersion": f"{group}/v1" if group else "v1", "kind": kind, "metadata": {"name": "x"}, "spec": {}}
    told = evidence_of_event(_federated(template), succeeded=succeeded, time="2026-01-01T00:00:00Z")
    assert has_succeeded((group, kind), told) is succeeded
    assert evidence_by_cluster(_federated(template, east=told)) == {"east": told}


@pytest.mark.parametrize(
    ("kind", "spec", "expected"),
    [
        ("Pod", {}, False),
        ("Pod", {"restartPolicy": "Always"}, False),
        ("Pod", {"restartPolicy": "Never"}, True),
        ("Pod", {"restartPolicy": "OnFailure"}, True),
        ("ConfigMap", {}, False),
    ],
)
def test_a_pod_that_always_restarts_does_not_finish(kind: str, spec: Object, expected: bool) -> None:
    assert may_finish({"apiVersion": "v1", "kind": kind, "spec": spec}) is expected
    assert may_finish(_workflow())


def test_the_time_to_live_begins_with_the_last_end() -> None:
    template = _job(ttlSecondsAfterFinished=60)
    first, last = _ended(template, _condition("Complete")), _ended(template, _condition("Failed"), 30)
    assert expires_at(_federated(template, east=first)) is None
    assert expires_at(_federated(template, east=first, north=last)) == NOW + timedelta(seconds=90)
    assert expires_at(_federated(_job(), east=first, north=last)) is None


TTLS = [
    ({}, True, None),
    ({"secondsAfterCompletion": 5}, True, 5),
    ({"secondsAfterCompletion": 5, "secondsAfterSuccess": 0}, True, 0),
    ({"secondsAfterCompletion": 5, "secondsAfterSuccess": 0}, False, 5),
    ({"secondsAfterFailure": 7}, False, 7),
    ({"secondsAfterFailure": 7}, True, None),
    ({"secondsAfterCompletion": "soon"}, True, None),
]


@pytest.mark.parametrize(("strategy", "is_success", "expected_s"), TTLS)
def test_a_workflow_has_a_time_to_live_by_outcome(strategy: Object, is_success: bool, expected_s: int | None) -> None:
    template = _workflow(ttlStrategy=strategy)
    ended = _ended(template, {"phase": "Succeeded" if is_success else "Failed"})
    expected = None if expected_s is None else NOW + timedelta(seconds=expected_s)
    assert expires_at(_federated(template, east=ended, north=ended)) == expected


def test_evidence_keeps_what_a_merge_needs_and_is_small() -> None:
    huge = {"nodes": {str(index): "x" * 100 for index in range(1000)}, "message": "y" * 5000, "succeeded": 3}
    condition = {"type": "Complete", "status": "True", "message": "z" * 500, "lastTransitionTime": to_rfc3339(NOW)}
    kept = last_status({**huge, "conditions": [condition]})
    assert kept["succeeded"] == 3
    assert kept["conditions"] == [{key: value for key, value in condition.items() if key != "message"}]
    assert len(orjson.dumps(kept)) <= STATUS_BYTES_MAX + 2


def test_conditions_are_kept_before_other_fields() -> None:
    conditions = [{"type": "Complete", "status": "True", "reason": "Done"}]
    large = "x" * (STATUS_BYTES_MAX - 40)
    assert last_status({"a": large, "conditions": conditions, "succeeded": 1}) == {
        "conditions": conditions,
        "succeeded": 1,
    }
    assert last_status({"a": large}) == {"a": large}


@pytest.mark.parametrize(
    ("api_version", "kind", "status", "expected"),
    [
        ("batch/v1", "Job", {}, False),
        ("batch/v1", "Job", _condition("Complete"), True),
        ("v1", "Pod", {"phase": "Running"}, False),
        ("v1", "Pod", {"phase": "Failed"}, True),
        ("argoproj.io/v1alpha1", "Workflow", {}, True),
    ],
)
def test_the_status_of_a_job_or_pod_has_to_show_its_end(
    api_version: str, kind: str, status: Object, expected: bool
) -> None:
    assert shows_end({"apiVersion": api_version, "kind": kind, "metadata": {}, "status": status}) is expected
