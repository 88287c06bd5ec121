"""The aggregated status of a CronJob: the running Jobs of all clusters, the last start, and the last success."""

from collections.abc import Mapping
from typing import Any

from federation.apimachinery.resources import Object
from federation.planning.aggregation.context import Context, Members, status_of

_TIMES = ("lastScheduleTime", "lastSuccessfulTime")
_ACTIVE_MAX = 500
"""Running Jobs that the status lists."""


def merge(source: Mapping[str, Any], members: Members, context: Context) -> Object | None:
    """Return the CronJob's status, None if nothing is known. The times of runs stay where no cluster has it any more.

    A run is a success when it is one in every cluster, so the earliest of the last successes counts.
    """
    if context.is_unknown(members):
        return None
    if not members:
        return {name: time for name in _TIMES if (time := status_of(source).get(name))}
    active = [job for cluster in sorted(members) for job in status_of(members[cluster]).get("active") or ()]
    status: Object = {"active": active[:_ACTIVE_MAX]} if active else {}
    started = [time for member in members.values() if (time := status_of(member).get("lastScheduleTime"))]
    if started:
        status["lastScheduleTime"] = max(started)
    succeeded = [status_of(member).get("lastSuccessfulTime") or "" for member in members.values()]
    if all(succeeded):
        status["lastSuccessfulTime"] = min(succeeded)
    return status
