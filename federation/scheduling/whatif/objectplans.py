"""Compare one federated object before and after its run: what a plan says of it. Pure.

What members have is what was decided, except where something has held it back: there the object's status says so, and
what a change releases is part of its plan.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple

from federation.api.federatedtype import FederatedType
from federation.api.resources import (
    CLUSTER_OVERRIDE_POLICIES,
    CLUSTER_PROPAGATION_POLICIES,
    OVERRIDE_POLICIES,
    PROPAGATION_POLICIES,
    SCHEDULING_PROFILES,
)
from federation.apimachinery.resources import Resource
from federation.planning.federatedobject import pendingcontrollers
from federation.planning.federatedobject.heldback import held_back, is_absent
from federation.planning.overrides.errors import OverrideError
from federation.planning.overrides.policymatching import subject_of_federated
from federation.planning.rendering.memberobject import divided_replicas
from federation.planning.rendering.retention import is_replicas_retained
from federation.scheduling.answers import Deferred, Due, Skipped, Wait
from federation.scheduling.engine import Outcome
from federation.scheduling.explain import to_explanation
from federation.scheduling.framework.types import SchedulingMode
from federation.scheduling.pendingreplicas import duplicate_reason
from federation.scheduling.whatif.consequences import costs_of, lost_at_worst
from federation.scheduling.whatif.holding import released
from federation.scheduling.whatif.pipelinerun import PipelineRun, reason_of
from federation.scheduling.whatif.planresult import Action, MemberObject, ObjectPlan
from federation.scheduling.whatif.rendered import member_objects_of, to_rows, to_waves, unplaced_of
from federation.scheduling.whatif.state import CompiledState

_OUTCOMES: Mapping[type, str] = {
    Deferred: "Deferred",
    Wait: "Stuck",
    Skipped: "Untouched",
    Due: "Due",
    type(None): "NoneType",
}
"""Outcomes of objects without a decision, as explanations have them; plan files keep them."""


_NONE: frozenset[str] = frozenset()


class Subject(NamedTuple):
    """A federated object before the changes, and its `desired` version before it runs; None when there is none."""

    type_: FederatedType
    before: Mapping[str, Any] | None
    desired: Mapping[str, Any] | None
    problems: Sequence[str] = ()
    is_named: bool = False
    """Whether its source is one of the changes; its result is then always reported."""


def to_object_plan(
    subject: Subject, run: PipelineRun | None, state: CompiledState, now: datetime, *, is_explained: bool
) -> ObjectPlan:
    """Compare one object before and after. Without a change of placement or overrides nothing is rendered."""
    type_, before = subject.type_, subject.before
    after = run.federated if run is not None else None
    own, others = state.held_before(before, now) if before is not None and after is not None else (_NONE, _NONE)
    old: dict[str, MemberObject] = {}
    new: dict[str, MemberObject] = {}
    if before is None or after is None or after["spec"] != before["spec"] or own:
        old, new = member_objects_of(before, type_), member_objects_of(after, type_)
    same = {name for name in own | others if _digest(old, name) == _digest(new, name)}
    if run is not None and (waits_for := _pending(run.federated)):
        run.add_problem(f"its member objects stay unchanged: it waits for {waits_for}")
        new = old
    elif own:
        old = _as_in_members(before or {}, type_, old, own | others)
    retained = type_.paths.replicas_spec if after is not None and is_replicas_retained(after) else ()
    waiting = run.decision.waiting if run is not None and run.decision is not None else {}
    rows = to_rows(old, new, state.cluster_objects, retained, waiting)
    held, meanwhile = (run.held, run.meanwhile) if run is not None else ({}, {})
    rows = state.holding.annotate(rows, before, after, type_, now, held=held, meanwhile=meanwhile)
    rows = released(rows, own, others, same) if own else rows
    either: Mapping[str, Any] = after or before or {}
    template = (either.get("spec") or {}).get("template") or {}
    metadata = either.get("metadata") or {}
    action = _action(old, new, has_changed=any(row.is_changed for row in rows), is_gone=run is None)
    waves = to_waves(after, type_, rows, state.cluster_objects)
    is_divided = all(divided_replicas(side, type_) for side in (before, after) if side is not None)
    return ObjectPlan(
        type_.resource,
        str(metadata.get("namespace") or ""),
        str((template.get("metadata") or {}).get("name") or ""),
        action,
        rows,
        unplaced=_unplaced(run, type_),
        unplaced_before=unplaced_of(before, type_),
        waiting=sum(waiting.values()),
        is_stuck=run is not None and _is_stuck(run),
        waits=run.assessment.message if run is not None and isinstance(run.assessment, Wait) else "",
        reason=_reason(action, run, is_named=subject.is_named),
        problems=[*subject.problems, *(run.problems if run is not None else ())],
        federated_name=str(metadata.get("name") or ""),
        waves=[(wave, clusters) for wave, clusters, _ in waves],
        based_on=_based_on(run, state) if run is not None else (),
        explanation=_explanation(run) if is_explained and run is not None else None,
        lost=lost_at_worst(type_.resource, rows, [wave[:2] for wave in waves], is_divided=is_divided),
        costs=costs_of(rows, state.clusters.snapshot().by_name, type_) if action is not Action.NONE else {},
        approvals=[wave for wave, _, needs_approval in waves if needs_approval],
        alternatives=run.alternatives if run is not None else (),
        stays=run.permitted.stays if run is not None and run.permitted is not None else {},
    )


def _digest(members: Mapping[str, MemberObject], name: str) -> tuple[str, str] | None:
    return (found.digest, found.error) if (found := members.get(name)) is not None else None


def _as_in_members(
    before: Mapping[str, Any], type_: FederatedType, decided: Mapping[str, MemberObject], behind: frozenset[str]
) -> dict[str, MemberObject]:
    """Return the member objects without what is held back: there is none, or one with content that is not known."""
    found, entries = dict(decided), held_back(before)
    for name in behind:
        found.pop(name, None)
        if not (type_.paths.replicas_spec and is_absent(entries[name])):
            found[name] = replace(decided.get(name) or MemberObject({}, "", ""), digest="", error="")
    return found


def _based_on(run: PipelineRun, state: CompiledState) -> list[tuple[Resource, str, str]]:
    """Return the policies and the profile that the object's new state depends on."""
    found: list[tuple[Resource, str, str]] = []
    if run.attempt is not None and (ref := run.attempt.ref) is not None:
        found.append((PROPAGATION_POLICIES if ref.namespace else CLUSTER_PROPAGATION_POLICIES, *ref))
        if run.attempt.policy is not None and run.attempt.policy.profile:
            found.append((SCHEDULING_PROFILES, "", run.attempt.policy.profile))
    try:
        references = state.bindings.references(subject_of_federated(run.federated))
    except OverrideError:
        references = []  # The run has reported the invalid label.
    for reference in references:
        resource = OVERRIDE_POLICIES if reference.namespace else CLUSTER_OVERRIDE_POLICIES
        found.append((resource, reference.namespace, reference.name))
    return found


def _is_stuck(run: PipelineRun) -> bool:
    if run.decision is not None:
        return not run.decision.is_success
    return isinstance(run.assessment, Wait)


def _unplaced(run: PipelineRun | None, type_: FederatedType) -> int:
    """Return the number of unplaced replicas, also of an unschedulable object."""
    if run is None:
        return 0
    decision = run.decision
    if decision is None or decision.is_success or decision.unit.mode is not SchedulingMode.DIVIDE:
        return unplaced_of(run.federated, type_)
    placed = sum(count or 0 for count in decision.unit.current.values())
    return max(0, (decision.unit.desired_replicas or 0) - placed)


def _action(
    old: Mapping[str, MemberObject], new: Mapping[str, MemberObject], *, has_changed: bool, is_gone: bool
) -> Action:
    if not has_changed:
        return Action.NONE
    if not old:
        return Action.CREATE
    if new:
        return Action.CHANGE
    return Action.DELETE if is_gone else Action.WITHDRAW


def _reason(action: Action, run: PipelineRun | None, *, is_named: bool) -> str:
    """Return the reason of the object's new placement, or that it was scheduled again with the same result."""
    if run is None:
        return ""
    decision = run.decision
    if action is Action.NONE and decision is not None and decision.outcome is Outcome.SCHEDULED:
        if decision.shortage or decision.waiting:
            return decision.reason
        if run.permitted is not None and run.permitted.stays:
            stays = (f"replicas stay in cluster {name}: {stay.message}" for name, stay in run.permitted.stays.items())
            return "; ".join(stays)
        unit = decision.unit
        prefers = unit.avoid_disruption and unit.mode is SchedulingMode.DIVIDE
        keeps = ", which its policy prefers (avoidDisruption)" if prefers else ""
        return f"scheduled again, with the same result{keeps}"
    if run.follows and action is not Action.NONE and isinstance(run.assessment, Skipped | None):
        return run.follows
    if isinstance(run.assessment, Skipped) and not is_named:
        return ""
    return reason_of(run)


def _explanation(run: PipelineRun) -> Mapping[str, Any]:
    ref = run.attempt.ref if run.attempt is not None else None
    policy = {"namespace": ref.namespace, "name": ref.name} if ref is not None else None
    if run.decision is None:
        return {"policy": policy, "outcome": _OUTCOMES[type(run.assessment)], "reason": reason_of(run)}
    because = run.assessment.comparison.changed if isinstance(run.assessment, Due) else ()
    explanation: dict[str, Any] = {"policy": policy, "because": because}
    if isinstance(run.assessment, Due) and run.attempt is not None:
        explanation["copiedBecause"] = duplicate_reason(run.attempt, run.assessment)
    return explanation | to_explanation(run.decision)


def _pending(federated: Mapping[str, Any]) -> str:
    try:
        stages = pendingcontrollers.pending_stages(federated)
    except pendingcontrollers.PipelineError as error:
        return str(error)
    return ", ".join(name for stage in stages for name in stage)
