"""Causes that may move a running unit: only its own (docs/decisions/0082). Pure.

The steps of a decision keep what runs where it is, unless the unit says otherwise. Here a unit learns which cause it
has: a request of the user, a change of what it asks for, a cluster that joined and that its policy follows, the
return to clusters that it left when these were lost, or clusters that could not have it when it was placed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from federation.scheduling.framework.moving import CHOOSES_ANEW, HOMES
from federation.scheduling.framework.policygroups import GROUP_MOVE, GROUPS, GroupMove
from federation.scheduling.framework.relations import RELATIONS, Relation
from federation.scheduling.framework.types import SchedulingMode, SchedulingUnit
from federation.scheduling.policyspec import Policy
from federation.scheduling.triggers import (
    TriggerComparison,
    asks_for_other_clusters,
    asks_for_rebalance,
    has_joined,
)


class QuietCauses(NamedTuple):
    """Why an object is scheduled of which nothing changed; at most one holds.

    `only_adds`: only unplaced replicas are scheduled. `goes_back`: an earlier group of clusters may have room for
    replicas of a later one. `homes`: the clusters that replicas return to. `completes`: clusters that were missing in
    its placement are stable now.
    """

    only_adds: bool = False
    goes_back: bool = False
    homes: frozenset[str] = frozenset()
    completes: bool = False


NO_CAUSE = QuietCauses()


def quiet_causes(
    changed: Iterable[str], can_place_more: bool, has_unplaced: bool, *, homes: frozenset[str], completes: bool
) -> QuietCauses:
    """Return the first cause that holds: replicas to place, a way back to a group or to clusters, a completion.

    `can_place_more`: a cluster may have room that it had not; `has_unplaced` says for what.
    """
    if can_place_more:
        return QuietCauses(only_adds=has_unplaced, goes_back=not has_unplaced)
    if homes:
        return QuietCauses(homes=homes)
    return QuietCauses(completes=completes and not asks_for_other_clusters(changed))


def with_causes(
    unit: SchedulingUnit,
    policy: Policy,
    comparison: TriggerComparison,
    annotations: Mapping[str, str],
    quiet: QuietCauses,
) -> SchedulingUnit:
    """Return the unit with what may move it."""
    only_adds, goes_back, homes, completes = quiet
    if GROUPS.of(unit) and (only_adds or goes_back):
        unit = GROUP_MOVE.on(unit, GroupMove.RETURN if goes_back else GroupMove.STAY)
    if completes and unit.mode is SchedulingMode.DUPLICATE:
        return replace(unit, avoid_disruption=True)  # copies are added, and none moves
    is_asked = asks_for_rebalance(annotations) or completes
    if only_adds or homes or is_asked:
        unit = HOMES.on(replace(unit, avoid_disruption=only_adds), homes)
    if is_asked or _asks_anew(unit, policy, comparison):
        unit = CHOOSES_ANEW.on(unit, value=True)
    return unit


def _may_ask(relation: Relation) -> bool:
    return relation.is_broken or bool(relation.weight and not relation.is_theirs)


def _asks_anew(unit: SchedulingUnit, policy: Policy, comparison: TriggerComparison) -> bool:
    """Return whether scores may move what runs: what is asked for changed, or a cluster joined and the policy says so.

    An edit of a policy that prefers no cluster to another one asks for nothing that a running object does not have.
    """
    if not comparison.changed:
        return False
    prefers = (
        unit.preferences.priorities
        or unit.affinity.preferred
        or GROUPS.of(unit)
        or any(map(_may_ask, RELATIONS.of(unit)))
    )
    if asks_for_other_clusters(comparison.changed) and prefers:
        return True
    when = policy.rescheduling.when
    follows_joins = when is not None and when.cluster_joined and not policy.rescheduling.avoid_disruption
    return follows_joins and has_joined(comparison.changed)
