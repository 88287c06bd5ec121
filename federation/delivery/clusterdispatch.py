"""Dispatch of one federated object to one cluster: observe the member object, decide, start the operation.

`Dispatcher.dispatch` runs for every cluster that the object is or was placed in. The decision table is in
`delivery/rules/plan.py`; `memberoperations.py` runs the operation and records its result.
"""

from dataclasses import replace

from federation.api.federatedtype import FederatedType
from federation.apimachinery import dotpaths
from federation.apimachinery.clock import Clock
from federation.apimachinery.resources import Object
from federation.delivery.clustersteps import Rollouts
from federation.delivery.host.followerwait import FollowerReadiness
from federation.delivery.host.hostadmission import HostAdmission
from federation.delivery.host.tombstones import Tombstones
from federation.delivery.members.driftreports import DriftReports
from federation.delivery.members.memberobjects import MemberObjectCache
from federation.delivery.members.memberoperations import MemberOperations
from federation.delivery.members.memberrecords import MemberRecords
from federation.delivery.members.operations import Write, to_applied_configuration
from federation.delivery.members.propagation import Propagation, member_key
from federation.delivery.rules.corrections import is_correction
from federation.delivery.rules.memberrecord import MemberKey
from federation.delivery.rules.plan import (
    ABSENT_OBJECT,
    PENDING_STATUS,
    UNKNOWN_OBJECT,
    ClusterState,
    Decision,
    ObservedObject,
    Operation,
    Removal,
    decide,
    is_converged,
    is_managed,
    is_management_disabled,
)
from federation.delivery.rules.status import ClusterStatus
from federation.planning.federatedobject.finished import evidence, evidence_by_cluster, is_finished, run_of
from federation.planning.leftovers.strays import is_kept
from federation.planning.rendering.memberobject import RenderError
from federation.planning.rendering.retention import RetentionError, is_replicas_retained
from federation.planning.rendering.verdicts import ADMITTED, Outcome
from federation.planning.rollout.memberstate import replicas_of, to_departing, to_stepped
from federation.runtime.events import WARNING, Recorder

_FINISHED = "it has finished and is gone there, so it is not created again"


class Dispatcher:
    """Decides per cluster and starts the operations."""

    def __init__(
        self,
        operations: MemberOperations,
        records: MemberRecords,
        member_objects: MemberObjectCache,
        follower_readiness: FollowerReadiness,
        admission: HostAdmission,
        tombstones: Tombstones,
        drift: DriftReports,
        rollouts: Rollouts,
        recorder: Recorder,
        clock: Clock,
    ) -> None:
        self._clock = clock
        self._operations = operations
        self._records = records
        self._member_objects = member_objects
        self._follower_readiness = follower_readiness
        self._admission = admission
        self._tombstones = tombstones
        self._drift = drift
        self._rollouts = rollouts
        self._recorder = recorder

    def dispatch(
        self, propagation: Propagation, cluster: ClusterState, *, is_selected: bool, is_recorded: bool
    ) -> Decision:
        """Start the operation that the cluster needs, if any, and return the decision."""
        observed, live = UNKNOWN_OBJECT, None
        if cluster.ready:
            key = propagation.member_key(cluster.name)
            observed, live = self._member_objects.observe(key, propagation.annotations)
            if observed.lookup_failed and is_selected and cluster.name not in propagation.published:
                observed = self._observe_new(propagation, cluster.name)
            if not observed.lookup_failed:
                self._note_finish(propagation, key, live)
        decision = decide(
            cluster,
            is_selected=is_selected,
            is_recorded=is_recorded,
            observed=observed,
            is_kept=is_kept(propagation.type_.resource),
            has_finished=cluster.name in propagation.finished,
        )
        if decision.recheck_after_s is not None:
            propagation.recheck(decision.recheck_after_s)
        if decision.operation in (Operation.CREATE, Operation.UPDATE):
            if self._waits_for_removal(propagation, cluster):
                return Decision(None, ClusterStatus.WAITING_FOR_REMOVAL)
            self._ensure(propagation, cluster.name, None if observed.derived_service_mismatch else live)
        elif decision.operation is Operation.DELETE and live is not None:
            step = propagation.steps.get(cluster.name)
            if step is not None and step.replicas:
                return self._depart(propagation, cluster.name, live, step.replicas)
            self._operations.remove(propagation, cluster.name, live, Removal.DELETE)
        elif decision.status is not None:
            message = _FINISHED if decision.status is ClusterStatus.FINISHED else ""
            propagation.record(cluster.name, decision.status, live, message)
        elif self._operations.await_earlier_write(propagation, cluster.name):
            return Decision(None, ClusterStatus.WAITING_FOR_REMOVAL)
        return decision

    def keep_evidence(self, federated: Object, type_: FederatedType) -> None:
        """Keep the evidence of what has finished for the federated object that is written in the place of this one."""
        for cluster, each in evidence_by_cluster(federated).items():
            self._records.record_finished(member_key(federated, type_, cluster), each)

    def _note_finish(self, propagation: Propagation, key: MemberKey, live: Object | None) -> None:
        """Take the evidence that the object has finished from the object itself, or from when it left.

        An object that has not finished refutes evidence of an earlier one.
        """
        cluster, known = key.cluster, propagation.finished.get(key.cluster)
        if live is None:
            left = self._records.get(key).finished
            if known is None and left is not None and left["run"] == run_of(propagation.federated):
                propagation.finished[cluster] = left
            return
        resource = propagation.type_.resource
        if not is_finished((resource.group, resource.kind), live) or not is_managed(live):
            propagation.finished.pop(cluster, None)
        elif known is None:
            propagation.finished[cluster] = evidence(propagation.federated, live, self._clock.now())

    def _observe_new(self, propagation: Propagation, cluster: str) -> ObservedObject:
        """Return the state of an object that was never delivered, in a cluster whose cache is incomplete."""
        if cluster in propagation.absent:
            return ABSENT_OBJECT
        propagation.unseen.add(cluster)
        return UNKNOWN_OBJECT

    def _waits_for_removal(self, propagation: Propagation, cluster: ClusterState) -> bool:
        """Return True, and record the wait, while an earlier object of this name is still to be removed.

        Writing over it would turn it into the new object, and the record of its deletion would then delete that.
        """
        record = self._tombstones.pending(propagation.member_key(cluster.name), cluster.uid)
        if record is None:
            return False
        message = f"an earlier object of this name is removed first (leftover {record.record_name})"
        propagation.record(cluster.name, ClusterStatus.WAITING_FOR_REMOVAL, message=message)
        return True

    def _depart(self, propagation: Propagation, cluster: str, live: Object, replicas: int) -> Decision:
        """Let a cluster that has left the placement keep these replicas."""
        key, resource = propagation.member_key(cluster), propagation.type_.resource
        write = Write(key, to_departing(live, resource, replicas), live, propagation.annotations)
        if replicas_of(live) == replicas and not self._is_uncertain(propagation, key, write.desired.hash):
            propagation.record_written(cluster, live)
        elif not self._operations.record_backoff(propagation, key, write.desired.hash, live):
            self._rollouts.record_sent(propagation, key, live, write.desired)
            self._operations.ensure(propagation, write)
        return Decision(None, ClusterStatus.WAITING_FOR_REPLICAS)

    def _is_uncertain(self, propagation: Propagation, key: MemberKey, digest: str) -> bool:
        """Return whether other content may still arrive: a step counts on what was written, so it is written again."""
        record = self._records.get(key)
        return bool(propagation.steps) and record.is_unconfirmed and not record.is_repetition(digest)

    def _ensure(self, propagation: Propagation, cluster: str, live: Object | None) -> None:
        key = propagation.member_key(cluster)
        step = propagation.steps.get(cluster)
        if live is None and step is not None and not step.replicas and cluster in propagation.waits:
            if not self._operations.await_earlier_write(propagation, cluster):
                propagation.record_written(cluster, None)
            return
        federated = propagation.federated
        if (
            live is not None
            and self._records.get(key).scaler_name
            and self._operations.await_scaler(propagation, key, live)
        ):
            return
        try:
            desired = propagation.renderer.render(cluster)
            if step is not None:
                desired = to_stepped(propagation.type_.resource, desired, live, step)
            paths = self._retained_paths(propagation, key)
            known_uid = self._records.get(key).lost_uid if live is None else ""
            write = Write(key, desired, live, propagation.annotations, paths, known_uid=known_uid)
            if live is not None and not is_management_disabled(live):
                wanted = to_applied_configuration(write, live)
                is_written = is_converged(desired, wanted, live)
                if not self._is_uncertain(propagation, key, desired.hash) and (
                    is_written or self._records.get(key).is_accepted(desired.hash, live)
                ):
                    propagation.record_written(cluster, live)
                    return
        except RenderError as error:
            self._refuse(propagation, cluster, ClusterStatus.APPLY_OVERRIDES_FAILED, str(error))
            return
        except RetentionError as error:
            self._refuse(propagation, cluster, ClusterStatus.FIELD_RETENTION_FAILED, str(error))
            return
        if live is not None and self._operations.await_scaler(propagation, key, live):
            return
        if is_correction(self._records.get(key), desired.hash, live):
            if self._drift.is_paused(propagation, key, live):
                return
            write = replace(write, is_correction=live is not None)
        if self._admission.is_active and self._is_held(propagation, cluster, live):
            return
        if self._operations.record_backoff(propagation, key, desired.hash, live):
            return
        # Other content may already be there, or be on its way: an update has other limits than a creation.
        is_sent = live is None and not self._records.get(key).is_repetition(desired.hash)
        if is_sent and self._operations.await_earlier_write(propagation, cluster):
            propagation.record(cluster, ClusterStatus.PENDING_CREATE)
            return
        wait = self._follower_readiness.wait(propagation.key, federated, cluster, desired.object, live)
        if wait is not None:
            operation = Operation.CREATE if live is None else Operation.UPDATE
            propagation.record(cluster, PENDING_STATUS[operation], live, wait.message)
            propagation.recheck(wait.recheck_after_s)
            propagation.has_brief_wait = propagation.has_brief_wait or wait.is_brief
            return
        self._rollouts.record_sent(propagation, key, live, desired)
        self._operations.ensure(propagation, write)

    def _retained_paths(self, propagation: Propagation, key: MemberKey) -> dotpaths.Path:
        """Return the path of the replicas if they are the member's, because a user or an autoscaler says so."""
        path = propagation.type_.paths.replicas_spec
        if is_replicas_retained(propagation.federated):
            return path
        if not self._records.get(key).scaler_name:
            return ()
        propagation.recheck(self._records.scaler_left_s(key))
        return path

    def _is_held(self, propagation: Propagation, cluster: str, live: Object | None) -> bool:
        """Return whether the write must not or not yet leave because of the host's admission, and record why."""
        verdict = self._admission.judge(propagation, cluster)
        if verdict is ADMITTED:
            propagation.held.pop(cluster, None)
            return False
        if verdict is None:
            propagation.unjudged.add(cluster)
            # Until the answer arrives an object that was held counts as held, so that nothing is written for a retry.
            verdict = self._admission.last(propagation, cluster)
        if verdict is None:
            propagation.record(cluster, ClusterStatus.ADMISSION_PENDING, live)
            return True
        propagation.held[cluster] = verdict
        is_refused = verdict.outcome is Outcome.REFUSED
        # The condition Admitted has the message, once for all clusters that share it.
        propagation.record(
            cluster, ClusterStatus.ADMISSION_REFUSED if is_refused else ClusterStatus.ADMISSION_FAILED, live
        )
        return True

    def _refuse(self, propagation: Propagation, cluster: str, status: ClusterStatus, message: str) -> None:
        """Record a failure that only another template or other overrides can resolve."""
        propagation.record(cluster, status, message=message)
        self._recorder.event(propagation.federated, WARNING, status.value, f'cluster "{cluster}": {message}')
