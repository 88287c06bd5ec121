"""Replicas that have no place yet: they get one when something helps, and for their sake nothing that runs is moved.

A decision may leave some of the replicas without a place, at the limits of policy or topology, or where clusters are
not ready. Their object is decided again when a change can help (`hope.py`). The policy need not allow rescheduling for
that, because what has a place keeps it: whatever such a decision would rather have elsewhere stays. Pure.
"""

from dataclasses import replace

from federation.scheduling.engine import Decision, Outcome
from federation.scheduling.framework.divide import current_replicas


def is_short(decision: Decision) -> bool:
    """Say whether replicas lack a place that a later decision may find; sticky units stay as they are."""
    return decision.unplaced > 0 and not decision.unit.sticky


def with_added_only(decision: Decision) -> Decision:
    """Return the decision that gives places to missing replicas as this one does, and leaves the others where they are.

    One without a place for any is a decision for what is there. What a failing plugin left open stays open.
    """
    unit = decision.unit
    if decision.outcome in (Outcome.PLUGIN_FAILED, Outcome.STICKY):
        return decision
    wanted, placements = unit.desired_replicas or 0, dict(unit.current)
    missing = wanted - sum(current_replicas(unit).values())
    for name, count in decision.placements.items():
        added = min((count or 0) - (placements.get(name) or 0), missing)
        if added > 0:
            placements[name] = (placements.get(name) or 0) + added
            missing -= added
    is_all = decision.is_success and placements == decision.placements
    reason = decision.reason if is_all else f"{decision.reason}; what runs stays where it is"
    return replace(decision, outcome=Outcome.SCHEDULED, placements=placements, unplaced=max(0, missing), reason=reason)
