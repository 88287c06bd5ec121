"""The steps of a divided workload: reads its clusters, asks `planning/steps` for the next steps, and records waits.

Every reconcile plans again from the newest known member objects. In memory are the last plans of workloads that need
further steps, and in the records of member objects the writes that members have not observed yet. When the status of a
member object changes, its workload is requeued if the plan is another one now. After a restart a member that has not
observed its newest generation counts as one that may be updating.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial

from federation.api import names
from federation.api.federatedtype import DriftMode
from federation.apimachinery.resources import POD_DISRUPTION_BUDGETS, Object
from federation.delivery.members.depot import Depot
from federation.delivery.members.propagation import Aim
from federation.delivery.rules.content import Subject
from federation.delivery.rules.corrections import is_correction
from federation.delivery.rules.memberrecord import MemberKey
from federation.delivery.rules.plan import is_management_disabled
from federation.delivery.rules.status import OBSTRUCTED, ClusterStatus, clusters_of
from federation.guard.suspensions import Holds
from federation.planning.changehold import Hold
from federation.planning.failover.application import PurgeMode, purge_of
from federation.planning.failover.podbudgets import unavailable_max
from federation.planning.federatedobject.placements import arriving_clusters
from federation.planning.rendering.memberobject import Rendered, RenderError
from federation.planning.steps.copies import awaited_clusters, plan_copies
from federation.planning.steps.memberstate import (
    is_observed,
    is_status_change,
    replicas_of,
    to_copy,
    to_target,
    with_status,
)
from federation.planning.steps.steps import UNKNOWN_PODS, Step, Target, plan_steps
from federation.planning.steps.strategy import Strategy, strategy_of, within
from federation.planning.steps.waveapproval import approved_revisions
from federation.planning.waves.rolloutpart import rollout_part
from federation.planning.waves.waverules import is_approval_due
from federation.runtime.controller import Key

_WHOLE = (PurgeMode.DIRECTLY, PurgeMode.NEVER)


@dataclass(slots=True)
class _Waiting:
    """The last plan of a workload that needs further steps, with its inputs. Targets follow the members' statuses."""

    plan: Callable[[Collection[Target]], dict[str, Step]]
    targets: dict[str, Target]
    steps: dict[str, Step]


_Waits = dict[str, tuple[ClusterStatus, str]]
Steps = Mapping[str, Step]
Waits = Mapping[str, tuple[ClusterStatus, str]]
"""The status and message of clusters whose step is not the last one."""


class Rollouts:
    """Plans the steps of divided workloads."""

    def __init__(self, depot: Depot, holds: Holds) -> None:
        self._freezes = holds.freezes
        self._suspensions = holds.suspensions
        self._objects = depot.host.objects
        self._clusters = depot.clusters
        self._member_objects = depot.member_objects
        self._executor = depot.executor
        self._records = depot.records
        self._waiting: dict[Key, _Waiting] = depot.kept.by_object({})

    def may_allow_step(self, key: Key, member: MemberKey, old: Object | None, new: Object) -> bool:
        """Return whether a change of a member object may allow steps that the last plan has not.

        A rolling update reports several statuses for each pod, and hardly any allows a step: a plan costs much less
        than the reconcile that would make it.
        """
        waiting = self._waiting.get(key)
        if waiting is None:
            return False
        before = waiting.targets.get(member.cluster)
        if old is None or before is None or before.pods == UNKNOWN_PODS or not is_status_change(old, new):
            return True
        if self._executor.is_pending(member):
            return True  # Until its end is known, nothing counts as observed: the reconcile looks again.
        sent = self._records.get(member).sent
        target = with_status(before, member.resource, new, None if sent is None else sent.unobserved)
        if target == before:
            return False
        waiting.targets[member.cluster] = target
        return waiting.plan(waiting.targets.values()) != waiting.steps

    def waiting_in(self, namespace: str) -> list[Key]:
        """Return the objects of a namespace whose steps are not the last ones."""
        return sorted(key for key in self._waiting if key.namespace == namespace)

    def observe(self, key: MemberKey, obj: Object | None) -> None:
        """Forget what was sent to a member whose controller has observed it, None for an object that is gone."""
        record = self._records.get(key)
        sent = record.sent
        if sent is None or self._executor.is_pending(key):
            return
        annotations = {} if obj is None else obj["metadata"].get("annotations") or {}
        is_there = annotations.get(names.TEMPLATE_HASH) == sent.hash
        if (is_there or not record.is_unconfirmed) and (obj is None or is_observed(obj)):
            self._records.record_sent(key, None)

    def plan(self, aim: Aim) -> tuple[Steps, Waits]:
        """Return the steps of all clusters, and the waits of those whose step is not the last one."""
        steps, waits, waiting = self._plan(aim)
        if waiting is None:
            self._waiting.pop(aim.key, None)
        else:
            self._waiting[aim.key] = waiting
        return steps, waits

    def preview(self, aim: Aim) -> tuple[Steps, Waits]:
        """Return the same without taking note of it."""
        steps, waits, _ = self._plan(aim)
        return steps, waits

    def _plan(self, aim: Aim) -> tuple[Steps, Waits, _Waiting | None]:
        subject = aim.subject
        if not subject.renderer.scheduled:
            return self._keep_copies(aim, *self._hold_copies(aim))
        found = self._targets(aim)
        replicas, strategy = replicas_of(subject.federated["spec"]["template"]), self._strategy(aim, found)
        planned, is_waiting = plan_steps(replicas, strategy, found), False
        steps: dict[str, Step] = {}
        waits: dict[str, tuple[ClusterStatus, str]] = {}
        for target in found:
            step, cluster = planned[target.cluster], target.cluster
            if not target.is_answering or self._is_suspended(aim, cluster) or _is_stopped(aim, cluster):
                continue  # nothing is written there
            if (wait := _wait_of(target, step)) is not None:
                frozen = None if step.gets_template else self._frozen(aim, cluster)
                waits[cluster] = wait if frozen is None else (wait[0], frozen.message)
            is_waiting = is_waiting or wait is not None or step.limits is not None
            if not target.is_steered and not target.is_departing and (target.exists or step.gets_template):
                # Retention writes the replicas of the member, or those of a user are in the rendered object.
                step = replace(step, replicas=replicas_of(subject.renderer.render(cluster).object))
            steps[cluster] = step
        if not is_waiting:
            return steps, waits, None
        targets = {target.cluster: target for target in found}
        return steps, waits, _Waiting(partial(plan_steps, replicas, strategy), targets, planned)

    def _strategy(self, aim: Aim, targets: list[Target]) -> Strategy:
        """Return the user's strategy; while one of the clusters is drained, within the PodDisruptionBudgets."""
        template = aim.subject.federated["spec"]["template"]
        strategy = strategy_of(aim.subject.type_.resource, template)
        states = (self._clusters.get(target.cluster) for target in targets)
        if not any(state is not None and state.is_drained for state in states):
            return strategy
        found = self._objects.of_kind(POD_DISRUPTION_BUDGETS.group_kind, aim.key.namespace)
        replicas = replicas_of(template)
        most = unavailable_max((each["spec"]["template"] for each in found), template, replicas)
        return strategy if most is None else within(strategy, replicas, most)

    def _hold_copies(self, aim: Aim) -> tuple[dict[str, Step], _Waits]:
        """Return the steps of clusters whose copy of an object with waves keeps its content, or waits for one."""
        steps: dict[str, Step] = {}
        waits: dict[str, tuple[ClusterStatus, str]] = {}
        subject = aim.subject
        approved, part = approved_revisions(subject.federated), rollout_part(subject.type_)
        if approved is None or part is None:
            return steps, waits
        needs_approval = is_approval_due(subject.federated)
        for cluster in sorted(aim.selected):
            if self._is_suspended(aim, cluster):
                continue
            _, live = self._member_objects.observe(subject.member_key(cluster), subject.annotations)
            wanted = _wanted(subject, cluster)
            if wanted is None or (live is not None and is_management_disabled(live)):
                continue
            target = to_copy(
                part,
                cluster,
                wanted,
                live,
                resource=subject.type_.resource,
                approved=approved,
                needs_approval=needs_approval,
            )
            if target.is_held and (target.has_old_template or not target.exists):
                replicas = target.wanted if target.exists else 0
                steps[cluster] = step = Step(replicas, gets_template=False)
                if (wait := _wait_of(target, step)) is not None:
                    waits[cluster] = wait
        return steps, waits

    def _keep_copies(self, aim: Aim, steps: dict[str, Step], waits: _Waits) -> tuple[Steps, Waits, _Waiting | None]:
        """Add the steps of copies in clusters that the workload has left, which stay until others serve."""
        federated = aim.subject.federated
        arriving = arriving_clusters(federated) & aim.selected
        leaving = {name for name in aim.recorded - aim.selected if purge_of(federated, name) is None}
        if not arriving or not leaving:
            return steps, waits, None
        found = [target for target in (self._target(aim, name) for name in arriving | leaving) if target is not None]
        planned = plan_copies(arriving, found)
        if not planned:
            return steps, waits, None
        text = f"its copy stays until there is one available in {', '.join(awaited_clusters(arriving, found))}"
        waits |= dict.fromkeys(planned, (ClusterStatus.WAITING_FOR_REPLICAS, text))
        targets = {target.cluster: target for target in found}
        return steps | planned, waits, _Waiting(partial(plan_copies, arriving), targets, planned)

    def _frozen(self, aim: Aim, cluster: str) -> Hold | None:
        """Return the freeze that keeps the pod template in a cluster, None for none."""
        return self._freezes.find_update(aim.subject.federated, cluster)

    def _is_suspended(self, aim: Aim, cluster: str) -> bool:
        """Return whether nothing is written in a cluster. Steps of one that loses the object are a removal."""
        federated = aim.subject.federated
        if cluster not in aim.selected:
            template = federated["spec"]["template"]
            return self._suspensions.find(template, aim.key.namespace, cluster, only_cluster_wide=True) is not None
        compare = partial(self._compare, aim.subject, cluster)
        return self._suspensions.find_for_write(federated, cluster, compare) is not None

    def _compare(self, subject: Subject, cluster: str) -> tuple[Object | None, Object | None]:
        wanted = _wanted(subject, cluster)
        _, live = self._member_objects.observe(subject.member_key(cluster), subject.annotations)
        return (None if wanted is None else wanted.object), live

    def _targets(self, aim: Aim) -> list[Target]:
        found = (self._target(aim, name) for name in aim.selected | aim.recorded)
        return [target for target in found if target is not None]

    def _target(self, aim: Aim, cluster: str) -> Target | None:
        """Return the state of one cluster; None for a cluster without the object that gets none."""
        subject, is_selected = aim.subject, cluster in aim.selected
        if not is_selected and purge_of(subject.federated, cluster) in _WHOLE:
            return None  # its copy leaves as a whole or not at all, and does not count as one that serves
        state, key = self._clusters.get(cluster), subject.member_key(cluster)
        is_answering = state is not None and state.ready and not state.terminating
        observed, live = self._member_objects.observe(key, subject.annotations)
        if live is not None and is_management_disabled(live):
            return None
        wanted = _wanted(subject, cluster) if is_selected else None
        if wanted is None and is_selected:
            return None
        replicas = 0 if wanted is None else replicas_of(wanted.object)
        if is_answering and observed.lookup_failed and (not is_selected or cluster in aim.published):
            return Target(cluster, replicas, pods=UNKNOWN_PODS, is_departing=wanted is None)
        self.observe(key, live)
        is_suspended, is_stopped = self._is_suspended(aim, cluster), _is_stopped(aim, cluster)
        if is_suspended and live is None:
            return None  # nothing is created there, and nothing elsewhere waits for it
        record, is_frozen = self._records.get(key), live is not None and self._frozen(aim, cluster) is not None
        try:
            return to_target(
                subject.type_.resource,
                cluster,
                wanted,
                live,
                approved={} if is_frozen or is_suspended or is_stopped else approved_revisions(subject.federated),
                needs_approval=is_approval_due(subject.federated),
                is_steered=wanted is None or subject.renderer.scheduled.get(cluster) in (None, replicas),
                is_written=wanted is not None and is_correction(record, wanted.hash, live),
                keeps_replicas=subject.is_retained or bool(record.scaler_name),
                is_answering=is_answering,
                is_obstructed=clusters_of(subject.federated).get(cluster, {}).get("status") in OBSTRUCTED,
                unobserved=None if record.sent is None else record.sent.unobserved,
            )
        except (AttributeError, KeyError, TypeError):
            # A malformed answer of one member must not end the reconcile, which serves all members.
            return Target(cluster, replicas, is_answering=False)


def _is_stopped(aim: Aim, cluster: str) -> bool:
    """Return whether the delivery to a cluster stops at drift, so that the updates of others must not wait for it.

    The operation itself refuses the write for as long as the drift lasts. With waves, an approval comes first.
    """
    subject = aim.subject
    if subject.drift_mode is not DriftMode.STOP or approved_revisions(subject.federated) is not None:
        return False
    return (clusters_of(subject.federated).get(cluster) or {}).get("status") == ClusterStatus.DRIFTED


def _wanted(subject: Subject, cluster: str) -> Rendered | None:
    try:
        return subject.renderer.render(cluster)
    except RenderError:
        return None


def _wait_of(target: Target, step: Step) -> tuple[ClusterStatus, str] | None:
    """Return the status and message of a cluster whose step is not the last one, None for the last one."""
    if not target.is_answering:
        return None
    if not step.gets_template and not target.is_departing:
        text = "its update is paused or not approved yet" if target.is_held else "updates of other clusters come first"
        if not target.exists:
            text = "its content is not approved yet"
        return ClusterStatus.WAITING_FOR_UPDATE, text
    if step.replicas == target.wanted:
        return None
    if target.is_departing:
        text = f"it keeps {step.replicas} replicas until as many are available in other clusters"
    elif step.replicas > target.wanted:
        text = f"it keeps {step.replicas} replicas instead of {target.wanted} until others are available"
    else:
        text = f"it has {step.replicas} of {target.wanted} wanted replicas until surplus pods of others are gone"
    return ClusterStatus.WAITING_FOR_REPLICAS, text
