"""The merged status of a Job is one that an API server accepts after the one before."""

from datetime import UTC, datetime
from typing import Any

from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.resources import Object
from federation.planning.aggregation import job
from federation.planning.aggregation.context import Context

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
CONTEXT = Context(NOW)


def _merge(members: dict[str, Object], previous: Object | None = None, **spec: Any) -> Object:
    source = {"metadata": {"name": "x"}, "spec": spec, "status": previous or {}}
    merged = job.aggregate(source, {name: {"status": status} for name, status in members.items()}, CONTEXT)
    assert merged is not None
    return merged


def _complete(ended: str, **more: Any) -> Object:
    return {"startTime": "2026-01-01T11:00:00Z", "completionTime": ended, **more}


def _failed(**more: Any) -> Object:
    return {"conditions": [{"type": "Failed", "status": "True"}], **more}


def _conditions(status: Object) -> dict[str, str]:
    return {each["type"]: each["reason"] for each in status["conditions"]}


def test_a_final_condition_comes_with_the_one_that_announces_it() -> None:
    both = _merge({"east": _complete("2026-01-01T11:10:00Z"), "north": _complete("2026-01-01T11:20:00Z")})
    assert _conditions(both) == {"SuccessCriteriaMet": "Completed", "Complete": "Completed"}
    assert both["completionTime"] == "2026-01-01T11:20:00Z"
    mixed = _merge({"east": _complete("2026-01-01T11:10:00Z"), "north": _failed()})
    assert _conditions(mixed) == {"FailureTarget": "Mixed", "Failed": "Mixed"}
    assert "completionTime" not in mixed


def test_a_final_status_does_not_change() -> None:
    final = _merge({"east": _complete("2026-01-01T11:10:00Z", succeeded=2)})
    assert _merge({"east": {"active": 1}, "north": {"active": 1}}, final) == final


def test_counts_of_ended_pods_do_not_fall_and_the_start_stays() -> None:
    previous = {"startTime": "2026-01-01T11:00:00Z", "succeeded": 3, "failed": 2, "active": 4}
    status = _merge({"east": {"startTime": "2026-01-01T10:00:00Z", "succeeded": 1, "active": 1}}, previous)
    assert status == {"startTime": "2026-01-01T11:00:00Z", "succeeded": 3, "failed": 2, "active": 1}


def test_a_suspended_job_takes_the_start_of_its_members() -> None:
    previous = {"startTime": "2026-01-01T11:00:00Z"}
    assert "startTime" not in _merge({"east": {"failed": 1}}, previous, suspend=True)


def test_an_ended_job_has_a_start_no_later_than_its_end_and_no_running_pods() -> None:
    early = _merge({"east": _complete("2026-01-01T10:00:00Z", active=1, ready=1)})
    assert (early["startTime"], early["completionTime"]) == ("2026-01-01T11:00:00Z", "2026-01-01T11:00:00Z")
    assert not {"active", "ready"} & early.keys()
    assert _merge({"east": _failed()})["startTime"] == to_rfc3339(NOW)


def test_a_member_that_reports_both_ends_has_completed() -> None:
    both = _merge({"east": _complete("2026-01-01T11:10:00Z", **_failed()), "north": {"active": 1}})
    assert "conditions" not in both, "north has not ended"
    alone = _merge({"east": _complete("2026-01-01T11:10:00Z", **_failed())})
    assert _conditions(alone) == {"SuccessCriteriaMet": "Completed", "Complete": "Completed"}
