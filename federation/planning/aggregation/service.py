"""The aggregated status of a Service or an Ingress: the load balancer addresses of all clusters."""

from collections.abc import Mapping
from typing import Any

from federation.apimachinery.resources import Object
from federation.planning.aggregation.context import Context, Members, status_of


def merge(source: Mapping[str, Any], members: Members, context: Context) -> Object | None:  # noqa: ARG001  # one silhouette
    """Return the status with all ingress points, None without a member object."""
    if not members:
        return None
    points: list[Any] = []
    for cluster in sorted(members):
        balancer = status_of(members[cluster]).get("loadBalancer") or {}
        points += [point for point in balancer.get("ingress") or () if point not in points]
    return {"loadBalancer": {"ingress": points} if points else {}}
