"""Filter: a cluster must be in the policy's list (`spec.placement`).

An empty list allows all clusters. Other plugins use the preferences in the list (weight, minimum, maximum, priority).
"""

from collections.abc import Hashable
from typing import ClassVar

from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.interfaces import Cacheable, FilterPlugin
from federation.scheduling.framework.types import SUCCESS, Cluster, ClusterChange, SchedulingUnit, Status, unschedulable

_NOT_LISTED = unschedulable("cluster(s) were not in placement list")


class PlacementFilter(FilterPlugin, Cacheable):
    """Accepts listed clusters; all when none is listed."""

    NAME: ClassVar[str] = "PlacementFilter"
    REQUEUE_ON: ClassVar[ClusterChange] = ClusterChange.NOTHING
    DEPENDS_ON_RESOURCES: ClassVar[bool] = False

    def filter(self, unit: SchedulingUnit, cluster: Cluster, state: CycleState) -> Status:
        """Reject a cluster that is not in a non-empty list."""
        return (
            SUCCESS
            if not unit.preferences.cluster_names or cluster.name in unit.preferences.cluster_names
            else _NOT_LISTED
        )

    def cache_key(self, unit: SchedulingUnit) -> Hashable:
        """Results depend on the list only."""
        return unit.preferences.cluster_names
