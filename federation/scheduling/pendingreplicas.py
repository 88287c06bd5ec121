"""The engine's decision with what the kind of the object allows, and the replicas that it leaves unplaced. Pure.

A decision may leave replicas unplaced, because of limits of policy or topology, or because clusters are unready. The
object is scheduled again when its queueing hint matches (`queueinghints.py`). The policy need not allow rescheduling
for that, because placed replicas stay where they are.

The engine divides a number. What a cluster gets besides it depends on the kind (`planning/division`), and some objects
cannot be divided. Then the decision is unsuccessful: the object keeps its last placement, and the condition Scheduled
and an event say why. It is never copied to several clusters instead.
"""

from dataclasses import replace

from federation.planning.division.plan import copies_problem, is_only_numbered, plan_division
from federation.scheduling.answers import Due
from federation.scheduling.attempt import SchedulingAttempt
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


def completed(decision: Decision, attempt: SchedulingAttempt, due: Due) -> Decision:
    """Return the engine's decision with the placements that its kind allows, or an unsuccessful one with the remedy."""
    if due.quiet.only_adds:
        decision = with_added_only(decision)
    if not decision.is_success or not due.divides:
        return decision
    if not attempt.federated_type.paths.replicas_spec:
        problem = copies_problem(attempt.federated_type, decision.placements)
        return _cannot_divide(decision, problem) if problem else decision
    if is_only_numbered(attempt.federated_type):
        return decision
    plan = plan_division(attempt.annotated(), attempt.federated_type, decision.placements)
    if plan.problem:
        return _cannot_divide(decision, plan.problem)
    return decision if plan.placements == decision.placements else replace(decision, placements=plan.placements)


def duplicate_reason(attempt: SchedulingAttempt, due: Due) -> str:
    """Return why the object is duplicated although its policy divides, "" if it is not.

    Reference: docs/reference/scheduling.md.
    """
    if not due.divides or attempt.federated_type.paths.replicas_spec or due.unit.pods.is_gang:
        return ""
    type_name = attempt.federated_type.name
    return f"the policy says Divide, but FederatedTypeConfig {type_name} has no pathDefinition.replicasSpec"


def _cannot_divide(decision: Decision, problem: str) -> Decision:
    return replace(decision, outcome=Outcome.CANNOT_DIVIDE, reason=problem, placements={}, unplaced=0)
