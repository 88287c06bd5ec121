"""Placements that were made without clusters that were not healthy, or that did not serve the kind yet. Pure.

Such an object is marked with these clusters. `planning/failover/completion.py` says when they are stable and serve the
kind; then the object is decided once as if it were new. A kind that is not served matters to copies only: they belong
into every cluster, while the division of a workload was right for the clusters that could run it.

Decisions: docs/decisions/0088-placements-without-some-clusters-are-completed.md and
docs/decisions/0120-copies-follow-their-kind.md
"""

from collections.abc import Mapping
from typing import Any

from federation.api import names
from federation.apimachinery.amounts import first_of
from federation.apimachinery.naturalorder import natural_key
from federation.apimachinery.selectors import SelectorError
from federation.planning.failover.completion import missing_clusters
from federation.scheduling.engine import Decision, Placements
from federation.scheduling.framework.groupcounts import may_be_added
from federation.scheduling.framework.moving import ENDED_TOLERATIONS
from federation.scheduling.framework.orderedgroups import place_of
from federation.scheduling.framework.policygroups import GROUPS
from federation.scheduling.framework.types import Cluster, Effect, SchedulingMode, SchedulingUnit

_NAMED_MAX = 5
"""Clusters that a reason names."""


def plan_marks(
    federated: Mapping[str, Any], decision: Decision, before: Placements, *, completes: bool
) -> frozenset[str]:
    """Return the clusters that the object is marked with after a decision is written.

    Only a decision that adds something adds marks, and one that completes a placement leaves only its own. What left a
    lost cluster returns by itself; more replicas than that have their share there, too.
    """
    after = decision.placements
    gains = [name for name, count in after.items() if _size(count) > _size(before.get(name, 0))]
    is_larger = sum(map(_size, after.values())) > sum(map(_size, before.values()))
    marks, gaps = missing_clusters(federated), gaps_of(decision) if gains or completes else frozenset()
    if not is_larger:
        gaps -= ENDED_TOLERATIONS.of(decision.unit).keys() - marks
    return gaps if completes else (marks | gaps) - after.keys()


def gaps_of(decision: Decision) -> frozenset[str]:
    """Return the clusters that the unit may run in, that it is not placed in, and that cannot have it now.

    They are not healthy, or do not serve the kind of a copy.

    None is missing in a placement that has all the clusters that it may have.
    """
    unit, placements = decision.unit, decision.placements
    rejected = decision.filtered.rejected if decision.filtered is not None else {}
    if unit.sticky or (unit.max_clusters is not None and len(placements) >= unit.max_clusters):
        return frozenset()
    clusters = decision.snapshot.by_name
    found = (clusters[name] for name in rejected if name not in placements)
    gaps = frozenset(
        cluster.name
        for cluster in found
        if _is_gap(unit, cluster) and may_be_added(unit, clusters, list(placements), cluster.name)
    )
    if not (GROUPS.of(unit) and gaps):
        return gaps
    # A cluster of another group is not missing: its group is used only if the others are not enough.
    used = {place_of(GROUPS.of(unit), name, clusters[name].labels) for name in placements if name in clusters}
    return frozenset(name for name in gaps if place_of(GROUPS.of(unit), name, clusters[name].labels) in used)


def describe(marks: frozenset[str], decision: Decision) -> str:
    """Return the marks for people, "" for none."""
    clusters, unit = decision.snapshot.by_name, decision.unit
    unserved = {name for name in marks if name in clusters and _lacks_kind(unit, clusters[name])}
    parts = []
    away: list[str] = sorted(marks - unserved, key=natural_key)
    if away:
        parts.append(f"placed without {first_of(away, _NAMED_MAX)}, not healthy; completed when stable")
    if unserved:
        version, kind = "/".join(filter(None, unit.gvk[:2])), unit.gvk[2]
        lacking: list[str] = sorted(unserved, key=natural_key)
        named = first_of(lacking, _NAMED_MAX)
        parts.append(f"placed without {named}, where {version} {kind} is not served; completed when it is")
    return "; ".join(parts)


def _lacks_kind(unit: SchedulingUnit, cluster: Cluster) -> bool:
    return unit.mode is SchedulingMode.DUPLICATE and unit.gvk not in cluster.api_types


def _is_gap(unit: SchedulingUnit, cluster: Cluster) -> bool:
    is_healthy = cluster.is_ready and not any(taint.key in names.HEALTH_TAINTS for taint in cluster.taints)
    if is_healthy and not _lacks_kind(unit, cluster):
        return False
    if cluster.is_terminating or (
        unit.preferences.cluster_names and cluster.name not in unit.preferences.cluster_names
    ):
        return False
    others = (taint for taint in cluster.taints if taint.key not in names.HEALTH_TAINTS)
    if any(taint.effect != Effect.PREFER_NO_SCHEDULE and not unit.tolerates(taint) for taint in others):
        return False
    if any(cluster.labels.get(key) != value for key, value in unit.affinity.cluster_selector):
        return False
    try:
        return unit.affinity.required is None or unit.affinity.required.matches(cluster.name, cluster.labels)
    except SelectorError:
        return False


def _size(count: int | None) -> int:
    """Return the replicas of a cluster; a copy counts as one."""
    return 1 if count is None else count
