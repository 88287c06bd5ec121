"""The patches of scheduling attempts: a decision, an earlier placement, or no placement. Pure.

`assessment.py` says whether a decision is due; `decisionpatch.py` knows the parts of a patch.
"""

from collections.abc import Mapping, Sequence

from federation.api import names
from federation.planning.federatedobject.placements import Part
from federation.planning.placement.subsetquotas import Counts
from federation.scheduling import decisionpatch
from federation.scheduling.answers import Assessment, Deferred, Due, Leave, Wait
from federation.scheduling.attempt import Annotations, SchedulingAttempt
from federation.scheduling.engine import Placements
from federation.scheduling.framework.division import SUBSETS
from federation.scheduling.jobqueues import ADMISSION, Admission
from federation.scheduling.names import IGNORED_PLUGINS, REASON_POLICY_NOT_FOUND, REBALANCED
from federation.scheduling.workloadspreads import to_annotation

_SUMMARY_LENGTH_MAX = 512


def placement_patch(
    attempt: SchedulingAttempt,
    due: Due,
    placements: Placements,
    reason: str,
    without: Sequence[str] = (),
    *,
    guarded: Mapping[str, str | None] | None = None,
    quotas: Mapping[str, Counts] | None = None,
    is_held: bool = False,
    awaited: str = "",
    is_partial: bool = False,
) -> tuple[Part | None, bool]:
    """Return the patch that writes a decision, and whether clusters or replicas change.

    `reason` is the decision's; `without` are the unavailable plugins that were ignored. `guarded` are annotations of
    the guard, `quotas` those that were planned for the subsets of a WorkloadSpread. `is_held`: the guard holds the
    decision, and `placements` are written instead. `awaited` is a controller that must act on a changed
    decision before those of the type's pipeline. `is_partial`: some of its moves wait.
    """
    is_partial = is_partial or due.quiet.only_adds or bool(due.quiet.homes) or is_held
    decided: Annotations = {
        names.SCHEDULING_DEFERRED_REASONS: due.comparison.deferred_reasons or None,
        names.SCHEDULING_SUMMARY: reason if len(reason) <= _SUMMARY_LENGTH_MAX else f"{reason[:_SUMMARY_LENGTH_MAX]}…",
    }
    # A decision that only adds replicas leaves the stored triggers: changes that the policy defers are still pending.
    # So does one that is held: the object stays due until it is approved, or until nothing would move any more.
    if not is_partial:
        asked = (attempt.federated["metadata"].get("annotations") or {}).get(names.REBALANCE)
        decided |= {names.SCHEDULING_TRIGGERS: due.triggers, names.SCHEDULING_DEFERRED_REASONS: None}
        decided |= {REBALANCED: asked}
    if not is_held:
        counts = {cluster: count or 0 for cluster, count in placements.items()}
        decided[names.WORKLOAD_SPREAD] = to_annotation(SUBSETS.of(due.unit), counts, quotas or {})
    if without or not is_partial:
        decided[IGNORED_PLUGINS] = ",".join(sorted(set(without))) or None
    return decisionpatch.place(
        attempt.federated,
        attempt.federated_type,
        due.policy,
        placements,
        {**attempt.annotations, **decided, **(guarded or {})},
        awaited=awaited,
        current=attempt.current(),
    )


def withdrawing_patch(attempt: SchedulingAttempt, leave: Leave) -> Part | None:
    """Return the patch that takes an object out of its clusters, because it waits for admission to others."""
    assert attempt.policy is not None  # only an object with a policy is assessed so
    # Without triggers and with no place, it is due as soon as it is admitted again.
    written: Annotations = {
        names.SCHEDULING_TRIGGERS: None,
        names.SCHEDULING_SUMMARY: leave.message[:_SUMMARY_LENGTH_MAX],
    }
    written |= {names.HELD_PLACEMENT: None, names.PREVIOUS_PLACEMENT: None, IGNORED_PLUGINS: None}
    annotations = {**attempt.annotations, **written, **leave.annotations}
    patch, _ = decisionpatch.place(attempt.federated, attempt.federated_type, attempt.policy, {}, annotations)
    return patch


def restoring_patch(attempt: SchedulingAttempt, assessment: Assessment, placements: Placements) -> Part | None:
    """Return the patch that restores an earlier placement; the scheduler keeps it until an input changes again."""
    assert attempt.policy is not None  # the caller has checked
    written: Annotations = {names.HELD_PLACEMENT: None, names.PREVIOUS_PLACEMENT: None, IGNORED_PLUGINS: None}
    written |= {names.SCHEDULING_DEFERRED_REASONS: None, names.SCHEDULING_SUMMARY: "the last move was undone"}
    if isinstance(assessment, Due):
        written[names.SCHEDULING_TRIGGERS] = assessment.triggers
        counts = {cluster: count or 0 for cluster, count in placements.items()}
        written[names.WORKLOAD_SPREAD] = to_annotation(SUBSETS.of(assessment.unit), counts, {})
    patch, _ = decisionpatch.place(
        attempt.federated, attempt.federated_type, attempt.policy, placements, attempt.annotations | written
    )
    return patch


def unchanged_patch(
    attempt: SchedulingAttempt, assessment: Assessment, refused: Admission | None = None
) -> Part | None:
    """Return the patch that keeps the placement and marks the scheduler as done; None when nothing changes.

    `refused` replaces the admission of an object of a JobQueue that found no place.
    """
    # What is held stays held while no decision is possible: a cluster that is not reachable may be the reason for that.
    is_undecided = isinstance(assessment, Wait) and assessment.reason != REASON_POLICY_NOT_FOUND
    more: Annotations = {} if is_undecided else {names.HELD_PLACEMENT: None}
    if refused is not None:
        more |= ADMISSION.entry(refused)
    if isinstance(assessment, Deferred) and attempt.policy is not None:
        more |= decisionpatch.migration_annotations(attempt.federated, attempt.federated_type, attempt.policy)
        more |= decisionpatch.follower_annotations(attempt.policy)
        more |= decisionpatch.rollout_annotations(attempt.federated, attempt.policy)
        more |= decisionpatch.failover_annotations(attempt.policy)
        more[names.SCHEDULING_DEFERRED_REASONS] = assessment.comparison.deferred_reasons or None
        if assessment.comparison.adopted:
            more[names.SCHEDULING_TRIGGERS] = assessment.comparison.adopted
    return decisionpatch.keep(attempt.federated, attempt.federated_type, attempt.annotations | more)
