"""The aggregated status of a ReplicaSet: sums over all clusters."""

from collections.abc import Mapping
from typing import Any

from federation.apimachinery.resources import Object
from federation.planning.aggregation.context import Context, Members, observed_generation, sums, total

_OPTIONAL = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas", "terminatingReplicas")


def merge(source: Mapping[str, Any], members: Members, context: Context) -> Object | None:
    """Return the ReplicaSet's status, None without a member object."""
    if context.is_unknown(members):
        return None
    status: Object = {"replicas": total(members, "replicas")} | sums(members, _OPTIONAL)
    if (generation := observed_generation(source, context)) is not None:
        status["observedGeneration"] = generation
    return status
