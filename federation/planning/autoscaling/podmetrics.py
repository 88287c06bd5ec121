"""The measured use of pods, as `metrics.k8s.io` reports it. Pure.

Amounts are in milli-units: thousandths of a CPU, thousandths of a byte.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from federation.apimachinery.clock import parse_rfc3339
from federation.apimachinery.durations import parse_duration
from federation.apimachinery.quantity import to_milli


@dataclass(frozen=True, slots=True)
class PodMetric:
    """The use of one pod by container and resource, measured over `window_s` seconds until `time`."""

    containers: Mapping[str, Mapping[str, int]]
    time: datetime
    window_s: float = 0.0

    def use_of(self, resource: str, container: str = "") -> int | None:
        """Return the use of the container, or of all containers for ""; None if one was not measured."""
        if container:
            return self.containers.get(container, {}).get(resource)
        amounts = [found.get(resource) for found in self.containers.values()]
        known = [amount for amount in amounts if amount is not None]
        return sum(known) if known and len(known) == len(amounts) else None


@dataclass(frozen=True, slots=True)
class Sample:
    """A pod and its metric, None if there is none."""

    pod: Mapping[str, Any]
    metric: PodMetric | None = None


def to_metric(obj: Mapping[str, Any]) -> PodMetric | None:
    """Return a PodMetrics object of `metrics.k8s.io` as PodMetric, None if it is malformed."""
    time = parse_rfc3339(obj.get("timestamp"))
    if time is None:
        return None
    try:
        containers = {
            str(container.get("name") or ""): {
                str(resource): to_milli(str(amount)) for resource, amount in (container.get("usage") or {}).items()
            }
            for container in obj.get("containers") or ()
        }
        return PodMetric(containers, time, parse_duration(str(obj.get("window") or "0s")))
    except (AttributeError, TypeError, ValueError):
        return None
