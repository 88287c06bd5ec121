"""All that the decision about one object in one cluster depends on.

Facts are plain values. Some are computed only if a row of the decision asks for them, because they cost something: the
content and its status, the host's verdict, an earlier object of the name, and the followers that are missing.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from federation.apimachinery.resources import Object
from federation.delivery.rules.content import Content
from federation.delivery.rules.memberrecord import NOTHING_KNOWN, Failure, MemberRecord, State
from federation.delivery.rules.plan import (
    ABSENT_OBJECT,
    CLEAR_SIGHT,
    ClusterState,
    ObservedObject,
    Removal,
    Sight,
    removal_attempt,
    to_operation,
)
from federation.delivery.rules.status import ClusterStatus
from federation.planning.failover.application import PurgeMode
from federation.planning.rendering.retention import is_scaled
from federation.planning.rendering.verdicts import Verdict
from federation.planning.status.delivery import Drift
from federation.planning.steps.steps import Step

CONFIRMATION = "confirmation"
"""The name of the question whether the member has the object, in the place of a failure's hash."""
END = "end"
"""The name of the question whether an object that is gone had finished."""
SCALER = "scaler"
"""The name of the question who scales the object."""


class Held(NamedTuple):
    """The admission answer that holds a write back; `verdict` is None while there has never been one."""

    verdict: Verdict | None
    is_open: bool
    """Whether the host has to be asked: the verdict, if any, comes from an earlier answer."""
    recheck_after_s: float | None = None


class Hold(NamedTuple):
    """A reason not to write now, and for how many seconds it holds or may stay unchecked; None if without end."""

    message: str
    left_s: float | None
    is_brief: bool = False
    """Whether it is too brief to report."""


class Pause(NamedTuple):
    """A pause of corrections: for how long, and the drift that caused it."""

    left_s: float
    drift: Drift


@dataclass(frozen=True)
class Facts:
    """Facts about one object in one cluster. Times are monotonic seconds."""

    cluster: ClusterState
    now_s: float = 0.0
    # -- the federated object
    is_deleted: bool = False
    """Whether the federated object is being deleted."""
    is_last_look: bool = False
    """Whether it is deleted and no cache shows its object any more: then the members themselves are asked."""
    is_selected: bool = False
    is_recorded: bool = False
    """Whether the status or the departed-clusters annotation names the cluster as a possible holder."""
    is_published: bool = True
    """Whether the status names the cluster; the object is new to any other."""
    purge: PurgeMode | None = None
    """How the copy is removed that an unhealthy workload leaves behind, None for the usual way."""
    waits_for_removal: str = ""
    """The clusters from which the workload has to be gone before a new copy of it is created, "" for none."""
    is_kept: bool = False
    """Whether objects of the kind are deleted only with their source (planning/leftovers/strays.py)."""
    objection: str = ""
    """Why there is no evidence that the object may be deleted in the cluster (planning/leftovers/evidence.py)."""
    owner: str = ""
    """The uid of the federated object if it is being deleted, else ""."""
    # -- the member object
    observed: ObservedObject = ABSENT_OBJECT
    sight: Sight = CLEAR_SIGHT
    """Problems of the cache of the kind."""
    kind: str = ""
    """Version and kind of the object, for messages."""
    live: Object | None = None
    """The newest known member object, None without one."""
    record: MemberRecord = NOTHING_KNOWN
    is_in_flight: bool = False
    """Whether an operation or question on the object waits or is in flight."""
    is_absent: bool = False
    """Whether the member answered within this reconcile that it lacks the object."""
    finished: Mapping[str, Any] | None = None
    """The evidence that the object ran to completion in the cluster, None without any."""
    started: Mapping[str, Any] | None = None
    """The record that the object was there in this run, of kinds that run to completion, None without any."""
    removal: Removal = Removal.DELETE
    is_scalable: bool = False
    """Whether objects of the kind have replicas, and the user does not leave them to the member."""
    # -- the steps of a divided workload
    step: Step | None = None
    wait: tuple[ClusterStatus, str] | None = None
    """The status and message of a cluster whose step is not the last one."""
    # -- what is computed only on demand
    find_content: Callable[[], Content] = Content
    find_settled: Callable[[], tuple[ClusterStatus, str]] = lambda: (ClusterStatus.OK, "")
    find_held: Callable[[], Held | None] = lambda: None
    find_earlier: Callable[[], str] = lambda: ""
    find_missing: Callable[[Content], Hold | None] = lambda _: None
    find_drifted: Callable[[Content], str] = lambda _: ""
    """Returns what is left as somebody in the member has changed it, "" if that is corrected."""
    find_unpaid: Callable[[], str] = lambda: ""
    """Returns the resources of which the content would use more than quotas allow, "" for none."""
    find_pause: Callable[[], Pause | None] = lambda: None
    freeze: Hold | None = None
    """The freeze that holds updates of the object, None for none."""
    suspension: Hold | None = None
    """The suspension that holds the object in the cluster, None for none."""

    @cached_property
    def exists(self) -> bool:
        """Whether the member has the object; another object of its name does not count."""
        return self.observed.exists and not self.observed.derived_service_mismatch

    @cached_property
    def is_placed(self) -> bool:
        """Whether the object should be in the cluster."""
        return self.is_selected and not self.is_deleted

    @cached_property
    def is_departing(self) -> bool:
        """Whether the cluster has left the placement and keeps replicas until there are enough elsewhere."""
        return not self.is_selected and not self.is_deleted and self.step is not None and self.step.replicas > 0

    @cached_property
    def is_cascading(self) -> bool:
        """Whether the cluster leaves and takes its objects with it."""
        return self.cluster.terminating and self.cluster.cascading_delete and not self.is_deleted

    @cached_property
    def is_without_pods(self) -> bool:
        """Whether the object is created later, because its first step has no replicas."""
        has_none = self.step is not None and not self.step.replicas and self.wait is not None
        return self.is_placed and not self.is_cascading and not self.exists and has_none

    @cached_property
    def needs_no_object(self) -> bool:
        """Whether nothing is there and nothing should be, or what is there is left alone."""
        if self.is_cascading:
            return not self.exists or self.observed.terminating
        if self.is_selected and not self.is_deleted:
            return self.is_without_pods
        is_left_alone = self.cluster.terminating and not self.is_deleted and not self.observed.terminating
        return not self.exists or is_left_alone

    @property
    def is_removed(self) -> bool:
        """Whether the object is there, and is to leave the cluster."""
        if self.is_deleted:
            return self.exists
        return not self.is_selected and not self.is_departing and not self.needs_no_object

    @property
    def lacks_evidence(self) -> bool:
        """Whether the object would be deleted without evidence that is about this membership of the cluster."""
        return bool(self.objection) and self.removal is Removal.DELETE and self.is_removed

    @property
    def is_scaler_unknown(self) -> bool:
        """Whether somebody in the member may own the replicas, and the member has to be asked who."""
        if not self.is_scalable or not self.is_placed or not self.exists or self.live is None:
            return False
        scaler = self.record.scaler
        is_due = scaler is None or scaler.until_s <= self.now_s
        return is_due and (bool(self.record.scaler_name) or is_scaled(self.live))

    @property
    def scaler_left_s(self) -> float:
        """For how many seconds an autoscaler in the member owns the replicas, 0 if none does."""
        scaler = self.record.scaler
        if scaler is None or not scaler.name or not self.is_placed or not self.is_scalable:
            return 0.0
        return max(scaler.until_s - self.now_s, 0.0)

    @property
    def is_end_unknown(self) -> bool:
        """Whether the object existed and left unobserved: it may have run to its end."""
        record = self.record
        is_seen = record.losses or (record.state is State.LOST and record.is_loss_seen)
        is_gone = not self.exists and record.state in (State.CACHED, State.LOST)
        return self.started is not None and is_gone and not is_seen

    @property
    def is_end_asked(self) -> bool:
        """Whether the member was asked about the end of the object that was there."""
        return self.started is not None and self.record.end_asked == self.started.get("uid")

    @cached_property
    def uid(self) -> str:
        """The uid of the member object, "" without one."""
        return str(self.live["metadata"].get("uid", "")) if self.live is not None else ""

    def backoff(self, digest: str) -> Failure | None:
        """Return the last failure with this content, or of this question, while its retry is not due."""
        failure = self.record.failure_of(digest)
        return failure if failure is not None and failure.retry_at_s > self.now_s else None

    @property
    def failed_write(self) -> Failure | None:
        """Return the last failure to write this content on these terms, while its retry is not due."""
        if self.record.failure is None or self.content.write is None:
            return None
        return self.backoff(self.content.write.attempt) or self.backoff(self.content.hash)

    @property
    def failed_removal(self) -> Failure | None:
        """Return the last failure to remove the object in this way, while its retry is not due."""
        if self.record.failure is None:
            return None
        return self.backoff(removal_attempt(self.uid, to_operation(self.removal))) or self.backoff(self.uid)

    @property
    def is_unshown(self) -> bool:
        """Whether the member acknowledged something that its cache does not show for too long: it has to be asked."""
        is_asked = self.is_in_flight or self.backoff(CONFIRMATION) is not None
        return self.exists and self.record.is_overdue(self.now_s) and not is_asked

    @property
    def is_removal_unshown(self) -> bool:
        """Whether the object is still there as it was, long after its deletion was acknowledged."""
        is_marked = self.live is not None and bool(self.live["metadata"].get("deletionTimestamp"))
        return self.is_unshown and self.record.is_deletion_requested(self.uid) and not is_marked

    @property
    def may_be_written(self) -> bool:
        """Whether other content may already be there, or be on its way, although nothing shows that."""
        is_other = not self.exists and not self.record.is_repetition(self.content.hash)
        return is_other and (self.is_in_flight or self.record.is_unconfirmed)

    @cached_property
    def content(self) -> Content:
        """The desired content of the object."""
        return self.find_content()

    @cached_property
    def held(self) -> Held | None:
        """The admission answer that holds the write back, None when it may leave."""
        return self.find_held()

    @cached_property
    def earlier(self) -> str:
        """The Leftover of an earlier object of this name that is still to be removed, "" for none."""
        return self.find_earlier()

    @cached_property
    def missing(self) -> Hold | None:
        """The followers that the write waits for, None for none."""
        return self.find_missing(self.content)

    @property
    def is_frozen(self) -> bool:
        """Whether its content waits for the end of a freeze. A step of a divided workload keeps the template itself."""
        is_stepped = self.step is not None
        return self.freeze is not None and not is_stepped and not self.content.is_correction

    @cached_property
    def drifted(self) -> str:
        """The change of somebody in the member that stays, "" without one or if it is corrected."""
        return self.find_drifted(self.content) if self.exists and self.content.is_correction else ""

    @cached_property
    def unpaid(self) -> str:
        """The resources of which the content would use more than quotas allow, "" for none."""
        return self.find_unpaid()

    @cached_property
    def pause(self) -> Pause | None:
        """The pause of corrections that the write falls into, None for none."""
        return self.find_pause() if self.content.is_correction else None
