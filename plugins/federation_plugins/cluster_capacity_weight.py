"""Replicas: divide by static weights, or by the clusters' free capacity.

When the policy gives any cluster a weight, weights are static, and clusters without one get their minimum only.
Otherwise they are dynamic. With `capacity: Nodes`, the default, the replicas that fit on each cluster's nodes are
counted: no cluster gets more while another has free capacity (`federation.planning.placement.capacity`).

Replicas are divided by weight with `division: Nearest`, the default (`federation.planning.placement.nearest`), or with
`division: KubeAdmiral`, whose results are exactly KubeAdmiral's (`federation.planning.placement.replicas`).

With `capacity: Sums`, and when no cluster reports its nodes, KubeAdmiral's formula is used: a cluster's weight is its
share of the free cpu (GPUs, or Katalyst's reclaimed cpu, when the unit requests them), at most 1.4 times its share of
the total. Weights are in thousandths; the rounding difference goes to the heaviest cluster, among equals to the first
by name (in KubeAdmiral to a random one). A cluster with an untolerated NoSchedule taint gains no replicas.

Reference: docs/reference/scheduling.md, docs/decisions/0012.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

from federation.planning.placement.capacity import Planner, plan_by_capacity, plan_within_capacity
from federation.planning.placement.nearest import plan_nearest
from federation.planning.placement.replicas import Steps, plan_replicas
from federation.scheduling.framework.capacity import rooms_of
from federation.scheduling.framework.clustergroup import ClusterGroup
from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.division import NODES, SUMS, capacity_from, demand_of, divide_with
from federation.scheduling.framework.interfaces import Arguments, ReplicasPlugin
from federation.scheduling.framework.topology import topology_of
from federation.scheduling.framework.types import (
    CPU,
    KATALYST_PREFIX,
    NVIDIA_GPU,
    Cluster,
    ClusterChange,
    Division,
    SchedulingUnit,
    Status,
)

_THOUSAND = 1000
NEAREST = "Nearest"
_PLANNERS: Mapping[str, Planner] = {NEAREST: plan_nearest, "KubeAdmiral": plan_replicas}
RECLAIMED_CPU = f"{KATALYST_PREFIX}reclaimed_millicpu"


@dataclass(frozen=True, slots=True)
class ClusterCapacityWeightArgs:
    """`capacity`: whether free capacity is counted per node or in sums.

    `limit_permille`: the upper limit of a weight relative to the cluster's share of all capacity (sums only).
    `division`: the formula that divides by weight, "Nearest" or "KubeAdmiral".
    """

    capacity: str = NODES
    limit_permille: int = 1400
    division: str = NEAREST


class ClusterCapacityWeight(ReplicasPlugin):
    """Divides replicas by static weights, or by free capacity without weights."""

    NAME: ClassVar[str] = "ClusterCapacityWeight"

    def __init__(self, args: ClusterCapacityWeightArgs | None = None) -> None:
        self._args = args or ClusterCapacityWeightArgs()

    @classmethod
    def from_args(cls, args: Arguments) -> Self:
        """Return the plugin for `pluginConfig` arguments, such as {"capacity": "Nodes", "division": "Nearest"}."""
        unknown = set(args) - {"capacity", "division", "limitPermille"}
        if unknown:
            raise ValueError(f"unknown argument {', '.join(sorted(unknown))}")
        limit = args.get("limitPermille", 1400)
        if not isinstance(limit, int) or limit <= 0:
            raise ValueError("limitPermille must be a positive integer")
        division = args.get("division", NEAREST)
        if division not in _PLANNERS:
            raise ValueError(f"division must be {' or '.join(_PLANNERS)}, not {division!r}")
        return cls(ClusterCapacityWeightArgs(capacity_from(args), limit, division))

    def replicas(self, unit: SchedulingUnit, clusters: Sequence[Cluster], state: CycleState) -> Division | Status:
        """Return replicas per cluster, without those that get none."""
        rooms = None if self._args.capacity == SUMS else rooms_of(unit, clusters)
        steps: Steps = []
        explanation: dict[str, Any] = {"steps": steps}
        if rooms is not None:
            explanation["room"] = rooms.explain
        topology = topology_of(unit, clusters, rooms)
        if rooms is not None and not unit.preferences.weights:
            by_capacity = partial(plan_by_capacity, rooms)
            return divide_with(by_capacity, unit, demand_of(unit, clusters, {}), explanation, steps, topology)
        weights, by = self._weights(unit, clusters)
        explanation["weights"] = {"by": by, "values": weights}
        by_weight = _PLANNERS[self._args.division]
        planner = by_weight if rooms is None else partial(plan_within_capacity, rooms, by_weight)
        demand = demand_of(unit, clusters, weights)
        if unit.preferences.weights:
            return divide_with(planner, unit, demand, explanation, steps, topology)
        # With weights by free resources, a cluster without any gets nothing even when the others are full, so that any
        # change of resources can place the rest.
        return divide_with(planner, unit, demand, explanation, steps, topology, requeue_on=ClusterChange.ANY)

    def _weights(self, unit: SchedulingUnit, clusters: Sequence[Cluster]) -> tuple[Mapping[str, int], str]:
        """Return the policy's weights, or without them weights by free resources, and the name of their source."""
        if unit.preferences.weights:
            return {cluster.name: unit.preferences.weights.get(cluster.name, 0) for cluster in clusters}, "policy"
        resource = next((name for name in (RECLAIMED_CPU, NVIDIA_GPU) if unit.request.get(name)), CPU)
        key = (weights_by_capacity, resource, self._args.limit_permille)
        weigh = partial(weights_by_capacity, resource=resource, limit_permille=self._args.limit_permille)
        return ClusterGroup.of(clusters).cached(key, weigh), f"available {resource}"


def weights_by_capacity(clusters: Sequence[Cluster], resource: str, limit_permille: int) -> Mapping[str, int]:
    """Return each cluster's weight in thousandths; a cluster that does not report the resource has none of it."""
    allocatable = {cluster.name: _whole(cluster.allocatable, resource) for cluster in clusters}
    available = {cluster.name: _whole(cluster.available, resource) for cluster in clusters}
    return weights_of(available, weight_limits(allocatable, limit_permille))


def weight_limits(allocatable: Mapping[str, int], limit_permille: int) -> dict[str, int]:
    """Return the highest weight per cluster; equal weights when no cluster has capacity."""
    total, limit = sum(allocatable.values()), limit_permille / _THOUSAND
    if total == 0:
        return dict.fromkeys(allocatable, _round(_THOUSAND, len(allocatable)))
    # Floating point, in this order, as in KubeAdmiral: 26 of 160 times 1.4 is 227 there, although 227.5 is exact.
    return {name: round_half_up(amount / total * _THOUSAND * limit) for name, amount in allocatable.items()}


def weights_of(available: Mapping[str, int], limits: Mapping[str, int]) -> dict[str, int]:
    """Return weights that sum to 1000, in proportion to the free amounts and within the limits."""
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
    """Return the nearest integer, halves rounded up, of a non-negative number."""
    whole = int(number)
    return whole + (number - whole >= 0.5)


def _round(numerator: int, denominator: int) -> int:
    """Return the quotient of two non-negative numbers, halves rounded up, exactly."""
    return (2 * numerator + denominator) // (2 * denominator) if denominator else 0
