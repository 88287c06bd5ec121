"""Conditions of several clusters as one list, for kinds whose conditions have no rule of their own.

Most condition types are good when True: the merged one is True if it is True in every cluster of the placement that
answers. Types that report a problem (`_PROBLEMS`) are True if they are True in any cluster. The message names the
clusters that decide.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from federation.api import names
from federation.apimachinery import conditions
from federation.planning.aggregation.context import Context, Members, keep_condition_times, status_of

_PROBLEMS = frozenset(
    {
        "Degraded",
        "DisruptionTarget",
        "Failed",
        "FailedCreatePod",
        "FailedScale",
        "FailedUpdate",
        "FailedUpdatePod",
        "FileSystemResizePending",
        "ModifyingVolume",
        "Reconciling",
        "Resizing",
        "ScalingLimited",
        "Stalled",
        "Suspended",
        "Terminating",
    }
)
_PROBLEM_ENDINGS = ("Error", "Failure", "Failed", "Pressure", "Unavailable")
_STATUSES = frozenset({"True", "False", "Unknown"})
_TYPES_MAX = 50
_CLUSTERS_NAMED_MAX = 20
_MESSAGE_LENGTH_MAX = 1024
_NOT_REPORTED = "NotReported"
_OURS = frozenset((names.SCHEDULED, names.PROPAGATED, names.FOLLOWERS_DELIVERED, names.STATUS_STALE))


def is_problem(type_: str) -> bool:
    """Return whether a condition of the type reports a problem when it is True."""
    return type_ in _PROBLEMS or type_.endswith(_PROBLEM_ENDINGS)


def is_ours(condition: Mapping[str, Any]) -> bool:
    """Return whether the federation itself owns the condition of a source."""
    return condition.get("type") in _OURS


def merge_conditions(source: Mapping[str, Any], members: Members, context: Context) -> list[dict[str, Any]]:
    """Return the merged conditions with their times, sorted by type; conditions of the federation itself stay."""
    previous = status_of(source).get("conditions") or []
    types = {
        str(condition["type"])
        for member in members.values()
        for condition in status_of(member).get("conditions") or ()
        if condition.get("type") and condition["type"] not in _OURS
    }
    wanted = [_merged(type_, members, context) for type_ in sorted(types)[:_TYPES_MAX]]
    kept = [condition for condition in previous if is_ours(condition)]
    generation = (source.get("metadata") or {}).get("generation")
    if generation is not None and context.is_observed:
        for condition in wanted:
            if condition.pop("observedGeneration", None) is not None:
                condition["observedGeneration"] = generation
    else:
        for condition in wanted:
            condition.pop("observedGeneration", None)
    return [*keep_condition_times(previous, wanted, context.now), *kept]


def _merged(type_: str, members: Members, context: Context) -> dict[str, Any]:
    everywhere = sorted(context.placed or members)
    expected = [cluster for cluster in everywhere if cluster not in context.stale]
    if not expected:
        text = f"none of the clusters [{_named(everywhere)}] answers"
        return _condition(type_, "Unknown", names.REASON_CLUSTERS_DO_NOT_ANSWER, text)
    found = {cluster: _find(members, cluster, type_) for cluster in expected}
    statuses = {cluster: (condition or {}).get("status") for cluster, condition in found.items()}
    statuses = {cluster: status if status in _STATUSES else None for cluster, status in statuses.items()}
    order = ("True", "Unknown", "False", None) if is_problem(type_) else ("False", "Unknown", None, "True")
    status = next(status for status in order if status in statuses.values())
    deciding = [cluster for cluster in expected if statuses[cluster] == status]
    first = found[deciding[0]]
    if status is None or first is None:
        return _condition(type_, "Unknown", _NOT_REPORTED, f"not reported by clusters [{_named(deciding)}]")
    text = f"in clusters [{_named(deciding)}]"
    if first.get("message"):
        text = f"{text}: {first['message']}"
    condition = _condition(type_, status, str(first.get("reason") or status), text[:_MESSAGE_LENGTH_MAX])
    return {**condition, "observedGeneration": 0} if "observedGeneration" in first else condition


def _find(members: Members, cluster: str, type_: str) -> Mapping[str, Any] | None:
    member = members.get(cluster)
    return None if member is None else conditions.find(status_of(member).get("conditions"), type_)


def _named(clusters: Sequence[str]) -> str:
    more = len(clusters) - _CLUSTERS_NAMED_MAX
    return ",".join(clusters[:_CLUSTERS_NAMED_MAX]) + (f",… and {more} more" if more > 0 else "")


def _condition(type_: str, status: str, reason: str, message: str) -> dict[str, Any]:
    return {"type": type_, "status": status, "reason": reason, "message": message}
