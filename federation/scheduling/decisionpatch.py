"""The merge patch that a scheduling attempt writes to a federated object. Pure.

A successful decision sets placement, replica overrides, annotations and pending controllers in one patch. Otherwise
the patch only removes the scheduler from the pending controllers. `reconcile.py` sends it.
"""

from collections.abc import Mapping
from typing import Any

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.planning.automigration.migrationinfo import failback_to_text
from federation.planning.division.plan import is_planned_from_template, plan_division
from federation.planning.failover.application import rules_text
from federation.planning.failover.handover import handed_entry
from federation.planning.federatedobject import pendingcontrollers
from federation.planning.federatedobject.placements import (
    ARRIVING,
    Part,
    arriving_after,
    current_clusters,
    to_merge_patch,
    with_annotations,
    with_overrides,
    with_placement,
)
from federation.planning.federatedobject.schedulingfeedback import feedback_text
from federation.planning.steps.strategy import has_strategy
from federation.planning.waves.rolloutpart import has_waves
from federation.scheduling.changenames import changes_annotation
from federation.scheduling.engine import Placements
from federation.scheduling.policyspec import Policy

_UNITS_S = {"h": 3600, "m": 60, "s": 1}


def keep(
    federated: Mapping[str, Any], federated_type: FederatedType, annotations: Mapping[str, str | None]
) -> Part | None:
    """Return the patch for the same placement: annotations, pending controllers, overrides that follow the template.

    None when nothing changes.
    """
    refreshed = _refreshed_overrides(federated, federated_type)
    pending = _pending_annotation(federated, federated_type, is_changed=bool(refreshed))
    return to_merge_patch(federated, refreshed, with_annotations(federated, {**annotations, **pending}))


def place(
    federated: Mapping[str, Any],
    federated_type: FederatedType,
    policy: Policy,
    placements: Placements,
    annotations: Mapping[str, str | None],
    *,
    awaited: str = "",
    current: Placements | None = None,
) -> tuple[Part | None, bool]:
    """Return the patch that writes a decision, and whether clusters or replicas change.

    `current` is the placement before it, read from the object if the caller has not done so. If the decision changes
    anything, the controller `awaited` acts before those of the type's pipeline.
    """
    placement = with_placement(federated, names.GLOBAL_SCHEDULER, placements)
    plan = plan_division(_with_starts(federated, annotations), federated_type, placements)
    overrides = with_overrides(federated, names.GLOBAL_SCHEDULER, plan.patches)
    following = with_annotations(federated, follower_annotations(policy))
    is_moved = bool(placement or overrides)
    written: dict[str, str | None] = {**annotations, **plan.annotations}
    written |= migration_annotations(federated, federated_type, policy)
    written |= rollout_annotations(federated, policy)
    written |= failover_annotations(policy)
    written |= changes_annotation(federated, policy)
    before = current_clusters(federated, federated_type) if current is None else current
    if names.HANDED_STATE not in annotations:
        written[names.HANDED_STATE] = handed_entry(federated, before, placements)
    written |= ARRIVING.entry(_arriving(federated, federated_type, placements))
    written[names.APPLIED_POLICY] = "/".join(filter(None, policy.ref))
    if is_moved:
        written[names.SCHEDULING] = feedback_text(federated, placements)
    quotas = with_annotations(federated, {names.WORKLOAD_SPREAD: written.get(names.WORKLOAD_SPREAD)})
    written |= _pending_annotation(
        federated,
        federated_type,
        is_changed=is_moved or bool(following),
        awaited=awaited if is_moved or quotas else "",
    )
    patch = to_merge_patch(federated, placement, overrides, following, with_annotations(federated, written))
    return patch, is_moved


def _with_starts(federated: Mapping[str, Any], annotations: Mapping[str, str | None]) -> Mapping[str, Any]:
    """Return the object with the record of ordinals that the decision writes, if there is one."""
    if (starts := annotations.get(names.ORDINAL_STARTS)) is None:
        return federated
    metadata = federated["metadata"]
    held = {**(metadata.get("annotations") or {}), names.ORDINAL_STARTS: starts}
    return {**federated, "metadata": {**metadata, "annotations": held}}


def _arriving(federated: Mapping[str, Any], federated_type: FederatedType, placements: Placements) -> frozenset[str]:
    """Return the clusters whose copies take the place of others; none for divided workloads, which move in steps."""
    is_divided = any(count is not None for count in placements.values())
    has_copies = has_strategy(federated_type.resource) and bool(federated_type.paths.replicas_spec) and not is_divided
    return arriving_after(federated, placements) if has_copies else frozenset()


def follower_annotations(policy: Policy) -> dict[str, str | None]:
    """Return the annotation that passes the policy's follower setting to the follower controller."""
    return {names.ENABLE_FOLLOWER_SCHEDULING: "true" if policy.is_followed else "false"}


def failover_annotations(policy: Policy) -> dict[str, str | None]:
    """Return the annotation that passes the policy's rules to the failover of applications.

    An object that keeps its first placement leaves no cluster.
    """
    is_kept = policy.rescheduling.is_sticky or policy.rescheduling.is_disabled
    return {names.APPLICATION_FAILOVER_RULES: None if is_kept else rules_text(policy.failover.application)}


def migration_annotations(
    federated: Mapping[str, Any], federated_type: FederatedType, policy: Policy
) -> dict[str, str | None]:
    """Return the annotations that pass the policy's settings to the automigration controller."""
    if not policy.migration.is_on:
        return {names.POD_UNSCHEDULABLE_THRESHOLD: None, names.FAILBACK: None}
    batch = policy.migration.failback.batch_of(federated_type.replicas(federated["spec"]["template"]) or 0)
    return {
        names.POD_UNSCHEDULABLE_THRESHOLD: to_go_duration(policy.migration.threshold),
        names.FAILBACK: failback_to_text(policy.migration.failback.stable_for, batch),
    }


def rollout_annotations(federated: Mapping[str, Any], policy: Policy) -> dict[str, str | None]:
    """Return the annotation that passes the policy's rollout rules to sync and the rollout controller."""
    return {names.ROLLOUT: policy.rollout if has_waves(federated["spec"]["template"]) else None}


def to_go_duration(text: str) -> str:
    """Return a duration such as "1m" as Go prints it: "1m0s"; any other text unchanged."""
    total, number = 0, ""
    for character in text:
        if character.isdecimal():
            number += character
        elif number and character in _UNITS_S:
            total, number = total + int(number) * _UNITS_S[character], ""
        else:
            return text
    if number or not text:
        return text
    hours, rest = divmod(total, 3600)
    minutes, seconds = divmod(rest, 60)
    if hours:
        return f"{hours}h{minutes}m{seconds}s"
    return f"{minutes}m{seconds}s" if minutes else f"{seconds}s"


def _pending_annotation(
    federated: Mapping[str, Any], federated_type: FederatedType, *, is_changed: bool, awaited: str = ""
) -> dict[str, str | None]:
    """Return the annotation with the next pending controllers, `awaited` first; {} when it does not change."""
    pending = pendingcontrollers.pending_stages(federated)
    stages = pendingcontrollers.without_idle(federated, federated_type.controllers)
    after = pendingcontrollers.advance(pending, names.GLOBAL_SCHEDULER, is_changed=is_changed, pipeline=stages)
    if awaited:
        after = ((awaited,), *pendingcontrollers.without(after, (awaited,)))
    return {} if after == pending else {names.PENDING_CONTROLLERS: pendingcontrollers.to_annotation(after)}


def _refreshed_overrides(federated: Mapping[str, Any], federated_type: FederatedType) -> Part:
    """Return the overrides of the current division for a changed template; {} when they are unchanged."""
    current = current_clusters(federated, federated_type) if is_planned_from_template(federated_type) else {}
    if not current or None in current.values():
        return {}
    plan = plan_division(federated, federated_type, current)
    return {} if plan.problem else with_overrides(federated, names.GLOBAL_SCHEDULER, plan.patches)
