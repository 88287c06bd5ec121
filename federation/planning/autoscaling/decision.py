"""Decide for an autoscaler from measurements: the replicas of its target, and conditions with the reason. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from federation.api import names
from federation.apimachinery.resources import Object
from federation.planning.autoscaling.measurements import Measurements
from federation.planning.autoscaling.recommendation import recommend_replicas
from federation.planning.autoscaling.replicacount import Replicas
from federation.planning.autoscaling.scalelimits import Bounds, History

Condition = tuple[str, str, str, str]
"""Type, status, reason and message."""
_IS_DISABLED: Condition = (
    names.SCALING_ACTIVE,
    "False",
    "ScalingDisabled",
    "scaling is disabled since the replica count of the target is zero",
)


@dataclass(frozen=True, slots=True)
class Decision:
    """The replicas to set now, the conditions that change, and `status.currentMetrics` (None: as before)."""

    replicas: int
    conditions: Sequence[Condition] = ()
    metrics: Sequence[Object] | None = None


def decide_without_metrics(current: int, bounds: Bounds) -> Decision | None:
    """Return the decision that needs no metrics: at zero replicas, and outside of the bounds. None inside of them."""
    if current == 0:
        return Decision(0, (_IS_DISABLED,))
    inside = min(max(current, bounds.low), bounds.high)
    return None if inside == current else Decision(inside)


def decide(
    spec: Mapping[str, Any],
    replicas: Replicas,
    measured: Measurements,
    history: History,
    *,
    now: datetime,
    now_s: float,
) -> Decision:
    """Return the replicas for the present use within all limits; the current ones if it is not known.

    The recommendation is added to `history`.
    """
    bounds, current = Bounds.of(spec), replicas.wanted
    hint = f"; {measured.problem}" if measured.problem else ""
    found = recommend_replicas(spec, replicas, measured, bounds.tolerances, now)
    if found.failure is not None:
        reason, text = found.failure
        message = f"the HPA was unable to compute the replica count: {text}{hint}"
        return Decision(current, ((names.SCALING_ACTIVE, "False", reason, message),), found.metrics)
    message = f"the HPA was able to successfully calculate a replica count from {found.what}{hint}"
    # Pods that are not known may be the idle ones or the busy ones: none is removed on the word of the others.
    wanted = found.replicas if measured.is_complete else max(found.replicas, current)
    desired, able, limited = history.limit(current, wanted, bounds, now_s)
    conditions = (
        (names.SCALING_ACTIVE, "True", "ValidMetricFound", message),
        (names.ABLE_TO_SCALE, *able),
        (names.SCALING_LIMITED, *limited),
    )
    return Decision(desired, conditions, found.metrics)
