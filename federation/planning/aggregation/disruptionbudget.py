"""The aggregated status of a PodDisruptionBudget: sums over all clusters, each of which guards its own pods."""

from collections.abc import Mapping
from typing import Any

from federation.apimachinery.resources import Object
from federation.planning.aggregation.context import (
    Context,
    Members,
    keep_condition_times,
    observed_generation,
    status_of,
    total,
)

_SUMMED = ("currentHealthy", "desiredHealthy", "disruptionsAllowed", "expectedPods")


def merge(source: Mapping[str, Any], members: Members, context: Context) -> Object | None:
    """Return the budget's status, None without a member object."""
    if context.is_unknown(members):
        return None
    status: Object = {name: total(members, name) for name in _SUMMED}
    if (generation := observed_generation(source, context)) is not None:
        status["observedGeneration"] = generation
    allowing = sorted(name for name, member in members.items() if status_of(member).get("disruptionsAllowed"))
    condition = {
        "type": "DisruptionAllowed",
        "status": "True" if allowing else "False",
        "reason": "SufficientPods" if allowing else "InsufficientPods",
        "message": f"in clusters [{','.join(allowing)}]" if allowing else "",
    }
    if "observedGeneration" in status:
        condition["observedGeneration"] = status["observedGeneration"]
    status["conditions"] = keep_condition_times(status_of(source).get("conditions"), [condition], context.now)
    return status
