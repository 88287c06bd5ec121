"""Filter: a unit that asks for Katalyst's reclaimed resources goes only where there are any. Off by default.

Katalyst lends out what its pods have requested but do not use, as extended resources of its own; a cluster without
Katalyst does not report them. Where the unit is already it stays, whatever the cluster reports for the moment.
"""

from collections.abc import Hashable
from typing import ClassVar, Literal

from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.interfaces import Awaiting, FilterPlugin, MindsCurrent, Shaped
from federation.scheduling.framework.types import (
    KATALYST_PREFIX,
    SUCCESS,
    Change,
    Cluster,
    SchedulingUnit,
    Status,
    unschedulable,
)

_MISSING = unschedulable("Katalyst resource does not exist")


class KatalystResourcesExist(FilterPlugin, Shaped, MindsCurrent, Awaiting):
    """Lets clusters pass that report a Katalyst resource or hold the unit, or all when it requests none."""

    NAME: ClassVar[str] = "KatalystResourcesExist"
    AWAITS: ClassVar[Change] = Change.RESOURCES
    MINDS_CURRENT: ClassVar[Literal[True]] = True

    def filter(self, unit: SchedulingUnit, cluster: Cluster, state: CycleState) -> Status:
        """Return why the cluster is left out when it has no Katalyst resources and the unit wants some."""
        if cluster.name in unit.current or not _has_katalyst(unit):
            return SUCCESS
        return SUCCESS if any(name.startswith(KATALYST_PREFIX) for name in cluster.allocatable) else _MISSING

    def shape(self, unit: SchedulingUnit) -> Hashable:
        """Answers depend on whether the unit wants any."""
        return _has_katalyst(unit)


def _has_katalyst(unit: SchedulingUnit) -> bool:
    return any(name.startswith(KATALYST_PREFIX) for name in unit.request)
