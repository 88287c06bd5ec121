"""Plan all subsets of a UnitedDeployment: what each workload should be, and what its status says. Pure.

The steps: decide which subsets are unschedulable, divide the replicas, limit the partitions. `allocation.py`,
`schedulability.py` and `reservation.py` have the rules.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from federation.apimachinery.clock import parse_rfc3339
from federation.apimachinery.conditions import Condition, find, set_condition
from federation.features.uniteddeployment.names import (
    REASON_SUBSET_CLUSTER_OBSERVED,
    REASON_SUBSET_CLUSTER_UNREACHABLE,
    SUBSET_REACHABLE,
    UNITED_DEPLOYMENT_UPDATED,
)
from federation.features.uniteddeployment.rules.allocation import SubsetState, allocate
from federation.features.uniteddeployment.rules.reservation import (
    Revision,
    SubsetReservation,
    decide_reservations,
    mark_scaled_up,
)
from federation.features.uniteddeployment.rules.schedulability import (
    Schedulability,
    decide_schedulability,
    is_schedulable_by,
)
from federation.features.uniteddeployment.rules.strategy import Strategy, strategy_of
from federation.features.uniteddeployment.rules.subsetpods import Pod, soonest
from federation.features.uniteddeployment.rules.subsettemplate import Target
from federation.features.uniteddeployment.rules.subsetvolumes import replicas_kept, without_data
from federation.features.uniteddeployment.rules.subsetworkload import SubsetWorkload, next_partitions
from federation.features.uniteddeployment.rules.unitedstatus import SubsetOutcome, start_conditions
from federation.features.uniteddeployment.rules.workloadkinds import WorkloadKind


@dataclass(frozen=True, slots=True)
class ObservedSubset:
    """The workload of a subset and its pods."""

    workload: SubsetWorkload
    pods: Sequence[Pod] = ()
    data: AbstractSet[int] | None = frozenset()
    """The ordinals whose volumes have data; None while they are not known, so that all may have."""


@dataclass(frozen=True, slots=True)
class Current:
    """The input of a plan: the stored status, the present conditions and revision, and the workloads."""

    status: Mapping[str, Any]
    conditions: Sequence[Condition]
    revision: str
    subsets: Mapping[str, ObservedSubset]
    unreachable: Mapping[str, str] = field(default_factory=dict)
    """Why the clusters of a subset cannot be observed, by subset; inside one cluster there are none."""


@dataclass(frozen=True, slots=True)
class SubsetPlan:
    """The plan for all subsets of the spec, by name."""

    targets: Mapping[str, Target]
    outcomes: Mapping[str, SubsetOutcome]
    pod_labels: Mapping[str, str] = field(default_factory=dict)
    """New values of the reserved label, by pod name."""
    requeue_after_s: float | None = None


def plan_subsets(
    spec: Mapping[str, Any], kind: WorkloadKind, current: Current, now: datetime, *, is_strict: bool = False
) -> SubsetPlan:
    """Plan the subsets of a defaulted spec; AllocationError when their counts do not fit together.

    No decision follows from the pods of unreachable subsets: they stay schedulable or unschedulable.
    """
    strategy = strategy_of(spec)
    conditions = {
        name: _mark_reachable(stored, current.unreachable.get(name, ""), now)
        for name, stored in start_conditions(spec, current.status, now).items()
    }
    known = {name: observed for name, observed in current.subsets.items() if name in conditions}
    if strategy.reserves_pods:
        return _plan_reserving(spec, kind, current, strategy, conditions, known, now)
    decisions: dict[str, Schedulability] = {}
    if strategy.is_adaptive:
        decisions = {
            name: decide_schedulability(
                conditions[name], _replica_status(each.workload), without_data(each.pods, each.data), strategy, now
            )
            for name, each in known.items()
            if name not in current.unreachable
        }
    states = {name: SubsetState(is_reachable=False) for name in current.unreachable} | {
        name: SubsetState(
            replicas=each.workload.replicas,
            ready=replicas_kept(each.workload.replicas, each.workload.ready, each.data),
            is_schedulable=name not in decisions or decisions[name].is_schedulable,
            is_reachable=name not in current.unreachable,
        )
        for name, each in known.items()
    }
    allocation = allocate(spec, states, is_strict=is_strict)
    partitions = _partitions(spec, kind, allocation)
    return SubsetPlan(
        targets={name: Target(current.revision, replicas, partitions[name]) for name, replicas in allocation.items()},
        outcomes={
            name: SubsetOutcome(
                replicas, partitions[name], decisions[name].conditions if name in decisions else conditions[name]
            )
            for name, replicas in allocation.items()
        },
        requeue_after_s=soonest(decision.requeue_after_s for decision in decisions.values()),
    )


def _plan_reserving(
    spec: Mapping[str, Any],
    kind: WorkloadKind,
    current: Current,
    strategy: Strategy,
    conditions: Mapping[str, list[Condition]],
    known: Mapping[str, ObservedSubset],
    now: datetime,
) -> SubsetPlan:
    updated = find(current.conditions, UNITED_DEPLOYMENT_UPDATED) or {}
    revision = Revision(current.revision, parse_rfc3339(updated.get("lastTransitionTime")))
    stored = {entry.get("name"): entry for entry in current.status.get("subsetStatuses") or ()}
    decisions = {
        name: SubsetReservation(
            conditions[name],
            (stored.get(name) or {}).get("reservedPods") or 0,
            was_schedulable=is_schedulable_by(conditions[name]),
        )
        if name in current.unreachable
        else decide_reservations(conditions[name], each.pods, revision, strategy, now, replicas=each.workload.replicas)
        for name, each in known.items()
    }
    states = {name: SubsetState(is_reachable=False) for name in current.unreachable} | {
        name: SubsetState(
            replicas=known[name].workload.replicas,
            ready=known[name].workload.ready,
            reserved=decision.reserved,
            is_schedulable=decision.is_schedulable,
            was_schedulable=decision.was_schedulable,
            is_reachable=name not in current.unreachable,
        )
        for name, decision in decisions.items()
    }
    allocation = allocate(spec, states)
    partitions = _partitions(spec, kind, allocation)
    targets: dict[str, Target] = {}
    outcomes: dict[str, SubsetOutcome] = {}
    for name, replicas in allocation.items():
        decision = decisions.get(name) or SubsetReservation(conditions[name])
        workload = known[name].workload if name in known else None
        unavailable = None
        if workload is not None and not decision.is_schedulable:
            unavailable = max(0, workload.replicas - workload.ready + decision.overdue_updates)
            decided = decision.conditions
        else:
            decided = mark_scaled_up(decision, workload.replicas if workload is not None else 0, replicas, now)
        targets[name] = Target(current.revision, replicas, partitions[name], unavailable)
        outcomes[name] = SubsetOutcome(replicas, partitions[name], decided, decision.reserved)
    return SubsetPlan(
        targets,
        outcomes,
        {pod: label for decision in decisions.values() for pod, label in (decision.labels or {}).items()},
        soonest(decision.requeue_after_s for decision in decisions.values()),
    )


def _mark_reachable(conditions: list[Condition], problem: str, now: datetime) -> list[Condition]:
    """Return the conditions with Reachable; a subset that was never unreachable has none."""
    if not problem and find(conditions, SUBSET_REACHABLE) is None:
        return conditions
    return set_condition(
        conditions,
        type_=SUBSET_REACHABLE,
        status="False" if problem else "True",
        reason=REASON_SUBSET_CLUSTER_UNREACHABLE if problem else REASON_SUBSET_CLUSTER_OBSERVED,
        message=problem,
        now=now,
    )


def _replica_status(workload: SubsetWorkload) -> dict[str, int]:
    return {"replicas": workload.status_replicas, "readyReplicas": workload.ready}


def _partitions(spec: Mapping[str, Any], kind: WorkloadKind, allocation: Mapping[str, int]) -> dict[str, int]:
    if not kind.partition_path:
        return dict.fromkeys(allocation, 0)
    return next_partitions(spec.get("updateStrategy"), allocation)
