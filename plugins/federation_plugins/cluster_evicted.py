"""Filter: clusters that the user made unavailable for this object until a time, and those in which it was unhealthy.

Reference: docs/reference/scheduling.md, workloadMigrations, and docs/reference/failover.md.
"""

from collections.abc import Hashable
from typing import ClassVar

from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.interfaces import Cacheable, FilterPlugin
from federation.scheduling.framework.migrations import CUSTOM_MIGRATION
from federation.scheduling.framework.moving import AVOIDED
from federation.scheduling.framework.types import SUCCESS, Cluster, ClusterChange, SchedulingUnit, Status, unschedulable

_EVICTED = unschedulable("cluster(s) were evicted due to custom migration configuration")


class ClusterEvicted(FilterPlugin, Cacheable):
    """Accepts clusters unless the unit's migration makes them unavailable now, or it is to avoid them."""

    NAME: ClassVar[str] = "ClusterEvicted"
    REQUEUE_ON: ClassVar[ClusterChange] = ClusterChange.NOTHING
    DEPENDS_ON_RESOURCES: ClassVar[bool] = False

    def filter(self, unit: SchedulingUnit, cluster: Cluster, state: CycleState) -> Status:
        """Reject a cluster that is unavailable for the unit."""
        if (reason := AVOIDED.of(unit).get(cluster.name)) is not None:
            return unschedulable(reason)
        until = CUSTOM_MIGRATION.of(unit).unavailable_until.get(cluster.name)
        return _EVICTED if until is not None and until > state.now else SUCCESS

    def cache_key(self, unit: SchedulingUnit) -> Hashable:
        """Results depend on the time when any cluster is unavailable, and are not cached then."""
        if CUSTOM_MIGRATION.of(unit).unavailable_until:
            return None
        return tuple(sorted(AVOIDED.of(unit).items()))
