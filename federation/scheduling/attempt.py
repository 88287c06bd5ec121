"""A scheduling attempt for one federated object: assess whether it is due, and build the resulting patch.

`start_attempt` checks that the object is the scheduler's, and finds its policy. `assess` compares it with its last
decision. For `Due` the caller runs the engine (`engine.py`) and writes `placement_patch`; otherwise it writes
`unchanged_patch`. Pure: `controllers/schedule` uses it for the control plane and `whatif/` for `fedctl plan`, so that
both have the same result.

Reference: docs/reference/scheduling.md.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.planning.federatedobject import pendingcontrollers
from federation.planning.federatedobject.finished import has_finished_everywhere
from federation.planning.federatedobject.placements import current_clusters
from federation.planning.podgroups import PodGroup
from federation.scheduling.affinity.index import WorkloadIndex
from federation.scheduling.affinity.relations import partners_away, with_relations
from federation.scheduling.annotationoverrides import overrides_from_annotations
from federation.scheduling.annotationswitch import AnnotationPolicy, with_allowed_annotations
from federation.scheduling.assumedreplicas import AssumeCache
from federation.scheduling.engine import Decision
from federation.scheduling.framework.profile import Profile
from federation.scheduling.framework.types import Assumed, SchedulingMode, SchedulingUnit, Taint, Toleration
from federation.scheduling.jobqueues import (
    QueueIndex,
    admission_of,
    must_leave,
    waiting_message,
    within_admission,
)
from federation.scheduling.movecauses import NO_CAUSE, QuietCauses, quiet_causes, with_causes
from federation.scheduling.names import (
    IGNORED_PLUGINS,
    REASON_CLAIMS_NOT_KNOWN,
    REASON_POLICY_NOT_FOUND,
    REASON_PROFILE_NOT_FOUND,
    REASON_SUSPENDED,
)
from federation.scheduling.occasions import Occasion, Surroundings, UnitOptions
from federation.scheduling.podgroups import is_elsewhere, membership_of, request_in, wait_of
from federation.scheduling.podrequest import claims_of, claims_problem, has_pods
from federation.scheduling.policymatching import PolicyIndex
from federation.scheduling.policyspec import Policy, PolicyRef
from federation.scheduling.profiles import Profiles
from federation.scheduling.quotas import QuotaLedger, key_in
from federation.scheduling.recalledgangs import pods_by_request
from federation.scheduling.relatedworkloads import to_workload
from federation.scheduling.snapshot import Snapshot
from federation.scheduling.tolerations import ended_tolerations, toleration_end, with_defaults
from federation.scheduling.triggers import (
    ObjectTriggers,
    TriggerComparison,
    TriggerSource,
    clusters_left,
    compare_triggers,
    may_concern_finished,
)
from federation.scheduling.unit import build_unit
from federation.scheduling.usermigration import MigrationError, applied_annotation
from federation.scheduling.workloadspreads import SpreadIndex

Annotations = dict[str, str | None]
"""Annotations to write; None removes one."""


class AttemptInputs(Protocol):
    """Inputs of an attempt besides the object and the clusters."""

    policies: PolicyIndex
    profiles: Profiles
    annotation_policy: AnnotationPolicy
    triggers: TriggerSource
    spreads: SpreadIndex
    quotas: QuotaLedger
    workloads: WorkloadIndex
    queues: QueueIndex


@dataclass(frozen=True, slots=True)
class SchedulingAttempt:
    """A federated object that is pending for the scheduler, with its policy.

    `policy` is None with a `ref` when the policy does not exist. `annotations` are written with every patch. `problem`
    describes an invalid migration request of the user, "" without one.
    """

    federated: Mapping[str, Any]
    federated_type: FederatedType
    ref: PolicyRef | None
    policy: Policy | None
    annotations: Annotations
    problem: str = ""
    _current: list[dict[str, int | None]] = field(default_factory=list, init=False, repr=False, compare=False)
    """The current placement, once it has been read."""

    def current(self) -> dict[str, int | None]:
        """Return the scheduler's current placement, the same object each time."""
        if not self._current:
            self._current.append(current_clusters(self.federated, self.federated_type))
        return self._current[0]

    def know(self, current: dict[str, int | None]) -> None:
        """Take the current placement from a caller who made the object with it."""
        self._current.append(current)

    def ignored_plugins(self) -> tuple[str, ...]:
        """Return the remote plugins that were unavailable for the last decision, which ignored them."""
        text = (self.federated["metadata"].get("annotations") or {}).get(IGNORED_PLUGINS)
        return tuple(text.split(",")) if text else ()

    def has_unplaced_replicas(self) -> bool:
        """Return whether the current placement lacks replicas that a decision may place."""
        if self.policy is None or self.policy.is_sticky:
            return False
        wanted = self.federated_type.replicas(self.federated["spec"]["template"]) or 0
        return 0 < sum(wanted if count is None else count for count in self.current().values()) < wanted

    def may_go_back(self) -> bool:
        """Return whether all replicas are placed, and a group of the policy lets its own return to an earlier one."""
        if self.policy is None or self.policy.is_sticky or not any(group.returns for group in self.policy.groups):
            return False
        return bool(self.current()) and not self.has_unplaced_replicas()


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


@dataclass(frozen=True, slots=True)
class Deferred:
    """The placement stays: nothing changed, or only what the policy does not follow."""

    comparison: TriggerComparison


@dataclass(frozen=True, slots=True)
class Unschedulable:
    """The placement stays because no decision is possible; `reason` is a constant, `message` is for people."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """The object is not scheduled at all."""

    message: str


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """The object has to leave its clusters, and waits in its JobQueue."""

    message: str


Assessment = Due | Deferred | Unschedulable | Skipped | Withdrawn


def start_attempt(
    federated: Mapping[str, Any], federated_type: FederatedType, policies: PolicyIndex
) -> SchedulingAttempt | None:
    """Return the attempt, None when the object is not pending for the scheduler."""
    if not pendingcontrollers.dependencies_fulfilled(federated, names.GLOBAL_SCHEDULER, federated_type.controllers):
        return None
    ref = policies.match(federated)
    policy = policies.policy_of(federated, ref)
    annotations, problem = _migration(federated, federated_type)
    return SchedulingAttempt(federated, federated_type, ref, policy, annotations, problem)


def assess(
    attempt: SchedulingAttempt,
    inputs: AttemptInputs,
    snapshot: Snapshot,
    *,
    now: datetime,
    is_unschedulable: bool,
    can_place_more: bool = False,
    is_plugin_back: bool = False,
    homes: frozenset[str] = frozenset(),
    completes: bool = False,
    options: UnitOptions | None = None,
    assumed: Assumed | None = None,
    recorded: Surroundings | None = None,
) -> Assessment:
    """Return whether the object is to be scheduled at `now`, and the inputs of the decision.

    `is_unschedulable`: its last decision was unsuccessful. `can_place_more`: it left replicas unplaced, or in a group
    from which they may return, and its queueing hint has matched since. `is_plugin_back`: a plugin that it ignored may
    be back. `homes`: clusters that replicas left when they were lost, and may return to. `completes`: its placement
    lacks clusters that are stable now. `assumed`: replicas that no report shows. `recorded`: what other workloads mean.
    """
    if (present := attempt.federated["metadata"].get("annotations") or {}).get(names.NO_SCHEDULING):
        return Skipped(f"it has the annotation {names.NO_SCHEDULING}")
    if (policy := attempt.policy) is None:
        return _without_policy(attempt)
    (queue, waits), quiet = _queue_of(attempt, inputs), NO_CAUSE
    if (profile := inputs.profiles.get(policy.profile, policy.strategy, is_queued=bool(queue))) is None:
        return _without_profile(attempt, policy.profile)
    federated, ignored = with_allowed_annotations(_annotated(attempt), inputs.annotation_policy)
    template, chosen, type_ = federated["spec"]["template"], options or UnitOptions(), attempt.federated_type
    request = request_in(group := membership_of(federated), template, type_, claims_of(federated))
    spread, before = inputs.spreads.find(federated), present.get(names.SCHEDULING_TRIGGERS)
    ended = _ended_tolerations(federated, policy, snapshot, now, chosen)
    workload = to_workload(federated, type_, policy) if inputs.workloads.is_active else None
    away = recorded.away if recorded else partners_away(inputs.workloads, workload, attempt.current(), snapshot.by_name)
    triggers = inputs.triggers.triggers(
        ObjectTriggers(
            annotations=federated["metadata"].get("annotations") or {},
            replicas=type_.replicas(template),
            request=request,
            policy=policy,
            profile_hash=inputs.profiles.hash(policy.profile),
            plugin_fields_hash=inputs.profiles.plugin_fields_hash(policy.profile, template),
            spread_hash=spread.hash(template, type_.replicas(template) or 0, snapshot) if spread is not None else "",
            ended_tolerations=_relevant_ends(attempt, ended, before),
            partners_away=away,
        ),
        snapshot,
    )
    comparison = compare_triggers(before, triggers, policy, is_plugin_back=is_plugin_back)
    if has_finished_everywhere(attempt.federated) and not may_concern_finished(comparison.changed):
        return Deferred(_finished(comparison))
    if held := waits or _hold(attempt, federated, group, policy, comparison):
        return held
    if not (comparison.is_due or is_unschedulable or _is_to_place(attempt, queue, group)):
        changed, stays = comparison.changed, not attempt.may_go_back()
        if not any(quiet := quiet_causes(changed, can_place_more, stays, homes=homes, completes=completes)):
            return Deferred(comparison)
    unit = build_unit(
        federated,
        type_,
        policy,
        snapshot,
        counts_cpu_and_memory=chosen.counts_cpu_and_memory,
        assumed=assumed,
        request=request,
        spread=spread,
        default_toleration_s=chosen.toleration_s,
        ended=ended,
        is_queued=bool(queue),
        current=attempt.current(),
    )
    unit = within_admission(unit, attempt.federated if queue else None)
    unit = recorded.related(unit) if recorded else with_relations(inputs.workloads, workload, unit, snapshot.by_name)
    unit = with_causes(unit, policy, comparison, present, quiet)
    unit = recorded.limited(unit, snapshot) if recorded else _with_quota(unit, federated, type_, inputs, snapshot)
    divides = _divides(policy, federated)
    occasion = Occasion(now, is_unschedulable, can_place_more, is_plugin_back, homes, completes, tuple(away))
    return Due(unit, profile, policy, triggers.text, comparison, ignored, divides, spread is not None, quiet, occasion)


def _hold(
    attempt: SchedulingAttempt,
    federated: Mapping[str, Any],
    group: PodGroup | None,
    policy: Policy,
    comparison: TriggerComparison,
) -> Assessment | None:
    """Return the assessment of an object that cannot be scheduled yet."""
    held = _unknown_claims(federated, attempt.federated_type) or _of_group(group, attempt)
    return held or _while_suspended(attempt, policy, comparison)


def _is_to_place(attempt: SchedulingAttempt, queue: str, group: PodGroup | None) -> bool:
    """Return whether the object has been admitted, or its pod group has a place, and it is not there."""
    current = attempt.current()
    return (bool(queue or group) and not current) or is_elsewhere(group, current)


def _while_suspended(attempt: SchedulingAttempt, policy: Policy, comparison: TriggerComparison) -> Assessment | None:
    """Return the assessment while the policy suspends scheduling; it is reported where a decision would be due."""
    if not policy.suspended:
        return None
    is_due = comparison.is_due or not attempt.current()
    return Unschedulable(REASON_SUSPENDED, policy.suspended) if is_due else Deferred(comparison)


def _unknown_claims(federated: Mapping[str, Any], type_: FederatedType) -> Assessment | None:
    problem = claims_problem(federated, type_)
    return Unschedulable(REASON_CLAIMS_NOT_KNOWN, problem) if problem else None


def _of_group(group: PodGroup | None, attempt: SchedulingAttempt) -> Assessment | None:
    """Return the assessment of a pod that waits for its group, or that leaves its cluster because its leader has."""
    message = wait_of(group)
    if message and attempt.current():
        return Withdrawn(message)
    return Unschedulable(names.REASON_POD_GROUP, message) if message else None


def _queue_of(attempt: SchedulingAttempt, inputs: AttemptInputs) -> tuple[str, Assessment | None]:
    """Return the name of the object's JobQueue, and the assessment if it waits there."""
    queue = inputs.queues.queue_of(attempt.federated, attempt.federated_type)
    if not queue:
        return "", None
    admission, is_placed = admission_of(attempt.federated), bool(attempt.current())
    message = waiting_message(queue, admission)
    if message and must_leave(admission, is_placed=is_placed):
        return queue, Withdrawn(message)
    return queue, Unschedulable(names.REASON_QUEUED, message) if message and not is_placed else None


def _with_quota(
    unit: SchedulingUnit, federated: Mapping[str, Any], type_: FederatedType, inputs: AttemptInputs, snapshot: Snapshot
) -> SchedulingUnit:
    if unit.namespace not in inputs.quotas or not has_pods(federated["spec"]["template"], type_):
        return unit
    return replace(unit, quota=inputs.quotas.headroom(key_in(federated), unit, snapshot.by_name))


def _finished(comparison: TriggerComparison) -> TriggerComparison:
    reasons = "finished" if comparison.is_due or comparison.deferred_reasons else ""
    return replace(comparison, is_due=False, deferred_reasons=reasons)


def tolerated_until(
    attempt: SchedulingAttempt, inputs: AttemptInputs, snapshot: Snapshot, options: UnitOptions
) -> dict[str, datetime]:
    """Return until when the object tolerates the taints of its current clusters; {} if it stays in any case.

    An object that does not follow changes of clusters is not moved when a toleration ends.
    """
    policy = attempt.policy
    if not snapshot.with_taint_times or policy is None or policy.disable_rescheduling or not policy.reschedule_when:
        return {}
    federated, _ = with_allowed_annotations(attempt.federated, inputs.annotation_policy)
    if overrides_from_annotations(federated["metadata"].get("annotations") or {}).get("sticky", policy.is_sticky):
        return {}
    tolerations, current = _tolerations(federated, policy, options), attempt.current()
    return {
        cluster.name: end[0]
        for cluster in snapshot.with_taint_times
        if cluster.name in current and (end := toleration_end(tolerations, cluster)) is not None
    }


def _tolerations(federated: Mapping[str, Any], policy: Policy, options: UnitOptions) -> tuple[Toleration, ...]:
    """Return the tolerations of the unit that `build_unit` builds."""
    overriding = overrides_from_annotations(federated["metadata"].get("annotations") or {})
    return with_defaults(overriding.get("tolerations", policy.tolerations), options.toleration_s)


def _ended_tolerations(
    federated: Mapping[str, Any], policy: Policy, snapshot: Snapshot, now: datetime, options: UnitOptions
) -> dict[str, Taint]:
    if not snapshot.with_taint_times:
        return {}
    return ended_tolerations(_tolerations(federated, policy, options), snapshot.with_taint_times, now)


def _relevant_ends(attempt: SchedulingAttempt, ended: Mapping[str, Taint], old_triggers: str | None) -> Sequence[str]:
    """Return the clusters, sorted, that the object must leave or has left because a toleration ended.

    When such a cluster is back it is missing here, which counts as a change: the object may return.
    """
    if not ended:
        return ()
    return sorted(ended.keys() & (attempt.current().keys() | clusters_left(old_triggers)))


def _divides(policy: Policy, federated: Mapping[str, Any]) -> bool:
    mode = overrides_from_annotations(federated["metadata"].get("annotations") or {}).get("mode", policy.mode)
    return bool(mode is SchedulingMode.DIVIDE)


def assume(assume_cache: AssumeCache, key: Hashable, decision: Decision, now_s: float) -> None:
    """Add the decision's new replicas to the assume cache, before any member can report them."""
    unit = decision.unit
    if unit.joins is not None:
        return  # the leader's decision counts it
    if unit.pods and unit.mode is SchedulingMode.DUPLICATE:
        assume_cache.assume_whole(
            key, pods_by_request(unit.pods), unit.current.keys(), decision.placements.keys(), now_s
        )
        return
    each = unit.desired_replicas or 0
    before, after = (
        {name: each if count is None else count for name, count in placements.items()}
        for placements in (unit.current, decision.placements)
    )
    assume_cache.assume(key, unit.shape.request, before, after, now_s)


def _without_policy(attempt: SchedulingAttempt) -> Assessment:
    """Return the assessment without a policy: an object that was never placed is skipped."""
    if attempt.ref is not None:
        return Unschedulable(REASON_POLICY_NOT_FOUND, f"{attempt.ref} does not exist")
    if attempt.current():
        return Unschedulable(names.REASON_NO_POLICY, "no policy applies to it any more")
    return Skipped("no policy applies to it")


def _without_profile(attempt: SchedulingAttempt, profile: str) -> Unschedulable:
    message = f"SchedulingProfile {profile} of {attempt.ref} does not exist"
    return Unschedulable(REASON_PROFILE_NOT_FOUND, message)


def _migration(federated: Mapping[str, Any], federated_type: FederatedType) -> tuple[Annotations, str]:
    """Return the annotation of the user's migration in force, and the problem of an invalid request.

    Reference: docs/reference/scheduling.md and docs/reference/kinds.md.
    """
    present = federated["metadata"].get("annotations") or {}
    text = present.get(names.MIGRATION_CONFIGURATION)
    if text is None:
        has_old = names.APPLIED_MIGRATION_CONFIGURATION in present
        return ({names.APPLIED_MIGRATION_CONFIGURATION: None} if has_old else {}), ""
    has_replicas = federated_type.replicas(federated["spec"]["template"]) is not None
    try:
        return {names.APPLIED_MIGRATION_CONFIGURATION: applied_annotation(text, has_replicas=has_replicas)}, ""
    except MigrationError as error:
        return {}, str(error)


def _annotated(attempt: SchedulingAttempt) -> Mapping[str, Any]:
    """Return the object with the attempt's annotations; the same object without any."""
    federated, changes = attempt.federated, attempt.annotations
    if not changes:
        return federated
    metadata = federated["metadata"]
    merged = {**(metadata.get("annotations") or {}), **changes}
    annotations = {key: value for key, value in merged.items() if value is not None}
    return {**federated, "metadata": {**metadata, "annotations": annotations}}
