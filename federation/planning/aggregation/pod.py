"""The aggregated status of a Pod: the worst phase, the clusters of each phase, conditions, and every container."""

from collections.abc import Mapping
from typing import Any

from federation.apimachinery.resources import Object
from federation.planning.aggregation.context import Context, Members, status_of
from federation.planning.aggregation.mergedconditions import merge_conditions
from federation.planning.federatedobject.finished import is_finished

_PRIORITY = ("Failed", "Pending", "Running", "Succeeded")


def merge(source: Mapping[str, Any], members: Members, context: Context) -> Object | None:
    """Return the Pod's status, None without a member object; one that no cluster has is pending."""
    if not members:
        has_run = is_finished(("", "Pod"), source)
        return {"phase": "Pending", "message": context.nowhere} if context.is_nowhere and not has_run else None
    by_phase: dict[str, list[str]] = {}
    for cluster in sorted(members):
        by_phase.setdefault(_phase(members[cluster]), []).append(cluster)
    found = [phase for phase in _PRIORITY if phase in by_phase]
    parts = [f"{phase.lower()} in clusters [{','.join(by_phase[phase])}]" for phase in found]
    status: Object = {"phase": found[0], "message": "Pod " + ", and ".join(parts)}
    starts = [start for member in members.values() if (start := status_of(member).get("startTime"))]
    if starts:
        status["startTime"] = min(starts)
    if conditions := merge_conditions(source, members, context):
        status["conditions"] = conditions
    for field in ("initContainerStatuses", "containerStatuses"):
        if containers := _containers(members, field):
            status[field] = containers
    return status


def _phase(pod: Mapping[str, Any]) -> str:
    phase = status_of(pod).get("phase")
    return phase if phase in _PRIORITY else "Pending"


def _containers(members: Members, field: str) -> list[Object]:
    return sorted(
        (
            {**container, "name": f"{container['name']} ({cluster})"}
            for cluster, member in members.items()
            for container in status_of(member).get(field) or ()
        ),
        key=lambda container: str(container["name"]),
    )
