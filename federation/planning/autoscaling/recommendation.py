"""The replicas that an autoscaler recommends for all of its metrics, before its limits. Pure.

Each metric makes a proposal, and the highest counts. A metric that cannot be measured prevents a scale-in, because it
could be the one that needs the replicas.

A metric of an object is measured in each cluster that has the object. A target for its value is one for the average of
the clusters, as in KubeAdmiral: that suits rates of use and times of answers. A target for its value per pod divides
the sum of the clusters by all pods: that suits lengths of queues.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from federation.apimachinery.quantity import to_milli
from federation.apimachinery.resources import Object
from federation.planning.autoscaling.measurements import Measurements, PodValues, Totals, Unmeasured
from federation.planning.autoscaling.podmetrics import PodMetric, Sample
from federation.planning.autoscaling.replicacount import (
    MetricsError,
    Proposal,
    Replicas,
    ResourceTarget,
    Tolerances,
    propose_for_average,
    propose_for_value,
    propose_replicas,
)

_FIELDS = {
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "Pods": "pods",
    "Object": "object",
    "External": "external",
}


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The recommended replicas, the metric that asks for them, and `status.currentMetrics`.

    With a `failure` (reason and text) the metrics recommend nothing, and `replicas` is the present number.
    """

    replicas: int
    what: str
    metrics: Sequence[Object]
    failure: tuple[str, str] | None = None


def recommend_replicas(
    spec: Mapping[str, Any], replicas: Replicas, measured: Measurements, tolerances: Tolerances, now: datetime
) -> Recommendation:
    """Return the recommendation for an autoscaler's spec and the pods of its target."""
    best, shown = None, []
    failure: tuple[str, str] | None = None
    for place, metric in enumerate(spec.get("metrics") or ()):
        try:
            proposal, what, current = _propose(place, metric, replicas, measured, tolerances, now)
        except MetricsError as error:
            failure = failure or (_reason_of(metric), str(error))
            continue
        shown.append(current)
        if best is None or proposal.replicas > best[0]:
            best = proposal.replicas, what
    if best is None:
        failure = failure or ("InvalidMetricSourceType", "the autoscaler has no metrics")
        return Recommendation(replicas.wanted, "", shown, failure)
    if failure is not None and best[0] < replicas.wanted:
        return Recommendation(replicas.wanted, "", shown, failure)
    return Recommendation(best[0], best[1], shown)


def _reason_of(metric: Mapping[str, Any]) -> str:
    type_ = str(metric.get("type") or "")
    return f"FailedGet{type_}Metric" if type_ in _FIELDS else "InvalidMetricSourceType"


def _propose(
    place: int,
    metric: Mapping[str, Any],
    replicas: Replicas,
    measured: Measurements,
    tolerances: Tolerances,
    now: datetime,
) -> tuple[Proposal, str, Object]:
    """Return the proposal for one metric, its name in messages, and its entry of `status.currentMetrics`."""
    type_ = str(metric.get("type") or "")
    field = _FIELDS.get(type_)
    if field is None:
        raise MetricsError(f"metrics of type {type_!r} do not exist; use one of {', '.join(_FIELDS)}")
    source: Mapping[str, Any] = metric.get(field) or {}
    if type_ in {"Resource", "ContainerResource"}:
        target, what = _resource_target(source)
        proposal = propose_replicas(replicas.wanted, measured.samples, target, tolerances, now)
        names = {"name": target.resource, **({"container": target.container} if target.container else {})}
        return proposal, what, {"type": type_, field: {**names, "current": _use(proposal)}}
    identifier = source.get("metric") or {}
    name = str(identifier.get("name") or "")
    values = measured.values.get(place, Unmeasured("it was not requested"))
    if isinstance(values, Unmeasured):
        raise MetricsError(f"unable to get metric {name}: {values.problem}")
    goal = source.get("target") or {}
    shown: Object = {
        "metric": {key: identifier[key] for key in ("name", "selector") if identifier.get(key) is not None}
    }
    if isinstance(values, PodValues):
        samples = [
            _with_value(sample, amount, now) for sample, amount in zip(measured.samples, values.amounts, strict=True)
        ]
        target = ResourceTarget(_VALUE, _milli(goal, "averageValue", name), is_utilization=False)
        proposal = propose_replicas(replicas.wanted, samples, target, tolerances, now)
        return proposal, f"pods metric {name}", {"type": type_, field: {**shown, "current": _average(proposal)}}
    what = f"external metric {name}"
    if type_ == "Object":
        shown["describedObject"] = source.get("describedObject") or {}
    if goal.get("averageValue") is not None and (type_ == "External" or goal.get("type") == "AverageValue"):
        target_value = _milli(goal, "averageValue", name)
        proposal = propose_for_average(replicas, sum(values.amounts), target_value, tolerances)
        return proposal, what, {"type": type_, field: {**shown, "current": _average(proposal)}}
    if type_ == "Object":
        what = f"{shown['describedObject'].get('kind')} metric {name}"
    amount = _whole(type_, values)
    target_value = _milli(goal, "value", name)
    proposal = propose_for_value(replicas.wanted, amount, target_value, measured.samples, tolerances)
    return proposal, what, {"type": type_, field: {**shown, "current": {"value": _quantity(amount)}}}


_VALUE = "the custom metric"
"""The name under which a sample holds the value of a custom metric; no resource has it."""


def _with_value(sample: Sample, amount: int | None, now: datetime) -> Sample:
    return Sample(sample.pod, None if amount is None else PodMetric({"": {_VALUE: amount}}, now))


def _whole(type_: str, values: Totals) -> int:
    """Return an external metric's sum of its series, and an object metric's average of its clusters."""
    total = sum(values.amounts)
    return total if type_ == "External" else total // len(values.amounts)


def _milli(goal: Mapping[str, Any], field: str, name: str) -> int:
    value = to_milli(str(goal.get(field) or 0))
    if value <= 0:
        raise MetricsError(f"the metric {name} has no target")
    return value


def _resource_target(source: Mapping[str, Any]) -> tuple[ResourceTarget, str]:
    """Return the target of a resource metric and its name in messages."""
    resource, container, goal = str(source.get("name") or ""), source.get("container") or "", source.get("target") or {}
    if goal.get("averageValue") is not None:
        target = ResourceTarget(resource, _milli(goal, "averageValue", resource), container, is_utilization=False)
        return target, f"{resource} resource"
    if goal.get("averageUtilization"):
        what = f"{resource} container resource" if container else f"{resource} resource"
        target = ResourceTarget(resource, int(goal["averageUtilization"]), container)
        return target, f"{what} utilization (percentage of request)"
    raise MetricsError(f"the metric {resource} has no target")


def _use(proposal: Proposal) -> Object:
    current = _average(proposal)
    if proposal.utilization is not None:
        current["averageUtilization"] = proposal.utilization
    return current


def _average(proposal: Proposal) -> Object:
    return {"averageValue": _quantity(proposal.average)}


def _quantity(milli: int) -> str:
    return f"{milli}m" if milli % 1000 else str(milli // 1000)
