"""Filter: in Divide mode, keep replicas out of clusters where not one of them could run.

A cluster passes when some node of it, were it empty, could take a replica; with `maxClusters`, which would otherwise
let a full cluster take one of few places, only when a replica fits there now. That clusters are full is otherwise no
reason to leave them out: the Replicas step gives them nothing while others have room. A cluster passes that holds the
unit, or in which auto-migration has counted room for it. When nobody qualifies all do: the replicas wait there, where
a member's autoscaler sees them. Duplicate is not filtered, because a copy everywhere is what it asks for.
ClusterResourcesFit, off by default, compares sums instead.
"""

from collections.abc import Hashable, Mapping
from typing import ClassVar, Literal

from federation.scheduling.framework.capacity import capacity_of, could_run
from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.interfaces import Awaiting, FilterPlugin, Lenient, MindsCurrent, Shaped
from federation.scheduling.framework.types import (
    SUCCESS,
    Change,
    Cluster,
    SchedulingMode,
    SchedulingUnit,
    Status,
    unschedulable,
)

_NEVER_FITS = unschedulable("cluster(s) had no node that could run a replica")
_FULL = unschedulable("cluster(s) had no room for a replica on any node")


class ClusterNodesFit(FilterPlugin, Shaped, MindsCurrent, Lenient, Awaiting):
    """Lets clusters pass whose nodes could run a replica."""

    NAME: ClassVar[str] = "ClusterNodesFit"
    AWAITS: ClassVar[Change] = Change.RESOURCES
    MINDS_CURRENT: ClassVar[Literal[True]] = True
    IS_LENIENT: ClassVar[Literal[True]] = True

    def filter(self, unit: SchedulingUnit, cluster: Cluster, state: CycleState) -> Status:
        """Return why the cluster is left out when no replica could run, or there is no room for one of few places."""
        if unit.mode is not SchedulingMode.DIVIDE or cluster.name in unit.current or cluster.name in _openings(unit):
            return SUCCESS
        if not could_run(cluster, unit.shape):
            return _NEVER_FITS
        is_scarce = unit.max_clusters is not None and cluster.node_classes is not None
        return _FULL if is_scarce and not capacity_of(cluster, unit.shape) else SUCCESS

    def shape(self, unit: SchedulingUnit) -> Hashable:
        """Answers depend on what a replica needs, on whether places are few, and on what was counted."""
        if unit.mode is not SchedulingMode.DIVIDE:
            return ()
        return (unit.shape, unit.max_clusters is not None, *sorted(_openings(unit)))


def _openings(unit: SchedulingUnit) -> Mapping[str, int]:
    return {} if unit.auto_migration is None else unit.auto_migration.openings
