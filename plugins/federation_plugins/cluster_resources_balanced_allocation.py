"""Score: prefer clusters whose resources would be used evenly.

The score is higher the less the used fractions of cpu, memory and every requested extended resource would differ. A
cluster where a resource would be exhausted scores 0.
"""

from collections.abc import Hashable, Sequence
from math import sqrt
from typing import ClassVar

from federation.scheduling.framework.clustergroup import ClusterGroup
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

    def score_each(self, unit: SchedulingUnit, clusters: Sequence[Cluster], state: CycleState) -> Sequence[int]:
        """Return the results of `score` for all clusters, resource by resource."""
        group, request = ClusterGroup.of(clusters), unit.request
        columns = [_fractions(group, name, request.get(name, 0)) for name in scored_resources(request)]
        if len(columns) == 2:
            return [
                0 if one is None or other is None else max(0, int((1 - abs(one - other) / 2) * SCORE_MAX))
                for one, other in zip(*columns, strict=True)
            ]
        return [
            0 if None in fractions else max(0, int((1 - _deviation(fractions)) * SCORE_MAX))
            for fractions in zip(*columns, strict=True)
        ]

    def cache_key(self, unit: SchedulingUnit) -> Hashable:
        """Results depend on the request only."""
        return frozenset(unit.request.items())


def _fractions(group: ClusterGroup, resource: str, wanted: int) -> list[float | None]:
    """Return the used fraction of a resource in each cluster; None where it would be exhausted."""
    return [
        (capacity - free + wanted) / capacity if capacity and free > wanted else None
        for capacity, free in zip(*group.amounts(resource), strict=True)
    ]


def _deviation(fractions: Sequence[float]) -> float:
    """Return the population standard deviation; with two values that is half their distance."""
    if len(fractions) == 2:
        return abs(fractions[0] - fractions[1]) / 2
    mean = sum(fractions) / len(fractions)
    return sqrt(sum((fraction - mean) ** 2 for fraction in fractions) / len(fractions))
