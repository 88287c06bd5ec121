"""The decisions of the simulated Job controller: what pods say about a Job, what to do next, when it ends. Pure.

The rules are those of Kubernetes. A finished pod is counted once: first its uid is put into
`status.uncountedTerminatedPods`, then its finalizer is removed, then the uid is replaced by one more in `succeeded` or
`failed`. A Job ends in two steps: `SuccessCriteriaMet` or `FailureTarget` first, and `Complete` or `Failed` when no pod
is terminating or uncounted. Pod failure policies, success policies and limits per index are not simulated.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from federation.apimachinery.clock import from_rfc3339, to_rfc3339
from federation.apimachinery.conditions import find, is_true
from federation.simulator.controllers import pods as podsof
from federation.simulator.controllers.indexes import format_indexes, index_of, parse_indexes

FINALIZER = "batch.kubernetes.io/job-tracking"
_BACKOFF_S, _BACKOFF_S_MAX = 10.0, 600.0
"""Pause after the first pod failure since the last success; it doubles with each further one."""

Pod = Mapping[str, Any]


def is_job_finished(job: Mapping[str, Any]) -> bool:
    """Return True if the Job is Complete or Failed."""
    conditions = (job.get("status") or {}).get("conditions")
    return is_true(conditions, "Complete") or is_true(conditions, "Failed")


def has_finalizer(pod: Pod) -> bool:
    """Return True if the pod still has to be counted."""
    return FINALIZER in (pod["metadata"].get("finalizers") or ())


@dataclass(frozen=True, slots=True)
class JobScope:
    """The fields of a Job's spec that decide, with Kubernetes' defaults."""

    completions: int | None
    parallelism: int
    backoff_limit: int
    is_indexed: bool
    is_suspended: bool
    restarts_in_place: bool
    waits_for_failed: bool
    """Whether a terminating pod counts as failed, and is replaced, only when it has ended."""
    active_deadline_s: int | None

    @classmethod
    def of(cls, job: Mapping[str, Any]) -> "JobScope":
        """Return the scope of a Job."""
        spec = job["spec"]
        return cls(
            completions=spec.get("completions"),
            parallelism=int(spec.get("parallelism", 1)),
            backoff_limit=int(spec.get("backoffLimit", 6)),
            is_indexed=spec.get("completionMode") == "Indexed",
            is_suspended=bool(spec.get("suspend")),
            restarts_in_place=spec["template"]["spec"].get("restartPolicy") == "OnFailure",
            waits_for_failed=spec.get("podReplacementPolicy") == "Failed",
            active_deadline_s=spec.get("activeDeadlineSeconds"),
        )

    def is_failed(self, pod: Pod) -> bool:
        """Return True if the pod counts as a failure."""
        phase = podsof.phase_of(pod)
        if phase == "Failed":
            return True
        return not self.waits_for_failed and podsof.is_terminating(pod) and phase != "Succeeded"


@dataclass(slots=True)
class Tally:
    """A Job's pods and counts at one moment."""

    scope: JobScope
    active: list[Pod]
    new_succeeded: list[Pod]
    new_failed: list[Pod]
    succeeded: int
    failed: int
    terminating: int
    completed_indexes: set[int]
    """Indexes of pods that have succeeded, those that are not in the status yet included."""


def tally(job: Mapping[str, Any], pods: Sequence[Pod]) -> Tally:
    """Count the Job's pods."""
    scope, status = JobScope.of(job), job.get("status") or {}
    uncounted = status.get("uncountedTerminatedPods") or {}
    tracked = [pod for pod in pods if has_finalizer(pod) and _has_valid_index(scope, pod)]
    succeeded = [pod for pod in tracked if podsof.phase_of(pod) == "Succeeded"]
    failed = [pod for pod in tracked if scope.is_failed(pod)]
    new_succeeded = [p for p in succeeded if p["metadata"]["uid"] not in uncounted.get("succeeded", ())]
    new_failed = [p for p in failed if p["metadata"]["uid"] not in uncounted.get("failed", ())]
    indexes: set[int] = set()
    succeeded_count = status.get("succeeded", 0) + len(new_succeeded) + len(uncounted.get("succeeded", ()))
    if scope.is_indexed:
        indexes = parse_indexes(status.get("completedIndexes", ""), scope.completions or 0)
        indexes |= {index_of(pod) for pod in succeeded}
        succeeded_count = len(indexes)
    return Tally(
        scope=scope,
        active=[pod for pod in pods if podsof.is_active(pod)],
        new_succeeded=new_succeeded,
        new_failed=new_failed,
        succeeded=succeeded_count,
        failed=status.get("failed", 0) + len(new_failed) + len(uncounted.get("failed", ())),
        terminating=sum(podsof.is_terminating(pod) and not podsof.is_finished(pod) for pod in pods),
        completed_indexes=indexes,
    )


def _has_valid_index(scope: JobScope, pod: Pod) -> bool:
    return not scope.is_indexed or 0 <= index_of(pod) < (scope.completions or 0)


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """How a Job ends: the condition (`SuccessCriteriaMet` or `FailureTarget`), reason and message."""

    type: str
    reason: str
    message: str

    @property
    def final_type(self) -> str:
        """The condition of the finished Job."""
        return "Complete" if self.type == "SuccessCriteriaMet" else "Failed"


COMPLETED = JobOutcome("SuccessCriteriaMet", "CompletionsReached", "Reached expected number of succeeded pods")


def find_verdict(job: Mapping[str, Any], pods: Sequence[Pod], counts: Tally, now: datetime) -> JobOutcome | None:
    """Return how the Job ends if that was decided before, or because it has failed; None while it goes on."""
    status, scope = job.get("status") or {}, counts.scope
    for type_ in ("SuccessCriteriaMet", "FailureTarget"):
        decided = find(status.get("conditions"), type_)
        if decided is not None and decided["status"] == "True":
            return JobOutcome(type_, decided["reason"], decided["message"])
    restarts = 0
    if scope.restarts_in_place:
        running = [pod for pod in pods if podsof.phase_of(pod) in ("Pending", "Running")]
        restarts = sum(
            each["restartCount"] for pod in running for each in (pod.get("status") or {}).get("containerStatuses") or ()
        )
    if counts.failed > scope.backoff_limit or (restarts and restarts >= scope.backoff_limit):
        return JobOutcome("FailureTarget", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
    left_s = deadline_left_s(job, scope, now)
    if left_s is not None and left_s <= 0:
        return JobOutcome("FailureTarget", "DeadlineExceeded", "Job was active longer than specified deadline")
    return None


def deadline_left_s(job: Mapping[str, Any], scope: JobScope, now: datetime) -> float | None:
    """Return the seconds until `activeDeadlineSeconds` have passed, None without that limit or while suspended."""
    started = (job.get("status") or {}).get("startTime")
    if scope.active_deadline_s is None or started is None or scope.is_suspended:
        return None
    return (from_rfc3339(started) + timedelta(seconds=scope.active_deadline_s) - now).total_seconds()


@dataclass(frozen=True, slots=True)
class PodChanges:
    """Pods to create (indexes; -1 for a Job that is not Indexed) and to delete."""

    create: tuple[int, ...] = ()
    delete: tuple[Pod, ...] = ()


def plan_pods(counts: Tally, pods: Sequence[Pod]) -> PodChanges:
    """Return the pods that a running Job misses or has too many of."""
    scope, active = counts.scope, counts.active
    if scope.is_suspended:
        return PodChanges(delete=tuple(active))
    if scope.completions is None:
        wanted = len(active) if counts.succeeded else scope.parallelism
    else:
        wanted = max(0, min(scope.completions - counts.succeeded, scope.parallelism))
    surplus = len(active) - wanted
    if surplus > 0:
        newest_last = sorted(active, key=lambda pod: (podsof.is_ready(pod), bool(pod["spec"].get("nodeName"))))
        return PodChanges(delete=tuple(newest_last[:surplus]))
    missing = -surplus - (counts.terminating if scope.waits_for_failed else 0)
    if missing <= 0:
        return PodChanges()
    if not scope.is_indexed:
        return PodChanges(create=(-1,) * missing)
    taken = counts.completed_indexes | {index_of(pod) for pod in active}
    if scope.waits_for_failed:
        taken |= {index_of(pod) for pod in pods if podsof.is_terminating(pod)}
    free = (index for index in range(scope.completions or 0) if index not in taken)
    return PodChanges(create=tuple(index for index, _ in zip(free, range(missing), strict=False)))


@dataclass(slots=True)
class Backoff:
    """The pod failures of a Job since its last success."""

    failures: int = 0
    last_failure: datetime | None = None
    _seen: set[str] = field(default_factory=set)

    def record(self, succeeded: Sequence[Pod], failed: Sequence[Pod], now: datetime) -> None:
        """Count pods that have ended; each counts once."""
        if [pod for pod in succeeded if not self._is_known(pod)]:
            self.failures, self.last_failure = 0, None
        new = [pod for pod in failed if not self._is_known(pod)]
        if new:
            self.failures, self.last_failure = self.failures + len(new), now
        self._seen = {pod["metadata"]["uid"] for pod in (*succeeded, *failed)}

    def left_s(self, now: datetime) -> float:
        """Return the seconds until the next pod may be created."""
        if self.last_failure is None:
            return 0.0
        pause_s: float = min(_BACKOFF_S * 2.0 ** min(self.failures - 1, 16), _BACKOFF_S_MAX)
        return max(0.0, pause_s - (now - self.last_failure).total_seconds())

    def _is_known(self, pod: Pod) -> bool:
        return pod["metadata"]["uid"] in self._seen


def to_condition(type_: str, status: str, reason: str, message: str, now: datetime) -> dict[str, Any]:
    """Return a Job's condition; every change sets both times."""
    stamp = to_rfc3339(now)
    times = {"lastProbeTime": stamp, "lastTransitionTime": stamp}
    return {"type": type_, "status": status, **times, "reason": reason, "message": message}


def set_suspended(
    conditions: Sequence[Mapping[str, Any]], *, is_suspended: bool, now: datetime
) -> tuple[list[Mapping[str, Any]], bool]:
    """Return the conditions with Suspended as it is now, and whether that changed; False needs no condition."""
    old = find(conditions, "Suspended")
    if (old is not None and old["status"] == "True") == is_suspended:
        return list(conditions), False
    words = ("True", "JobSuspended", "Job suspended") if is_suspended else ("False", "JobResumed", "Job resumed")
    new = to_condition("Suspended", *words, now)
    return [*(c for c in conditions if c["type"] != "Suspended"), new] if old is None else [
        new if c["type"] == "Suspended" else c for c in conditions
    ], True


def count_uncounted(status: dict[str, Any], tracked: set[str]) -> None:
    """Move uids whose pods have lost their finalizer from `uncountedTerminatedPods` to the counts, in place."""
    uncounted = dict(status["uncountedTerminatedPods"])
    for name in ("succeeded", "failed"):
        waiting = [uid for uid in uncounted.get(name, ()) if uid in tracked]
        counted = len(uncounted.get(name, ())) - len(waiting)
        if counted:
            status[name] = status.get(name, 0) + counted
        uncounted.pop(name, None)
        if waiting:
            uncounted[name] = waiting
    status["uncountedTerminatedPods"] = uncounted


def add_uncounted(status: dict[str, Any], counts: Tally, ending: JobOutcome | None, pods: Sequence[Pod]) -> list[Pod]:
    """Note finished pods in `uncountedTerminatedPods` or `completedIndexes`, in place; return pods to release.

    A Job that ends with a failure also counts pods that it deletes; the caller removes the finalizers of all of them.
    """
    scope, uncounted = counts.scope, dict(status["uncountedTerminatedPods"])
    known = {uid for uids in uncounted.values() for uid in uids}
    released = []
    for pod in pods:
        uid, is_success = pod["metadata"]["uid"], podsof.phase_of(pod) == "Succeeded"
        is_failure = not is_success and (scope.is_failed(pod) or (ending is not None and ending.final_type == "Failed"))
        if not has_finalizer(pod) or not (is_success or is_failure or ending is not None):
            continue
        released.append(pod)
        if uid in known or not _has_valid_index(scope, pod):
            continue
        if is_success and not scope.is_indexed:
            uncounted["succeeded"] = [*uncounted.get("succeeded", ()), uid]
        elif is_failure:
            uncounted["failed"] = [*uncounted.get("failed", ()), uid]
    status["uncountedTerminatedPods"] = uncounted
    if scope.is_indexed:
        status.pop("succeeded", None)
        status.pop("completedIndexes", None)
        if counts.completed_indexes:
            status["succeeded"] = len(counts.completed_indexes)
            status["completedIndexes"] = format_indexes(counts.completed_indexes)
    return released
