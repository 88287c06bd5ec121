"""Run one federated object through its pipeline with the controllers' planners and without an API.

Each stage computes the merge patch that its controller would send, and the patch is applied to the object, until no
stage writes anything. An unknown controller (of a custom FederatedTypeConfig) is assumed to change only
the pending controllers, and a problem is reported.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import chain
from typing import Any

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.apimachinery.mergepatch import apply_merge_patch
from federation.apimachinery.resources import Object
from federation.planning.failover.returning import Returns
from federation.planning.federatedobject import namespaces, pendingcontrollers
from federation.planning.federatedobject.placements import effective_placement
from federation.planning.freezes.changefreeze import moved_clusters
from federation.planning.overrides.entries import plan_override_patch
from federation.planning.overrides.errors import OverrideError
from federation.planning.overrides.policymatching import subject_of_federated
from federation.scheduling.answers import Assessment, Deferred, Due, Leave, Wait
from federation.scheduling.assessment import assess
from federation.scheduling.attempt import SchedulingAttempt, assume, start_attempt
from federation.scheduling.attemptpatches import placement_patch, unchanged_patch, withdrawing_patch
from federation.scheduling.chain import permit
from federation.scheduling.engine import Decision
from federation.scheduling.framework.types import Exchange
from federation.scheduling.occasions import Occasion
from federation.scheduling.pendingreplicas import completed
from federation.scheduling.proposal import Proposal
from federation.scheduling.quotas import describe_withheld, key_in
from federation.scheduling.relatedworkloads import placed_in, to_workload
from federation.scheduling.triggerwords import describe_deferral
from federation.scheduling.whatif.affected import is_unschedulable
from federation.scheduling.whatif.alternatives import compare_clusters
from federation.scheduling.whatif.state import CompiledState
from federation.scheduling.worldobjects import ClaimModes, name_of

_ROUNDS_MAX = 4
"""A pipeline converges in one round; the second confirms it. More rounds mean that two stages overwrite each other."""
_AT_ONCE_S = 0.0
"""All decisions of a plan have the same time, so that assumed replicas of earlier ones count and never expire."""


@dataclass(slots=True)
class PipelineRun:
    """The object after the stages so far, the scheduler's first assessment, its decision, and problems."""

    federated: Mapping[str, Any]
    type_: FederatedType
    is_unschedulable: bool
    attempt: SchedulingAttempt | None = None
    assessment: Assessment | None = None
    decision: Decision | None = None
    proposal: Proposal | None = None
    """The decision before and after the permits, and the answer of the one that stops it."""
    permitted: Proposal | None = None
    answer: Wait | Leave | None = None
    problems: list[str] = field(default_factory=list)
    alternatives: Sequence[Mapping[str, Any]] = field(default_factory=list)
    """The clusters that its queue would compare for its deadline."""
    withheld: str = ""
    """Why a quota keeps its content from being delivered, "" if it does not."""
    returns: Returns = field(default_factory=Returns)
    """The clusters that replicas have left, and may return to now or later."""
    has_returned: bool = False
    """Whether a decision was about returns, or about completing the placement."""
    follows: str = ""
    """A description of its leaders; "" when they were not computed."""

    def add_problem(self, problem: str) -> None:
        """Record a problem once; ignore ""."""
        if problem and problem not in self.problems:
            self.problems.append(problem)

    def ask_permits(self, state: CompiledState, now: datetime) -> None:
        """Ask the permits about the decision at this time."""
        if self.proposal is not None:
            proposal = replace(self.proposal, now=now)
            self.permitted, self.answer = permit(state.chain.permits, proposal)

    @property
    def is_short(self) -> bool:
        """Whether a quota keeps the object from all that it wants."""
        return bool(self.withheld or (self.decision is not None and self.decision.exceeded))

    @property
    def held(self) -> Mapping[str, str]:
        """The reasons of permits why changes wait, by cluster."""
        found = dict.fromkeys(effective_placement(self.federated), self.withheld) if self.withheld else {}
        if self.permitted is None:
            return found
        before, decided = self.permitted.attempt.current(), self.permitted.decision.placements
        for name in self.returns.allowed.keys() - self.returns.homes:
            if (decided.get(name) or 0) > (before.get(name) or 0):
                found[name] = "replicas that left it return when it has been stable, and has removed its earlier copy"
        found |= {name: stay.message for name, stay in self.permitted.stays.items()}
        if isinstance(self.answer, Wait) and self.answer.reason not in ("", names.REASON_HELD):
            unit, after = self.permitted.due.unit, self.permitted.decision.placements
            moved = moved_clusters(self.permitted.attempt.current(), after, unit.desired_replicas)
            found |= dict.fromkeys(moved, self.answer.message)
        return found

    @property
    def meanwhile(self) -> Mapping[str, int | None]:
        """The part of a decision that is written while its move waits, {} for none."""
        return (self.answer.placements or {}) if isinstance(self.answer, Wait) else {}

    def apply(self, patch: Mapping[str, Any] | None) -> bool:
        """Apply a patch as the API server would; return whether there is one."""
        if patch is None:
            return False
        before = self.federated
        after: Object = apply_merge_patch(before, patch)
        metadata = after["metadata"]
        if after.get("spec") != before.get("spec"):
            after["metadata"] = {**metadata, "generation": int(metadata.get("generation") or 0) + 1}
        self.federated = after
        return True


def run_pipeline(
    federated: Mapping[str, Any], type_: FederatedType, state: CompiledState, *, now: Any
) -> Exchange[PipelineRun]:
    """Run the object through its pipeline until it converges; yield the requests of remote plugins."""
    return (yield from resume_pipeline(PipelineRun(federated, type_, is_unschedulable(federated)), state, now=now))


def resume_pipeline(run: PipelineRun, state: CompiledState, *, now: Any) -> Exchange[PipelineRun]:
    """Continue the run of an object that was changed outside of its pipeline."""
    type_ = run.type_
    for _ in range(_ROUNDS_MAX):
        has_written = False
        for controller in chain.from_iterable(type_.controllers):
            if not pendingcontrollers.dependencies_fulfilled(run.federated, controller, type_.controllers):
                continue
            if controller == names.GLOBAL_SCHEDULER:
                patch = _with_claim(run, state, (yield from _schedule(run, state, now)))
            elif controller == names.OVERRIDE_CONTROLLER:
                patch = _override(run, state)
            elif controller == names.NSAUTOPROP_CONTROLLER:
                clusters = list(state.cluster_objects.values())
                patch = namespaces.plan_namespace(
                    run.federated, clusters, type_.controllers, projects=state.scoped.projects
                )
            else:
                patch = _skip_unknown(run, controller)
            has_written = run.apply(patch) or has_written
        if not has_written:
            break
    return run


def _schedule(run: PipelineRun, state: CompiledState, now: Any) -> Exchange[Object | None]:
    """Return the scheduler's patch. An object that is unschedulable in this run is not retried."""
    volumes = state.earlier_volumes.find(name_of(run.federated), run.federated)
    attempt = start_attempt(run.federated, run.type_, state.policies, volumes)
    if attempt is None:
        return None
    run.add_problem(attempt.problem)
    if isinstance(run.assessment, Wait) or (run.decision and not run.decision.is_success):
        return unchanged_patch(attempt, Wait("", ""))
    snapshot = state.scoped.of(run.federated)
    assumed = state.assume_cache.snapshot(_AT_ONCE_S)
    can_place_more = run.decision is None and attempt.has_unplaced_replicas()
    occasion = Occasion(now, run.is_unschedulable, can_place_more, assumed=assumed)
    if not run.has_returned:
        modes = ClaimModes(state.federated_objects, name_of(run.federated)[0])
        run.returns = state.evictions.returns(attempt, modes, now)
        completion = state.evictions.completion(attempt, modes, now)
        occasion = replace(occasion, homes=run.returns.homes, completes=completion.is_due)
    assessment = assess(attempt, state, state.chain, snapshot, occasion)
    # A decision about something else comes first, as in the control plane.
    if isinstance(assessment, Due) and (assessment.quiet.homes or assessment.quiet.completes):
        run.has_returned = True
    if run.assessment is None:
        run.attempt, run.assessment = attempt, assessment
    if isinstance(assessment, Wait) and assessment.reason == names.REASON_QUEUED and not run.alternatives:
        run.alternatives = yield from compare_clusters(run.federated, state, now)
    if not isinstance(assessment, Due):
        return unchanged_patch(attempt, assessment)
    decision = yield from state.engine.run(assessment.unit, snapshot, assessment.profile, now=now)
    decision = completed(decision, attempt, assessment)
    run.proposal = Proposal(attempt, assessment, decision, snapshot, state, now)
    run.ask_permits(state, now)
    assert run.permitted is not None
    run.decision = decision = run.permitted.decision
    if isinstance(run.answer, Leave):
        return withdrawing_patch(attempt, run.answer)
    if not decision.is_success:
        return unchanged_patch(attempt, Wait(decision.outcome, decision.reason))
    run.is_unschedulable = False
    metadata = run.federated["metadata"]
    assume(state.assume_cache, (metadata.get("namespace"), metadata["name"]), decision, _AT_ONCE_S)
    if state.workloads.is_active:
        placed = to_workload(run.federated, run.type_, attempt.policy)
        state.workloads.assume(placed_in(placed, decision.placements))
    patch, _ = placement_patch(attempt, assessment, decision.placements, decision.reason, quotas=decision.quotas)
    return patch


def _with_claim(run: PipelineRun, state: CompiledState, patch: Object | None) -> Object | None:
    """Return the scheduler's patch with the claim on the namespace's quotas."""
    key, clusters = key_in(run.federated), state.scoped.of(run.federated).by_name
    state.quotas.observe(key, run.federated, run.type_)
    state.quotas.settle(key[0], key, run.federated)
    patch = state.quotas.with_claim(key, run.federated, run.type_, patch, clusters)
    run.withheld = describe_withheld(state.quotas.withheld(*key[:1], key))
    run.add_problem(run.withheld)
    return patch


def _override(run: PipelineRun, state: CompiledState) -> Object | None:
    """Return the override controller's patch; None when a policy is missing: the object then stays pending."""
    try:
        policies = state.bindings.resolve(subject_of_federated(run.federated))
    except OverrideError as error:
        run.add_problem(f"its overrides cannot be computed: {error}")
        return None
    plan = plan_override_patch(run.federated, run.type_.controllers, policies, state.cluster_objects.get)
    for failure in plan.failures:
        run.add_problem(f"its overrides cannot be computed: {failure}")
    return plan.patch


def _skip_unknown(run: PipelineRun, controller: str) -> Object | None:
    run.add_problem(f"what the controller {controller} would do is not computed")
    pending = pendingcontrollers.pending_stages(run.federated)
    after = pendingcontrollers.advance(pending, controller, is_changed=False, pipeline=run.type_.controllers)
    return (
        None
        if after == pending
        else {"metadata": {"annotations": {names.PENDING_CONTROLLERS: pendingcontrollers.to_annotation(after)}}}
    )


def reason_of(run: PipelineRun) -> str:
    """Return the decision's reason, or the reason why there was no decision."""
    decision, assessment = run.decision, run.assessment
    if decision is not None:
        return decision.reason
    match assessment:
        case Deferred():
            deferred = assessment.comparison.deferred_reasons
            return f"not rescheduled: {describe_deferral(deferred)}" if deferred else ""
        case Wait():
            return assessment.message
        case None | Due():
            return ""
        case _:
            return assessment.message
