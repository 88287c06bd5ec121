"""Score: prefer clusters with the largest free share of what the unit needs.

Weights: cpu and memory 1, GPUs 4, everything else 1. A resource that the cluster does not have, or that would be
exceeded, counts as 0.
"""

from collections.abc import Hashable
from typing import ClassVar

from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.interfaces import ScorePlugin, Shaped
from federation.scheduling.framework.scores import SCORE_MAX, resources_in_play
from federation.scheduling.framework.types import NVIDIA_GPU, Cluster, SchedulingUnit, Status

_WEIGHTS = {NVIDIA_GPU: 4}


class ClusterResourcesLeastAllocated(ScorePlugin, Shaped):
    """Scores the weighted mean of the free shares, in whole points."""

    NAME: ClassVar[str] = "ClusterResourcesLeastAllocated"

    def score(self, unit: SchedulingUnit, cluster: Cluster, state: CycleState) -> int | Status:
        """Return 0..100."""
        request, allocatable, available = unit.request, cluster.allocatable, cluster.available
        points = weights = 0
        for name in resources_in_play(request):
            weight = _WEIGHTS.get(name, 1)
            weights += weight
            capacity, free = allocatable.get(name, 0), available.get(name, 0) - request.get(name, 0)
            if capacity > 0 and free >= 0:
                points += weight * (SCORE_MAX if free >= capacity else free * SCORE_MAX // capacity)
        return points // weights

    def shape(self, unit: SchedulingUnit) -> Hashable:
        """Answers depend on the request only."""
        return frozenset(unit.request.items())
