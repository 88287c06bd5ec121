"""The replicas that bring one metric to its target. Pure.

The rules are those of Kubernetes. Pods that are being deleted or have failed do not count. Pods
that are not ready count as idle when the others need more replicas. Pods without a metric count as idle then, too, and
as fully used when the others need fewer. A result that the uncertain pods reverse is no change at all.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from federation.apimachinery.clock import parse_rfc3339
from federation.apimachinery.conditions import find, is_true
from federation.apimachinery.errors import InvalidInput
from federation.apimachinery.quantity import to_milli
from federation.planning.autoscaling.podmetrics import Sample
from federation.planning.clusters.clusterresources import spec_requests, whole_pod_requests

TOLERANCE = 0.1
"""A use that differs less from its target, as a share of it, changes nothing."""
_CPU = "cpu"
_INITIALIZATION_S = 300.0
"""A pod that started later is judged by its present readiness; CPU use at the start is not typical."""
_INITIAL_READINESS_S = 30.0
"""A pod that has been unready since this time after its start was never ready."""
_ROUNDING = 1e-9


class MetricsError(InvalidInput):
    """No number of replicas can be computed; the text says why."""


@dataclass(frozen=True, slots=True)
class ResourceTarget:
    """A resource metric of an autoscaler: its resource, one container or "" for the whole pod, and the goal.

    `value` is in percent of what pods request if `is_utilization`, otherwise in milli-units for each pod.
    """

    resource: str
    value: int
    container: str = ""
    is_utilization: bool = True


@dataclass(frozen=True, slots=True)
class Tolerances:
    """The tolerated shares above and below the target."""

    up: float = TOLERANCE
    down: float = TOLERANCE

    def cover(self, ratio: float) -> bool:
        """Return True if the ratio of use and target needs no change."""
        return 1.0 - self.down - _ROUNDING <= ratio <= 1.0 + self.up + _ROUNDING


@dataclass(frozen=True, slots=True)
class Proposal:
    """The replicas for one metric, and the present use: an average in milli-units, and in percent of the requests."""

    replicas: int
    average: int
    utilization: int | None = None


@dataclass(frozen=True, slots=True)
class Replicas:
    """The replicas of a target: those that its spec wants, and those that its status counts."""

    wanted: int
    present: int


def propose_replicas(
    current: int, samples: Sequence[Sample], target: ResourceTarget, tolerances: Tolerances, now: datetime
) -> Proposal:
    """Return the proposal for the pods of a target with `current` replicas; MetricsError if nothing was measured."""
    if not samples:
        raise MetricsError("no pods returned by selector while calculating replica count")
    requests = [_request(sample.pod, target) if target.is_utilization else 1 for sample in samples]
    groups = _group(samples, target, requests, now)
    if not groups.ready:
        raise MetricsError("did not receive metrics for targeted pods (pods might be unready)")
    used, requested = _sums(groups.ready)
    if not requested:
        raise MetricsError(f"the pods request no {target.resource}")
    ratio = _ratio(used, requested, len(groups.ready), target)
    average = used // len(groups.ready)
    utilization = used * 100 // requested if target.is_utilization else None
    return Proposal(_count(current, groups, ratio, target, tolerances), average, utilization)


def propose_for_value(
    current: int, amount: int, target: int, samples: Sequence[Sample], tolerances: Tolerances
) -> Proposal:
    """Return the proposal for a metric that is not of the pods, with a target for its whole value."""
    ratio = amount / target
    if tolerances.cover(ratio):
        return Proposal(current, amount)
    if not samples:
        raise MetricsError("no pods returned by selector while calculating replica count")
    ready = sum(1 for sample in samples if _is_ready(sample.pod))
    return Proposal(math.ceil(ratio * ready), amount)


def propose_for_average(replicas: Replicas, amount: int, target: int, tolerances: Tolerances) -> Proposal:
    """Return the proposal for a metric that is not of the pods, with a target for its value per pod."""
    present = replicas.present
    if not present:
        raise MetricsError("the target has no pods yet")
    count = present if tolerances.cover(amount / (target * present)) else math.ceil(amount / target)
    return Proposal(count, math.ceil(amount / present))


@dataclass(frozen=True, slots=True)
class _Groups:
    """Use and request of ready pods; requests of pods that are not ready, and of pods without a metric."""

    ready: list[tuple[int, int]]
    unready: list[int]
    missing: list[int]


def _group(samples: Sequence[Sample], target: ResourceTarget, requests: Sequence[int], now: datetime) -> _Groups:
    groups = _Groups([], [], [])
    for sample, request in zip(samples, requests, strict=True):
        status = sample.pod.get("status") or {}
        phase = status.get("phase") or "Pending"
        if sample.pod["metadata"].get("deletionTimestamp") or phase == "Failed":
            continue
        used = sample.metric.use_of(target.resource, target.container) if sample.metric is not None else None
        if phase == "Pending":
            groups.unready.append(request)
        elif used is None:
            groups.missing.append(request)
        elif target.resource == _CPU and not _is_settled(sample, now):
            groups.unready.append(request)
        else:
            groups.ready.append((used, request))
    return groups


def _is_ready(pod: Mapping[str, Any]) -> bool:
    status = pod.get("status") or {}
    return status.get("phase") == "Running" and is_true(status.get("conditions"), "Ready")


def _is_settled(sample: Sample, now: datetime) -> bool:
    """Return True if the CPU use of a pod is typical: the pod is ready, and was during the whole measurement."""
    status = sample.pod.get("status") or {}
    ready, start = find(status.get("conditions"), "Ready"), parse_rfc3339(status.get("startTime"))
    if ready is None or start is None or sample.metric is None:
        return False
    since = parse_rfc3339(ready.get("lastTransitionTime")) or start
    if start + timedelta(seconds=_INITIALIZATION_S) > now:
        is_measured = sample.metric.time >= since + timedelta(seconds=sample.metric.window_s)
        return ready.get("status") != "False" and is_measured
    was_never_ready = start + timedelta(seconds=_INITIAL_READINESS_S) > since
    return not (ready.get("status") == "False" and was_never_ready)


def _count(current: int, groups: _Groups, ratio: float, target: ResourceTarget, tolerances: Tolerances) -> int:
    if ratio == 1.0:
        return current
    is_up = ratio > 1.0
    unready = groups.unready if is_up else []
    if not unready and not groups.missing:
        return current if tolerances.cover(ratio) else math.ceil(ratio * len(groups.ready) - _ROUNDING)
    # Pods without a metric count as idle, or as used up to the target or their request.
    share = max(100, target.value) if target.is_utilization else target.value * 100
    assumed = [(0 if is_up else request * share // 100, request) for request in groups.missing]
    pods = [*groups.ready, *assumed, *((0, request) for request in unready)]
    used, requested = _sums(pods)
    corrected = _ratio(used, requested, len(pods), target)
    if tolerances.cover(corrected) or (corrected > 1.0) != is_up:
        return current
    wanted = math.ceil(corrected * len(pods) - _ROUNDING)
    return max(current, wanted) if is_up else min(current, wanted)


def _ratio(used: int, requested: int, pods: int, target: ResourceTarget) -> float:
    if target.is_utilization:
        return (used * 100 // requested) / target.value
    return used // pods / target.value


def _sums(pods: Sequence[tuple[int, int]]) -> tuple[int, int]:
    return sum(used for used, _ in pods), sum(request for _, request in pods)


def _request(pod: Mapping[str, Any], target: ResourceTarget) -> int:
    spec, name = pod.get("spec") or {}, pod["metadata"].get("name", "")
    if not target.container and whole_pod_requests(spec):
        amounts = spec_requests(spec)
        if target.resource not in amounts:
            raise MetricsError(f"missing pod-level request for {target.resource} in Pod {name}")
        return amounts[target.resource].milli
    sidecars = [each for each in spec.get("initContainers") or () if each.get("restartPolicy") == "Always"]
    containers = [
        each for each in (*(spec.get("containers") or ()), *sidecars) if target.container in ("", each["name"])
    ]
    if target.container and not containers:
        raise MetricsError(f"container {target.container} not found in Pod {name}")
    total = 0
    for container in containers:
        amount = ((container.get("resources") or {}).get("requests") or {}).get(target.resource)
        if amount is None:
            raise MetricsError(f"missing request for {target.resource} in container {container['name']} of Pod {name}")
        total += to_milli(str(amount))
    return total
