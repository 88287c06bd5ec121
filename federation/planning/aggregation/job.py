"""The aggregated status of a Job: counts summed, and a final condition when all member objects have ended.

The condition's times are kept while it stays the same, so that a finished Job is not written again.

Reference: docs/reference/status.md.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from federation.apimachinery import conditions
from federation.apimachinery.resources import Object
from federation.planning.aggregation.context import Context, Members, keep_condition_times, status_of, sums

_SUMMED = ("active", "succeeded", "failed", "ready")


def is_failed(job_conditions: Iterable[Mapping[str, Any]] | None) -> bool:
    """Return True if the Job has ended in failure: its condition Failed is True."""
    return conditions.is_true(list(job_conditions or ()), "Failed")


def merge(source: Mapping[str, Any], members: Members, context: Context) -> Object | None:
    """Return the Job's status, None without a member object."""
    if not members:
        return None
    status: Object = dict(sums(members, _SUMMED))
    starts = [start for member in members.values() if (start := status_of(member).get("startTime"))]
    if starts:
        status["startTime"] = min(starts)
    completed = sorted(name for name, member in members.items() if status_of(member).get("completionTime"))
    failed = sorted(
        name
        for name, member in members.items()
        if name not in completed and is_failed(status_of(member).get("conditions"))
    )
    if len(completed) + len(failed) < len(members):
        return status
    condition = _final_condition(completed, failed)
    previous = status_of(source).get("conditions")
    status["conditions"] = keep_condition_times(previous, [condition], context.now, update_field="lastProbeTime")
    if not failed:
        status["completionTime"] = max(str(status_of(members[name])["completionTime"]) for name in completed)
    return status


def _final_condition(completed: list[str], failed: list[str]) -> dict[str, Any]:
    done, broken = ",".join(completed), ",".join(failed)
    if not failed:
        type_, reason, message = "Complete", "Completed", f"Job completed in clusters [{done}]"
    elif not completed:
        type_, reason, message = "Failed", "Failed", f"Job failed in clusters [{broken}]"
    else:
        type_, reason = "Failed", "Mixed"
        message = f"Job completed in clusters [{done}] and failed in member clusters [{broken}]"
    return {"type": type_, "status": "True", "reason": reason, "message": message}
