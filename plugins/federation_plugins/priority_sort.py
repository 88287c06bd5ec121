"""Select: put the clusters in order, best first.

With priorities in the policy, or when one cluster is filled after the other (Binpack), the priority takes the place of
the score. Equal ones are ordered by name, so that the same input gives the same order.
"""

from collections.abc import Hashable, Sequence
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
        if unit.priorities or _is_binpack(unit):
            priorities = unit.priorities or {}
            scored = [ClusterScore(entry.cluster, priorities.get(entry.cluster.name, 0)) for entry in scored]
        return best_first(scored)

    def select_shape(self, unit: SchedulingUnit) -> Hashable:
        """The order depends on priorities, and on whether they are the only ones that count."""
        return frozenset(unit.priorities.items()) if unit.priorities else _is_binpack(unit)


def _is_binpack(unit: SchedulingUnit) -> bool:
    return unit.mode is SchedulingMode.DIVIDE and unit.strategy is ReplicasStrategy.BINPACK
