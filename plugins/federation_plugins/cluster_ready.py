"""Filter: a cluster must be Ready, or be a current cluster of the unit.

An unreachable cluster keeps its workload, because the pods there may still run. Taints move workloads away.
"""

from collections.abc import Hashable
from typing import ClassVar

from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.interfaces import Cacheable, FilterPlugin
from federation.scheduling.framework.types import SUCCESS, Cluster, ClusterChange, SchedulingUnit, Status, unschedulable

_UNREADY = unschedulable("cluster(s) were unready")


class ClusterReady(FilterPlugin, Cacheable):
    """Accepts Ready clusters and the unit's current clusters."""

    NAME: ClassVar[str] = "ClusterReady"
    REQUEUE_ON: ClassVar[ClusterChange] = ClusterChange.READINESS
    DEPENDS_ON_CURRENT: ClassVar[bool] = True
    DEPENDS_ON_RESOURCES: ClassVar[bool] = False

    def filter(self, unit: SchedulingUnit, cluster: Cluster, state: CycleState) -> Status:
        """Reject an unready cluster unless it is a current one."""
        return SUCCESS if cluster.is_ready or cluster.name in unit.current else _UNREADY

    def cache_key(self, unit: SchedulingUnit) -> Hashable:
        """Results depend on nothing but the unit's current clusters."""
        return ()
