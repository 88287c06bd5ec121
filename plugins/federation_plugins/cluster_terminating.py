"""Filter: nothing goes to a cluster that is leaving the federation, and what is there moves away.

When *all* suitable clusters are leaving, the decision has no feasible cluster and the last placement stays.
"""

from collections.abc import Hashable
from typing import ClassVar

from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.interfaces import Awaiting, FilterPlugin, Shaped
from federation.scheduling.framework.types import SUCCESS, Change, Cluster, SchedulingUnit, Status, unschedulable

_TERMINATING = unschedulable("cluster(s) were terminating")


class ClusterTerminating(FilterPlugin, Shaped, Awaiting):
    """Lets clusters pass that are not being deleted."""

    NAME: ClassVar[str] = "ClusterTerminating"
    AWAITS: ClassVar[Change] = Change.TERMINATION

    def filter(self, unit: SchedulingUnit, cluster: Cluster, state: CycleState) -> Status:
        """Return why the cluster is left out when it is terminating."""
        return _TERMINATING if cluster.is_terminating else SUCCESS

    def shape(self, unit: SchedulingUnit) -> Hashable:
        """Answers do not depend on the unit."""
        return ()
