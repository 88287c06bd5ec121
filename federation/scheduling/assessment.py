"""Assess whether an object is to be scheduled: run the chain, and build the unit that the engine places. Pure.

For `Due` the caller runs the engine (`engine.py`) and writes `attemptpatches.placement_patch`; otherwise it writes
`unchanged_patch`. `controllers/schedule` uses it for the control plane, `whatif/` for plans and `replay/` for records,
so that all of them have the same result.

Reference: docs/reference/scheduling.md.
"""

from dataclasses import replace
from datetime import datetime

from federation.scheduling.annotationoverrides import overrides_from_annotations
from federation.scheduling.annotationswitch import with_allowed_annotations
from federation.scheduling.answers import Assessment, Due
from federation.scheduling.attempt import SchedulingAttempt, tolerations_of
from federation.scheduling.chain import Chain
from federation.scheduling.framework.types import SchedulingMode
from federation.scheduling.occasions import Occasion
from federation.scheduling.question import Question
from federation.scheduling.snapshot import Snapshot
from federation.scheduling.tolerations import toleration_end
from federation.scheduling.unit import Facts, build_unit
from federation.scheduling.world import World


def assess(
    attempt: SchedulingAttempt, world: World, chain: Chain, snapshot: Snapshot, occasion: Occasion
) -> Assessment:
    """Return whether the object is to be scheduled, and the inputs of the decision; `snapshot` has its clusters."""
    annotations = attempt.federated["metadata"].get("annotations") or {}
    gates = [gate for gate in chain.gates if not (gate.about and gate.about.isdisjoint(annotations))]
    question = Question(attempt, world, snapshot, occasion, gates)
    for gate in gates:
        if (answer := gate.ask(question)) is not None:
            return answer
    facts = Facts(question.request, attempt.origin(), bool(question.queue))
    unit = build_unit(question.federated, question.type_, question.policy, snapshot, world.options, facts)
    for shape in chain.shapes:
        unit = shape.shape(unit, question)
    return Due(
        unit,
        question.profile,
        question.policy,
        question.triggers.text,
        question.comparison,
        question.ignored_annotations,
        _divides(question),
        question.spread is not None,
        question.quiet,
        replace(occasion, away=tuple(question.partners_away)),
    )


def tolerated_until(attempt: SchedulingAttempt, world: World, snapshot: Snapshot) -> dict[str, datetime]:
    """Return until when the object tolerates the taints of its current clusters; {} if it stays in any case.

    An object that does not follow changes of clusters is not moved when a toleration ends.
    """
    policy = attempt.policy
    if (
        not snapshot.with_taint_times
        or policy is None
        or policy.rescheduling.is_disabled
        or not policy.rescheduling.when
    ):
        return {}
    federated, _ = with_allowed_annotations(attempt.federated, world.annotation_policy)
    if overrides_from_annotations(federated["metadata"].get("annotations") or {}).get(
        "sticky", policy.rescheduling.is_sticky
    ):
        return {}
    tolerations, current = tolerations_of(federated, policy, world.options), attempt.current()
    return {
        cluster.name: end[0]
        for cluster in snapshot.with_taint_times
        if cluster.name in current and (end := toleration_end(tolerations, cluster)) is not None
    }


def _divides(question: Question) -> bool:
    annotations = question.federated["metadata"].get("annotations") or {}
    mode = overrides_from_annotations(annotations).get("mode", question.policy.mode)
    return bool(mode is SchedulingMode.DIVIDE)
