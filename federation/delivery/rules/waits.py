"""Decisions that wait: for a user, for the host's admission, for other objects, or for another cluster. Pure.

`decide.py` has the rows that they belong to.
"""

from federation.api import names
from federation.delivery.rules.decision import Decision, Question
from federation.delivery.rules.facts import END, Facts
from federation.delivery.rules.plan import PENDING_STATUS, Operation
from federation.delivery.rules.status import ClusterStatus
from federation.planning.failover.application import PurgeMode
from federation.planning.rendering.verdicts import Outcome
from federation.planning.status.delivery import describe_drift

_REMOVAL_RECHECK_S = 2.0
_END_UNKNOWN = (
    "it was removed there while nobody watched, and whether it had finished is not known; "
    f"to run it again, set its annotation {names.RUN_AGAIN} to the time, or create it again"
)


def operation_of(facts: Facts) -> Operation:
    """Return the operation that brings the wanted content into the cluster."""
    return Operation.UPDATE if facts.exists else Operation.CREATE


def keep_old_copy(facts: Facts) -> Decision:
    """Keep what an unhealthy workload left behind."""
    message = "the unhealthy workload left this cluster; its copy stays until the new one is healthy"
    if facts.purge is PurgeMode.NEVER:
        message = f"the unhealthy workload left this cluster; its copy stays until annotation {names.PURGE} names it"
    return Decision(status=ClusterStatus.WAITING_FOR_REMOVAL, message=message)


def await_finalizers(facts: Facts) -> Decision:
    """Wait until the member's own controllers have removed their finalizers, and name these."""
    finalizers = sorted(map(str, (facts.live or {}).get("metadata", {}).get("finalizers") or ()))
    message = f"its finalizers [{','.join(finalizers)}] hold it there" if finalizers else ""
    return Decision(status=ClusterStatus.WAITING_FOR_REMOVAL, message=message)


def await_removal(facts: Facts) -> Decision:
    """Wait until a copy that must not run twice is gone elsewhere."""
    message = f"the copy in {facts.waits_for_removal} has to be gone first"
    return Decision(
        status=PENDING_STATUS[Operation.CREATE], message=message, recheck_after_s=_REMOVAL_RECHECK_S, shows_object=False
    )


def pause(facts: Facts) -> Decision:
    """Stop corrections that somebody undoes again and again."""
    assert facts.pause is not None
    drift = facts.pause.drift
    message = f"{describe_drift(drift)} again and again; it is corrected again at {drift.paused_until}"
    return Decision(status=ClusterStatus.CORRECTION_PAUSED, message=message, recheck_after_s=facts.pause.left_s)


def hold(facts: Facts) -> Decision:
    """Hold a write that the host's admission has not admitted."""
    # The condition Admitted has the message, once for all clusters that share it.
    held = facts.held
    assert held is not None
    if held.verdict is None:
        status = ClusterStatus.ADMISSION_PENDING
    elif held.verdict.outcome is Outcome.REFUSED:
        status = ClusterStatus.ADMISSION_REFUSED
    else:
        status = ClusterStatus.ADMISSION_FAILED
    question = Question.ADMISSION if held.is_open else None
    return Decision(status=status, held=held.verdict, question=question, recheck_after_s=held.recheck_after_s)


def await_followers(facts: Facts) -> Decision:
    """Wait for objects that the pods need."""
    wait = facts.missing
    assert wait is not None
    return Decision(
        status=PENDING_STATUS[operation_of(facts)],
        message=wait.message,
        recheck_after_s=wait.left_s,
        is_brief=wait.is_brief,
    )


def freeze(facts: Facts) -> Decision:
    """Keep the content until the end of a ChangeFreeze."""
    assert facts.freeze is not None
    return Decision(status=ClusterStatus.WAITING_FOR_UPDATE, message=facts.freeze.message)


def suspend(facts: Facts) -> Decision:
    """Leave the cluster as it is until the end of a suspension."""
    assert facts.suspension is not None
    hold_ = facts.suspension
    return Decision(status=ClusterStatus.DELIVERY_SUSPENDED, message=hold_.message, recheck_after_s=hold_.left_s)


def ask_end(facts: Facts) -> Decision:
    """Ask the member once. Until it has answered nothing is published: its events usually tell the end."""
    failure = facts.backoff(END)
    is_open = not facts.is_end_asked and failure is None
    return Decision(
        status=ClusterStatus.END_UNKNOWN,
        message=_END_UNKNOWN,
        question=Question.END if is_open and not facts.is_in_flight else None,
        recheck_after_s=None if failure is None else failure.retry_at_s - facts.now_s,
        is_brief=is_open,
    )


def ask_scaler(facts: Facts) -> Decision:
    """Ask the member about the autoscalers of the object."""
    return Decision(
        status=ClusterStatus.UPDATE_TIMED_OUT,
        message="its autoscalers are looked up",
        question=None if facts.is_in_flight else Question.SCALER,
        is_brief=True,
    )
