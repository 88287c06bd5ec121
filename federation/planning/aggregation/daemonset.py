"""The aggregated status of a DaemonSet: sums over all clusters, every node of every member counted once."""

from collections.abc import Mapping
from typing import Any

from federation.apimachinery.resources import Object
from federation.planning.aggregation.context import Context, Members, observed_generation, sums, total

_REQUIRED = ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady")
_OPTIONAL = ("updatedNumberScheduled", "numberAvailable", "numberUnavailable")


def merge(source: Mapping[str, Any], members: Members, context: Context) -> Object | None:
    """Return the DaemonSet's status, None without a member object."""
    if context.is_unknown(members):
        return None
    status: Object = {name: total(members, name) for name in _REQUIRED} | sums(members, _OPTIONAL)
    if (generation := observed_generation(source, context)) is not None:
        status["observedGeneration"] = generation
    return status
