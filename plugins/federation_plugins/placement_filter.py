"""Filter: a policy that lists clusters (`spec.placement`) allows only those.

An empty list allows all. Preferences in the list (weight, minimum, maximum, priority) are used by other plugins.
"""

from collections.abc import Hashable
from typing import ClassVar

from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.interfaces import Awaiting, FilterPlugin, Shaped
from federation.scheduling.framework.types import SUCCESS, Change, Cluster, SchedulingUnit, Status, unschedulable

_NOT_LISTED = unschedulable("cluster(s) were not in placement list")


class PlacementFilter(FilterPlugin, Shaped, Awaiting):
    """Lets clusters pass that the policy lists, all of them when it lists none."""

    NAME: ClassVar[str] = "PlacementFilter"
    AWAITS: ClassVar[Change] = Change.NOTHING

    def filter(self, unit: SchedulingUnit, cluster: Cluster, state: CycleState) -> Status:
        """Return why the cluster is left out when there is a list without it."""
        return SUCCESS if not unit.cluster_names or cluster.name in unit.cluster_names else _NOT_LISTED

    def shape(self, unit: SchedulingUnit) -> Hashable:
        """Answers depend on the list only."""
        return unit.cluster_names
