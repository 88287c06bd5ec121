"""Assess whether an object is to be scheduled: run the chain, and build the unit that the engine places. Pure.

For `Due` the caller runs the engine (`engine.py`) and writes `attemptpatches.placement_patch`; otherwise it writes
`unchanged_patch`. `controllers/schedule` uses it for the control plane, `whatif/` for plans and `replay/` for records,
so that all of them have the same result.

Reference: docs/reference/scheduling.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from federation.scheduling.annotationoverrides import overrides_from_annotations
from federation.scheduling.answers import Answer
from federation.scheduling.attempt import SchedulingAttempt
from federation.scheduling.chain import Chain
from federation.scheduling.framework.profile import Profile
from federation.scheduling.framework.types import SchedulingMode, SchedulingUnit
from federation.scheduling.movecauses import NO_CAUSE, QuietCauses
from federation.scheduling.occasions import Occasion
from federation.scheduling.policyspec import Policy
from federation.scheduling.question import Question
from federation.scheduling.snapshot import Snapshot
from federation.scheduling.triggers import TriggerComparison
from federation.scheduling.unit import Facts, build_unit
from federation.scheduling.world import World


@dataclass(frozen=True, slots=True)
class Due:
    """The object is to be scheduled: the inputs of the engine, and the triggers to store with the decision."""

    unit: SchedulingUnit
    profile: Profile
    policy: Policy
    triggers: str
    comparison: TriggerComparison
    ignored_annotations: Mapping[str, str]
    """Overriding annotations that have no effect, and why."""
    divides: bool = False
    """Whether the policy or an annotation asks for Divide, also for a kind that cannot be divided."""
    is_spread: bool = False
    """Whether a WorkloadSpread targets the object."""
    quiet: QuietCauses = NO_CAUSE
    """Why it is scheduled if nothing of it changed."""
    occasion: Occasion | None = None
    """The other inputs of the assessment."""


Assessment = Due | Answer


def assess(
    attempt: SchedulingAttempt, world: World, chain: Chain, snapshot: Snapshot, occasion: Occasion
) -> Assessment:
    """Return whether the object is to be scheduled, and the inputs of the decision; `snapshot` has its clusters."""
    question = Question(attempt, world, snapshot, occasion, chain.gates)
    for gate in chain.gates:
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


def _divides(question: Question) -> bool:
    annotations = question.federated["metadata"].get("annotations") or {}
    mode = overrides_from_annotations(annotations).get("mode", question.policy.mode)
    return bool(mode is SchedulingMode.DIVIDE)
