"""Select: sort the clusters, best first.

With priorities in the policy, and for Binpack, the priority replaces the score. Ties are broken by name, so that the
order is deterministic.
"""

from collections.abc import Hashable, Sequence
from typing import ClassVar

from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.interfaces import SelectPlugin
from federation.scheduling.framework.normalization import best_first
from federation.scheduling.framework.types import ClusterScore, ReplicasStrategy, SchedulingMode, SchedulingUnit, Status


class PrioritySort(SelectPlugin):
    """Sorts clusters by priority or score, highest first, then by name."""

    NAME: ClassVar[str] = "PrioritySort"

    def select(
        self, unit: SchedulingUnit, scored: Sequence[ClusterScore], state: CycleState
    ) -> Sequence[ClusterScore] | Status:
        """Return all clusters in order."""
        if unit.preferences.priorities or _is_binpack(unit):
            priorities = unit.preferences.priorities or {}
            scored = [ClusterScore(entry.cluster, priorities.get(entry.cluster.name, 0)) for entry in scored]
        return best_first(scored)

    def select_cache_key(self, unit: SchedulingUnit) -> Hashable:
        """The order depends on the priorities, and on the strategy without any."""
        return frozenset(unit.preferences.priorities.items()) if unit.preferences.priorities else _is_binpack(unit)


def _is_binpack(unit: SchedulingUnit) -> bool:
    return unit.mode is SchedulingMode.DIVIDE and unit.strategy is ReplicasStrategy.BINPACK
