"""Replicas: divide by static weights, or by what each cluster has room for (spec §6.6, docs/decisions/0012).

Static as soon as the policy gives any cluster a weight; clusters without one then get their minimum only. Dynamic
otherwise. With `capacity: Nodes`, the default, it counts how many replicas fit on the clusters' nodes: no cluster gets
more than that while another one has room, and without weights room decides (`federation.planning.placement.room`).

With `capacity: Sums`, and where no cluster reports its nodes, it is KubeAdmiral's formula: a cluster's weight is its
share of the free cpu (of the GPUs, or of Katalyst's reclaimed cpu, when the unit needs them), but at most 1.4 times its
share of the total. Weights are in thousandths; what rounding leaves over goes to the heaviest cluster, among equals to
the one with the smallest name (the original left that to chance). A cluster with a NoSchedule taint that the unit does
not tolerate keeps what it has and gets no more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, ClassVar, Self

from federation.planning.placement.replicas import Steps, plan_replicas
from federation.planning.placement.room import plan_by_room, plan_within
from federation.scheduling.framework.capacity import rooms_of
from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.divide import NODES, SUMS, capacity_from, demand_of, divide_with
from federation.scheduling.framework.interfaces import Arguments, ReplicasPlugin
from federation.scheduling.framework.topology import topology_of
from federation.scheduling.framework.types import (
    CPU,
    KATALYST_PREFIX,
    NVIDIA_GPU,
    Change,
    Cluster,
    Division,
    SchedulingUnit,
    Status,
)

_THOUSAND = 1000
RECLAIMED_CPU = f"{KATALYST_PREFIX}reclaimed_millicpu"


@dataclass(frozen=True, slots=True)
class ClusterCapacityWeightArgs:
    """`capacity`: whether room is counted on nodes or in sums.

    `limit_permille`: the most of a cluster's share of all capacity that its weight may be, in thousandths (sums only).
    """

    capacity: str = NODES
    limit_permille: int = 1400


class ClusterCapacityWeight(ReplicasPlugin):
    """Divides replicas by static weights, or by room when the policy gives none."""

    NAME: ClassVar[str] = "ClusterCapacityWeight"

    def __init__(self, args: ClusterCapacityWeightArgs | None = None) -> None:
        self._args = args or ClusterCapacityWeightArgs()

    @classmethod
    def from_args(cls, args: Arguments) -> Self:
        """Return the plugin for `pluginConfig` arguments: {"capacity": "Nodes", "limitPermille": 1400}."""
        unknown = set(args) - {"capacity", "limitPermille"}
        if unknown:
            raise ValueError(f"unknown argument {', '.join(sorted(unknown))}")
        limit = args.get("limitPermille", 1400)
        if not isinstance(limit, int) or limit <= 0:
            raise ValueError("limitPermille must be a positive integer")
        return cls(ClusterCapacityWeightArgs(capacity_from(args), limit))

    def replicas(self, unit: SchedulingUnit, clusters: Sequence[Cluster], state: CycleState) -> Division | Status:
        """Return replicas per cluster; those that get none are left out."""
        rooms = None if self._args.capacity == SUMS else rooms_of(unit, clusters)
        steps: Steps = []
        explanation: dict[str, Any] = {"steps": steps}
        if rooms is not None:
            explanation["room"] = rooms.explain()
        topology = topology_of(unit, clusters, rooms)
        if rooms is not None and not unit.weights:
            by_room = partial(plan_by_room, rooms)
            return divide_with(by_room, unit, demand_of(unit, clusters, {}), explanation, steps, topology)
        weights, by = self._weights(unit, clusters)
        explanation["weights"] = {"by": by, "values": weights}
        planner = plan_replicas if rooms is None else partial(plan_within, rooms, plan_replicas)
        demand = demand_of(unit, clusters, weights)
        if unit.weights:
            return divide_with(planner, unit, demand, explanation, steps, topology)
        # Only here a cluster without anything free gets nothing, also when others may not have more.
        return divide_with(planner, unit, demand, explanation, steps, topology, awaits=Change.ANY)

    def _weights(self, unit: SchedulingUnit, clusters: Sequence[Cluster]) -> tuple[Mapping[str, int], str]:
        """Return the policy's weights, KubeAdmiral's by what is free when there are none, and which of the two."""
        if unit.weights:
            return {cluster.name: unit.weights.get(cluster.name, 0) for cluster in clusters}, "policy"
        resource = next((name for name in (RECLAIMED_CPU, NVIDIA_GPU) if unit.request.get(name)), CPU)
        return weights_by_capacity(tuple(clusters), resource, self._args.limit_permille), f"available {resource}"


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
    total, limit = sum(allocatable.values()), limit_permille / _THOUSAND
    if total == 0:
        return dict.fromkeys(allocatable, _round(_THOUSAND, len(allocatable)))
    # In floating point and in this order as in the original, where 26 of 160 times 1.4 is 227, though 227.5 is exact.
    return {name: round_half_up(amount / total * _THOUSAND * limit) for name, amount in allocatable.items()}


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


def round_half_up(number: float) -> int:
    """Return the nearest integer, the upper one of two that are equally near; for numbers from 0."""
    whole = int(number)
    return whole + (number - whole >= 0.5)


def _round(numerator: int, denominator: int) -> int:
    """Return the quotient of two non-negative numbers, halves rounded up, exactly."""
    return (2 * numerator + denominator) // (2 * denominator) if denominator else 0
