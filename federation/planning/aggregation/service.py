"""The aggregated status of a Service or an Ingress: the load balancer addresses of all clusters."""

from collections.abc import Mapping
from typing import Any

import orjson

from federation.apimachinery.resources import Object
from federation.planning.aggregation.context import Context, Members, status_of


def merge(source: Mapping[str, Any], members: Members, context: Context) -> Object | None:  # noqa: ARG001  # the same for every kind
    """Return the status with all ingress points, None if nothing is known."""
    if context.is_unknown(members):
        return None
    points: dict[bytes, Any] = {}
    for cluster in sorted(members):
        balancer = status_of(members[cluster]).get("loadBalancer") or {}
        for point in balancer.get("ingress") or ():
            points.setdefault(orjson.dumps(point, option=orjson.OPT_SORT_KEYS), point)
    return {"loadBalancer": {"ingress": list(points.values())} if points else {}}
