"""Replicas: fill one cluster after the other in the order of their priorities (`replicasStrategy: Binpack`).

The order comes from PrioritySort. A cluster is full when no more replicas fit on its nodes. With `capacity: Sums`, and
when no cluster reports its nodes, it is full at the policy's maximum or at the member's estimated capacity, as in
KubeAdmiral. A division stays until members have reported its replicas; a new number of replicas is divided at once,
except with `capacity: Sums`. The arithmetic is in `federation.planning.placement.binpack`.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, Self

from federation.planning.placement.binpack import has_other_total, is_due, plan_binpack
from federation.planning.placement.capacity import Planner, plan_within_capacity
from federation.planning.placement.replicas import Steps
from federation.scheduling.framework.capacity import rooms_of
from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.division import NODES, SUMS, capacity_from, demand_of, divide_with
from federation.scheduling.framework.interfaces import Arguments, ReplicasPlugin
from federation.scheduling.framework.topology import topology_of
from federation.scheduling.framework.types import Cluster, Division, SchedulingUnit, Status


class PreferenceBinPack(ReplicasPlugin):
    """Fills clusters in order of priority, minimums first."""

    NAME: ClassVar[str] = "PreferenceBinPack"

    def __init__(self, capacity: str = NODES) -> None:
        self._capacity = capacity

    @classmethod
    def from_args(cls, args: Arguments) -> Self:
        """Return the plugin for `pluginConfig` arguments: {"capacity": "Nodes"}."""
        unknown = set(args) - {"capacity"}
        if unknown:
            raise ValueError(f"unknown argument {', '.join(sorted(unknown))}")
        return cls(capacity_from(args))

    def replicas(self, unit: SchedulingUnit, clusters: Sequence[Cluster], state: CycleState) -> Division | Status:
        """Return replicas per cluster, without those that get none."""
        steps: Steps = []
        explanation: dict[str, Any] = {"steps": steps}
        demand = demand_of(unit, clusters, {})
        rooms = None if self._capacity == SUMS else rooms_of(unit, clusters)
        # A scaled object does not wait for reports, because a member may be unreachable for long.
        waits = not is_due(demand, allows_higher_estimate=True) and (
            self._capacity == SUMS or not has_other_total(demand)
        )
        planner: Planner = partial(plan_binpack, waits=waits)
        if waits:
            return divide_with(planner, unit, demand, explanation, steps)
        if rooms is not None:
            explanation["room"] = rooms.explain
            planner = partial(plan_within_capacity, rooms, planner)
        return divide_with(planner, unit, demand, explanation, steps, topology_of(unit, clusters, rooms))
