"""Estimate how many replicas of one workload each member can run, and revise the estimates with observations. Pure.

A member that cannot schedule some replicas is estimated to hold the others (KubeAdmiral's `estimatedCapacity`).
KubeAdmiral drops the estimate when the replicas are gone. Here it stays until evidence of more capacity has lasted:

    full ── free capacity, or surplus running replicas ──▶ recovering, since the evidence began
    recovering ──────────── evidence for `stable_s` ─────▶ offered (without evidence: full)
    offered ─────────────── accepted by the scheduler ───▶ on trial (declined: capacity suffices, no estimate)
    on trial ─────────────────────────── all running ────▶ higher estimate: full, or offered while capacity is free
    on trial ──────────── unschedulable, or too slow ────▶ full, and the free capacity seen is refuted
                                                           (those with a node stay on trial)

A failed trial raises the bar: the next one needs more free capacity than the refuted one (`refuted`). So each trial
raises the estimate or the bar, and with constant capacity the decisions converge. Replicas elsewhere are removed only
after those on trial run. The rules are in docs/reference/auto-migration.md.

Decision: docs/decisions/0010-replicas-come-back-on-trial.md
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class CapacityEstimate:
    """The number of replicas that a member can run. Without `offered` it is full, or recovering since `since_s`.

    `since_s` is the monotonic time at which the evidence or the trial began.
    """

    capacity: int
    refuted: int = 0
    """Free capacity that proved unusable; only more than that is evidence."""
    offered: int = 0
    """Replicas beyond the capacity that the scheduler may place."""
    since_s: float | None = None

    @property
    def is_on_trial(self) -> bool:
        """True if the scheduler has accepted the offer."""
        return self.offered > 0 and self.since_s is not None


@dataclass(frozen=True, slots=True)
class Observation:
    """The state of the workload in one member; all zero without a member object.

    `placed` is the scheduler's number of replicas, `desired` the member's. `free` is the number of further replicas
    that fit on the nodes, None when that is unknown.
    """

    placed: int = 0
    desired: int = 0
    ready: int = 0
    pods: int = 0
    unschedulable: int = 0
    free: int | None = None

    @property
    def running(self) -> int:
        """The ready replicas, at most the desired ones."""
        return min(self.ready, self.desired)

    @property
    def schedulable(self) -> int | None:
        """The replicas that can be scheduled, including those without a pod; None when that is all of them."""
        schedulable = max(0, max(self.pods, self.desired) - self.unschedulable)
        return schedulable if self.unschedulable and schedulable < self.desired else None


@dataclass(frozen=True, slots=True)
class TrialRules:
    """The rules for replicas that return to a member."""

    stable_s: float
    """How long evidence of more capacity must last."""
    trial_s: float
    """How long replicas on trial may take to run."""
    batch: int
    """The most replicas on trial at a time; with 0 estimates end but no replica returns."""
    is_answered: bool = False
    """True if the scheduler has decided since the current offers were published."""


def revise_estimates(
    estimates: Mapping[str, CapacityEstimate],
    observations: Mapping[str, Observation],
    now_s: float,
    rules: TrialRules,
) -> dict[str, CapacityEstimate]:
    """Return the estimates after the observations; those of members without an observation stay."""
    # The batch is shared: while one member's replicas are on trial, an offer elsewhere may stand unused.
    is_busy = any(
        estimate.offered
        and (observations[cluster].placed > estimate.capacity if cluster in observations else estimate.is_on_trial)
        for cluster, estimate in estimates.items()
    )
    rules = replace(rules, is_answered=rules.is_answered and not is_busy)
    revised = dict(estimates)
    for cluster, observation in observations.items():
        estimate = _revise(estimates.get(cluster), observation, now_s, rules)
        if estimate is None:
            revised.pop(cluster, None)
        else:
            revised[cluster] = estimate
    return revised


def find_openings(
    estimates: Mapping[str, CapacityEstimate], observations: Mapping[str, Observation], total: int
) -> dict[str, int]:
    """Return how many of the waiting replicas fit into each member that has free capacity.

    A scheduler that divides by capacity passed these members over because they had none, or because it sees less than
    there is; it must schedule again. Where an estimate exists, only its unused part counts. Replicas placed in a member
    without a pod yet take its free capacity first. Replicas that wait although `total` are running need none.
    """
    lacking = total - sum(observation.running for observation in observations.values())
    waiting = min(lacking, sum(observation.unschedulable for observation in observations.values()))
    openings = {}
    for cluster, observation in observations.items():
        count = min((observation.free or 0) - max(0, observation.placed - observation.pods), waiting)
        if cluster in estimates:
            count = min(count, estimates[cluster].capacity - observation.placed)
        if count > 0 and not observation.unschedulable:
            openings[cluster] = count
    return openings


def next_change_s(estimate: CapacityEstimate, rules: TrialRules) -> float | None:
    """Return the monotonic time at which the estimate changes without an event, None when it does not."""
    if estimate.since_s is None:
        return None
    return estimate.since_s + (rules.trial_s if estimate.offered else rules.stable_s)


def _revise(
    estimate: CapacityEstimate | None, observation: Observation, now_s: float, rules: TrialRules
) -> CapacityEstimate | None:
    schedulable = observation.schedulable
    if estimate is None:
        return None if schedulable is None else CapacityEstimate(schedulable, refuted=observation.free or 0)
    if schedulable is not None and (estimate.offered or schedulable < estimate.capacity):
        return _lower(estimate, observation, schedulable, now_s)
    if estimate.is_on_trial:
        return _check_trial(estimate, observation, now_s, rules)
    if estimate.offered:
        return _check_offer(estimate, observation, now_s, rules)
    return _check_evidence(estimate, observation, now_s, rules)


def _lower(estimate: CapacityEstimate, observation: Observation, schedulable: int, now_s: float) -> CapacityEstimate:
    """Lower the estimate and refute the free capacity; replicas that have a node and are not ready stay on trial."""
    capacity = min(schedulable, max(estimate.capacity, observation.ready))
    refuted = estimate.refuted if observation.free is None else observation.free
    if schedulable == capacity:
        return CapacityEstimate(capacity, refuted=refuted)
    since_s = now_s if estimate.since_s is None else estimate.since_s
    return CapacityEstimate(capacity, refuted, offered=schedulable - capacity, since_s=since_s)


def _check_trial(
    estimate: CapacityEstimate, observation: Observation, now_s: float, rules: TrialRules
) -> CapacityEstimate:
    """Raise the estimate when the whole batch runs; end a trial that takes too long."""
    assert estimate.since_s is not None
    running = min(observation.running, observation.placed)
    if observation.placed <= estimate.capacity or running >= observation.placed:
        return _offer(replace(estimate, capacity=max(estimate.capacity, running)), observation, rules)
    if now_s - estimate.since_s < rules.trial_s:
        return estimate
    capacity = max(estimate.capacity, running)
    # The replicas that did not run are about to go, and the capacity that they occupy was no evidence either.
    return CapacityEstimate(capacity, refuted=(observation.free or 0) + max(0, observation.placed - capacity))


def _check_offer(
    estimate: CapacityEstimate, observation: Observation, now_s: float, rules: TrialRules
) -> CapacityEstimate | None:
    """Start the trial of an accepted offer; drop the estimate when the scheduler declined, as capacity suffices."""
    if observation.placed > estimate.capacity:
        return replace(estimate, since_s=now_s)
    if rules.is_answered:
        return None
    return _offer(estimate, observation, rules)


def _check_evidence(
    estimate: CapacityEstimate, observation: Observation, now_s: float, rules: TrialRules
) -> CapacityEstimate | None:
    """Accept free capacity or surplus running replicas once they have lasted for long enough."""
    surplus = max(0, observation.running - estimate.capacity)
    if observation.free is None and not surplus:
        return estimate
    raised = replace(estimate, capacity=estimate.capacity + surplus)
    free = _free_beyond(raised, observation)
    if not free and not surplus:
        return replace(estimate, since_s=None)
    since_s = now_s if estimate.since_s is None else estimate.since_s
    if now_s - since_s < rules.stable_s:
        return replace(estimate, since_s=since_s)
    if free and not rules.batch:
        return None
    return _offer(raised, observation, rules)


def _offer(estimate: CapacityEstimate, observation: Observation, rules: TrialRules) -> CapacityEstimate:
    """Offer the free capacity, at most a batch; unknown capacity offers nothing."""
    return replace(estimate, offered=min(_free_beyond(estimate, observation), rules.batch), since_s=None)


def _free_beyond(estimate: CapacityEstimate, observation: Observation) -> int:
    """Return the free capacity that is neither refuted nor an unused part of the estimate."""
    unused = max(0, estimate.capacity - observation.running)
    return max(0, (observation.free or 0) - estimate.refuted - unused)
