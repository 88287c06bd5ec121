"""Replicas that come back to a cluster that has room again: first one more there, then one fewer elsewhere.

A planner that avoids disruption leaves replicas where they run. So they return on trial: clusters with an offer get up
to a batch more than their division, as far as weights and bounds want it, and nobody gets fewer. When they run, the
believed capacity grows and the next division takes the surplus away (`planning/automigration/belief.py`).

Whatever a planner was told, here nothing that runs is taken away before as many others run. Pure; works with any
planner of this package.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from federation.planning.placement.replicas import Demand, Plan, Steps
from federation.planning.placement.room import Planner, bounds_of


@dataclass(frozen=True, slots=True)
class Offers:
    """Replicas that clusters may take beyond their estimated capacity, and the most of them in all at a time."""

    offered: Mapping[str, int] = field(default_factory=dict)
    batch: int = 0


def plan_with_trials(planner: Planner, demand: Demand, offers: Offers, steps: Steps | None = None) -> Plan:
    """Return the planner's division; replicas on trial, and running ones without a replacement, are overflow."""
    plan = planner(demand, steps)
    if offers.offered and offers.batch > 0:
        plan = _with_overflow(plan, _find_trials(planner, demand, plan.totals(), offers, steps))
    if demand.ready:
        plan = _with_overflow(plan, _find_irreplaceable(demand, plan.totals(), steps))
    return plan


def _with_overflow(plan: Plan, more: Mapping[str, int]) -> Plan:
    overflow = plan.overflow | {cluster: plan.overflow.get(cluster, 0) + count for cluster, count in more.items()}
    return replace(plan, overflow=overflow) if more else plan


def _find_trials(
    planner: Planner, demand: Demand, base: Mapping[str, int], offers: Offers, steps: Steps | None
) -> dict[str, int]:
    """Return up to a batch of replicas for clusters with an offer that lack some, those first that lack most."""
    offered = offers.offered
    lifted = {cluster: room + offered.get(cluster, 0) for cluster, room in demand.estimated.items()}
    ideal = replace(demand, estimated=lifted, scheduled={}, avoid_disruption=False)
    wanted = planner(ideal, None).replicas
    # Replicas that wait in a cluster are the first to take its room.
    gains = {c: min(wanted.get(c, 0), lifted.get(c, 0)) - base.get(c, 0) for c in offered}
    trials, left = {}, offers.batch
    for cluster in sorted(gains, key=lambda name: (-gains[name], name)):
        if extra := max(0, min(gains[cluster], left)):
            trials[cluster], left = extra, left - extra
    trials = _lasting(planner, replace(demand, estimated=lifted, scheduled={}), base, trials)
    if trials and steps is not None:
        steps.append({"step": "return", "wanted": dict(wanted), "onTrial": trials})
    return trials


def _lasting(planner: Planner, demand: Demand, base: Mapping[str, int], trials: Mapping[str, int]) -> dict[str, int]:
    """Return the trials of which the planner would leave something when they run: the others would come and go.

    Those that are there already are seen through to their end: meanwhile they take room, and planners may look at it.
    """
    if all(demand.current.get(cluster, 0) >= base.get(cluster, 0) + extra for cluster, extra in trials.items()):
        return dict(trials)
    running = {cluster: base.get(cluster, 0) + trials.get(cluster, 0) for cluster in (*base, *trials)}
    settled = planner(replace(demand, current=running, keep_unschedulable=False), None).totals()
    return {
        cluster: extra
        for cluster, extra in trials.items()
        if max(settled.get(cluster, 0), demand.current.get(cluster, 0)) >= base.get(cluster, 0) + extra
    }


def _find_irreplaceable(demand: Demand, totals: Mapping[str, int], steps: Steps | None) -> dict[str, int]:
    """Return replicas that run, that the plan takes away, and for which none of those that it leaves runs yet.

    What is believed follows what runs only after a while, and what was placed elsewhere may never run: members' own
    counts decide. The bounds of policy and user go before, and so does what a planner places nowhere on purpose: where
    less is believed to fit than runs it is none.
    """
    caps = bounds_of(replace(demand, estimated={}))
    runs = {c: min(demand.current.get(c, 0), n, caps.get(c, n)) for c, n in demand.ready.items()}
    runs = {cluster: runs[cluster] for cluster in demand.clusters if runs.get(cluster)}
    left = sum(min(count, totals.get(cluster, 0)) for cluster, count in runs.items())
    missing = min(demand.total, sum(runs.values())) - left
    elsewhere = sum(totals.values()) - left
    taken = {cluster: count - totals.get(cluster, 0) for cluster, count in runs.items()}
    stay: dict[str, int] = {}
    for cluster in sorted(taken, key=lambda name: (-taken[name], name)):
        most = missing if cluster in demand.estimated else min(missing, elsewhere)
        if extra := max(0, min(taken[cluster], most)):
            stay[cluster], missing, elsewhere = extra, missing - extra, elsewhere - extra
    if stay and steps is not None:
        steps.append({"step": "hold", "untilOthersRun": stay})
    return stay
