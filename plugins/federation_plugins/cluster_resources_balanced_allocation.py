"""Score: prefer clusters whose resources would be used evenly.

The score is higher the less the used fractions of cpu, memory and every requested extended resource would differ. A
cluster where a resource would be exhausted scores 0.
"""

from collections.abc import Hashable, Sequence
from math import sqrt
from typing import ClassVar

from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.interfaces import Cacheable, ScorePlugin
from federation.scheduling.framework.normalization import SCORE_MAX, scored_resources
from federation.scheduling.framework.types import Cluster, SchedulingUnit, Status


class ClusterResourcesBalancedAllocation(ScorePlugin, Cacheable):
    """Scores 100 when all fractions are equal, less by their standard deviation."""

    NAME: ClassVar[str] = "ClusterResourcesBalancedAllocation"

    def score(self, unit: SchedulingUnit, cluster: Cluster, state: CycleState) -> int | Status:
        """Return 0..100."""
        request, allocatable, available = unit.request, cluster.allocatable, cluster.available
        fractions = []
        for name in scored_resources(request):
            capacity = allocatable.get(name, 0)
            used = capacity - available.get(name, 0) + request.get(name, 0)
            if not capacity or used >= capacity:
                return 0
            fractions.append(used / capacity)
        # Negative when a cluster reports more available than allocatable.
        return max(0, int((1 - _deviation(fractions)) * SCORE_MAX))

    def cache_key(self, unit: SchedulingUnit) -> Hashable:
        """Results depend on the request only."""
        return frozenset(unit.request.items())


def _deviation(fractions: Sequence[float]) -> float:
    """Return the population standard deviation; with two values that is half their distance."""
    if len(fractions) == 2:
        return abs(fractions[0] - fractions[1]) / 2
    mean = sum(fractions) / len(fractions)
    return sqrt(sum((fraction - mean) ** 2 for fraction in fractions) / len(fractions))
