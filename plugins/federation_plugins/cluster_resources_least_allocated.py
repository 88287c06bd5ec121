"""Score: prefer clusters with the largest free share of the requested resources.

GPUs have weight 4, other resources 1. A resource that the cluster lacks, or that would be exceeded, counts as 0.
"""

from collections.abc import Hashable
from typing import ClassVar

from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.interfaces import Cacheable, ScorePlugin
from federation.scheduling.framework.normalization import SCORE_MAX, scored_resources
from federation.scheduling.framework.types import NVIDIA_GPU, Cluster, SchedulingUnit, Status

_WEIGHTS = {NVIDIA_GPU: 4}


class ClusterResourcesLeastAllocated(ScorePlugin, Cacheable):
    """Scores the weighted mean of the free shares, rounded down."""

    NAME: ClassVar[str] = "ClusterResourcesLeastAllocated"

    def score(self, unit: SchedulingUnit, cluster: Cluster, state: CycleState) -> int | Status:
        """Return 0..100."""
        request, allocatable, available = unit.request, cluster.allocatable, cluster.available
        points = weights = 0
        for name in scored_resources(request):
            weight = _WEIGHTS.get(name, 1)
            weights += weight
            capacity, free = allocatable.get(name, 0), available.get(name, 0) - request.get(name, 0)
            if capacity > 0 and free >= 0:
                points += weight * (SCORE_MAX if free >= capacity else free * SCORE_MAX // capacity)
        return points // weights

    def cache_key(self, unit: SchedulingUnit) -> Hashable:
        """Results depend on the request only."""
        return frozenset(unit.request.items())
