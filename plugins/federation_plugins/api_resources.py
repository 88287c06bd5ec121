"""Filter: a cluster must serve the object's kind.

The cluster controller discovers the served kinds periodically (`status.apiResourceTypes`). Group, version and kind must
match exactly, because the manifest is not converted to another version. A cluster that has the object and serves its
kind in another version keeps it: an operator is upgraded on the host before the members, or after them, and what runs
meanwhile must not leave.
"""

from collections.abc import Hashable
from typing import ClassVar

from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.interfaces import Cacheable, FilterPlugin
from federation.scheduling.framework.types import SUCCESS, Cluster, ClusterChange, SchedulingUnit, Status, unschedulable

_NOT_SERVED = unschedulable("cluster(s) didn't support this APIVersion")


class APIResources(FilterPlugin, Cacheable):
    """Accepts clusters that serve the unit's kind."""

    NAME: ClassVar[str] = "APIResources"
    REQUEUE_ON: ClassVar[ClusterChange] = ClusterChange.API_TYPES
    DEPENDS_ON_RESOURCES: ClassVar[bool] = False
    DEPENDS_ON_CURRENT: ClassVar[bool] = True

    def filter(self, unit: SchedulingUnit, cluster: Cluster, state: CycleState) -> Status:
        """Reject a cluster that does not serve the kind."""
        if unit.gvk in cluster.api_types:
            return SUCCESS
        is_kept = cluster.name in unit.current and any(
            (each.group, each.kind) == (unit.gvk.group, unit.gvk.kind) for each in cluster.api_types
        )
        return SUCCESS if is_kept else _NOT_SERVED

    def cache_key(self, unit: SchedulingUnit) -> Hashable:
        """Results depend on the kind only."""
        return unit.gvk
