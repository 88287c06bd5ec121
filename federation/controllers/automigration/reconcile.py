"""The steps for one federated object: observe every member, revise the estimates, write them when they changed.

The estimates are stored in the annotation `auto-migration-info`; their start times are in memory only. A change that
the scheduler must act on is written at once; changed pod counts alone, which change with every pod of a rollout, are
written after a delay. Between events the object is requeued for the next time at which a result can change: a pending
pod becomes unschedulable, evidence has lasted long enough, or a trial has taken too long.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from federation.api import names
from federation.api.federatedtype import FederatedType
from federation.apimachinery import conditions
from federation.apimachinery.durations import parse_duration
from federation.apimachinery.jsonobject import parse_object
from federation.apimachinery.resources import DEPLOYMENTS, Object
from federation.controllers.automigration.names import EVENT_AUTO_MIGRATION_INFO_UPDATED
from federation.controllers.automigration.observation import MemberObservation, Observer, Shapes, Workload
from federation.planning.automigration.capacityestimate import (
    TrialRules,
    find_openings,
    next_change_s,
    revise_estimates,
)
from federation.planning.automigration.migrationinfo import (
    Failback,
    MigrationInfo,
    describe_changes,
    failback_from_text,
    from_text,
    to_text,
)
from federation.planning.automigration.replicasets import template_hash
from federation.planning.clusters.clusterresources import Collectors
from federation.runtime.controller import DONE, Key, Result
from federation.runtime.events import NORMAL
from federation.runtime.host import Host

Observed = Mapping[str, MemberObservation | None]
"""Observations by cluster, None for a cluster that gave none."""


@dataclass(frozen=True, slots=True)
class MigrationOptions:
    """Times of auto-migration."""

    observe_delay_s: float = 1.0
    """From an event of a workload's member objects or pods to its reconcile: a rollout is many events."""
    capacity_delay_s: float = 2.0
    """From a change of a member's nodes or pods to the reconcile of workloads that wait for capacity there."""
    counts_delay_s: float = 10.0
    """How long changed counts of scheduled pods may stay unwritten when nothing else changed."""
    unobserved_retry_s: float = 10.0
    """When to observe a member again that gave no observation."""
    openings_s: float = 10.0
    """How long a cluster must have free capacity before missing replicas are divided again: the scheduler's resource
    data of the cluster is a few seconds old."""
    trial_s: float = 600.0
    """How long returned replicas may take to run; a Deployment's default progress deadline."""
    failback: Failback = field(default_factory=lambda: Failback(stable_s=300.0, batch=1))
    """For federated objects without a failback annotation."""


@dataclass(slots=True)
class _Memory:
    """The estimates of one object, with times."""

    info: MigrationInfo
    differs_since_s: float | None = None
    """Since when the counts differ from the annotation."""
    open_since_s: dict[str, float] = field(default_factory=dict)
    """Since when clusters outside the placement have had free capacity for missing replicas."""
    shapes: Shapes = field(default_factory=dict)
    """Pod shapes per cluster, for the current template."""


class Reconciler:
    """Updates the estimates of one federated object per call. `watch` receives the clusters that it depends on."""

    def __init__(
        self,
        host: Host,
        collectors: Collectors,
        options: MigrationOptions,
        *,
        watch: Callable[[Key, frozenset[str]], None],
        cluster: Callable[[str], Object | None],
    ) -> None:
        self._objects = host.objects
        self._members = host.members
        self._recorder = host.recorder
        self._clock = host.clock
        self._presence = host.presence
        self._options = options
        self._watch = watch
        self._cluster = cluster
        self._memory: dict[Key, _Memory] = {}
        self._observer = Observer(host.members, collectors, self._is_ready, host.clock)

    async def reconcile(self, key: Key) -> Result:
        """Observe the members, revise the estimates and write at most one patch."""
        federated = self._objects.get(key)
        if federated is None or federated["metadata"].get("deletionTimestamp"):
            self._forget(key)
            return DONE
        annotations = federated["metadata"].get("annotations") or {}
        type_, threshold_s = self.type_of(federated), threshold_of(annotations)
        if type_ is None or threshold_s is None:
            self._forget(key)
            if names.AUTO_MIGRATION_INFO in annotations:
                await self._patch(key, federated, None)
            return DONE
        present = annotations.get(names.AUTO_MIGRATION_INFO)
        memory = self._memory.setdefault(key, _Memory(from_text(present)))
        before = memory.info.for_template(template_hash(federated["spec"]["template"]["spec"]["template"]))
        if before.template != memory.info.template:
            memory.shapes.clear()
        workload = Workload(federated, type_, threshold_s, memory.shapes)
        observed = self._observe(workload, before)
        rules = self._trial_rules(annotations, memory.info, observed, threshold_s)
        now_s = self._presence.present_s
        memory.info = after = self._revise(before, observed, rules, now_s, memory, workload.total)
        unobserved = {cluster for cluster, found in observed.items() if found is None}
        self._watch(key, frozenset(observed if _has_unschedulable(observed) else unobserved | after.estimates.keys()))
        wait_s = await self._write(key, federated, memory, before, workload.placed)
        waits_s = [
            since_s + self._options.openings_s - now_s
            for cluster, since_s in memory.open_since_s.items()
            if cluster not in after.openings
        ]
        if wait_s is not None:
            waits_s.append(wait_s)
        return Result(requeue_after_s=self._next_s(after, observed, rules, now_s, waits_s))

    def type_of(self, federated: Object) -> FederatedType | None:
        """Return the type of a Deployment with auto-migration, else None: pods of other kinds are not counted."""
        type_ = self._objects.type_of(federated)
        if type_ is None or not type_.auto_migration or type_.resource != DEPLOYMENTS:
            return None
        return type_

    # -- the steps

    def _observe(self, workload: Workload, info: MigrationInfo) -> Observed:
        """Observe every member, with free capacity where there is an estimate, or everywhere if pods do not fit."""
        observed = {
            cluster: self._observer.observe(cluster, workload, has_estimate=cluster in info.estimates)
            for cluster in self._members.clusters
        }
        if not _has_unschedulable(observed):
            return observed
        return {cluster: self._observer.observe(cluster, workload, has_estimate=True) for cluster in observed}

    def _trial_rules(
        self, annotations: Mapping[str, str], info: MigrationInfo, observed: Observed, threshold_s: float
    ) -> TrialRules:
        """Return the policy's failback rules; with unschedulable pods, failback waits no longer than the threshold."""
        failback = failback_from_text(annotations.get(names.FAILBACK), self._options.failback)
        stable_s = min(failback.stable_s, threshold_s) if _has_unschedulable(observed) else failback.stable_s
        present = annotations.get(names.AUTO_MIGRATION_INFO)
        is_answered = present == to_text(info) and _scheduled_info(annotations) == present
        return TrialRules(stable_s, self._options.trial_s, failback.batch, is_answered)

    def _revise(
        self,
        before: MigrationInfo,
        observed: Observed,
        rules: TrialRules,
        now_s: float,
        memory: _Memory,
        total: int,
    ) -> MigrationInfo:
        """Return the new information, without clusters that do not exist any more."""
        known = {cluster: estimate for cluster, estimate in before.estimates.items() if self._cluster(cluster)}
        observations = {cluster: found.observation for cluster, found in observed.items() if found is not None}
        unobserved = {c for c in before.scheduled if observed.get(c) is None and self._cluster(c)}
        scheduled = {cluster: count for cluster, count in before.scheduled.items() if cluster in unobserved}
        ready = {cluster: count for cluster, count in before.ready.items() if cluster in unobserved}
        for cluster, found in observed.items():
            if found is not None and found.scheduled is not None and self._cluster(cluster):
                scheduled[cluster] = found.scheduled
                if found.observation.ready != found.scheduled:
                    ready[cluster] = found.observation.ready
        estimates = revise_estimates(known, observations, now_s, rules)
        candidates = find_openings(estimates, observations, total)
        memory.open_since_s = {cluster: memory.open_since_s.get(cluster, now_s) for cluster in candidates}
        lasting = {c for c, since_s in memory.open_since_s.items() if now_s - since_s >= self._options.openings_s}
        openings = {cluster: candidates[cluster] for cluster in lasting}
        return MigrationInfo(estimates, scheduled, before.template, openings, ready)

    async def _write(
        self, key: Key, federated: Object, memory: _Memory, before: MigrationInfo, placed: Mapping[str, int]
    ) -> float | None:
        """Write the annotation when it is due; return the seconds until it is due, None when it is up to date."""
        present = (federated["metadata"].get("annotations") or {}).get(names.AUTO_MIGRATION_INFO)
        text, written, now_s = to_text(memory.info), from_text(present), self._clock.monotonic()
        if text == present:
            memory.differs_since_s = None
            return None
        if to_text(memory.info.without_counts()) == to_text(written.without_counts()):
            since_s = memory.differs_since_s = now_s if memory.differs_since_s is None else memory.differs_since_s
            if (wait_s := since_s + self._options.counts_delay_s - now_s) > 0:
                return wait_s
        await self._patch(key, federated, text)
        memory.differs_since_s = None
        if message := describe_changes(before, memory.info, placed):
            self._recorder.event(federated, NORMAL, EVENT_AUTO_MIGRATION_INFO_UPDATED, message)
        return None

    async def _patch(self, key: Key, federated: Object, text: str | None) -> None:
        await self._objects.patch(key, federated, {"metadata": {"annotations": {names.AUTO_MIGRATION_INFO: text}}})

    def _next_s(
        self,
        info: MigrationInfo,
        observed: Observed,
        rules: TrialRules,
        now_s: float,
        waits_s: list[float],
    ) -> float | None:
        """Return the seconds until a result can change without an event, None if it cannot."""
        for found in observed.values():
            if found is None:
                waits_s.append(self._options.unobserved_retry_s)
            elif found.next_s is not None:
                waits_s.append(found.next_s)
        due = (next_change_s(estimate, rules) for estimate in info.estimates.values())
        waits_s += [due_s - now_s for due_s in due if due_s is not None]
        return min((max(0.001, wait_s) for wait_s in waits_s), default=None)

    def _is_ready(self, name: str) -> bool:
        status = (self._cluster(name) or {}).get("status") or {}
        return conditions.is_true(status.get("conditions"), names.CLUSTER_READY)

    def _forget(self, key: Key) -> None:
        self._memory.pop(key, None)
        self._watch(key, frozenset())


def threshold_of(annotations: Mapping[str, str]) -> float | None:
    """Return the seconds after which a pending pod is unschedulable, None when auto-migration is off."""
    try:
        return parse_duration(annotations[names.POD_UNSCHEDULABLE_THRESHOLD])
    except (KeyError, ValueError):
        return None


def _has_unschedulable(observed: Observed) -> bool:
    return any(found is not None and found.observation.unschedulable for found in observed.values())


def _scheduled_info(annotations: Mapping[str, str]) -> Any:
    """Return the auto-migration information behind the scheduler's last decision."""
    return (parse_object(annotations.get(names.SCHEDULING_TRIGGERS, "")) or {}).get("autoMigrationInfo")
