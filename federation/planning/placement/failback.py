"""Replicas that come back to a cluster that has room again: first one more there, then one fewer elsewhere.

A planner that avoids disruption leaves replicas where they run, and one that does not would take them away before their
replacements run. So replicas return on trial: clusters with an offer get up to a batch more than their division, as far
as weights and bounds want it, and nobody gets fewer. When they run, the believed capacity grows and the next division
takes the surplus away (`planning/automigration/belief.py`). Pure; works with any planner of this package.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from federation.planning.placement.replicas import Demand, Plan, Steps

Planner = Callable[[Demand, Steps | None], Plan]


@dataclass(frozen=True, slots=True)
class Offers:
    """Replicas that clusters may take beyond their estimated capacity, and the most of them in all at a time."""

    offered: Mapping[str, int] = field(default_factory=dict)
    batch: int = 0


def plan_with_trials(planner: Planner, demand: Demand, offers: Offers, steps: Steps | None = None) -> Plan:
    """Return the planner's division with the replicas on trial as part of the overflow."""
    plan = planner(demand, steps)
    if not offers.offered or offers.batch <= 0:
        return plan
    offered = offers.offered
    lifted = {cluster: room + offered.get(cluster, 0) for cluster, room in demand.estimated.items()}
    ideal = replace(demand, estimated=lifted, scheduled={}, avoid_disruption=False)
    wanted, base = planner(ideal, None).replicas, plan.totals()
    gains = {cluster: wanted.get(cluster, 0) - base.get(cluster, 0) for cluster in offered}
    trials, left = {}, offers.batch
    for cluster in sorted(gains, key=lambda name: (-gains[name], name)):
        if extra := max(0, min(gains[cluster], offered[cluster], left)):
            trials[cluster], left = extra, left - extra
    trials = _lasting(planner, replace(demand, estimated=lifted, scheduled={}), base, trials)
    if not trials:
        return plan
    if steps is not None:
        steps.append({"step": "return", "wanted": dict(wanted), "onTrial": trials})
    overflow = {cluster: plan.overflow.get(cluster, 0) + trials.get(cluster, 0) for cluster in plan.overflow | trials}
    return replace(plan, overflow=overflow)


def _lasting(planner: Planner, demand: Demand, base: Mapping[str, int], trials: Mapping[str, int]) -> dict[str, int]:
    """Return the trials of which the planner would leave something when they run: the others would come and go."""
    if not trials:
        return {}
    running = {cluster: base.get(cluster, 0) + trials.get(cluster, 0) for cluster in (*base, *trials)}
    settled = planner(replace(demand, current=running, keep_unschedulable=False), None).totals()
    return {
        cluster: extra for cluster, extra in trials.items() if settled.get(cluster, 0) >= base.get(cluster, 0) + extra
    }
