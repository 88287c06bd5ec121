"""One federated object's turn with the scheduler: what has to be done about it, and what is written then (spec §5.3).

In order: is it our turn, which policy applies, did anything change that matters. `assess` answers with one of four
findings; for `Due` the caller drives the engine (`engine.py`), and `placed` or `kept` (`persist.py`) return the patch.
Pure: `controllers/schedule` acts on it for real, `whatif/` for `fedctl plan`, so that both come to the same result.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.planning import pipeline
from federation.planning.placements import Part
from federation.scheduling import persist
from federation.scheduling.annotationswitch import AnnotationSwitch
from federation.scheduling.engine import Decision, Placements
from federation.scheduling.framework.profile import Profile
from federation.scheduling.framework.types import Reserved, SchedulingMode, SchedulingUnit
from federation.scheduling.matching import PolicyIndex
from federation.scheduling.migration import MigrationError, applied_annotation
from federation.scheduling.overriding import ignored_annotations, without_overriding
from federation.scheduling.policy import Policy, PolicyRef, hash_of
from federation.scheduling.profiles import Profiles
from federation.scheduling.request import request_of
from federation.scheduling.reservations import Reservations
from federation.scheduling.snapshot import Snapshot
from federation.scheduling.triggers import ObjectTriggers, TriggerSource, Verdict, judge
from federation.scheduling.unit import build_unit, current_clusters

_SUMMARY_LENGTH_MAX = 512
Annotations = dict[str, str | None]
"""Annotations to write; None removes one."""


@dataclass(frozen=True, slots=True)
class UnitOptions:
    """How units are built."""

    counts_cpu_and_memory: bool = True
    """Whether cpu and memory requests count for scheduling; KubeAdmiral counts only GPUs and what Katalyst reclaims."""


class Inputs(Protocol):
    """What a turn depends on besides the object and the clusters."""

    policies: PolicyIndex
    profiles: Profiles
    switch: AnnotationSwitch
    triggers: TriggerSource


@dataclass(frozen=True, slots=True)
class Turn:
    """An object at its turn, with the policy that applies to it.

    `policy` is None with a `ref` when the policy does not exist. `problem` says what is wrong with the migration that
    the user asks for, "" when nothing is.
    """

    fed_object: Mapping[str, Any]
    federated_type: FederatedType
    ref: PolicyRef | None
    policy: Policy | None
    annotations: Annotations
    problem: str = ""

    def current(self) -> dict[str, int | None]:
        """Return the scheduler's own placement so far."""
        return current_clusters(self.fed_object, self.federated_type)

    def ignored_plugins(self) -> tuple[str, ...]:
        """Return the remote plugins that did not answer when the last decision was made, and that it ignored."""
        text = (self.fed_object["metadata"].get("annotations") or {}).get(names.IGNORED_PLUGINS)
        return tuple(text.split(",")) if text else ()

    def is_short(self) -> bool:
        """Say whether replicas are without a place, as the object is placed now, and may find one."""
        if self.policy is None or self.policy.is_sticky:
            return False
        wanted = self.federated_type.replicas(self.fed_object["spec"]["template"]) or 0
        return 0 < sum(wanted if count is None else count for count in self.current().values()) < wanted


@dataclass(frozen=True, slots=True)
class Due:
    """It is to be scheduled: everything that the engine needs, and what the decision will be based on."""

    unit: SchedulingUnit
    profile: Profile
    policy: Policy
    triggers: str
    verdict: Verdict
    ignored: Mapping[str, str]
    """Annotations that do not override the policy although they are there, and why."""
    only_adds: bool = False
    """Only missing replicas are to get a place: nothing happened for which the policy lets others move."""


@dataclass(frozen=True, slots=True)
class Deferred:
    """It stays: nothing changed, or only what its policy says not to follow."""

    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Stuck:
    """It stays because no decision is possible; `reason` is a constant, `message` for people."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Untouched:
    """The scheduler has nothing to do with it."""

    message: str


Finding = Due | Deferred | Stuck | Untouched


def open_turn(fed_object: Mapping[str, Any], federated_type: FederatedType, policies: PolicyIndex) -> Turn | None:
    """Return the object with its policy, None when it is not the scheduler's, or not its turn."""
    if not pipeline.is_turn_of(fed_object, names.GLOBAL_SCHEDULER, federated_type.controllers):
        return None
    ref = policies.match(fed_object)
    policy = None if ref is None else policies.get(ref)
    annotations, problem = _migration(fed_object, federated_type)
    return Turn(fed_object, federated_type, ref, policy, annotations, problem)


def assess(
    turn: Turn,
    inputs: Inputs,
    snapshot: Snapshot,
    *,
    is_waiting: bool,
    is_short: bool = False,
    is_plugin_back: bool = False,
    options: UnitOptions | None = None,
    reserved: Reserved | None = None,
) -> Finding:
    """Return what has to be done about the object.

    `is_waiting`: its last decision was unsuccessful. `is_short`: it left replicas without a place, and something has
    happened since that may help. `is_plugin_back`: it ignored a plugin that may answer now. `reserved`: what decisions
    of the last seconds have promised.
    """
    present = turn.fed_object["metadata"].get("annotations") or {}
    if present.get(names.NO_SCHEDULING):
        return Untouched(f"it has the annotation {names.NO_SCHEDULING}")
    if turn.policy is None:
        return _without_policy(turn)
    policy = turn.policy
    profile = inputs.profiles.get(policy.profile, policy.strategy)
    if profile is None:
        message = f"SchedulingProfile {policy.profile} of {turn.ref} does not exist"
        return Stuck(names.REASON_PROFILE_NOT_FOUND, message)
    fed_object, ignored = _admitted(_with_annotations(turn.fed_object, turn.annotations), inputs.switch)
    template = fed_object["spec"]["template"]
    request = request_of(template)
    triggers = inputs.triggers.triggers(
        ObjectTriggers(
            annotations=fed_object["metadata"].get("annotations") or {},
            replicas=turn.federated_type.replicas(template),
            request=request,
            policy=policy,
            profile_hash=inputs.profiles.hash(policy.profile),
            told_hash=_told_hash(template, inputs.profiles.told(policy.profile)),
        ),
        snapshot,
    )
    verdict = judge(present.get(names.SCHEDULING_TRIGGERS), triggers, policy, is_plugin_back=is_plugin_back)
    only_adds = is_short and not verdict.is_due and not is_waiting
    if not verdict.is_due and not is_waiting and not only_adds:
        return Deferred(verdict)
    chosen = options or UnitOptions()
    unit = build_unit(
        fed_object,
        turn.federated_type,
        policy,
        snapshot,
        counts_cpu_and_memory=chosen.counts_cpu_and_memory,
        reserved=reserved,
        request=request,
    )
    if only_adds:
        unit = replace(unit, avoid_disruption=True)
    return Due(unit, profile, policy, triggers.text, verdict, ignored, only_adds)


def placed(
    turn: Turn, due: Due, placements: Placements, reason: str, without: Sequence[str] = ()
) -> tuple[Part | None, bool]:
    """Return the patch that puts a decision in force, and whether clusters or replicas change by it.

    `reason` is the decision's, one line for people; `without` are the plugins that did not answer and were ignored.
    """
    decided: Annotations = {
        names.SCHEDULING_DEFERRED_REASONS: due.verdict.deferred_reasons or None,
        names.SCHEDULING_SUMMARY: reason if len(reason) <= _SUMMARY_LENGTH_MAX else f"{reason[:_SUMMARY_LENGTH_MAX]}…",
    }
    if not due.only_adds:  # Otherwise what the policy does not follow has still not been followed.
        decided |= {names.SCHEDULING_TRIGGERS: due.triggers, names.SCHEDULING_DEFERRED_REASONS: None}
    if without or not due.only_adds:
        decided[names.IGNORED_PLUGINS] = ",".join(sorted(set(without))) or None
    return persist.place(turn.fed_object, turn.federated_type, due.policy, placements, turn.annotations | decided)


def copied_because(turn: Turn, due: Due) -> str:
    """Return why the object is copied although its policy divides, "" when that is not so (spec §5.4)."""
    if due.policy.mode is not SchedulingMode.DIVIDE or turn.federated_type.paths.replicas_spec:
        return ""
    return (
        f"the policy says Divide, but FederatedTypeConfig {turn.federated_type.name} has no pathDefinition.replicasSpec"
    )


def kept(turn: Turn, finding: Finding) -> Part | None:
    """Return the patch that leaves the object where it is and passes the turn on; None when there is none to write."""
    more: Annotations = {}
    if isinstance(finding, Deferred) and turn.policy is not None:
        more = persist.migration_terms(turn.fed_object, turn.federated_type, turn.policy)
        more |= persist.following_terms(turn.policy)
        more[names.SCHEDULING_DEFERRED_REASONS] = finding.verdict.deferred_reasons or None
        if finding.verdict.adopted:
            more[names.SCHEDULING_TRIGGERS] = finding.verdict.adopted
    return persist.keep(turn.fed_object, turn.federated_type, turn.annotations | more)


def reserve(reservations: Reservations, key: Hashable, decision: Decision, now_s: float) -> None:
    """Let the next decisions see what this one has given out, before any member can report it."""
    unit = decision.unit
    each = unit.desired_replicas or 0
    before, after = (
        {name: each if count is None else count for name, count in placements.items()}
        for placements in (unit.current, decision.placements)
    )
    reservations.reserve(key, unit.shape.request, before, after, now_s)


def _without_policy(turn: Turn) -> Finding:
    """Leave the object where it is; that nothing applies to one that was never placed is no news."""
    if turn.ref is not None:
        return Stuck(names.REASON_POLICY_NOT_FOUND, f"{turn.ref} does not exist")
    if turn.current():
        return Stuck(names.REASON_NO_POLICY, "no policy applies to it any more")
    return Untouched("no policy applies to it")


def _migration(fed_object: Mapping[str, Any], federated_type: FederatedType) -> tuple[Annotations, str]:
    """Return the annotation that says which of the user's migrations is in force (spec §5.3 step 1), and a problem."""
    present = fed_object["metadata"].get("annotations") or {}
    text = present.get(names.MIGRATION_CONFIGURATION)
    if text is None:
        has_old = names.APPLIED_MIGRATION_CONFIGURATION in present
        return ({names.APPLIED_MIGRATION_CONFIGURATION: None} if has_old else {}), ""
    has_replicas = federated_type.replicas(fed_object["spec"]["template"]) is not None
    try:
        return {names.APPLIED_MIGRATION_CONFIGURATION: applied_annotation(text, has_replicas=has_replicas)}, ""
    except MigrationError as error:
        return {}, str(error)


def _with_annotations(fed_object: Mapping[str, Any], changes: Annotations) -> Mapping[str, Any]:
    """Return the object as it will be with these annotations; the same object when there are none."""
    if not changes:
        return fed_object
    metadata = fed_object["metadata"]
    merged = {**(metadata.get("annotations") or {}), **changes}
    annotations = {key: value for key, value in merged.items() if value is not None}
    return {**fed_object, "metadata": {**metadata, "annotations": annotations}}


def _admitted(fed_object: Mapping[str, Any], switch: AnnotationSwitch) -> tuple[Mapping[str, Any], Mapping[str, str]]:
    """Return the object with the overriding annotations that count, and why others do not."""
    metadata = fed_object["metadata"]
    namespace = str(metadata.get("namespace") or "")
    if switch.allows(namespace):
        return fed_object, ignored_annotations(metadata.get("annotations") or {})
    admitted, taken = without_overriding(fed_object)
    where = f"in namespace {namespace}" if namespace else "without a namespace"
    return admitted, dict.fromkeys(taken, f"objects {where} may not override their policy")


def _told_hash(template: Mapping[str, Any], told: frozenset[str]) -> str:
    """Return the hash of the labels and annotations that plugins are told, "" when they are told none."""
    metadata = template.get("metadata") or {}
    parts = [metadata.get(field) or {} for field in ("annotations", "labels") if field in told]
    return hash_of(parts) if parts else ""
