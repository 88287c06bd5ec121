"""Score: prefer clusters with the largest used share, to keep others empty. Off by default.

The counterpart of ClusterResourcesLeastAllocated, with the same weights: GPUs 4, other resources 1.
"""

from collections.abc import Hashable
from typing import ClassVar

from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.interfaces import Cacheable, ScorePlugin
from federation.scheduling.framework.normalization import SCORE_MAX, scored_resources
from federation.scheduling.framework.types import NVIDIA_GPU, Cluster, SchedulingUnit, Status

_WEIGHTS = {NVIDIA_GPU: 4}


class ClusterResourcesMostAllocated(ScorePlugin, Cacheable):
    """Scores the weighted mean of the used shares, rounded down."""

    NAME: ClassVar[str] = "ClusterResourcesMostAllocated"

    def score(self, unit: SchedulingUnit, cluster: Cluster, state: CycleState) -> int | Status:
        """Return 0..100."""
        points = weights = 0
        for name in scored_resources(unit.request):
            weight = _WEIGHTS.get(name, 1)
            weights += weight
            capacity, used = cluster.allocatable.get(name, 0), cluster.used(name) + unit.request.get(name, 0)
            if capacity > 0 and used <= capacity:
                points += weight * max(0, used * SCORE_MAX // capacity)
        return points // weights

    def cache_key(self, unit: SchedulingUnit) -> Hashable:
        """Results depend on the request only."""
        return frozenset(unit.request.items())
