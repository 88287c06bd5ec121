"""Filter: in Divide mode, keep replicas out of clusters where not one of them could run.

A cluster passes when some node of it, were it empty, could take a replica; with `maxClusters`, which would otherwise
let a full cluster take one of few places, only when a replica fits there now. That clusters are full is otherwise no
reason to leave them out: the Replicas step gives them nothing while others have room. A cluster that holds the unit
passes, and when nobody qualifies all do: the replicas wait there, where a member's autoscaler sees them. Duplicate is
not filtered, because a copy everywhere is what it asks for. ClusterResourcesFit, off by default, compares sums instead.
"""

from collections.abc import Generator, Sequence
from functools import lru_cache
from typing import ClassVar

from federation.scheduling.framework.capacity import capacity_of, could_run, could_run_each
from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.interfaces import Awaiting, FilterClustersPlugin
from federation.scheduling.framework.types import (
    SUCCESS,
    Change,
    Cluster,
    PluginRequest,
    PluginResponse,
    PodShape,
    SchedulingMode,
    SchedulingUnit,
    Status,
    unschedulable,
)

_NEVER_FITS = unschedulable("cluster(s) had no node that could run a replica")
_FULL = unschedulable("cluster(s) had no room for a replica on any node")


class ClusterNodesFit(FilterClustersPlugin, Awaiting):
    """Lets clusters pass whose nodes could run a replica."""

    NAME: ClassVar[str] = "ClusterNodesFit"
    AWAITS: ClassVar[Change] = Change.RESOURCES

    def filter_clusters(
        self, unit: SchedulingUnit, clusters: Sequence[Cluster], state: CycleState
    ) -> Generator[Sequence[PluginRequest], Sequence[PluginResponse], Sequence[Status]]:
        """Return one status per cluster; nothing is asked."""
        yield from ()
        if unit.mode is not SchedulingMode.DIVIDE:
            return [SUCCESS] * len(clusters)
        statuses = _judge_all(tuple(clusters), unit.shape, is_scarce=unit.max_clusters is not None)
        if statuses.count(SUCCESS) == len(statuses):
            return statuses
        found = [SUCCESS if c.name in unit.current else status for c, status in zip(clusters, statuses, strict=True)]
        return found if SUCCESS in found else [SUCCESS] * len(found)


@lru_cache(maxsize=64)
def _judge_all(clusters: tuple[Cluster, ...], pod: PodShape, *, is_scarce: bool) -> tuple[Status, ...]:
    """Return the answers for a new unit; the last ones are remembered, because many units in a row ask for the same."""
    if is_scarce:
        return tuple([_judge(cluster, pod) for cluster in clusters])
    return tuple([SUCCESS if fits else _NEVER_FITS for fits in could_run_each(clusters, pod)])


def _judge(cluster: Cluster, pod: PodShape) -> Status:
    if not could_run(cluster, pod):
        return _NEVER_FITS
    return _FULL if cluster.node_classes is not None and not capacity_of(cluster, pod) else SUCCESS
