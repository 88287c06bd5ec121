"""Score: prefer clusters with the largest free share of what the unit needs.

Weights: cpu and memory 1, GPUs 4, everything else 1. A resource that the cluster does not have, or that would be
exceeded, counts as 0.
"""

from collections.abc import Hashable
from typing import ClassVar

from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.interfaces import ScorePlugin, Shaped
from federation.scheduling.framework.scores import SCORE_MAX, resources_in_play, usage_with
from federation.scheduling.framework.types import NVIDIA_GPU, Cluster, SchedulingUnit, Status

_WEIGHTS = {NVIDIA_GPU: 4}


class ClusterResourcesLeastAllocated(ScorePlugin, Shaped):
    """Scores the weighted mean of the free shares, in whole points."""

    NAME: ClassVar[str] = "ClusterResourcesLeastAllocated"

    def score(self, unit: SchedulingUnit, cluster: Cluster, state: CycleState) -> int | Status:
        """Return 0..100."""
        points = weights = 0
        for name, used, capacity in usage_with(cluster, unit.request, resources_in_play(unit.request)):
            weight = _WEIGHTS.get(name, 1)
            weights += weight
            if capacity > 0 and used <= capacity:
                points += weight * min(SCORE_MAX, (capacity - used) * SCORE_MAX // capacity)
        return points // weights

    def shape(self, unit: SchedulingUnit) -> Hashable:
        """Answers depend on the request only."""
        return frozenset(unit.request.items())
