"""Filter: one replica more must fit into what the cluster has free. Off by default.

It compares sums over all nodes, so it can be too generous where no single node has room. A cluster that holds the unit
already passes: its own replicas are part of what is used there.
"""

from collections.abc import Hashable
from typing import ClassVar

from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.interfaces import Awaiting, FilterPlugin, Shaped
from federation.scheduling.framework.types import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    SUCCESS,
    Change,
    Cluster,
    SchedulingUnit,
    Status,
    unschedulable,
)

_FIRST = (CPU, MEMORY, EPHEMERAL_STORAGE)


class ClusterResourcesFit(FilterPlugin, Shaped, Awaiting):
    """Lets clusters pass with room for one replica, or that hold the unit already."""

    NAME: ClassVar[str] = "ClusterResourcesFit"
    AWAITS: ClassVar[Change] = Change.RESOURCES

    def filter(self, unit: SchedulingUnit, cluster: Cluster, state: CycleState) -> Status:
        """Return every resource of which there is not enough."""
        if cluster.name in unit.current:
            return SUCCESS
        wanted = [name for name in _FIRST if unit.request.get(name)]
        wanted += sorted(name for name, amount in unit.request.items() if amount and name not in _FIRST)
        lacking = [
            f"Insufficient {name}"
            for name in wanted
            if cluster.used(name) + unit.request[name] > cluster.allocatable.get(name, 0)
        ]
        return unschedulable(*lacking) if lacking else SUCCESS

    def shape(self, unit: SchedulingUnit) -> Hashable:
        """Answers depend on the request and on where the unit is."""
        return (frozenset(unit.request.items()), frozenset(unit.current))
