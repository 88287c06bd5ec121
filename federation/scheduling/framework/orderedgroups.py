"""Ordered groups of clusters (`spec.clusterGroups`): which groups stand in for each other, and their shares. Pure.

A tier is a group with the Overflow groups after it. A workload runs in one tier: the first one that can take all of it.
Within a tier the first group is filled, and only the rest flows into the next. What runs stays: a group is asked for
what it has and for all that no other group has, and after a scale-down the last group empties first.
`groupdecision.py` runs the plugins for the groups of a tier.

Decision: docs/decisions/0101-groups-of-clusters-are-tried-in-tiers.md
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from federation.scheduling.framework.clustergroup import ClusterGroup
from federation.scheduling.framework.cycle import FilterResult, ScoreResult
from federation.scheduling.framework.division import SUBSETS
from federation.scheduling.framework.moving import CHOOSES_ANEW, HOMES
from federation.scheduling.framework.normalization import Ranking, Totals
from federation.scheduling.framework.policygroups import GROUP_MOVE, GROUPS, GroupMove, GroupUse, OrderedGroup
from federation.scheduling.framework.types import (
    Division,
    SchedulingMode,
    SchedulingUnit,
    unschedulable,
)

NO_GROUP = replace(unschedulable("cluster(s) were in none of the policy's cluster groups"), plugin="ClusterGroups")


@dataclass(frozen=True, slots=True)
class Members:
    """A group and its feasible clusters: their positions among all feasible ones. Never empty."""

    group: OrderedGroup
    positions: tuple[int, ...]


Tier = tuple[Members, ...]


def within_groups(unit: SchedulingUnit, filtered: FilterResult) -> tuple[FilterResult, list[Tier]]:
    """Return the filter result without clusters that are in no group, and the tiers of the others.

    The subsets of a WorkloadSpread hold for all clusters together, so that a tier is one group with them.
    """
    groups = GROUPS.of(unit)
    places = {cluster.name: place_of(groups, cluster.name, cluster.labels) for cluster in filtered.feasible}
    filtered = filtered.without({name: NO_GROUP for name, place in places.items() if place is None})
    tiers: list[list[Members]] = []
    for index, group in enumerate(groups):
        if index == 0 or group.use is GroupUse.FALLBACK:
            tiers.append([])
        positions = tuple([at for at, name in enumerate(filtered.feasible.names) if places[name] == index])
        if positions:
            tiers[-1].append(Members(group, positions))
    if SUBSETS.of(unit) is not None:
        tiers = [_joined(tier) for tier in tiers]
    return filtered, [tuple(tier) for tier in tiers if tier]


def _joined(tier: Sequence[Members]) -> list[Members]:
    if len(tier) < 2:
        return list(tier)
    name = " and ".join(members.group.name for members in tier)
    return [Members(replace(tier[0].group, name=name), tuple(sorted([at for each in tier for at in each.positions])))]


def place_of(groups: Sequence[OrderedGroup], name: str, labels: Mapping[str, str]) -> int | None:
    """Return the index of the group that a cluster is in, None for none."""
    return next((index for index, group in enumerate(groups) if group.matches(name, labels)), None)


def scores_of(scored: ScoreResult, members: Members) -> ScoreResult:
    """Return the scores of a group's clusters."""
    scores = [scored.totals.scores[at] for at in members.positions]
    return ScoreResult(Totals(scored.totals.clusters.subset(members.positions), Ranking(scores)), ())


def in_order(unit: SchedulingUnit, tiers: Sequence[Tier], feasible: ClusterGroup) -> tuple[list[Tier], Tier | None]:
    """Return the tiers in the order in which they are tried, and the one in which the unit runs, None for none.

    The tier with most of the unit comes first, unless its replicas may return to an earlier one.
    """
    counts = [sum([_runs(unit, tier, at, feasible) for at in range(len(tier))]) for tier in tiers]
    if not any(counts):
        return list(tiers), None
    running = tiers[counts.index(max(counts))]
    if GROUP_MOVE.of(unit) is GroupMove.STAY:
        return [running], running
    if CHOOSES_ANEW.of(unit) or HOMES.of(unit) or may_return(unit, running):
        return list(tiers), running
    return [running, *(tier for tier in tiers if tier is not running)], running


def may_return(unit: SchedulingUnit, tier: Tier) -> bool:
    """Return whether this decision may move what runs in the tier to an earlier group."""
    return GROUP_MOVE.of(unit) is GroupMove.RETURN and any(members.group.returns for members in tier)


def stays(unit: SchedulingUnit, members: Members) -> bool:
    """Return whether what runs in a group stays there as long as it is wanted.

    Replicas that return to clusters which they left when these were lost leave their group for them.
    """
    if CHOOSES_ANEW.of(unit) or HOMES.of(unit):
        return False
    return not (GROUP_MOVE.of(unit) is GroupMove.RETURN and members.group.returns)


def _runs(unit: SchedulingUnit, tier: Tier, at: int, feasible: ClusterGroup) -> int:
    return held_in(unit, [feasible.names[position] for position in tier[at].positions])


def held_in(unit: SchedulingUnit, clusters: Sequence[str]) -> int:
    """Return how many of the unit's replicas run in the clusters; each copy of an object that is copied counts 1."""
    each = 1 if unit.mode is SchedulingMode.DUPLICATE else unit.desired_replicas or 0
    counts = [unit.current[name] for name in clusters if name in unit.current]
    return sum([each if count is None else count for count in counts])


def share_of(rest: int, held: int, held_later: int) -> int:
    """Return how many replicas a group is asked for: what no later group keeps, and at least what it has.

    `rest` is what no earlier group has taken; `held` runs in the group, and `held_later` stays in later ones.
    """
    return max(rest - held_later, min(held, rest))


def merge_divisions(parts: Sequence[tuple[str, Division]]) -> Division:
    """Return the divisions of several groups as one; its explanation names the group of each step."""
    replicas: dict[str, int] = {}
    explanation: dict[str, Any] = {}
    for name, part in parts:
        replicas |= part.replicas
        own = dict(part.explanation)
        if steps := own.pop("steps", None):
            explanation.setdefault("steps", []).extend([{**step, "group": name} for step in steps])
        _merge(explanation, own)
    last = parts[-1][1]
    return Division(replicas, explanation, last.because, last.requeue_on)


def _merge(into: dict[str, Any], more: Mapping[str, Any]) -> None:
    for key, value in more.items():
        known = into.get(key)
        if isinstance(known, dict) and isinstance(value, Mapping):
            into[key] = merged = dict(known)
            _merge(merged, value)
        else:
            into[key] = value
