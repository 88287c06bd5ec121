"""Score: prefer clusters with the largest free share of the requested resources.

GPUs have weight 4, other resources 1. A resource that the cluster lacks, or that would be exceeded, counts as 0.
"""

from collections.abc import Hashable, Sequence
from operator import add
from typing import ClassVar

from federation.scheduling.framework.clustergroup import ClusterGroup
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

    def score_each(self, unit: SchedulingUnit, clusters: Sequence[Cluster], state: CycleState) -> Sequence[int]:
        """Return the results of `score` for all clusters, resource by resource."""
        group, request = ClusterGroup.of(clusters), unit.request
        names, points = scored_resources(request), [0] * len(clusters)
        for name in names:
            weight, wanted = _WEIGHTS.get(name, 1), request.get(name, 0)
            shares = [
                (SCORE_MAX if free - wanted >= capacity else (free - wanted) * SCORE_MAX // capacity)
                if capacity > 0 and free >= wanted
                else 0
                for capacity, free in zip(*group.amounts(name), strict=True)
            ]
            points = list(map(add, points, shares if weight == 1 else [share * weight for share in shares]))
        weights = sum([_WEIGHTS.get(name, 1) for name in names])
        return [point // weights for point in points]

    def cache_key(self, unit: SchedulingUnit) -> Hashable:
        """Results depend on the request only."""
        return frozenset(unit.request.items())
