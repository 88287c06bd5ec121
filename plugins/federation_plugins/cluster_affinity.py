"""Filter and score: clusters by their labels and names.

Filter: every label of `spec.clusterSelector` must be there, and at least one of the required affinity terms must match
(`spec.clusterAffinity`). Score: the weights of the preferred terms that match are added up and normalised; those can
only be given by annotation. A malformed term matches nothing.
"""

from collections.abc import Hashable, Sequence
from typing import ClassVar

from federation.api.selectors import SelectorError
from federation.scheduling.framework.cyclestate import CycleState
from federation.scheduling.framework.interfaces import Awaiting, FilterPlugin, ScoreNormaliser, ScorePlugin, Shaped
from federation.scheduling.framework.scores import normalise_to_max
from federation.scheduling.framework.types import SUCCESS, Change, Cluster, SchedulingUnit, Status, unschedulable

_NO_MATCH = unschedulable("cluster(s) didn't match cluster selector")


class ClusterAffinity(FilterPlugin, ScorePlugin, ScoreNormaliser, Shaped, Awaiting):
    """Lets clusters pass that carry the wanted labels, and prefers those that match more."""

    NAME: ClassVar[str] = "ClusterAffinity"
    AWAITS: ClassVar[Change] = Change.LABELS

    def filter(self, unit: SchedulingUnit, cluster: Cluster, state: CycleState) -> Status:
        """Return why the cluster is left out when selector or required terms do not match."""
        for key, value in unit.cluster_selector:
            if cluster.labels.get(key) != value:
                return _NO_MATCH
        if unit.required is None:
            return SUCCESS
        try:
            return SUCCESS if unit.required.matches(cluster.name, cluster.labels) else _NO_MATCH
        except SelectorError:
            return _NO_MATCH

    def score(self, unit: SchedulingUnit, cluster: Cluster, state: CycleState) -> int | Status:
        """Return the sum of the weights of the preferred terms that match."""
        if not unit.preferred:
            return 0
        try:
            return sum(entry.weight for entry in unit.preferred if entry.term.matches(cluster.name, cluster.labels))
        except SelectorError as error:
            return unschedulable(f"preferred affinity: {error}")

    def normalise(self, unit: SchedulingUnit, scores: Sequence[int], state: CycleState) -> Sequence[int]:
        """Give the best cluster 100 and the others their share of it."""
        return normalise_to_max(scores)

    def shape(self, unit: SchedulingUnit) -> Hashable:
        """Answers depend on selector and affinity only."""
        return (unit.cluster_selector, unit.required, unit.preferred)
