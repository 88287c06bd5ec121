"""The measurements for one autoscaler. Pure.

Amounts are in milli-units. An entry of `values` belongs to the metric at that place in `spec.metrics`; metrics of types
Resource and ContainerResource have none, because the samples hold the use of resources.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from federation.planning.autoscaling.podmetrics import Sample


@dataclass(frozen=True, slots=True)
class PodValues:
    """A custom metric of each pod, in the order of the samples; None for a pod without it."""

    amounts: Sequence[int | None]


@dataclass(frozen=True, slots=True)
class Totals:
    """The values of an object's metric in each cluster that has it, or of all series of an external metric."""

    amounts: Sequence[int]


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """A metric that nothing answered for."""

    problem: str


Values = PodValues | Totals | Unmeasured


@dataclass(frozen=True, slots=True)
class Measurements:
    """The pods of a target, and the metrics of its autoscaler.

    `problem` says what could not be read, "" if nothing is missing. Without `is_complete` there may be more pods.
    """

    samples: Sequence[Sample]
    values: Mapping[int, Values] = field(default_factory=dict)
    problem: str = ""
    is_complete: bool = True
