"""The limits of an autoscaler: minimum and maximum, stabilisation windows, and policies of `spec.behavior`. Pure.

The rules are those of Kubernetes: on the way down the highest recommendation of the last five minutes, and without
policies at most double (or four) replicas at once.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from federation.apimachinery.quantity import to_milli
from federation.planning.autoscaling.replicacount import TOLERANCE, Tolerances

_DOWN_STABILIZATION_S = 300.0


@dataclass(frozen=True, slots=True)
class Bounds:
    """The replicas that an autoscaler may set, and its `spec.behavior`."""

    low: int
    high: int
    behavior: Mapping[str, Any] | None

    @classmethod
    def of(cls, spec: Mapping[str, Any]) -> "Bounds":
        """Return the bounds of an autoscaler's spec."""
        low = spec.get("minReplicas")
        return cls(1 if low is None else int(low), int(spec.get("maxReplicas") or 0), spec.get("behavior"))

    @property
    def tolerances(self) -> Tolerances:
        """The tolerances of both directions."""
        return Tolerances(self._tolerance("scaleUp"), self._tolerance("scaleDown"))

    def _tolerance(self, direction: str) -> float:
        given = ((self.behavior or {}).get(direction) or {}).get("tolerance")
        return TOLERANCE if given is None else to_milli(str(given)) / 1000


ScalingCondition = tuple[str, str, str]
"""Status, reason and message of a condition."""
_FITS: ScalingCondition = ("False", "DesiredWithinRange", "the desired count is within the acceptable range")
_TOO_MANY = ("True", "TooManyReplicas", "the desired replica count is more than the maximum replica count")
_TOO_FEW = ("True", "TooFewReplicas", "the desired replica count is less than the minimum replica count")
_TOO_FAST_UP = (
    "True",
    "ScaleUpLimit",
    "the desired replica count is increasing faster than the maximum scale rate",
)
_TOO_FAST_DOWN = (
    "True",
    "ScaleDownLimit",
    "the desired replica count is decreasing faster than the maximum scale rate",
)
_READY: ScalingCondition = ("True", "ReadyForNewScale", "recommended size matches current size")


@dataclass(slots=True)
class History:
    """The latest recommendations and actions of one autoscaler; times are seconds of a monotonic clock."""

    recommendations: list[tuple[float, int]] = field(default_factory=list)
    changes: list[tuple[float, int]] = field(default_factory=list)
    """Replicas added (negative: removed)."""

    def limit(
        self, current: int, wanted: int, bounds: Bounds, now_s: float
    ) -> tuple[int, ScalingCondition, ScalingCondition]:
        """Return the replicas to set now, and the conditions AbleToScale and ScalingLimited."""
        stabilized = self._stabilize(current, wanted, bounds, now_s)
        is_down = wanted < current or bounds.behavior is None
        able: ScalingCondition = _READY
        if stabilized != wanted:
            side, other = ("ScaleDown", "highest") if is_down else ("ScaleUp", "lowest")
            than = "higher" if is_down else "lower"
            message = f"recent recommendations were {than} than current one, applying the {other} recent recommendation"
            able = ("True", f"{side}Stabilized", message)
        low, high = self._rate_limits(current, bounds, now_s)
        if stabilized > min(high, bounds.high):
            limited = _TOO_FAST_UP if high < bounds.high else _TOO_MANY
            return min(high, bounds.high), able, limited
        if stabilized < max(low, bounds.low):
            limited = _TOO_FAST_DOWN if low > bounds.low else _TOO_FEW
            return max(low, bounds.low), able, limited
        return stabilized, able, _FITS

    def record_change(self, change: int, now_s: float) -> None:
        """Note that replicas were added or removed; rates are limited over at most half an hour."""
        self.changes = [each for each in self.changes if each[0] > now_s - 1800] + [(now_s, change)]

    def _stabilize(self, current: int, wanted: int, bounds: Bounds, now_s: float) -> int:
        behavior = bounds.behavior or {}
        up_s = float((behavior.get("scaleUp") or {}).get("stabilizationWindowSeconds") or 0)
        down_s = (behavior.get("scaleDown") or {}).get("stabilizationWindowSeconds")
        down_s = _DOWN_STABILIZATION_S if down_s is None else float(down_s)
        up = min([wanted, *(n for at_s, n in self.recommendations if at_s > now_s - up_s)])
        down = max([wanted, *(n for at_s, n in self.recommendations if at_s > now_s - down_s)])
        kept = [each for each in self.recommendations if each[0] > now_s - max(up_s, down_s)]
        self.recommendations = [*kept, (now_s, wanted)]
        # Without a behavior, a recent higher recommendation counts on the way up, too.
        return down if bounds.behavior is None else min(max(current, up), down)

    def _rate_limits(self, current: int, bounds: Bounds, now_s: float) -> tuple[int, int]:
        """Return the fewest and the most replicas that the speed limits allow now."""
        if bounds.behavior is None:
            return 0, max(2 * current, 4)
        up, down = bounds.behavior.get("scaleUp") or {}, bounds.behavior.get("scaleDown") or {}
        high = _select(up, [self._policy_limit(each, current, now_s, 1) for each in up.get("policies") or ()], max, min)
        low = _select(
            down, [self._policy_limit(each, current, now_s, -1) for each in down.get("policies") or ()], min, max
        )
        return (
            min(current, current if low is None else low),
            max(current, current if high is None else high),
        )

    def _policy_limit(self, policy: Mapping[str, Any], current: int, now_s: float, sign: int) -> int:
        period_s = float(policy["periodSeconds"])
        at_start = current - sum(change for at_s, change in self.changes if at_s > now_s - period_s)
        if policy["type"] == "Pods":
            return int(at_start + sign * policy["value"])
        exact = at_start * (1 + sign * policy["value"] / 100)
        return math.ceil(exact) if sign > 0 else int(exact)


def _select(rules: Mapping[str, Any], limits: Sequence[int], widest: Any, narrowest: Any) -> int | None:
    """Return the limit that the rules choose; None when they forbid any change."""
    if rules.get("selectPolicy") == "Disabled" or not limits:
        return None
    chosen: int = narrowest(limits) if rules.get("selectPolicy") == "Min" else widest(limits)
    return chosen
