"""One federated object on its way through the pipeline, with the controllers' own planners and no API behind them.

Each stage computes the merge patch that its controller would send, and the patch is applied to the object in hand,
until no stage has anything more to write. The stages that decide are all known here; one that is not (of a type that
somebody else configured) only passes its turn on, and that is told.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.api.resources import Object
from federation.planning import mergepatch, namespaces, pipeline
from federation.planning.overrides.bindings import subject_of_federated
from federation.planning.overrides.errors import OverrideError
from federation.planning.overrides.storage import plan_turn
from federation.scheduling.engine import Decision
from federation.scheduling.framework.types import Exchange
from federation.scheduling.shortage import with_added_only
from federation.scheduling.triggers import describe_deferral
from federation.scheduling.turn import Deferred, Due, Finding, Stuck, Turn, assess, kept, open_turn, placed, reserve
from federation.scheduling.whatif.concern import is_waiting
from federation.scheduling.whatif.world import Facts

_ROUNDS_MAX = 4
"""A pipeline comes to rest after one round and one that confirms it; more would be a quarrel between stages."""


_AT_ONCE_S = 0.0
"""All decisions of a plan are made at one moment: each sees the room that those before it have given out."""


@dataclass(slots=True)
class Walk:
    """An object under way: as it is now, what the scheduler found and decided first, and what went wrong."""

    fed_object: Mapping[str, Any]
    type_: FederatedType
    is_waiting: bool
    turn: Turn | None = None
    finding: Finding | None = None
    decision: Decision | None = None
    problems: list[str] = field(default_factory=list)
    follows: str = ""
    """Whom it follows, when that was looked at."""

    def note(self, problem: str) -> None:
        """Take down what went wrong, once."""
        if problem and problem not in self.problems:
            self.problems.append(problem)

    def apply(self, patch: Mapping[str, Any] | None) -> bool:
        """Apply a patch as the API server would, and say whether there was one."""
        if patch is None:
            return False
        before = self.fed_object
        after: Object = mergepatch.apply(before, patch)
        metadata = after["metadata"]
        if after.get("spec") != before.get("spec"):
            after["metadata"] = {**metadata, "generation": int(metadata.get("generation") or 0) + 1}
        self.fed_object = after
        return True


def walk(fed_object: Mapping[str, Any], type_: FederatedType, facts: Facts, *, now: Any) -> Exchange[Walk]:
    """Take the object through its pipeline until it comes to rest; yields the requests of remote plugins."""
    return (yield from walk_on(Walk(fed_object, type_, is_waiting(fed_object)), facts, now=now))


def walk_on(under_way: Walk, facts: Facts, *, now: Any) -> Exchange[Walk]:
    """Take an object on that was written meanwhile, as `walk` does."""
    type_ = under_way.type_
    for _ in range(_ROUNDS_MAX):
        has_written = False
        for controller in chain.from_iterable(type_.controllers):
            if not pipeline.is_turn_of(under_way.fed_object, controller, type_.controllers):
                continue
            if controller == names.GLOBAL_SCHEDULER:
                patch = yield from _schedule(under_way, facts, now)
            elif controller == names.OVERRIDE_CONTROLLER:
                patch = _override(under_way, facts)
            elif controller == names.NSAUTOPROP_CONTROLLER:
                clusters = list(facts.cluster_objects.values())
                patch = namespaces.plan_namespace(under_way.fed_object, clusters, type_.controllers)
            else:
                patch = _pass(under_way, controller)
            has_written = under_way.apply(patch) or has_written
        if not has_written:
            break
    return under_way


def _schedule(under_way: Walk, facts: Facts, now: Any) -> Exchange[Object | None]:
    """Take the scheduler's turn. What was decided, or could not be, is not asked twice."""
    turn = open_turn(under_way.fed_object, under_way.type_, facts.policies)
    if turn is None:
        return None
    under_way.note(turn.problem)
    if isinstance(under_way.finding, Stuck) or (under_way.decision and not under_way.decision.is_success):
        return kept(turn, Stuck("", ""))
    snapshot = facts.clusters.snapshot()
    promised = facts.reservations.promised(_AT_ONCE_S)
    is_short = under_way.decision is None and turn.is_short()
    finding = assess(turn, facts, snapshot, is_waiting=under_way.is_waiting, is_short=is_short, reserved=promised)
    if under_way.finding is None:
        under_way.turn, under_way.finding = turn, finding
    if not isinstance(finding, Due):
        return kept(turn, finding)
    decision = yield from facts.engine.run(finding.unit, snapshot, finding.profile, now=now)
    under_way.decision = decision = with_added_only(decision) if finding.only_adds else decision
    if not decision.is_success:
        return kept(turn, Stuck(decision.outcome, decision.reason))
    under_way.is_waiting = False
    metadata = under_way.fed_object["metadata"]
    reserve(facts.reservations, (metadata.get("namespace"), metadata["name"]), decision, _AT_ONCE_S)
    patch, _ = placed(turn, finding, decision.placements, decision.reason)
    return patch


def _override(under_way: Walk, facts: Facts) -> Object | None:
    """Take the override controller's turn; when policies do not fit, what is stored stays and so does the turn."""
    try:
        policies = facts.bindings.resolve(subject_of_federated(under_way.fed_object))
        return plan_turn(under_way.fed_object, under_way.type_.controllers, policies, facts.cluster_objects.get)
    except OverrideError as error:
        under_way.note(f"its overrides cannot be computed: {error}")
        return None


def _pass(under_way: Walk, controller: str) -> Object | None:
    under_way.note(f"what the controller {controller} would do is not computed")
    pending = pipeline.pending(under_way.fed_object)
    after = pipeline.after_acting(pending, controller, is_changed=False, pipeline=under_way.type_.controllers)
    return (
        None
        if after == pending
        else {"metadata": {"annotations": {names.PENDING_CONTROLLERS: pipeline.to_annotation(after)}}}
    )


def reason_of(under_way: Walk) -> str:
    """Return in one line why the object is where it is: the decision's reason, or why there was none."""
    decision, finding = under_way.decision, under_way.finding
    if decision is not None:
        return decision.reason
    match finding:
        case Deferred():
            deferred = finding.verdict.deferred_reasons
            return f"not rescheduled: {describe_deferral(deferred)}" if deferred else ""
        case Stuck():
            return finding.message
        case None | Due():
            return ""
        case _:
            return finding.message
