"""Causes that may move a running unit: only its own (docs/decisions/0082). Pure.

The steps of a decision keep what runs where it is, unless the unit says otherwise. Here a unit learns which cause it
has: a request of the user, a change of what it asks for, a cluster that joined and that its policy follows, the
return to clusters that it left when these were lost, or clusters that were not healthy when it was placed.
"""

from collections.abc import Mapping
from dataclasses import replace

from federation.scheduling.framework.types import SchedulingUnit
from federation.scheduling.policyspec import Policy
from federation.scheduling.triggers import (
    TriggerComparison,
    asks_for_other_clusters,
    asks_for_rebalance,
    has_joined,
)


def with_causes(
    unit: SchedulingUnit,
    policy: Policy,
    comparison: TriggerComparison,
    annotations: Mapping[str, str],
    *,
    only_adds: bool,
    homes: frozenset[str] | None,
    completes: bool = False,
) -> SchedulingUnit:
    """Return the unit with what may move it.

    `only_adds`: only unplaced replicas are scheduled. `homes` are the clusters that replicas return to, None if none do
    now. `completes`: clusters that were missing in its placement are stable now.
    """
    is_asked = asks_for_rebalance(annotations) or completes
    if only_adds or homes is not None or is_asked:
        unit = replace(unit, avoid_disruption=only_adds, homes=homes or frozenset())
    if is_asked or _asks_anew(unit, policy, comparison):
        unit = replace(unit, chooses_anew=True)
    return unit


def _asks_anew(unit: SchedulingUnit, policy: Policy, comparison: TriggerComparison) -> bool:
    """Return whether scores may move what runs: what is asked for changed, or a cluster joined and the policy says so.

    An edit of a policy that prefers no cluster to another one asks for nothing that a running object does not have.
    """
    if not comparison.changed:
        return False
    if asks_for_other_clusters(comparison.changed) and (unit.priorities or unit.preferred):
        return True
    when = policy.reschedule_when
    follows_joins = when is not None and when.cluster_joined and not policy.avoid_disruption
    return follows_joins and has_joined(comparison.changed)
