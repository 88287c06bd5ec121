"""The simulated use of pods, from a load in annotations of their workload. Pure.

The annotations `simulator.kubeadmiral.io/cpu-load` and `memory-load` give the use of all pods of the workload together.
Its ready pods share the load evenly, and the containers of a pod share the pod's part in proportion to their requests.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from federation.apimachinery.clock import from_rfc3339
from federation.apimachinery.durations import parse_duration
from federation.apimachinery.errors import ConfigurationError
from federation.apimachinery.quantity import to_milli
from federation.planning.autoscaling.podmetrics import PodMetric
from federation.simulator.controllers import names
from federation.simulator.controllers import pods as podsof

_LOADS = {"cpu": names.SIMULATOR_CPU_LOAD, "memory": names.SIMULATOR_MEMORY_LOAD}


def has_load(workload: Mapping[str, Any]) -> bool:
    """Return True if an annotation gives the workload a load."""
    return not _LOADS.keys().isdisjoint(_texts(workload))


def measure_pods(
    workload: Mapping[str, Any], pods: Sequence[Mapping[str, Any]], now: datetime, window_s: float = 0.0
) -> dict[str, PodMetric]:
    """Return the metric of each running pod by name, {} without a load; ConfigurationError if a load is malformed."""
    running = [pod for pod in pods if podsof.phase_of(pod) == "Running"]
    ready = sum(map(podsof.is_ready, running))
    elapsed_s = (now - from_rfc3339(workload["metadata"]["creationTimestamp"])).total_seconds()
    loads = {resource: load_at(text, elapsed_s) for resource, text in _texts(workload).items()}
    if not loads:
        return {}
    metrics = {}
    for pod in running:
        shares = {name: load / ready if podsof.is_ready(pod) else 0.0 for name, load in loads.items()}
        metrics[pod["metadata"]["name"]] = PodMetric(_by_container(pod, shares), now, window_s)
    return metrics


def _texts(workload: Mapping[str, Any]) -> dict[str, str]:
    annotations = workload["metadata"].get("annotations") or {}
    return {resource: annotations[key] for resource, key in _LOADS.items() if key in annotations}


def _by_container(pod: Mapping[str, Any], shares: Mapping[str, float]) -> dict[str, dict[str, int]]:
    containers = pod["spec"].get("containers") or ()
    found: dict[str, dict[str, int]] = {each["name"]: {} for each in containers}
    for resource, share in shares.items():
        requests = [((each.get("resources") or {}).get("requests") or {}).get(resource, 0) for each in containers]
        weights = [to_milli(str(request)) for request in requests]
        weights = weights if any(weights) else [1] * len(weights)
        for container, weight in zip(containers, weights, strict=True):
            found[container["name"]][resource] = int(share * weight / sum(weights))
    return found


def load_at(text: str, elapsed_s: float) -> float:
    """Return the load in milli-units after that time; ConfigurationError when the text is no list of points."""
    points = []
    for word in text.replace(",", " ").split():
        when, _, amount = word.partition("=")
        try:
            points.append((parse_duration(when), float(to_milli(amount))))
        except ValueError as error:
            raise ConfigurationError(f"{word!r} is not a point of a load such as 10m=500m: {error}") from error
    if not points:
        raise ConfigurationError("a load has at least one point, such as 0s=2")
    points.sort()
    before = [point for point in points if point[0] <= elapsed_s]
    after = [point for point in points if point[0] > elapsed_s]
    if not before or not after:
        return (before[-1] if before else points[0])[1]
    (start_s, low), (end_s, high) = before[-1], after[0]
    return low + (high - low) * (elapsed_s - start_s) / (end_s - start_s)
