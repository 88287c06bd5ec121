"""Keep what runs where it is: the last step of Select (docs/decisions/0082).

Scores choose clusters for what has none. A cluster in which the unit runs stays selected while it is feasible and can
run what it has; the worst of the newly selected clusters give way to it, so that their number stays the same. Clusters
that the unit left when they were lost, and may return to, come first. No plugin needs to know any of this. With
topology constraints the select plugin keeps current clusters within the constraints.
"""

from federation.scheduling.framework.clustergroup import ClusterGroup
from federation.scheduling.framework.cycle import SchedulingCycle, SelectResult
from federation.scheduling.framework.normalization import Scored
from federation.scheduling.framework.types import SchedulingUnit

STAYED = "stayed"
"""What explanations call this step."""


def keep_clusters(cycle: SchedulingCycle, totals: Scored, selected: ClusterGroup) -> ClusterGroup:
    """Return the selected clusters with the current ones, and record what a move would have gained."""
    unit = cycle.unit
    if unit.chooses_anew or unit.topology_spread or not (unit.current or unit.homes):
        return selected
    chosen = selected.by_name
    if unit.homes <= chosen.keys() and unit.current.keys() <= chosen.keys():
        return selected
    scores = dict(zip(totals.names, totals.scores, strict=True))
    kept = [name for name in {*unit.homes, *unit.current} if name in scores and _can_run(unit, name)]
    kept.sort(key=lambda name: (name not in unit.homes, name not in chosen, -scores[name], name))
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


def _can_run(unit: SchedulingUnit, cluster: str) -> bool:
    """Return whether neither the member nor the user say that the cluster cannot have what it has."""
    count = unit.current.get(cluster)
    if count is None:
        return True
    estimated = {} if unit.auto_migration is None else unit.auto_migration.estimated_capacity
    limited = {} if unit.custom_migration is None else unit.custom_migration.limited_capacity
    return all(caps.get(cluster, count) >= count or caps[cluster] < 0 for caps in (estimated, limited))
