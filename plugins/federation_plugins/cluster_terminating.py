"""Filter: a cluster must not be terminating; objects move away from one that leaves the federation.

When all other clusters are infeasible, the decision has no feasible cluster and the last placement stays.
"""

from collections.abc import Hashable
from typing import ClassVar

from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.interfaces import Cacheable, FilterPlugin
from federation.scheduling.framework.types import SUCCESS, Cluster, ClusterChange, SchedulingUnit, Status, unschedulable

_TERMINATING = unschedulable("cluster(s) were terminating")


class ClusterTerminating(FilterPlugin, Cacheable):
    """Accepts clusters that are not being deleted."""

    NAME: ClassVar[str] = "ClusterTerminating"
    REQUEUE_ON: ClassVar[ClusterChange] = ClusterChange.TERMINATION
    DEPENDS_ON_RESOURCES: ClassVar[bool] = False

    def filter(self, unit: SchedulingUnit, cluster: Cluster, state: CycleState) -> Status:
        """Reject a terminating cluster."""
        return _TERMINATING if cluster.is_terminating else SUCCESS

    def cache_key(self, unit: SchedulingUnit) -> Hashable:
        """Results do not depend on the unit."""
        return ()
