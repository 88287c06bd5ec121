"""Whether the scheduler's decision can be carried out for the kind of the object. Pure.

The engine divides a number. What a cluster gets besides it depends on the kind (`planning/division`), and some objects
cannot be divided. Then the decision is unsuccessful: the object keeps its last placement, and the condition Scheduled
and an event say why. It is never copied to several clusters instead.
"""

from dataclasses import replace

from federation.planning.division.plan import copies_problem, is_only_numbered, plan_division
from federation.scheduling.answers import Due
from federation.scheduling.attempt import SchedulingAttempt
from federation.scheduling.engine import Decision, Outcome


def with_divided_kind(decision: Decision, attempt: SchedulingAttempt, due: Due) -> Decision:
    """Return the decision with the placements that its kind allows, or an unsuccessful decision with the remedy."""
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
