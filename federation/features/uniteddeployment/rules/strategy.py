"""The schedule strategy of a UnitedDeployment, with its defaults. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

ADAPTIVE = "Adaptive"
TYPES = ("", "Adaptive", "Fixed")
RESCHEDULE_AFTER_S = 30
UNSCHEDULABLE_S = 300


@dataclass(frozen=True, slots=True)
class Strategy:
    """How subsets react to pods that cannot be scheduled. Fixed strategies ignore the other fields."""

    is_adaptive: bool = False
    reserves_pods: bool = False
    """Whether unschedulable pods stay while other subsets run substitutes for them."""
    reschedule_after_s: int = RESCHEDULE_AFTER_S
    """Seconds after a pod's creation after which an unschedulable pod makes its subset unschedulable."""
    unschedulable_s: int = UNSCHEDULABLE_S
    """Seconds that a subset stays unschedulable; with reserved pods, how long a pod must be ready to be counted."""


def strategy_of(spec: Mapping[str, Any]) -> Strategy:
    """Return the strategy of a spec; `unschedulableLastSeconds` is read when `unschedulableDuration` is absent."""
    given = (spec.get("topology") or {}).get("scheduleStrategy") or {}
    if given.get("type") != ADAPTIVE:
        return Strategy()
    adaptive = given.get("adaptive") or {}
    unschedulable_s = _or(adaptive.get("unschedulableLastSeconds"), UNSCHEDULABLE_S)
    return Strategy(
        is_adaptive=True,
        reserves_pods=bool(adaptive.get("reserveUnschedulablePods")),
        reschedule_after_s=_or(adaptive.get("rescheduleCriticalSeconds"), RESCHEDULE_AFTER_S),
        unschedulable_s=_or(adaptive.get("unschedulableDuration"), unschedulable_s),
    )


def _or(value: int | None, default: int) -> int:
    return default if value is None else value
