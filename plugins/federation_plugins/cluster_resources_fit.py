"""Filter: one more replica must fit into the cluster's free resources. Off by default.

It compares sums over all nodes, and so accepts a cluster where no single node has enough. The unit's current clusters
are accepted, because its own replicas count as used there.
"""

from collections.abc import Hashable
from typing import ClassVar

from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.interfaces import Cacheable, FilterPlugin
from federation.scheduling.framework.types import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    SUCCESS,
    Cluster,
    ClusterChange,
    SchedulingUnit,
    Status,
    unschedulable,
)

_ALWAYS = (CPU, MEMORY)
"""Compared for every non-empty request: nothing fits where these are overcommitted."""


class ClusterResourcesFit(FilterPlugin, Cacheable):
    """Accepts clusters with resources for one replica, and the unit's current clusters."""

    NAME: ClassVar[str] = "ClusterResourcesFit"
    REQUEUE_ON: ClassVar[ClusterChange] = ClusterChange.RESOURCES
    DEPENDS_ON_CURRENT: ClassVar[bool] = True

    def filter(self, unit: SchedulingUnit, cluster: Cluster, state: CycleState) -> Status:
        """Reject a cluster with the resources that are insufficient."""
        if cluster.name in unit.current or not any(unit.request.values()):
            return SUCCESS
        others = [name for name, amount in unit.request.items() if amount and name not in _ALWAYS]
        lacking = [
            f"Insufficient {name}"
            for name in (*_ALWAYS, *sorted(others, key=lambda name: (name != EPHEMERAL_STORAGE, name)))
            if cluster.used(name) + unit.request.get(name, 0) > cluster.allocatable.get(name, 0)
        ]
        return unschedulable(*lacking) if lacking else SUCCESS

    def cache_key(self, unit: SchedulingUnit) -> Hashable:
        """Results depend on the request only."""
        return frozenset(unit.request.items())
