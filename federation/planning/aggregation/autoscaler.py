"""The aggregated status of a HorizontalPodAutoscaler: the sums of the clusters' replicas, and their conditions."""

from collections.abc import Mapping
from typing import Any

from federation.apimachinery.resources import Object
from federation.planning.aggregation.context import Context, Members, observed_generation, status_of, total
from federation.planning.aggregation.mergedconditions import merge_conditions


def merge(source: Mapping[str, Any], members: Members, context: Context) -> Object | None:
    """Return the autoscaler's status, None without a member object.

    Metrics are averages over the pods of one cluster, so they are left out for several clusters.
    """
    if not members:
        return None
    status: Object = {name: total(members, name) for name in ("currentReplicas", "desiredReplicas")}
    if (generation := observed_generation(source, context)) is not None:
        status["observedGeneration"] = generation
    scaled = [time for member in members.values() if (time := status_of(member).get("lastScaleTime"))]
    if scaled:
        status["lastScaleTime"] = max(scaled)
    if len(members) == 1 and (metrics := status_of(next(iter(members.values()))).get("currentMetrics")):
        status["currentMetrics"] = metrics
    if conditions := merge_conditions(source, members, context):
        status["conditions"] = conditions
    return status
