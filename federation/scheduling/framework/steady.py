"""Keep what runs where it is, and choose clusters with room: the last steps of Select (docs/decisions/0082, 0083).

Scores choose clusters for what has none. A cluster in which the unit runs stays selected while it is feasible and can
run what it has; the worst of the newly selected clusters give way to it, so that their number stays the same. If it
runs in too many, those with the most replicas stay. Clusters
that the unit left when they were lost, and may return to, come first. No plugin needs to know any of this. With
topology constraints the select plugin keeps current clusters within the constraints.

Scores compare fractions, so the best cluster may have room for one of two replicas. When the selected clusters together
have less room than the unit needs, clusters with more room take the places of those that are new.
"""

from federation.scheduling.framework.capacity import capacity_of
from federation.scheduling.framework.clustergroup import ClusterGroup
from federation.scheduling.framework.cycle import SchedulingCycle, SelectResult
from federation.scheduling.framework.migrations import AUTO_MIGRATION, CUSTOM_MIGRATION
from federation.scheduling.framework.moving import CHOOSES_ANEW, HOMES
from federation.scheduling.framework.normalization import Scored, best_first
from federation.scheduling.framework.topology import TOPOLOGY_SPREAD
from federation.scheduling.framework.types import ReplicasStrategy, SchedulingMode, SchedulingUnit

ROOM = "room"
STAYED = "stayed"
"""The names of these steps in explanations."""


def keep_clusters(cycle: SchedulingCycle, totals: Scored, selected: ClusterGroup) -> ClusterGroup:
    """Return the selected clusters with the current ones, and record what a move would have gained."""
    unit = cycle.unit
    if len(selected) == len(totals) or not (unit.current or HOMES.of(unit)):
        return selected
    if CHOOSES_ANEW.of(unit) or TOPOLOGY_SPREAD.of(unit):
        return selected
    chosen = selected.by_name
    if HOMES.of(unit) <= chosen.keys() and unit.current.keys() <= chosen.keys():
        return selected
    scores = dict(zip(totals.names, totals.scores, strict=True))
    kept = [name for name in {*HOMES.of(unit), *unit.current} if name in scores and _can_run(unit, name)]
    running = {name: unit.current.get(name) or 0 for name in kept}
    kept.sort(key=lambda name: (name not in HOMES.of(unit), -running[name], name not in chosen, -scores[name], name))
    kept = kept[: len(selected)]
    if chosen.keys() >= set(kept):
        return selected
    others = [name for name in selected.names if name not in kept]
    left = len(selected) - len(kept)
    for name in kept:
        if name not in chosen:
            best = max(others[left:], key=scores.__getitem__)
            gain = scores[best] - scores[name]
            cycle.state.remark(STAYED, name, f"a move to {best} would gain {gain} in score")
    clusters = totals.clusters.by_name
    result = ClusterGroup.of([clusters[name] for name in (*kept, *others[:left])])
    cycle.selections.append(SelectResult(STAYED, result.names))
    return result


def prefer_room(cycle: SchedulingCycle, totals: Scored, selected: ClusterGroup) -> ClusterGroup:
    """Return the selected clusters, the new ones replaced by some with more room if the unit does not fit otherwise."""
    unit, wanted = cycle.unit, cycle.unit.desired_replicas or 0
    if unit.max_clusters is None or unit.mode is not SchedulingMode.DIVIDE or TOPOLOGY_SPREAD.of(unit):
        return selected
    if unit.preferences.priorities or unit.preferences.weights or unit.strategy is ReplicasStrategy.BINPACK:
        return selected
    current = {name: wanted if count is None else count for name, count in unit.current.items()}
    kept = [cluster for cluster in selected if cluster.name in current or cluster.name in HOMES.of(unit)]
    places = len(selected) - len(kept)
    room = {cluster.name: capacity_of(cluster, unit.shape) + current.get(cluster.name, 0) for cluster in selected}
    if not places or sum(room.values()) >= wanted:
        return selected
    missing = wanted - sum(room[cluster.name] for cluster in kept)
    share = -(-missing // places)
    names = {cluster.name for cluster in kept}
    candidates = [entry for entry in best_first(totals) if entry.cluster.name not in names]
    candidates.sort(key=lambda entry: min(share, capacity_of(entry.cluster, unit.shape)), reverse=True)
    result = ClusterGroup.of([*kept, *(entry.cluster for entry in candidates[:places])])
    if set(result.names) == set(selected.names):
        return selected
    cycle.selections.append(SelectResult(ROOM, result.names))
    return result


def _can_run(unit: SchedulingUnit, cluster: str) -> bool:
    """Return whether neither the member nor the user say that the cluster cannot have what it has."""
    count = unit.current.get(cluster)
    if count is None:
        return True
    estimated = AUTO_MIGRATION.of(unit).estimated_capacity
    limited = CUSTOM_MIGRATION.of(unit).limited_capacity
    return all(caps.get(cluster, count) >= count or caps[cluster] < 0 for caps in (estimated, limited))
