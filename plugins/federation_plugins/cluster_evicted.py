"""Filter: clusters that the user closed for this object until a moment (spec §5.6, workloadMigrations)."""

from collections.abc import Hashable
from typing import ClassVar

from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.interfaces import Awaiting, FilterPlugin, Shaped
from federation.scheduling.framework.types import SUCCESS, Change, Cluster, SchedulingUnit, Status, unschedulable

_EVICTED = unschedulable("cluster(s) were evicted due to custom migration configuration")


class ClusterEvicted(FilterPlugin, Shaped, Awaiting):
    """Lets clusters pass unless the unit's migration closes them now."""

    NAME: ClassVar[str] = "ClusterEvicted"
    AWAITS: ClassVar[Change] = Change.NOTHING

    def filter(self, unit: SchedulingUnit, cluster: Cluster, state: CycleState) -> Status:
        """Return why the cluster is left out while it is closed for the unit."""
        if unit.custom_migration is None:
            return SUCCESS
        until = unit.custom_migration.unavailable_until.get(cluster.name)
        return _EVICTED if until is not None and until > state.now else SUCCESS

    def shape(self, unit: SchedulingUnit) -> Hashable:
        """Answers depend on the moment as soon as anything is closed, so they are not reused then."""
        return None if unit.custom_migration and unit.custom_migration.unavailable_until else ()
