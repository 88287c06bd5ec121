"""The aggregated status of a CronJob: the running Jobs of all clusters, the last start, and the last success."""

from collections.abc import Mapping
from typing import Any

from federation.apimachinery.resources import Object
from federation.planning.aggregation.context import Context, Members, status_of

_ACTIVE_MAX = 500
"""Running Jobs that the status lists."""


def merge(source: Mapping[str, Any], members: Members, context: Context) -> Object | None:  # noqa: ARG001  # the same for every kind
    """Return the CronJob's status, None without a member object.

    A run is a success when it is one in every cluster, so the earliest of the last successes counts.
    """
    if not members:
        return None
    active = [job for cluster in sorted(members) for job in status_of(members[cluster]).get("active") or ()]
    status: Object = {"active": active[:_ACTIVE_MAX]} if active else {}
    started = [time for member in members.values() if (time := status_of(member).get("lastScheduleTime"))]
    if started:
        status["lastScheduleTime"] = max(started)
    succeeded = [status_of(member).get("lastSuccessfulTime") or "" for member in members.values()]
    if all(succeeded):
        status["lastSuccessfulTime"] = min(succeeded)
    return status
