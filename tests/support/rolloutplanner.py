"""Plan a rollout over all clusters within one surge and one unavailability budget (vectors rollout_planner). Pure.

A Deployment that is updated and divided at the same time runs in several clusters, each with its own maxSurge and
maxUnavailable. `plan_rollout` turns the budgets of the whole into those of each cluster for one round; the caller
repeats it whenever a cluster has made progress. It is KubeAdmiral's planner of 2023, as a reference for
tests: it trusts the last report of each member (docs/decisions/0034). Sync uses `planning/steps/steps.py`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Target:
    """The state of a Deployment in one cluster; all numbers count pods."""

    cluster: str
    desired: int
    """Replicas by the scheduler's decision."""
    replicas: int
    """`spec.replicas` of the member object."""
    actual: int
    """`status.replicas` of the member object."""
    available: int
    updated: int
    """Pods of the desired revision; 0 unless the member object's template is that revision."""
    updated_available: int
    newest: int
    """Pods of the member's newest ReplicaSet, of any revision."""
    newest_available: int
    is_updated: bool
    """Whether the member object's template is the desired one."""
    surge_max: int
    """The current maxSurge of the member object."""
    unavailable_max: int

    @property
    def to_update(self) -> int:
        """Replicas without a pod of the desired revision."""
        return _positive(self.replicas - self.updated)

    @property
    def to_update_available(self) -> int:
        """Replicas without an available pod of the desired revision."""
        return _positive(self.replicas - self.updated_available)

    @property
    def is_rolling(self) -> bool:
        """Whether the member is rolling out an update."""
        return self.newest < self.replicas or (self.is_updated and self.to_update > 0)

    @property
    def surge(self) -> int:
        """Pods beyond the replicas, including those that the member may create at any time."""
        extra = _positive(self.actual - self.replicas)
        if not self.is_rolling:
            return extra
        return max(extra, min(self.surge_max, extra + _positive(self.replicas - self.newest)))

    @property
    def unavailable(self) -> int:
        """Unavailable pods, including those that the member may delete at any time."""
        missing = _positive(self.replicas - self.available)
        if not self.is_rolling:
            return missing
        return max(missing, min(self.unavailable_max, _positive(self.replicas - self.newest_available)))

    @property
    def is_surging(self) -> bool:
        """Whether the member creates new pods before it deletes old ones."""
        return self.surge_max != 0 and self.unavailable_max == 0

    def is_flipping(self, *, by_surge: bool) -> bool:
        """Return True if the member still updates by surge while the whole updates by unavailability."""
        return self.is_surging and not by_surge and self.to_update_available > 0


@dataclass(slots=True)
class ClusterPlan:
    """The changes of one cluster in this round; None keeps the template's value, `only_replicas` the whole template."""

    replicas: int | None = None
    surge_max: int | None = None
    unavailable_max: int | None = None
    only_replicas: bool = False


@dataclass(slots=True)
class _Budgets:
    """The remainder of both budgets; negative when they are exceeded."""

    surge: int
    unavailable: int
    by_surge: bool
    plans: dict[str, ClusterPlan] = field(default_factory=dict)

    def is_idle(self, target: Target) -> bool:
        """Return True if the target cannot start its update."""
        return self.surge <= 0 and self.unavailable <= 0 and not target.is_updated and not target.is_rolling

    def grant_update(self, target: Target, plan: ClusterPlan, unavailable: int) -> None:
        """Plan the update of the target within the budgets; its current `unavailable` pods cost nothing."""
        plan.surge_max, cost = _grant(self.surge, target.surge, target.to_update, target.surge_max)
        self.surge -= cost
        plan.unavailable_max, cost = _grant(
            self.unavailable, unavailable, target.to_update_available, target.unavailable_max
        )
        self.unavailable -= cost
        if target.to_update == 0 and not target.is_flipping(by_surge=self.by_surge):
            plan.surge_max = plan.unavailable_max = None
        elif not plan.surge_max and not plan.unavailable_max:
            # Kubernetes rejects a Deployment in which both are 0.
            plan.surge_max, plan.unavailable_max = (1, 0) if target.is_surging else (0, 1)


def plan_rollout(
    replicas: int, surge_max: int, unavailable_max: int, targets: Iterable[Target]
) -> dict[str, ClusterPlan]:
    """Return the plan of each cluster by name; a cluster without a plan waits.

    `replicas` is the total that is wanted; both budgets are absolute numbers, of which one is not 0. {} also when the
    targets do not add up to a plan within the budgets: then nothing is touched.
    """
    ordered = sorted(targets, key=lambda target: target.cluster)
    growing = [target for target in ordered if target.desired > target.replicas]
    shrinking = [target for target in ordered if target.desired < target.replicas]
    staying = [target for target in ordered if target.desired == target.replicas]
    by_surge = surge_max != 0 and unavailable_max == 0
    if _is_scaling_only(growing, shrinking, staying, by_surge=by_surge):
        return {target.cluster: ClusterPlan() for target in ordered}

    present = sum(target.replicas for target in ordered)
    budgets = _Budgets(
        surge_max - (present - replicas) - sum(target.surge for target in ordered),
        unavailable_max - (replicas - present) - sum(target.unavailable for target in ordered),
        by_surge,
    )
    _update_growing(growing, budgets)
    removed = _shrink(shrinking, budgets)
    _update_staying(staying, budgets)
    _grow(growing, budgets)
    _update_shrinking(shrinking, removed, budgets)
    is_valid = _is_valid(replicas, surge_max, unavailable_max, ordered, budgets.plans)
    return budgets.plans if is_valid else {}


def _is_scaling_only(growing: list[Target], shrinking: list[Target], staying: list[Target], *, by_surge: bool) -> bool:
    """Return True if replicas only grow or only shrink, and nothing needs an update."""
    if bool(growing) == bool(shrinking):
        return False
    return all(t.to_update == 0 and not t.is_flipping(by_surge=by_surge) for t in (*growing, *shrinking, *staying))


def _update_growing(growing: list[Target], budgets: _Budgets) -> None:
    for target in growing:
        if budgets.is_idle(target) and target.surge <= 0 and target.unavailable <= 0:
            continue
        plan = budgets.plans[target.cluster] = ClusterPlan(replicas=target.replicas)
        budgets.grant_update(target, plan, target.unavailable)


def _shrink(shrinking: list[Target], budgets: _Budgets) -> dict[str, int]:
    """Scale down clusters with too many replicas; return the removed number per cluster."""
    removed = {}
    for target in shrinking:
        if budgets.unavailable <= 0 and target.unavailable <= 0:
            continue
        free = 0 if target.is_rolling else target.unavailable
        count = _positive(min(budgets.unavailable + free, target.replicas - target.desired))
        budgets.unavailable -= _positive(count - free)
        budgets.plans[target.cluster] = ClusterPlan(replicas=target.replicas - count, only_replicas=True)
        removed[target.cluster] = count
    return removed


def _update_staying(staying: list[Target], budgets: _Budgets) -> None:
    for target in staying:
        if budgets.is_idle(target) and target.surge <= 0 and target.unavailable <= 0:
            continue
        plan = budgets.plans[target.cluster] = ClusterPlan()
        budgets.grant_update(target, plan, target.unavailable)


def _grow(growing: list[Target], budgets: _Budgets) -> None:
    for target in growing:
        if budgets.surge <= 0 and target.surge <= 0:
            continue
        if not target.is_updated and target.replicas != 0:
            continue
        free = 0 if target.is_rolling else target.surge
        count = _positive(min(budgets.surge + free, target.desired - target.replicas))
        budgets.surge -= _positive(count - free)
        budgets.plans.setdefault(target.cluster, ClusterPlan()).replicas = target.replicas + count


def _update_shrinking(shrinking: list[Target], removed: dict[str, int], budgets: _Budgets) -> None:
    for target in shrinking:
        unavailable = (
            target.unavailable if target.is_rolling else _positive(target.unavailable - removed.get(target.cluster, 0))
        )
        if budgets.is_idle(target) and unavailable <= 0:
            continue
        plan = budgets.plans.setdefault(target.cluster, ClusterPlan(replicas=target.replicas))
        plan.only_replicas = False
        budgets.grant_update(target, plan, unavailable)


def _grant(budget: int, out: int, need: int, current: int) -> tuple[int, int]:
    """Return how many may be out, of which `out` are already, and what that costs the budget.

    A member never gets more than it has (`current`) while the budget is overdrawn.
    """
    granted = _positive(min(budget + out, need))
    cost = _positive(granted - out)
    if budget < 0 and out > current and granted > current:
        granted = current
    return granted, cost


def _is_valid(
    replicas: int, surge_max: int, unavailable_max: int, targets: list[Target], plans: dict[str, ClusterPlan]
) -> bool:
    """Return True if the plans stay within the budgets."""
    desired = sum(target.desired for target in targets)
    present = sum(target.replicas for target in targets)
    planned = sum(_planned(target, plans.get(target.cluster)) for target in targets)
    return (
        replicas - desired <= unavailable_max
        and min(desired, present) - planned <= unavailable_max
        and planned - max(desired, present) <= surge_max
    )


def _planned(target: Target, plan: ClusterPlan | None) -> int:
    if plan is None:
        return target.replicas
    return target.desired if plan.replicas is None else plan.replicas


def _positive(count: int) -> int:
    return max(0, count)
