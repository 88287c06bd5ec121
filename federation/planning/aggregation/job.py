"""The aggregated status of a Job: counts summed, and a final condition when all member objects have ended.

`merge` is KubeAdmiral's formula. `aggregate` makes a status of it that API servers accept after the one before: they
take a final condition only with the one that announces it, and nothing after it.

Reference: docs/reference/status.md.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from federation.api import names
from federation.apimachinery import conditions
from federation.apimachinery.clock import to_rfc3339
from federation.apimachinery.resources import Object
from federation.planning.aggregation.context import Context, Members, keep_condition_times, status_of, sums

_SUMMED = ("active", "succeeded", "failed", "ready")
_NEVER_FALLING = ("succeeded", "failed")
_OF_RUNNING_PODS = ("active", "ready")
_SUSPENDED = "Suspended"
_TARGETS = {"Complete": "SuccessCriteriaMet", "Failed": "FailureTarget"}
"""The condition that a Job must have before it can have a final one."""


def is_failed(job_conditions: Iterable[Mapping[str, Any]] | None) -> bool:
    """Return True if the Job has ended in failure: its condition Failed is True."""
    return conditions.is_true(list(job_conditions or ()), "Failed")


def is_ended(job_conditions: Iterable[Mapping[str, Any]] | None) -> bool:
    """Return True if the Job has a final condition."""
    return any(conditions.is_true(list(job_conditions or ()), type_) for type_ in _TARGETS)


def aggregate(source: Mapping[str, Any], members: Members, context: Context) -> Object | None:
    """Return the Job's status as an API server accepts it after the previous one, None if nothing is known.

    A Job that no cluster has, such as one that waits in a queue, is suspended: it has no pods. Counts of ended pods do
    not fall, although clusters come and go, the start stays unless the Job is suspended, and a status with a final
    condition does not change at all.
    """
    previous = status_of(source)
    status = _suspended(previous, context) if context.is_nowhere else merge(source, members, context)
    if status is None or is_ended(previous.get("conditions")):
        return dict(previous) if members else None
    for name in _NEVER_FALLING:
        if count := max(status.get(name, 0), int(previous.get(name) or 0)):
            status[name] = count
    if previous.get("startTime") and not (source.get("spec") or {}).get("suspend"):
        status["startTime"] = previous["startTime"]
    return _ended(status, previous, context) if is_ended(status.get("conditions")) else status


def _suspended(previous: Mapping[str, Any], context: Context) -> Object:
    wanted = {"type": _SUSPENDED, "status": "True", "reason": names.REASON_NOT_PLACED, "message": context.nowhere}
    held = previous.get("conditions")
    return {"conditions": keep_condition_times(held, [wanted], context.now, update_field="lastProbeTime")}


def _ended(status: Object, previous: Mapping[str, Any], context: Context) -> Object:
    """Return the status of a Job that has ended in all clusters; no pod of it is left."""
    ended: Object = {key: value for key, value in status.items() if key not in _OF_RUNNING_PODS}
    (final,) = status["conditions"]
    wanted = [{**final, "type": _TARGETS[final["type"]]}, final]
    ended["conditions"] = keep_condition_times(
        previous.get("conditions"), wanted, context.now, update_field="lastProbeTime"
    )
    last = str(ended.get("completionTime") or "")
    # A member that failed its Job before it started it reports no time.
    start = str(ended.setdefault("startTime", last or to_rfc3339(context.now)))
    if last:
        ended["completionTime"] = max(last, start)
    return ended


def merge(source: Mapping[str, Any], members: Members, context: Context) -> Object | None:
    """Return the Job's status, None without a member object.

    The times of a condition are kept while it stays the same, so that a finished Job is not written again.
    """
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
