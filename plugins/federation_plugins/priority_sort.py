"""Select: put the clusters in order, best first.

With priorities in the policy, or when one cluster is filled after the other (Binpack), the priority takes the place of
the score. Equal ones are ordered by name, so that the same input gives the same order.
"""

from collections.abc import Sequence
from typing import ClassVar

from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.interfaces import SelectPlugin
from federation.scheduling.framework.scores import best_first
from federation.scheduling.framework.types import ClusterScore, ReplicasStrategy, SchedulingMode, SchedulingUnit, Status


class PrioritySort(SelectPlugin):
    """Orders clusters by priority or score, highest first, then by name."""

    NAME: ClassVar[str] = "PrioritySort"

    def select(
        self, unit: SchedulingUnit, scored: Sequence[ClusterScore], state: CycleState
    ) -> Sequence[ClusterScore] | Status:
        """Return all clusters in order."""
        is_binpack = unit.mode is SchedulingMode.DIVIDE and unit.strategy is ReplicasStrategy.BINPACK
        if unit.priorities or is_binpack:
            priorities = unit.priorities or {}
            scored = [ClusterScore(entry.cluster, priorities.get(entry.cluster.name, 0)) for entry in scored]
        return best_first(scored)
