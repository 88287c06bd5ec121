"""Queueing hints: which cluster changes can make an unschedulable unit, or its unplaced replicas, schedulable.

For a cluster that a filter rejected, these are the changes that the filter names (`REQUEUE_ON`); for the others,
and for failures after the filters, any change, or the changes that a division with unplaced replicas names
(`Division.requeue_on`). Clusters that join or leave always count. A superfluous attempt costs time, a missed one would
leave the unit unschedulable, so that unknown cases count. Pure: the schedule controller keeps the hints.

Decision: docs/decisions/0015-wake-whom-a-change-can-help.md
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from federation.scheduling.engine import Decision
from federation.scheduling.framework import relationsteps
from federation.scheduling.framework.gangs import AWAITS_REPORT
from federation.scheduling.framework.migrations import CUSTOM_MIGRATION
from federation.scheduling.framework.orderedgroups import place_of
from federation.scheduling.framework.policygroups import GROUPS
from federation.scheduling.framework.runner import Framework
from federation.scheduling.framework.types import ClusterChange


@dataclass(frozen=True, slots=True)
class QueueingHint:
    """Clusters by the changes that count for them, `other` for unnamed clusters; `at`: a time that counts as a change.

    `at` is set when a migration of the user keeps a cluster unavailable until then, or recent decisions may.
    """

    clusters: Mapping[ClusterChange, frozenset[str]] = field(default_factory=dict)
    other: ClusterChange = ClusterChange.NOTHING
    at: datetime | None = None

    def matches(self, cluster: str, change: ClusterChange) -> bool:
        """Return whether this change of the cluster can make the unit schedulable."""
        for counted, clusters in self.clusters.items():
            if cluster in clusters:
                return bool(change & counted)
        return bool(change & self.other)

    def group_key(self) -> Hashable:
        """Return a key that is equal for hints that match the same cluster changes."""
        return frozenset(self.clusters.items()), self.other


NO_CLUSTER_CHANGE = QueueingHint()
"""For objects that need another change: of a policy, a profile or a plugin."""
ANY_CLUSTER_CHANGE = QueueingHint(other=ClusterChange.ANY)
FOR_ALL = ClusterChange.MEMBERSHIP | ClusterChange.LABELS | ClusterChange.TAINTS | ClusterChange.API_TYPES
"""Changes that are part of every object's triggers. Readiness counts only for policies that follow joining clusters;
the other changes count only for unschedulable objects."""
AT_GATE = QueueingHint(other=FOR_ALL | ClusterChange.TERMINATION)
"""For objects that wait at a gate, which may let go on what an administrator sends away from a cluster."""


_REPORT_AWAITED = timedelta(seconds=30)
"""When a gang is tried again that waits for recent decisions: these also stop to count without a report."""
_ROOM = ClusterChange.ANY & ~ClusterChange.ANNOTATIONS
"""Changes after which a cluster may have room that it had not."""


def return_hint_for(decision: Decision) -> QueueingHint | None:
    """Return the hint for replicas that may return to an earlier group of clusters, None where all are in the first.

    Only changes of clusters of earlier groups count, and clusters that join or leave.
    """
    groups, clusters = GROUPS.of(decision.unit), decision.snapshot.by_name
    if not any(group.returns for group in groups):
        return None
    places = {name: place_of(groups, name, cluster.labels) for name, cluster in clusters.items()}
    used = [place for name in decision.placements if (place := places.get(name)) is not None]
    returning = [place for place in used if groups[place].returns]
    if not returning:
        return None
    earlier = frozenset(name for name, place in places.items() if place is not None and place < max(returning))
    return QueueingHint({_ROOM: earlier}, ClusterChange.MEMBERSHIP) if earlier else None


def queueing_hint_for(decision: Decision, framework: Framework, now: datetime) -> QueueingHint:
    """Return the hint for the unit of a decision that was unsuccessful or left replicas unplaced."""
    by_plugin: dict[str, list[str]] = {}
    for name, status in (decision.filtered.rejected if decision.filtered is not None else {}).items():
        by_plugin.setdefault(status.plugin, []).append(name)
    clusters: dict[ClusterChange, frozenset[str]] = {}
    for plugin, names in by_plugin.items():
        own = relationsteps.REQUEUE_ON if plugin == relationsteps.NAME else framework.requeue_on(plugin)
        change = ClusterChange.MEMBERSHIP | own
        clusters[change] = clusters.get(change, frozenset()).union(names)
    ends = list(CUSTOM_MIGRATION.of(decision.unit).unavailable_until.values())
    if (
        decision.unit.pods.is_gang
        and decision.filtered is not None
        and AWAITS_REPORT in decision.filtered.rejected.values()
    ):
        ends.append(now + _REPORT_AWAITED)
    division = decision.division if decision.is_success else None
    other = ClusterChange.ANY if division is None else ClusterChange.MEMBERSHIP | division.requeue_on
    return QueueingHint(clusters, other, min((until for until in ends if until > now), default=None))
