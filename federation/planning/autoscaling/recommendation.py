"""The replicas that an autoscaler recommends for all of its metrics, before its limits. Pure.

Each metric makes a proposal, and the highest counts. A metric that cannot be measured prevents a scale-in, because it
could be the one that needs the replicas.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from federation.apimachinery.quantity import to_milli
from federation.apimachinery.resources import Object
from federation.planning.autoscaling.podmetrics import Sample
from federation.planning.autoscaling.replicacount import (
    MetricsError,
    Proposal,
    ResourceTarget,
    Tolerances,
    propose_replicas,
)

_SOURCES = {"Resource": "resource", "ContainerResource": "containerResource"}
_MILLI_RESOURCE = "cpu"
"""The resource whose amounts are shown in milli-units."""


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The recommended replicas, the metric that asks for them, and `status.currentMetrics`."""

    replicas: int
    reason: str
    metrics: Sequence[Object]


def recommend_replicas(
    spec: Mapping[str, Any], current: int, samples: Sequence[Sample], tolerances: Tolerances, now: datetime
) -> Recommendation:
    """Return the recommendation for an autoscaler's spec and the pods of its target; MetricsError if there is none."""
    best, shown = None, []
    failure: MetricsError | None = None
    for metric in spec.get("metrics") or ():
        try:
            target, what = _target_of(metric)
            proposal = propose_replicas(current, samples, target, tolerances, now)
        except MetricsError as error:
            failure = failure or error
            continue
        shown.append(_to_status(metric, target, proposal))
        if best is None or proposal.replicas > best[0]:
            best = proposal.replicas, what
    if best is None or (failure is not None and best[0] < current):
        raise failure or MetricsError("the autoscaler has no metrics")
    return Recommendation(best[0], best[1], shown)


def _target_of(metric: Mapping[str, Any]) -> tuple[ResourceTarget, str]:
    """Return the target of a metric and its name in messages."""
    type_ = str(metric.get("type") or "")
    field = _SOURCES.get(type_)
    if field is None:
        raise MetricsError(f"metrics of type {type_} are not available; use Resource or ContainerResource")
    source: Mapping[str, Any] = metric.get(field) or {}
    resource, container, goal = str(source.get("name") or ""), source.get("container") or "", source.get("target") or {}
    name = f"{resource} container resource" if container else f"{resource} resource"
    if goal.get("averageUtilization"):
        target = ResourceTarget(resource, int(goal["averageUtilization"]), container)
        return target, f"{name} utilization (percentage of request)"
    value = to_milli(str(goal.get("averageValue") or 0))
    if value <= 0:
        raise MetricsError(f"the {name} metric has no target")
    return ResourceTarget(resource, value, container, is_utilization=False), name


def _to_status(metric: Mapping[str, Any], target: ResourceTarget, proposal: Proposal) -> Object:
    amount = f"{proposal.average}m" if target.resource == _MILLI_RESOURCE else str(proposal.average // 1000)
    current: Object = {"averageValue": amount}
    if proposal.utilization is not None:
        current["averageUtilization"] = proposal.utilization
    container = {"container": target.container} if target.container else {}
    field = _SOURCES[metric["type"]]
    return {"type": metric["type"], field: {"name": target.resource, **container, "current": current}}
