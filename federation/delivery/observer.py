"""Observes one object in one cluster: gathers the facts for the decision from caches and records.

Nothing is requested here. What a decision needs to ask is asked by `questions.py`.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from federation.api import names
from federation.api.federatedtype import DriftMode
from federation.apimachinery.resources import Object
from federation.delivery.host.followerwait import FollowerReadiness
from federation.delivery.host.hostadmission import HostAdmission
from federation.delivery.host.tombstones import Tombstones
from federation.delivery.members.depot import Depot
from federation.delivery.members.propagation import Aim, Known
from federation.delivery.rules.content import (
    Content,
    Subject,
    compute_content,
    describe_drifted,
    settled_status,
    to_applied_configuration,
)
from federation.delivery.rules.evidence import evidence_of
from federation.delivery.rules.facts import Facts, Hold, Pause
from federation.delivery.rules.memberrecord import MemberKey, MemberRecord
from federation.delivery.rules.plan import (
    ABSENT_OBJECT,
    UNKNOWN_OBJECT,
    ClusterState,
    ObservedObject,
    Removal,
    decide_removal,
    is_managed,
)
from federation.delivery.rules.status import describe_kind
from federation.guard.suspensions import Holds
from federation.planning.accounts.claim import CLAIM, find_unpaid
from federation.planning.drift.fields import drifted_fields
from federation.planning.failover.application import purge_of, removed_first
from federation.planning.federatedobject.finished import evidence, is_finished, run_of
from federation.planning.federatedobject.finished import started as started_run
from federation.planning.leftovers.evidence import objection
from federation.planning.leftovers.strays import is_kept
from federation.planning.rendering.memberobject import RenderError
from federation.scheduling.quotas import use_in

_UNKNOWN = Known()


class Observer:
    """Gathers facts."""

    def __init__(
        self, depot: Depot, admission: HostAdmission, followers: FollowerReadiness, holds: Holds, tombstones: Tombstones
    ) -> None:
        self._records = depot.records
        self._member_objects = depot.member_objects
        self._executor = depot.executor
        self._tombstones = tombstones
        self._admission = admission
        self._followers = followers
        self._freezes = holds.freezes
        self._suspensions = holds.suspensions
        self._clock = depot.host.clock

    def observe(self, aim: Aim, cluster: ClusterState, known: Known = _UNKNOWN) -> Facts:
        """Return the facts of the object in a cluster, with what the reconcile knows beyond caches and records."""
        subject, name = aim.subject, cluster.name
        key, annotations = subject.member_key(name), subject.annotations
        observed, live = UNKNOWN_OBJECT, None
        finished, started, found, is_absent = known
        if cluster.ready:
            observed, live = self._member_objects.observe(key, annotations)
            if observed.lookup_failed and is_absent:
                observed = ABSENT_OBJECT
            elif found is not None and not observed.exists:
                is_terminating = bool(found["metadata"].get("deletionTimestamp"))
                observed, live = ObservedObject(exists=True, terminating=is_terminating), found
        if observed.derived_service_mismatch:
            live = None
        record, step = self._records.get(key), aim.steps.get(name)
        if not observed.lookup_failed and not aim.is_deleted:
            finished = self._finished(subject, live, record, finished)
            if aim.run and live is not None and is_managed(live):
                started = started_run(aim.run, live)
        return Facts(
            cluster=cluster,
            now_s=self._clock.monotonic(),
            is_deleted=aim.is_deleted,
            is_last_look=aim.is_last_look,
            is_selected=name in aim.selected,
            is_recorded=name in aim.recorded,
            is_published=name in aim.published,
            purge=purge_of(subject.federated, name),
            waits_for_removal=", ".join(sorted(removed_first(subject.federated) - {name})),
            is_kept=is_kept(subject.type_.resource),
            objection=objection(evidence_of(subject.federated, cluster, is_recorded=name in aim.recorded)),
            owner=aim.owner,
            observed=observed,
            sight=self._member_objects.sight(key, is_ready=cluster.ready),
            kind=describe_kind(subject.type_.resource),
            live=live,
            record=record,
            is_in_flight=self._executor.is_pending(key),
            is_absent=is_absent,
            finished=finished,
            started=started,
            removal=self._removal(aim, live),
            is_scalable=bool(subject.type_.paths.replicas_spec) and not subject.is_retained,
            step=step,
            wait=aim.waits.get(name),
            find_content=partial(
                compute_content,
                subject,
                key,
                live,
                record,
                step=step,
                is_departing=name not in aim.selected,
                is_stepped=bool(aim.steps),
            ),
            find_settled=partial(settled_status, subject, name, live, aim.waits.get(name), finished),
            find_held=partial(self._admission.held, aim.key, subject, name),
            find_earlier=partial(self._find_earlier, key, cluster),
            find_missing=partial(self._find_missing, aim, name, live),
            find_drifted=partial(self._find_drifted, subject, live),
            find_unpaid=partial(_find_unpaid, subject, name),
            find_pause=partial(self._find_pause, key),
            freeze=None if live is None or aim.is_deleted else self._find_freeze(aim, name),
            suspension=self._find_suspension(aim, name, live),
        )

    def _finished(
        self, subject: Subject, live: Object | None, record: MemberRecord, known: Mapping[str, Any] | None
    ) -> Mapping[str, Any] | None:
        """Return the evidence that the object has finished: from the object itself, or from when it left.

        An object that has not finished refutes evidence of an earlier one.
        """
        if live is None:
            left = record.finished
            return left if known is None and left is not None and left["run"] == run_of(subject.federated) else known
        resource = subject.type_.resource
        if not is_finished((resource.group, resource.kind), live) or not is_managed(live):
            return None
        return evidence(subject.federated, live, self._clock.now()) if known is None else known

    def _removal(self, aim: Aim, live: Object | None) -> Removal:
        """Return how the object leaves: a placement that changes deletes it, also one with an orphan annotation."""
        if not aim.is_deleted or live is None:
            return Removal.DELETE
        restoration = self._tombstones.restoration
        if restoration and restoration.is_outdated(aim.subject.federated) and restoration.is_forgotten(live):
            return Removal.ORPHAN  # an object that was created again after the host's backup
        return decide_removal(aim.subject.annotations, live["metadata"].get("annotations") or {})

    def _find_earlier(self, key: MemberKey, cluster: ClusterState) -> str:
        record = self._tombstones.pending(key, cluster.uid)
        return "" if record is None else record.record_name

    def _find_missing(self, aim: Aim, cluster: str, live: Object | None, content: Content) -> Hold | None:
        assert content.write is not None
        desired = content.write.desired.object
        return self._followers.wait(aim.key, aim.subject.federated, cluster, desired, live)

    def _find_drifted(self, subject: Subject, live: Object | None, content: Content) -> str:
        if subject.drift_mode is DriftMode.REPAIR or content.write is None or live is None:
            return ""
        return describe_drifted(drifted_fields(to_applied_configuration(content.write, live), live))

    def _find_freeze(self, aim: Aim, cluster: str) -> Hold | None:
        frozen = self._freezes.find_update(aim.subject.federated, cluster)
        return None if frozen is None else Hold(frozen.message, self._freezes.left_s(frozen))

    def _find_suspension(self, aim: Aim, cluster: str, live: Object | None) -> Hold | None:
        subject = aim.subject
        if aim.is_deleted or cluster not in aim.selected:
            template = subject.federated["spec"]["template"]
            suspended = self._suspensions.find(template, aim.key.namespace, cluster, only_cluster_wide=True)
        else:
            compare = partial(_compare, subject, cluster, live)
            suspended = self._suspensions.find_for_write(subject.federated, cluster, compare)
        return None if suspended is None else Hold(suspended.message, self._suspensions.left_s(suspended))

    def _find_pause(self, key: MemberKey) -> Pause | None:
        left_s, drift = self._records.pause_left_s(key), self._records.drift(key)
        return None if left_s <= 0 or drift is None else Pause(left_s, drift)


def _find_unpaid(subject: Subject, cluster: str) -> str:
    if CLAIM.name not in subject.annotations:
        return ""  # in most namespaces
    if not any(names.GLOBAL_SCHEDULER in stage for stage in subject.type_.controllers):
        return ""  # nothing grants it a claim
    use = use_in(subject.renderer.render(cluster).object, subject.federated, subject.type_)
    return find_unpaid(subject.federated, cluster, use)


def _compare(subject: Subject, cluster: str, live: Object | None) -> tuple[Object | None, Object | None]:
    """Return the desired and the live object."""
    try:
        return subject.renderer.render(cluster).object, live
    except RenderError:
        return None, live
