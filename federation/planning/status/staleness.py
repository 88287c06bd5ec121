"""The status of an object in clusters that do not answer: the last known one, marked as such. Pure.

Last known values still count, because a lost connection is not a lost workload. They never count for more replicas than
the placement wants in their cluster now, and the condition StatusStale names the clusters.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from federation.api import names
from federation.api.federatedtype import PathDefinition
from federation.apimachinery.resources import Object
from federation.planning.aggregation.context import keep_condition_times

_COUNTS = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
_NO_PATHS = PathDefinition()
_CLUSTERS_NAMED_MAX = 20


def last_known(member: Mapping[str, Any], wanted: int | None, paths: PathDefinition = _NO_PATHS) -> Mapping[str, Any]:
    """Return the member object of a cluster that does not answer with at most `wanted` replicas in its status.

    `paths` are those of the kind, whose fields of the status may have names of their own.
    """
    status = member.get("status")
    if wanted is None or not status:
        return member
    own = (paths.replicas_status, paths.ready_replicas_status, paths.available_replicas_status)
    fields = {*_COUNTS, *(path[1] for path in own if len(path) == 2 and path[0] == "status")}
    capped = {field: min(status[field], wanted) for field in sorted(fields) if type(status.get(field)) is int}
    return {**member, "status": {**status, **capped}}


def without_updated(member: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the member object of a cluster that does not have the wanted pod template, without updated replicas."""
    status = member.get("status") or {}
    return {**member, "status": {key: value for key, value in status.items() if not key.startswith("updated")}}


def with_stale_condition(status: Object, present: Mapping[str, Any], stale: Iterable[str], now: datetime) -> Object:
    """Return the status with the condition StatusStale, or without it when every cluster answers."""
    conditions = [c for c in status.get("conditions") or () if c.get("type") != names.STATUS_STALE]
    clusters = sorted(stale)
    if clusters:
        named = ",".join(clusters[:_CLUSTERS_NAMED_MAX])
        more = f" and {len(clusters) - _CLUSTERS_NAMED_MAX} more" if len(clusters) > _CLUSTERS_NAMED_MAX else ""
        wanted = {
            "type": names.STATUS_STALE,
            "status": "True",
            "reason": names.REASON_CLUSTERS_DO_NOT_ANSWER,
            "message": f"clusters [{named}]{more} do not answer; what they reported last counts",
        }
        conditions += keep_condition_times(present.get("conditions"), [wanted], now)
    elif "conditions" not in status:
        return status
    return {**status, "conditions": conditions}
