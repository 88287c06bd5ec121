"""The limits of failover and fail-back."""

from dataclasses import dataclass, field

from federation.planning.failover.halts import HaltOptions
from federation.planning.failover.pace import PaceOptions


@dataclass(frozen=True, slots=True)
class FailoverOptions:
    """When and how fast replicas leave lost and drained clusters, and return."""

    halts: HaltOptions = field(default_factory=HaltOptions)
    pace: PaceOptions = field(default_factory=PaceOptions)
    stable_s: float = 300.0
    """How long a cluster must be ready before replicas return to it."""
    interval_s: float = 60.0
    """Time between two batches of replicas of one object that return."""
