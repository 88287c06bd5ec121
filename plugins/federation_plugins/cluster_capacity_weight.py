"""Replicas: divide by weight, static or by what each cluster has free (spec §6.6).

Static as soon as the policy gives any cluster a weight; clusters without one then get their minimum only. Dynamic
otherwise: a cluster's weight is its share of the free cpu (of the GPUs when the unit needs them), but at most 1.4 times
its share of the total, so that an empty small cluster is not flooded. Weights are in thousandths; what rounding leaves
over goes to the heaviest cluster, among equals to the one with the smallest name (the original left that to chance).

A cluster with a NoSchedule taint that the unit does not tolerate keeps what it has and gets no more. The arithmetic of
the division itself is `federation.planning.placement.replicas`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Self

from federation.planning.placement.failback import plan_with_trials
from federation.planning.placement.replicas import Demand, Preference, Steps, plan_replicas
from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.divide import caps_of, current_replicas, maximums, offers_of
from federation.scheduling.framework.interfaces import Arguments, ReplicasPlugin
from federation.scheduling.framework.types import CPU, NVIDIA_GPU, Cluster, Division, SchedulingUnit, Status

_THOUSAND = 1000


@dataclass(frozen=True, slots=True)
class ClusterCapacityWeightArgs:
    """`limit_permille`: the most of a cluster's share of all capacity that its weight may be, in thousandths."""

    limit_permille: int = 1400


class ClusterCapacityWeight(ReplicasPlugin):
    """Divides replicas by static weights, or by free capacity when the policy gives none."""

    NAME: ClassVar[str] = "ClusterCapacityWeight"

    def __init__(self, args: ClusterCapacityWeightArgs | None = None) -> None:
        self._args = args or ClusterCapacityWeightArgs()

    @classmethod
    def from_args(cls, args: Arguments) -> Self:
        """Return the plugin for `pluginConfig` arguments: {"limitPermille": 1400}."""
        unknown = set(args) - {"limitPermille"}
        if unknown:
            raise ValueError(f"unknown argument {', '.join(sorted(unknown))}")
        limit = args.get("limitPermille", 1400)
        if not isinstance(limit, int) or limit <= 0:
            raise ValueError("limitPermille must be a positive integer")
        return cls(ClusterCapacityWeightArgs(limit))

    def replicas(self, unit: SchedulingUnit, clusters: Sequence[Cluster], state: CycleState) -> Division | Status:
        """Return replicas per cluster; those that get none are left out."""
        explanation: dict[str, Any] = {}
        if unit.weights:
            weights: Mapping[str, int] = {cluster.name: unit.weights.get(cluster.name, 0) for cluster in clusters}
            explanation["weights"] = {"by": "policy", "values": weights}
        else:
            resource = NVIDIA_GPU if unit.request.get(NVIDIA_GPU) else CPU
            weights = weights_by_capacity(tuple(clusters), resource, self._args.limit_permille)
            explanation["weights"] = {"by": f"available {resource}", "values": weights}
        bounds = maximums(unit, clusters)
        steps: Steps = []
        explanation["steps"] = steps
        names = tuple(cluster.name for cluster in clusters)
        estimated, limited = caps_of(unit)
        demand = Demand(
            total=unit.desired_replicas or 0,
            clusters=names,
            preferences=_preferences(names, weights, unit.min_replicas, bounds),
            key=unit.key,
            current=current_replicas(unit),
            estimated=estimated,
            limited=limited,
            avoid_disruption=unit.avoid_disruption,
            keep_unschedulable=unit.auto_migration is not None and unit.auto_migration.keep_unschedulable,
        )
        plan = plan_with_trials(plan_replicas, demand, offers_of(unit), steps)
        if estimated:
            explanation["estimated"] = dict(estimated)
        if plan.overflow:
            explanation["overflow"] = plan.overflow
        totals = plan.totals()
        return Division({name: totals[name] for name in names if totals.get(name)}, explanation)


def _preferences(
    names: Sequence[str], weights: Mapping[str, int], minimums: Mapping[str, int], maximums: Mapping[str, int]
) -> dict[str, Preference]:
    if not minimums and not maximums:
        of_weight = {weight: Preference(weight) for weight in set(weights.values())}
        return {name: of_weight[weights[name]] for name in names}
    return {name: Preference(weights[name], minimums.get(name, 0), maximums.get(name)) for name in names}


@lru_cache(maxsize=16)
def weights_by_capacity(clusters: tuple[Cluster, ...], resource: str, limit_permille: int) -> Mapping[str, int]:
    """Return each cluster's weight in thousandths; a cluster that does not report the resource has none of it.

    The last answers are remembered: clusters are facts, and many units in a row are divided over the same ones.
    """
    allocatable = {cluster.name: _whole(cluster.allocatable, resource) for cluster in clusters}
    available = {cluster.name: _whole(cluster.available, resource) for cluster in clusters}
    return weights_of(available, weight_limits(allocatable, limit_permille))


def weight_limits(allocatable: Mapping[str, int], limit_permille: int) -> dict[str, int]:
    """Return the highest weight per cluster; all equal when nobody has any capacity."""
    total = sum(allocatable.values())
    if total == 0:
        return dict.fromkeys(allocatable, _round(_THOUSAND, len(allocatable)))
    return {name: _round(amount * limit_permille, total) for name, amount in allocatable.items()}


def weights_of(available: Mapping[str, int], limits: Mapping[str, int]) -> dict[str, int]:
    """Return weights that sum to 1000, in proportion to what is free and within the limits."""
    free = {name: max(0, amount) for name, amount in available.items()}
    total = sum(free.values())
    equal = dict.fromkeys(free, _round(_THOUSAND, len(free)))
    if total == 0:
        return equal
    limited = {name: min(_round(amount * _THOUSAND, total), limits[name]) for name, amount in free.items()}
    total = sum(limited.values())
    if total == 0:
        return equal
    weights = {name: _round(weight * _THOUSAND, total) for name, weight in limited.items()}
    heaviest = min(weights, key=lambda name: (-weights[name], name))
    weights[heaviest] += _THOUSAND - sum(weights.values())
    return weights


def _whole(amounts: Mapping[str, int], resource: str) -> int:
    """Return the amount in whole units, rounded up: cores for cpu."""
    amount = amounts.get(resource, 0)
    return -(-amount // _THOUSAND) if resource == CPU else amount


def _round(numerator: int, denominator: int) -> int:
    """Return the quotient of two non-negative numbers, halves rounded up, exactly."""
    return (2 * numerator + denominator) // (2 * denominator) if denominator else 0
