"""Filter: one replica more must fit into what the cluster has free. Off by default.

It compares sums over all nodes, so it can be too generous where no single node has room. A cluster that holds the unit
already passes: its own replicas are part of what is used there.
"""

from collections.abc import Hashable
from typing import ClassVar, Literal

from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.interfaces import Awaiting, FilterPlugin, MindsCurrent, Shaped
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

_ALWAYS = (CPU, MEMORY)
"""Compared for whoever requests anything: nothing fits where these are overdrawn."""


class ClusterResourcesFit(FilterPlugin, Shaped, MindsCurrent, Awaiting):
    """Lets clusters pass with room for one replica, or that hold the unit already."""

    NAME: ClassVar[str] = "ClusterResourcesFit"
    AWAITS: ClassVar[Change] = Change.RESOURCES
    MINDS_CURRENT: ClassVar[Literal[True]] = True

    def filter(self, unit: SchedulingUnit, cluster: Cluster, state: CycleState) -> Status:
        """Return every resource of which there is not enough."""
        if cluster.name in unit.current or not any(unit.request.values()):
            return SUCCESS
        others = [name for name, amount in unit.request.items() if amount and name not in _ALWAYS]
        lacking = [
            f"Insufficient {name}"
            for name in (*_ALWAYS, *sorted(others, key=lambda name: (name != EPHEMERAL_STORAGE, name)))
            if cluster.used(name) + unit.request.get(name, 0) > cluster.allocatable.get(name, 0)
        ]
        return unschedulable(*lacking) if lacking else SUCCESS

    def shape(self, unit: SchedulingUnit) -> Hashable:
        """Answers depend on the request only."""
        return frozenset(unit.request.items())
