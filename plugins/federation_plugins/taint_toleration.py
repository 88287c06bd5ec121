"""Filter and score: clusters by their taints.

Filter: a taint NoSchedule or NoExecute that the unit does not tolerate keeps it out; where it already is, only
NoExecute counts. Score: the fewer untolerated PreferNoSchedule taints, the better.
"""

from collections.abc import Hashable, Sequence
from typing import ClassVar, Literal

from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.interfaces import (
    Awaiting,
    FilterPlugin,
    MindsCurrent,
    ScoreNormaliser,
    ScorePlugin,
    Shaped,
)
from federation.scheduling.framework.scores import normalise_to_max
from federation.scheduling.framework.types import (
    SUCCESS,
    Change,
    Cluster,
    Effect,
    SchedulingUnit,
    Status,
    unschedulable,
)


class TaintToleration(FilterPlugin, ScorePlugin, ScoreNormaliser, Shaped, MindsCurrent, Awaiting):
    """Keeps units off clusters whose taints they do not tolerate."""

    NAME: ClassVar[str] = "TaintToleration"
    AWAITS: ClassVar[Change] = Change.TAINTS
    MINDS_CURRENT: ClassVar[Literal[True]] = True

    def filter(self, unit: SchedulingUnit, cluster: Cluster, state: CycleState) -> Status:
        """Return the first taint that keeps the unit out."""
        for taint in cluster.taints:
            is_relevant = taint.effect == Effect.NO_EXECUTE or (
                taint.effect == Effect.NO_SCHEDULE and cluster.name not in unit.current
            )
            if is_relevant and not unit.tolerates(taint):
                return unschedulable(
                    f"cluster(s) had taint {{{taint.key}: {taint.value}}}, that the schedulingUnit didn't tolerate"
                )
        return SUCCESS

    def score(self, unit: SchedulingUnit, cluster: Cluster, state: CycleState) -> int | Status:
        """Return how many PreferNoSchedule taints are not tolerated."""
        if not cluster.taints:
            return 0
        tolerations = [item for item in unit.tolerations if item.effect in ("", Effect.PREFER_NO_SCHEDULE)]
        return sum(
            taint.effect == Effect.PREFER_NO_SCHEDULE and not any(item.tolerates(taint) for item in tolerations)
            for taint in cluster.taints
        )

    def normalise(self, unit: SchedulingUnit, scores: Sequence[int], state: CycleState) -> Sequence[int]:
        """Turn counts around: no such taint is 100, the most is 0."""
        return normalise_to_max(scores, is_reversed=True)

    def shape(self, unit: SchedulingUnit) -> Hashable:
        """Answers depend on tolerations only."""
        return unit.tolerations
