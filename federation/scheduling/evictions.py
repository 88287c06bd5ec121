"""The limits of moves away from lost and drained clusters, and of returns, over all objects. Pure.

Of the moves that a decision wants, `permits/failover.py` says which go on now. What left is recorded in annotation
`names.EVICTION`, the memory after a restart (docs/reference/failover.md).
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Protocol

from federation.api import names
from federation.apimachinery import conditions
from federation.apimachinery.durations import parse_duration
from federation.apimachinery.resources import Object
from federation.planning.failover.completion import Completion, missing_clusters, plan_completion
from federation.planning.failover.evictingclusters import EvictingClusters
from federation.planning.failover.evictionrecord import eviction_record
from federation.planning.failover.failoveroptions import FailoverOptions
from federation.planning.failover.pace import Pace
from federation.planning.failover.returning import Returns, may_return, plan_returns
from federation.planning.failover.tolerance import AccessModes, FailoverRules, Tolerance, fixed_volumes_of, tolerance_of
from federation.planning.federatedobject.placements import Name, departed_clusters, effective_placement
from federation.scheduling.annotationoverrides import overrides_from_annotations
from federation.scheduling.attempt import SchedulingAttempt
from federation.scheduling.jobqueues import Phase, admission_of


class Presence(Protocol):
    """Since when this process looks at the clusters again after it stood still."""

    @property
    def back_at(self) -> datetime | None:
        """When it came back, None if it never stood still."""
        ...


def condition_of(cluster: Object | None) -> Any:
    """Return the condition EvictionAllowed of a cluster, None without one."""
    return conditions.find(((cluster or {}).get("status") or {}).get("conditions"), names.EVICTION_ALLOWED)


def _nothing() -> None:
    """Do nothing: a plan has no controller of halts."""


class Evictions:
    """The clusters that replicas leave, the pace, and the objects that wait.

    `is_settled` is for plans, which show what is decided in the end: what only passes with time keeps nothing.
    """

    def __init__(
        self,
        clusters: EvictingClusters,
        options: FailoverOptions,
        presence: Presence | None = None,
        *,
        is_settled: bool = False,
    ) -> None:
        self.clusters = clusters
        self.options = options
        self.pace: Pace[Name] = Pace(options.pace)
        self.is_settled = is_settled
        self.halted: set[Name] = set()
        """Objects that wait for the end of a halt, or for a ClusterDisruptionBudget."""
        self.disrupted: set[Name] = set()
        """Objects that wait for a PodDisruptionBudget."""
        self.changed: Callable[[], None] = _nothing
        """Is called when halts or turns may have changed."""
        self._began_at: datetime | None = None
        self._presence = presence

    def on_cluster(self, old: Object | None, new: Object | None) -> None:
        """Observe a change of a cluster, which may be lost, drained, or was so."""
        self.clusters.on_cluster(old, new)
        if self.clusters.by_name or any(condition_of(cluster) is not None for cluster in (old, new)):
            self.changed()

    def on_budget(self, old: Object | None, new: Object | None) -> None:  # noqa: ARG002  # a handler's signature
        """Observe a change of a ClusterDisruptionBudget."""
        self.clusters.on_budget()
        if self.clusters.by_name:
            self.changed()

    def on_rollout(self, old: Object | None, new: Object | None) -> None:
        """Observe a change of the clusters that waves of rollouts are changing."""
        if self.clusters.on_rollout(old, new) and self.clusters.by_name:
            self.changed()

    def after_move(self) -> None:
        """Give the next ones their turn."""
        if self.pace.waiting:
            self.changed()

    def begin(self, now: datetime) -> None:
        """Note that this process moves replicas from now on."""
        self._began_at = now

    @property
    def began_at(self) -> datetime | None:
        """Since when the clusters had a chance to answer, None for ever."""
        back_at = None if self._presence is None else self._presence.back_at
        return max(filter(None, (self._began_at, back_at)), default=None)

    def remember(self, key: Name, federated: Mapping[str, Any], now: datetime) -> None:
        """Count what left clusters before the restart."""
        for at, count in eviction_record(federated).moves:
            self.pace.remember(key, key[0], count, min(at, now).timestamp())

    def withdraw(self, key: Name) -> None:
        """Forget the moves of an object that stays where it is."""
        self.pace.withdraw(key)
        self.halted.discard(key)
        self.disrupted.discard(key)

    def waiting_for_pod_budgets(self, namespace: str) -> list[Name]:
        """Return the objects of a namespace that wait for one of its PodDisruptionBudgets."""
        return sorted(key for key in self.disrupted if key[0] == namespace)

    def returns(self, attempt: SchedulingAttempt, modes: AccessModes, now: datetime) -> Returns:
        """Return what may return to clusters that were lost or drained."""
        federated, policy = attempt.federated, attempt.policy
        record = eviction_record(federated)
        if not record.left or policy is None or policy.rescheduling.is_sticky or not _may_return(attempt, modes):
            return Returns()
        rules, migrates = policy.migration.failback, policy.migration.is_on
        replicas = attempt.federated_type.replicas(federated["spec"]["template"])
        return plan_returns(
            record,
            self.clusters.cluster,
            departed_clusters(federated),
            now,
            batch=rules.batch_of(replicas or 0),
            stable_s=parse_duration(rules.stable_for) if migrates else self.options.stable_s,
            interval_s=self.options.interval_s,
        )

    def completion(self, attempt: SchedulingAttempt, modes: AccessModes, now: datetime) -> Completion:
        """Return whether a placement that lacks clusters that could not have the object is to be completed now."""
        federated, policy = attempt.federated, attempt.policy
        marks = missing_clusters(federated)
        if not marks or policy is None or policy.rescheduling.is_sticky or policy.rescheduling.is_disabled:
            return Completion()
        template = federated["spec"]["template"]
        if fixed_volumes_of(template, modes):
            return Completion()
        kind = (str(template["apiVersion"]), str(template["kind"]))
        # Copies are added and nothing moves, so they need no cluster that has been stable for a while.
        is_copied = all(count is None for count in attempt.current().values())
        return plan_completion(
            marks, self.clusters.cluster, kind, now, stable_s=0.0 if is_copied else self.options.stable_s
        )


def _may_return(attempt: SchedulingAttempt, modes: AccessModes) -> bool:
    federated, policy = attempt.federated, attempt.policy
    assert policy is not None  # the caller has checked
    overriding = overrides_from_annotations(federated["metadata"].get("annotations") or {})
    return may_return(
        policy.failover.returning,
        has_state=bool(tolerance(attempt, policy.failover, modes).state),
        clusters=len(effective_placement(federated)),
        clusters_max=overriding.get("max_clusters", policy.max_clusters),
    )


def tolerance(attempt: SchedulingAttempt, rules: FailoverRules, modes: AccessModes) -> Tolerance:
    """Return whether the object may leave a lost or drained cluster."""
    admission = admission_of(attempt.federated)
    is_requeued = admission is not None and admission.phase is Phase.ADMITTED
    return tolerance_of(attempt.federated["spec"]["template"], rules, modes, is_requeued=is_requeued)
