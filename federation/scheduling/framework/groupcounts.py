"""Numbers of groups of clusters: the last step of Select, and minimums for the division (`spec.spreadConstraints`).

No plugin needs to know them. Clusters in which the unit runs come first, so that it stays where the limits allow it;
then selected clusters, then the others by score. `planning/placement/groupcounts.py` chooses.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from federation.planning.placement.groupcounts import (
    GroupChoice,
    GroupLimit,
    Values,
    choose_groups,
    counts_of,
    may_join,
    values_of,
)
from federation.scheduling.framework.clustergroup import ClusterGroup
from federation.scheduling.framework.cycle import SchedulingCycle, SelectResult, UnschedulableError
from federation.scheduling.framework.moving import CHOOSES_ANEW, HOMES
from federation.scheduling.framework.normalization import Scored, best_first
from federation.scheduling.framework.shapekeys import ShapeKey
from federation.scheduling.framework.types import Cluster, SchedulingMode, SchedulingUnit, unschedulable

NAME = "spreadConstraints"
"""The name of this step in explanations."""
GROUP_LIMITS: ShapeKey[tuple[GroupLimit, ...]] = ShapeKey("group_limits", ())


def within_group_counts(cycle: SchedulingCycle, totals: Scored, selected: ClusterGroup) -> ClusterGroup:
    """Return clusters within the limits, or the selected ones without limits; UnschedulableError if there are none."""
    unit = cycle.unit
    limits, homes = GROUP_LIMITS.of(unit), HOMES.of(unit)
    if not limits:
        return selected
    clusters = totals.clusters.by_name
    held = [name for name in (*homes, *unit.current) if name in clusters and not CHOOSES_ANEW.of(unit)]
    held.sort(key=lambda name: (name not in homes, -_count(unit, name), name))
    ordered = list(dict.fromkeys((*held, *selected.names, *(entry.cluster.name for entry in best_first(totals)))))
    values = {name: values_of(limits, name, clusters[name].labels) for name in ordered}
    choice = choose_groups(ordered, values, limits, unit.max_clusters)
    if choice.problem:
        raise UnschedulableError(replace(unschedulable(choice.problem), plugin=NAME))
    if set(choice.chosen) == set(selected.names):
        return selected
    for name in ordered:
        if name in selected.by_name and name not in choice.chosen:
            cycle.state.remark(NAME, name, _excluded(unit, choice, values, name))
    result = ClusterGroup.of([clusters[name] for name in choice.chosen])
    cycle.selections.append(SelectResult(NAME, result.names))
    return result


def with_needed(unit: SchedulingUnit, clusters: Sequence[Cluster]) -> SchedulingUnit:
    """Return the unit with a minimum of one replica in as many clusters as its groups need.

    Fewer replicas than that need fewer groups. If too few groups have replicas now, some may move, unless those that
    run nowhere are enough for the others.
    """
    if not GROUP_LIMITS.of(unit) or unit.mode is not SchedulingMode.DIVIDE or not unit.desired_replicas:
        return unit
    limits = needed_limits(unit)
    values = {cluster.name: values_of(limits, cluster.name, cluster.labels) for cluster in clusters}
    running = {name: count for name, count in unit.current.items() if count != 0 and name in values}
    ordered = sorted(values, key=lambda name: name not in running)
    needed = choose_groups(ordered, values, limits, None).needed[: unit.desired_replicas]
    least = {name: max(1, unit.preferences.min_replicas.get(name, 0)) for name in needed}
    counts = counts_of(running, values, limits)
    unplaced = unit.desired_replicas - sum(_count(unit, name) for name in running)
    is_short = bool(running) and any(count < limit.least for count, limit in zip(counts, limits, strict=True))
    is_short &= unplaced < sum(count for name, count in least.items() if name not in running)
    avoids = unit.avoid_disruption and not is_short
    return replace(
        unit,
        preferences=replace(unit.preferences, min_replicas={**unit.preferences.min_replicas, **least}),
        avoid_disruption=avoids,
    )


def missing_groups(unit: SchedulingUnit, clusters: Sequence[Cluster], placed: Sequence[str]) -> str:
    """Return the limit that a division leaves unsatisfied, "" for none."""
    if not GROUP_LIMITS.of(unit):
        return ""
    limits = needed_limits(unit)
    values = {cluster.name: values_of(limits, cluster.name, cluster.labels) for cluster in clusters}
    for count, limit in zip(counts_of(placed, values, limits), limits, strict=True):
        if count < limit.least:
            return limit._replace(most=None).describe(count)
    return ""


def may_be_added(unit: SchedulingUnit, clusters: Mapping[str, Cluster], placed: Sequence[str], name: str) -> bool:
    """Return whether the limits let the unit have one more cluster."""
    if not GROUP_LIMITS.of(unit):
        return True
    found = {each: clusters[each] for each in (*placed, name) if each in clusters}
    values = {each: values_of(GROUP_LIMITS.of(unit), each, found[each].labels) for each in found}
    return name in values and may_join([each for each in placed if each in values], values, GROUP_LIMITS.of(unit), name)


def needed_limits(unit: SchedulingUnit) -> list[GroupLimit]:
    """Return the limits for the replicas of a divided unit: a group needs a replica at least."""
    most = unit.desired_replicas or 0
    return [limit._replace(least=min(limit.least, most)) for limit in GROUP_LIMITS.of(unit)]


def _count(unit: SchedulingUnit, name: str) -> int:
    count = unit.current.get(name, 0)
    return (unit.desired_replicas or 1) if count is None else count


def _excluded(unit: SchedulingUnit, choice: GroupChoice, values: Mapping[str, Values], name: str) -> str:
    for limit, own in zip(GROUP_LIMITS.of(unit), values[name], strict=True):
        if own is None:
            return f"it has no label {limit.key}"
    for at, limit in enumerate(GROUP_LIMITS.of(unit)):
        groups = sorted({str(values[each][at]) for each in choice.chosen})
        if limit.most is not None and str(values[name][at]) not in groups and len(groups) >= limit.most:
            what = f"values of {limit.key}" if limit.key else "clusters"
            return f"at most {limit.most} {what} are allowed, and others come first"
    return "others are needed for the minimum of groups"
