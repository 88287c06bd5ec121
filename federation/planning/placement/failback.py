"""Return replicas to a cluster that has capacity again: first one more there, then one less elsewhere. Pure.

A planner that avoids disruption leaves replicas where they run. So they return on trial: clusters with an offer get up
to a batch more than their division, within weights and bounds, and no cluster gets fewer. When they run, the capacity
estimate grows and the next division removes the surplus (`planning/automigration/capacityestimate.py`).

With any planner, no running replica is removed here before as many others run.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from federation.planning.placement.capacity import Planner, upper_bounds
from federation.planning.placement.replicas import Demand, Plan, Steps


@dataclass(frozen=True, slots=True)
class Offers:
    """Replicas that clusters may get beyond their estimated capacity; `batch` limits their sum."""

    offered: Mapping[str, int] = field(default_factory=dict)
    batch: int = 0


def plan_with_trials(planner: Planner, demand: Demand, offers: Offers, steps: Steps | None = None) -> Plan:
    """Return the planner's division; replicas on trial and running ones without a replacement are overflow."""
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
    """Return up to a batch of replicas for clusters with an offer, those that lack most first."""
    offered = offers.offered
    lifted = {cluster: room + offered.get(cluster, 0) for cluster, room in demand.estimated.items()}
    ideal = replace(demand, estimated=lifted, scheduled={}, avoid_disruption=False)
    wanted = planner(ideal, None).replicas
    # Replicas that wait in a cluster use up its offer first.
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
    """Return the trials that the planner would keep once they run; the others would oscillate.

    Started trials run to their end, because they occupy capacity that planners may count.
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
    """Return the running replicas that the plan removes before their replacements run.

    Estimates follow running replicas with a delay, and replicas placed elsewhere may never run, so the members' ready
    counts decide. Bounds of policy and user take precedence. In clusters without an estimate the planner may leave
    replicas out on purpose, so no more are kept there than it places elsewhere.
    """
    caps = upper_bounds(replace(demand, estimated={}))
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
