"""The decision about one object in one cluster: one ordered table. The first row that holds decides.

A decision has the operation to run, the status to publish, when to look again, and the question to ask if something
must be known first. `ROWS` is the whole table; the one in docs/reference/sync.md is generated from it. Its first rows
and their order are KubeAdmiral's, with one deliberate difference: a cluster that is not ready and no longer selected,
but may still hold the object, keeps its status entry until it was observed without the object. Pure.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from federation.delivery.rules.decision import Decision, Question
from federation.delivery.rules.facts import CONFIRMATION, SCALER, Facts
from federation.delivery.rules.memberrecord import Failure
from federation.delivery.rules.plan import PENDING_STATUS, to_operation
from federation.delivery.rules.status import ClusterStatus, describe_unserved
from federation.delivery.rules.waits import (
    ask_end,
    ask_scaler,
    await_finalizers,
    await_followers,
    await_removal,
    freeze,
    hold,
    keep_old_copy,
    operation_of,
    pause,
    suspend,
)
from federation.planning.failover.application import PurgeMode

_FINALIZER_RECHECK_S = 10.0
_UNSEEN_S = 15.0
"""How long the published status stays while the cache of a cluster that is ready is not complete."""
_FINISHED = "it has finished and is gone there, so it is not created again"


@dataclass(frozen=True, slots=True)
class Row:
    """One row: when it holds, in words and as a predicate, and what follows."""

    name: str
    when: str
    then: str
    holds: Callable[[Facts], bool]
    decide: Callable[[Facts], Decision]


def _status(status: ClusterStatus, message: str = "", **more: object) -> Callable[[Facts], Decision]:
    decision = replace(Decision(status=status, message=message), **more)  # type: ignore[arg-type]  # fields by name
    return lambda _: decision


def _failed(failure: Failure | None, facts: Facts, **more: object) -> Decision:
    """Return the decision while the retry of a failure is not due."""
    assert failure is not None
    left_s = failure.retry_at_s - facts.now_s
    decision = Decision(status=failure.status, message=failure.message, recheck_after_s=left_s)
    return replace(decision, **more)  # type: ignore[arg-type]  # fields by name


def _remove(facts: Facts) -> Decision:
    operation = to_operation(facts.removal)
    is_foreground = facts.purge is PurgeMode.DIRECTLY and not facts.is_deleted
    return Decision(operation=operation, status=PENDING_STATUS[operation], is_foreground=is_foreground)


def _converge(facts: Facts) -> Decision:
    status, message = facts.find_settled()
    if status is _S.OK and facts.unpaid:  # its claim was lowered, and the content is as before
        status, message = _S.QUOTA_EXCEEDED, f"it uses more {facts.unpaid} than the quotas allow"
    return Decision(status=status, message=message)


def _refuse(facts: Facts) -> Decision:
    assert facts.content.problem is not None
    status, message = facts.content.problem
    return Decision(status=status, message=message, is_refusal=True, shows_object=False)


def _confirm(status: ClusterStatus) -> Callable[[Facts], Decision]:
    return _status(status, question=Question.CONFIRM, shows_object=False)


def _unseen(facts: Facts) -> Decision:
    """Wait for the cache: the published status stays for a while, as lists take some time after a start."""
    if not (facts.is_selected or facts.is_recorded or facts.is_deleted):
        return Decision()
    left_s = _UNSEEN_S - facts.sight.unseen_s
    if left_s > 0:
        return Decision(status=ClusterStatus.CACHED_RETRIEVAL_FAILED, keeps_status=True, recheck_after_s=left_s)
    why = facts.sight.failure or f"their list has not ended within {_UNSEEN_S:g} s"
    message = f"its objects of {facts.kind} are not known: {why}"
    return Decision(status=ClusterStatus.CACHED_RETRIEVAL_FAILED, message=message)


def _nothing(_: Facts) -> Decision:
    return Decision()


_S = ClusterStatus
ROWS: tuple[Row, ...] = (
    Row(
        "not ready",
        "the cluster is not Ready",
        "`ClusterNotReady`: the cluster stays recorded until it answers (ours)",
        lambda f: not f.cluster.ready,
        lambda f: (
            Decision(status=_S.CLUSTER_NOT_READY) if f.is_selected or f.is_recorded or f.is_deleted else Decision()
        ),
    ),
    Row(
        "not served",
        "placed, the cluster does not serve the kind, or not in this version",
        "`KindNotServed` (ours), until it does",
        lambda f: not f.sight.is_served and f.is_placed and not f.cluster.terminating and f.finished is None,
        lambda f: Decision(status=_S.KIND_NOT_SERVED, message=describe_unserved(f.kind), shows_object=False),
    ),
    Row(
        "new and unseen",
        "its cache is not complete, the object is placed and new there",
        "`CachedRetrievalFailed`; the member is asked whether it has the object",
        lambda f: f.observed.lookup_failed and f.is_placed and not f.is_published,
        lambda f: replace(_unseen(f), question=Question.LOOK_UP),
    ),
    Row(
        "unseen",
        "its cache is not complete",
        "the published status for 15 seconds, then `CachedRetrievalFailed`",
        lambda f: f.observed.lookup_failed,
        _unseen,
    ),
    Row(
        "cascading",
        "the cluster leaves with a cascading delete, the object is there",
        "`WaitingForCascadingDeletion`",
        lambda f: f.is_cascading and f.exists and not f.observed.terminating,
        _status(_S.WAITING_FOR_CASCADING_DELETION),
    ),
    Row(
        "removal not shown",
        "deleted or not placed, and the object is still there 15 seconds after the cluster acknowledged its deletion",
        "`WaitingForRemoval`; the member is asked whether it has the object, and if so it is deleted again",
        lambda f: not f.is_placed and not f.is_cascading and f.is_removal_unshown,
        _status(_S.WAITING_FOR_REMOVAL, question=Question.CONFIRM),
    ),
    Row(
        "being removed",
        "deleted or not placed, the object is terminating",
        "`WaitingForRemoval`; the message names the finalizers that hold it there (ours)",
        lambda f: f.exists and f.observed.terminating and not f.is_placed and not f.is_cascading,
        await_finalizers,
    ),
    Row(
        "kept",
        "not placed, the object is there and of kind Namespace, CustomResourceDefinition, PersistentVolume or "
        "PersistentVolumeClaim",
        "`Kept` (ours): only the deletion of its source removes it",
        lambda f: f.is_kept and not f.is_placed and not f.is_deleted and not f.needs_no_object,
        _status(_S.KEPT),
    ),
    Row(
        "no evidence",
        "deleted or not placed, the object is there, and no decision or deletion since the cluster joined is about it",
        "no entry (ours): it stays, and a sweep reports it",
        lambda f: f.lacks_evidence,
        _nothing,
    ),
    Row(
        "removal suspended",
        "deleted or not placed, the object is there, and a suspension holds it",
        "`DeliverySuspended` (ours): it stays until the suspension ends",
        lambda f: f.suspension is not None and f.is_removed,
        suspend,
    ),
    Row(
        "old copy",
        "not placed, an unhealthy workload left the cluster, the new copy is not healthy or a user keeps the old one",
        "`WaitingForRemoval`: it stays for now (ours)",
        lambda f: f.is_removed and not f.is_deleted and f.purge in (PurgeMode.GRACIOUSLY, PurgeMode.NEVER),
        keep_old_copy,
    ),
    Row(
        "removal failed",
        "deleted or not placed, the object is there and its removal failed a moment ago",
        "the failure, until the next attempt is due",
        lambda f: f.is_removed and f.failed_removal is not None,
        lambda f: _failed(f.failed_removal, f),
    ),
    Row(
        "removal under way",
        "deleted or not placed, the object is there and an operation on it is under way",
        "`WaitingForRemoval`",
        lambda f: f.is_removed and f.is_in_flight,
        _status(_S.WAITING_FOR_REMOVAL),
    ),
    Row(
        "remove",
        "deleted or not placed, the object is there",
        "delete, or release as its annotations say",
        lambda f: f.is_removed,
        _remove,
    ),
    Row(
        "gone",
        "deleted, the object is not there, and other caches still show it or the member itself has confirmed that",
        "no entry",
        lambda f: (
            f.is_deleted and (not f.is_last_look or (not f.is_in_flight and (f.is_absent or f.record.is_gone(f.owner))))
        ),
        _nothing,
    ),
    Row(
        "leaving",
        "placed, the cluster leaves",
        "`ClusterTerminating`",
        lambda f: f.is_placed and f.cluster.terminating and not f.is_cascading,
        _status(_S.CLUSTER_TERMINATING),
    ),
    Row(
        "without finalizer",
        "placed, the cluster has no finalizer yet",
        "`FinalizerCheckFailed`",
        lambda f: f.is_placed and not f.is_cascading and not f.cluster.has_finalizer,
        _status(_S.FINALIZER_CHECK_FAILED, recheck_after_s=_FINALIZER_RECHECK_S),
    ),
    Row(
        "finished",
        "placed, the object has finished and is gone",
        "`Finished` (ours): it is not created again",
        lambda f: f.is_placed and not f.is_cascading and f.finished is not None and not f.exists,
        _status(_S.FINISHED, _FINISHED),
    ),
    Row(
        "end unknown",
        "placed, the object runs to completion, was there and is gone, and nobody saw how it left",
        "`EndUnknown` (ours): it is not created again; the member is asked once for events that tell its end",
        lambda f: f.is_placed and not f.is_cascading and f.is_end_unknown,
        ask_end,
    ),
    Row(
        "earlier object",
        "placed, an earlier object of the name is to be removed first",
        "`WaitingForRemoval`: writing over it would turn it into the new one",
        lambda f: f.is_placed and not f.is_cascading and bool(f.earlier),
        lambda f: Decision(
            status=_S.WAITING_FOR_REMOVAL,
            message=f"an earlier object of this name is removed first (leftover {f.earlier})",
            shows_object=False,
        ),
    ),
    Row(
        "removed first",
        "placed, absent, and an unhealthy copy that must not run twice is not gone from another cluster",
        "`PendingCreate`: until it is gone (ours)",
        lambda f: f.is_placed and not f.is_cascading and not f.exists and bool(f.waits_for_removal),
        await_removal,
    ),
    Row(
        "unwanted write under way",
        "nothing should be there, and an operation is under way",
        "`WaitingForRemoval`",
        lambda f: f.needs_no_object and f.is_in_flight,
        _status(_S.WAITING_FOR_REMOVAL, "an operation is under way", shows_object=False),
    ),
    Row(
        "confirmation failed",
        "nothing should be there, an earlier write may still create it, and the member did not say a moment ago",
        "the failure, until the next attempt is due",
        lambda f: (
            f.needs_no_object and (f.record.is_unconfirmed or f.is_deleted) and f.backoff(CONFIRMATION) is not None
        ),
        lambda f: _failed(f.backoff(CONFIRMATION), f, shows_object=False),
    ),
    Row(
        "unwanted write",
        "nothing should be there, and a write without an answer may still create it, or the object is deleted",
        "`WaitingForRemoval`; the member is asked whether it has the object",
        lambda f: f.needs_no_object and (f.record.is_unconfirmed or f.is_deleted),
        _confirm(_S.WAITING_FOR_REMOVAL),
    ),
    Row(
        "created later",
        "placed, absent, its first step has no replicas",
        "`WaitingForReplicas` or `WaitingForUpdate`",
        lambda f: f.is_without_pods,
        _converge,
    ),
    Row(
        "nothing",
        "not placed, the object is not there, or is left alone in a cluster that leaves",
        "no entry",
        lambda f: f.needs_no_object,
        _nothing,
    ),
    Row(
        "owner of replicas unconfirmed",
        "placed, an autoscaler in the member owned the replicas, which the member did not confirm a moment ago",
        "the failure, until the next attempt is due",
        lambda f: bool(f.record.scaler_name) and f.is_scaler_unknown and f.backoff(SCALER) is not None,
        lambda f: _failed(f.backoff(SCALER), f),
    ),
    Row(
        "owner of replicas",
        "placed, an autoscaler in the member owned the replicas five minutes ago",
        "the member is asked about its autoscalers",
        lambda f: bool(f.record.scaler_name) and f.is_scaler_unknown,
        ask_scaler,
    ),
    Row(
        "no content",
        "placed, overrides do not apply, or fields of the member cannot be retained",
        "`ApplyOverridesFailed`, `FieldRetentionFailed`",
        lambda f: f.content.problem is not None,
        _refuse,
    ),
    Row(
        "write not shown",
        "the object is as our last write left it, which the cluster acknowledged and has not shown for 15 seconds",
        "as in the next row; the member is asked whether it has kept the write, and if not it is written again",
        lambda f: f.content.is_as_wanted and f.is_unshown,
        lambda f: replace(_converge(f), question=Question.CONFIRM),
    ),
    Row(
        "as wanted",
        "the object is as it should be, or finished",
        "`OK`, `Finished`, or the wait of its step; `QuotaExceeded` if it uses more than its quotas allow",
        lambda f: f.content.is_as_wanted,
        _converge,
    ),
    Row(
        "suspended",
        "placed, absent or with other content, and a suspension holds it",
        "`DeliverySuspended` (ours): nothing is written until the suspension ends",
        lambda f: f.suspension is not None and (f.is_placed or f.is_departing),
        suspend,
    ),
    Row(
        "beyond quota",
        "placed, absent or with other content, which would use more than the quotas of its namespace allow",
        "`QuotaExceeded` (ours): the cluster keeps what it has, until there is room",
        lambda f: f.is_placed and bool(f.unpaid),
        lambda f: Decision(status=_S.QUOTA_EXCEEDED, message=f"it would use more {f.unpaid} than the quotas allow"),
    ),
    Row(
        "drifted",
        "somebody in the member has changed the object, and the annotation `drift` or its kind says that it stays so",
        "`Drifted` (ours) until it is as it was, or, with `Report`, until template or overrides change",
        lambda f: f.is_placed and bool(f.drifted),
        lambda f: Decision(status=_S.DRIFTED, message=f.drifted),
    ),
    Row(
        "scaler unknown",
        "somebody scaled the object, and the member did not say a moment ago who owns the replicas",
        "the failure, until the next attempt is due",
        lambda f: f.is_scaler_unknown and f.backoff(SCALER) is not None,
        lambda f: _failed(f.backoff(SCALER), f),
    ),
    Row(
        "scaler",
        "somebody scaled the object",
        "the member is asked about its autoscalers",
        lambda f: f.is_scaler_unknown,
        ask_scaler,
    ),
    Row(
        "fought over",
        "somebody in the member changes the object again and again",
        "`CorrectionPaused`",
        lambda f: f.pause is not None,
        pause,
    ),
    Row(
        "frozen",
        "the object is there with other content, not changed by others, and a ChangeFreeze holds its updates",
        "`WaitingForUpdate` with the freeze (ours), until its window ends",
        lambda f: f.is_placed and f.exists and f.is_frozen,
        freeze,
    ),
    Row(
        "held",
        "the host's admission has not admitted what users override",
        "`AdmissionPending`, `AdmissionRefused`, `AdmissionFailed`; the host is asked",
        lambda f: f.is_placed and f.held is not None,
        hold,
    ),
    Row(
        "write failed",
        "this content failed a moment ago, with the same annotations about adoption, drift and rules of its kind",
        "the failure, until the next attempt is due",
        lambda f: f.failed_write is not None,
        lambda f: _failed(f.failed_write, f),
    ),
    Row(
        "other write under way",
        "absent, and other content is on its way",
        "`PendingCreate`: an update has other limits than a creation",
        lambda f: f.may_be_written and f.is_in_flight,
        _status(_S.PENDING_CREATE),
    ),
    Row(
        "other write unconfirmed",
        "absent, other content may be there, and the member did not say a moment ago",
        "`PendingCreate` with the failure, until the next attempt is due",
        lambda f: f.may_be_written and f.backoff(CONFIRMATION) is not None,
        lambda f: _failed(f.backoff(CONFIRMATION), f, status=_S.PENDING_CREATE, shows_object=False),
    ),
    Row(
        "other write",
        "absent, and other content may be there: its write got no answer",
        "`PendingCreate`; the member is asked whether it has the object",
        lambda f: f.may_be_written,
        _confirm(_S.PENDING_CREATE),
    ),
    Row(
        "followers",
        "objects that its pods need, or pods that its service needs, are not ready in the cluster yet",
        "`PendingCreate` or `UpdateTimedOut`, for a limited time",
        lambda f: f.is_placed and f.missing is not None,
        await_followers,
    ),
    Row(
        "under way",
        "an operation on the object is under way",
        "`PendingCreate`, `UpdateTimedOut`",
        lambda f: f.is_in_flight,
        lambda f: Decision(status=PENDING_STATUS[operation_of(f)]),
    ),
    Row(
        "write",
        "otherwise",
        "create, or update",
        lambda _: True,
        lambda f: Decision(operation=operation_of(f), status=PENDING_STATUS[operation_of(f)], write=f.content.write),
    ),
)


def decide(facts: Facts) -> Decision:
    """Return the decision of the first row that holds."""
    row = next(row for row in ROWS if row.holds(facts))
    decision = row.decide(facts)
    recheck_after_s = decision.recheck_after_s
    held_s = (hold.left_s or 0.0 for hold in (facts.freeze, facts.suspension) if hold is not None)
    for left_s in (facts.scaler_left_s, *held_s):
        if left_s > 0:
            recheck_after_s = left_s if recheck_after_s is None else min(recheck_after_s, left_s)
    return replace(decision, row=row.name, recheck_after_s=recheck_after_s)
