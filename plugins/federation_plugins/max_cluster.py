"""Select: at most so many clusters (`spec.maxClusters`), the best ones."""

from collections.abc import Sequence
from typing import ClassVar

from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.interfaces import SelectPlugin
from federation.scheduling.framework.scores import best_first
from federation.scheduling.framework.types import ClusterScore, SchedulingUnit, Status, unschedulable


class MaxCluster(SelectPlugin):
    """Keeps the first `max_clusters` clusters by score, then name; all of them as they come when there is no limit."""

    NAME: ClassVar[str] = "MaxCluster"

    def select(
        self, unit: SchedulingUnit, scored: Sequence[ClusterScore], state: CycleState
    ) -> Sequence[ClusterScore] | Status:
        """Return the best clusters."""
        if unit.max_clusters is None:
            return scored
        if unit.max_clusters < 0:
            return unschedulable("max cluster is less than 0")
        return best_first(scored)[: unit.max_clusters]
