"""Replicas: fill one cluster after the other in the order of their priorities (`replicasStrategy: Binpack`).

The order comes from PrioritySort. A cluster is full when no more replicas fit on its nodes; with `capacity: Sums`, and
where no cluster reports its nodes, only when the policy or its member says so, as in KubeAdmiral. Until members have
reported what became of a division it stays, unless another number of replicas is wanted (`capacity: Sums` waits then
too). The arithmetic is `federation.planning.placement.binpack`.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, Self

from federation.planning.placement.binpack import has_other_total, is_due, plan_binpack
from federation.planning.placement.replicas import Steps
from federation.planning.placement.room import Planner, plan_within
from federation.scheduling.framework.capacity import rooms_of
from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.divide import NODES, SUMS, capacity_from, demand_of, divide_with
from federation.scheduling.framework.interfaces import Arguments, ReplicasPlugin
from federation.scheduling.framework.topology import topology_of
from federation.scheduling.framework.types import Cluster, Division, SchedulingUnit, Status


class PreferenceBinPack(ReplicasPlugin):
    """Fills clusters in their order, minimums first."""

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
        """Return replicas per cluster; those that get none are left out."""
        steps: Steps = []
        explanation: dict[str, Any] = {"steps": steps}
        demand = demand_of(unit, clusters, {})
        rooms = None if self._capacity == SUMS else rooms_of(unit, clusters)
        # A new number of replicas waits for no report of a member, which may be out of reach for long.
        waits = not is_due(demand, believes_more=True) and (self._capacity == SUMS or not has_other_total(demand))
        planner: Planner = partial(plan_binpack, waits=waits)
        if waits:
            return divide_with(planner, unit, demand, explanation, steps)
        if rooms is not None:
            explanation["room"] = rooms.explain()
            planner = partial(plan_within, rooms, planner)
        return divide_with(planner, unit, demand, explanation, steps, topology_of(unit, clusters, rooms))
