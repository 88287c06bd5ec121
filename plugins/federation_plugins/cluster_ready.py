"""Filter: a unit goes only to clusters that are Ready, but does not leave one because it is not.

A cluster that stops answering keeps its workload: the pods there may well be running. Moving them away is the business
of taints, not of a missed heartbeat.
"""

from collections.abc import Hashable
from typing import ClassVar, Literal

from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.interfaces import Awaiting, FilterPlugin, MindsCurrent, Shaped
from federation.scheduling.framework.types import SUCCESS, Change, Cluster, SchedulingUnit, Status, unschedulable

_UNREADY = unschedulable("cluster(s) were unready")


class ClusterReady(FilterPlugin, Shaped, MindsCurrent, Awaiting):
    """Lets clusters pass that are Ready, or that hold the unit already."""

    NAME: ClassVar[str] = "ClusterReady"
    AWAITS: ClassVar[Change] = Change.READINESS
    MINDS_CURRENT: ClassVar[Literal[True]] = True

    def filter(self, unit: SchedulingUnit, cluster: Cluster, state: CycleState) -> Status:
        """Return why the cluster is left out when it is unready and new to the unit."""
        return SUCCESS if cluster.is_ready or cluster.name in unit.current else _UNREADY

    def shape(self, unit: SchedulingUnit) -> Hashable:
        """Answers depend on nothing else of the unit."""
        return ()
