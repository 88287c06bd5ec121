"""Score: prefer clusters whose resources would be used evenly, so that none runs out while others lie idle.

For cpu, memory and every requested extended resource the fraction that would be used is taken; the less these fractions
differ, the higher the score. A cluster where a resource would be used up completely scores 0.
"""

from collections.abc import Hashable, Sequence
from math import sqrt
from typing import ClassVar

from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.interfaces import ScorePlugin, Shaped
from federation.scheduling.framework.scores import SCORE_MAX, resources_in_play
from federation.scheduling.framework.types import Cluster, SchedulingUnit, Status


class ClusterResourcesBalancedAllocation(ScorePlugin, Shaped):
    """Scores 100 when all fractions are equal, less the wider they spread."""

    NAME: ClassVar[str] = "ClusterResourcesBalancedAllocation"

    def score(self, unit: SchedulingUnit, cluster: Cluster, state: CycleState) -> int | Status:
        """Return 0..100."""
        request, allocatable, available = unit.request, cluster.allocatable, cluster.available
        fractions = []
        for name in resources_in_play(request):
            capacity = allocatable.get(name, 0)
            used = capacity - available.get(name, 0) + request.get(name, 0)
            if not capacity or used >= capacity:
                return 0
            fractions.append(used / capacity)
        # A cluster that reports more free than it has in all would come out below 0.
        return max(0, int((1 - _deviation(fractions)) * SCORE_MAX))

    def shape(self, unit: SchedulingUnit) -> Hashable:
        """Answers depend on the request only."""
        return frozenset(unit.request.items())


def _deviation(fractions: Sequence[float]) -> float:
    """Return the population standard deviation; with two values that is half their distance."""
    if len(fractions) == 2:
        return abs(fractions[0] - fractions[1]) / 2
    mean = sum(fractions) / len(fractions)
    return sqrt(sum((fraction - mean) ** 2 for fraction in fractions) / len(fractions))
