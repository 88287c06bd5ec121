"""Unplaced replicas: a later decision places them without moving others.

A decision may leave replicas unplaced, because of limits of policy or topology, or because clusters are unready. The
object is scheduled again when its queueing hint matches (`queueinghints.py`). The policy need not allow rescheduling
for that, because placed replicas stay where they are. Pure.
"""

from dataclasses import replace

from federation.scheduling.engine import Decision, Outcome
from federation.scheduling.framework.division import current_replicas


def has_unplaced_replicas(decision: Decision) -> bool:
    """Return whether a later decision may place unplaced replicas; replicas of sticky units stay unplaced."""
    return decision.unplaced > 0 and not decision.unit.sticky


def with_added_only(decision: Decision) -> Decision:
    """Return the decision that adds unplaced replicas where this one does, and keeps the current placement.

    A decision that places none of them becomes one for the current placement. Plugin failures stay failures.
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
