"""Filter: a unit that requests Katalyst's reclaimed resources needs a cluster that has them. Off by default.

Katalyst offers requested but unused resources of pods as extended resources; a cluster without Katalyst does not report
them. The unit's current clusters are always accepted.
"""

from collections.abc import Hashable
from typing import ClassVar

from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.interfaces import Cacheable, FilterPlugin
from federation.scheduling.framework.types import (
    KATALYST_PREFIX,
    SUCCESS,
    Cluster,
    ClusterChange,
    SchedulingUnit,
    Status,
    unschedulable,
)

_MISSING = unschedulable("Katalyst resource does not exist")


class KatalystResourcesExist(FilterPlugin, Cacheable):
    """Accepts clusters that report a Katalyst resource; all clusters for a unit that requests none."""

    NAME: ClassVar[str] = "KatalystResourcesExist"
    REQUEUE_ON: ClassVar[ClusterChange] = ClusterChange.RESOURCES
    DEPENDS_ON_CURRENT: ClassVar[bool] = True

    def filter(self, unit: SchedulingUnit, cluster: Cluster, state: CycleState) -> Status:
        """Reject a cluster without Katalyst resources if the unit requests any."""
        if cluster.name in unit.current or not _has_katalyst(unit):
            return SUCCESS
        return SUCCESS if any(name.startswith(KATALYST_PREFIX) for name in cluster.allocatable) else _MISSING

    def cache_key(self, unit: SchedulingUnit) -> Hashable:
        """Results depend on whether the unit requests any."""
        return _has_katalyst(unit)


def _has_katalyst(unit: SchedulingUnit) -> bool:
    return any(name.startswith(KATALYST_PREFIX) for name in unit.request)
