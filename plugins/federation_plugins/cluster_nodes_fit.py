"""Filter: in Divide mode, reject clusters that cannot run any replica.

A cluster is accepted when a replica would fit on one of its nodes if that were empty. With `maxClusters` a replica must
fit now, because a full cluster would use up one of few selections. Full clusters are otherwise accepted: the Replicas
step gives them nothing while others have free capacity. The unit's current clusters, and those where auto-migration
found capacity for it, are always accepted. When every cluster is rejected, all are accepted: pending replicas make the
member's autoscaler add nodes. In Duplicate mode nothing is filtered, because the object goes to every cluster.
ClusterResourcesFit, off by default, compares sums instead.
"""

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from itertools import repeat
from typing import ClassVar

from federation.scheduling.framework.capacity import capacity_of, capacity_of_each, could_run, could_run_each
from federation.scheduling.framework.clustergroup import ClusterGroup
from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.interfaces import Cacheable, FilterPlugin
from federation.scheduling.framework.migrations import AUTO_MIGRATION
from federation.scheduling.framework.types import (
    SUCCESS,
    Cluster,
    ClusterChange,
    PodShape,
    SchedulingMode,
    SchedulingUnit,
    Status,
    unschedulable,
)

_NEVER_FITS = unschedulable("cluster(s) had no node that could run a replica")
_FULL = unschedulable("cluster(s) had no room for a replica on any node")


class ClusterNodesFit(FilterPlugin, Cacheable):
    """Accepts clusters whose nodes could run a replica."""

    NAME: ClassVar[str] = "ClusterNodesFit"
    REQUEUE_ON: ClassVar[ClusterChange] = ClusterChange.RESOURCES
    DEPENDS_ON_CURRENT: ClassVar[bool] = True
    IS_LENIENT: ClassVar[bool] = True

    def filter(self, unit: SchedulingUnit, cluster: Cluster, state: CycleState) -> Status:
        """Reject a cluster that cannot run a replica, or with `maxClusters` is full."""
        if unit.mode is not SchedulingMode.DIVIDE or cluster.name in unit.current or cluster.name in _openings(unit):
            return SUCCESS
        if not could_run(cluster, unit.shape):
            return _NEVER_FITS
        is_scarce = unit.max_clusters is not None and cluster.node_classes is not None
        return _FULL if is_scarce and not capacity_of(cluster, unit.shape) else SUCCESS

    def filter_each(self, unit: SchedulingUnit, clusters: Sequence[Cluster], state: CycleState) -> Sequence[Status]:
        """Return the results of `filter` for all clusters; mostly none is rejected."""
        if unit.mode is not SchedulingMode.DIVIDE:
            return [SUCCESS] * len(clusters)
        group, is_limited = ClusterGroup.of(clusters), unit.max_clusters is not None
        rejections = partial(_rejections, unit.shape, is_limited)
        found = group.whole.cached((_rejections, unit.shape, is_limited), rejections)
        rejected = {
            name: status for name, status in found.items() if name not in unit.current and name not in _openings(unit)
        }
        if not rejected:
            return [SUCCESS] * len(group)
        return list(map(rejected.get, group.names, repeat(SUCCESS)))

    def cache_key(self, unit: SchedulingUnit) -> Hashable:
        """Results depend on the pod shape, on whether clusters are limited, and on openings."""
        if unit.mode is not SchedulingMode.DIVIDE:
            return ()
        return (unit.shape, unit.max_clusters is not None, *sorted(_openings(unit)))


def _openings(unit: SchedulingUnit) -> Mapping[str, int]:
    return AUTO_MIGRATION.of(unit).openings


def _rejections(pod: PodShape, is_limited: bool, clusters: ClusterGroup) -> dict[str, Status]:
    """Return the clusters that are rejected unless the unit runs there."""
    could_run, rooms = could_run_each(clusters, pod), capacity_of_each(clusters, pod) if is_limited else ()
    if all(could_run) and all(rooms):
        return {}
    never = {name: _NEVER_FITS for name, could in zip(clusters.names, could_run, strict=True) if not could}
    full = {
        cluster.name: _FULL
        for cluster, room in zip(clusters, rooms, strict=False)
        if not room and cluster.node_classes is not None
    }
    return {**full, **never}
