"""A rollout over all clusters stays within its budgets in every round, and comes to an end."""

import dataclasses
import random

from hypothesis import given
from hypothesis import strategies as st
from tests.support.rolloutplanner import ClusterPlan, Target, plan_rollout


@st.composite
def rollouts(draw: st.DrawFn) -> tuple[int, int, int, list[Target]]:
    """Draw budgets, and clusters that run an old revision and are divided anew to the same total."""
    present = draw(st.lists(st.integers(0, 9), min_size=1, max_size=5))
    desired = draw(st.permutations(present))
    surge, unavailable = draw(st.sampled_from([(0, 1), (1, 0), (2, 3), (4, 0), (0, 5)]))
    targets = [_target(f"c{number}", *counts) for number, counts in enumerate(zip(present, desired, strict=True))]
    return sum(present), surge, unavailable, targets


def _target(cluster: str, replicas: int, desired: int) -> Target:
    return Target(
        cluster=cluster,
        desired=desired,
        replicas=replicas,
        actual=replicas,
        available=replicas,
        updated=0,
        updated_available=0,
        newest=replicas,
        newest_available=replicas,
        is_updated=False,
        surge_max=0,
        unavailable_max=0,
    )


def _settle(target: Target, plan: ClusterPlan | None, surge: int, unavailable: int) -> Target:
    """Return the cluster after the member has done all that its plan allows."""
    if plan is None:
        return target
    replicas = target.desired if plan.replicas is None else plan.replicas
    if plan.only_replicas:
        revision = replicas if target.is_updated else 0
        return dataclasses.replace(
            _target(target.cluster, replicas, target.desired),
            is_updated=target.is_updated,
            updated=revision,
            updated_available=revision,
            surge_max=target.surge_max,
            unavailable_max=target.unavailable_max,
        )
    return dataclasses.replace(
        _target(target.cluster, replicas, target.desired),
        is_updated=True,
        updated=replicas,
        updated_available=replicas,
        surge_max=surge if plan.surge_max is None else plan.surge_max,
        unavailable_max=unavailable if plan.unavailable_max is None else plan.unavailable_max,
    )


@given(rollouts())
def test_replicas_stay_within_the_budgets_until_every_cluster_runs_what_it_should(
    rollout: tuple[int, int, int, list[Target]],
) -> None:
    total, surge, unavailable, targets = rollout
    for _ in range(8 * len(targets) + 40):
        plans = plan_rollout(total, surge, unavailable, targets)
        targets = [_settle(target, plans.get(target.cluster), surge, unavailable) for target in targets]
        assert total - unavailable <= sum(target.replicas for target in targets) <= total + surge
        if all(t.replicas == t.desired and t.is_updated for t in targets):
            return
    raise AssertionError(f"it never ends: {targets}")


@given(rollouts(), st.randoms(use_true_random=False))
def test_the_order_in_which_clusters_are_given_makes_no_difference(
    rollout: tuple[int, int, int, list[Target]], chance: random.Random
) -> None:
    total, surge, unavailable, targets = rollout
    shuffled = list(targets)
    chance.shuffle(shuffled)
    assert plan_rollout(total, surge, unavailable, shuffled) == plan_rollout(total, surge, unavailable, targets)


@given(rollouts())
def test_what_members_may_surge_and_miss_stays_within_the_budgets(
    rollout: tuple[int, int, int, list[Target]],
) -> None:
    total, surge, unavailable, targets = rollout
    plans = plan_rollout(total, surge, unavailable, targets)
    granted = [plan for plan in plans.values() if not plan.only_replicas]
    allowed = sum(plan.unavailable_max or 0 for plan in granted)
    removed = sum(t.replicas - (p.replicas or 0) for t in targets if (p := plans.get(t.cluster)) and p.only_replicas)
    assert sum(plan.surge_max or 0 for plan in granted) <= max(surge, 1)
    assert allowed + removed <= max(unavailable, 1)


def test_an_empty_cluster_waits_while_the_whole_budget_is_out_and_nothing_is_scaled() -> None:
    busy = dataclasses.replace(
        _target("busy", 3, 3), is_updated=True, updated=3, updated_available=3, actual=4, surge_max=1
    )
    assert plan_rollout(3, 1, 0, [busy, _target("empty", 0, 0)]) == {"busy": ClusterPlan()}
    growing = [busy, _target("empty", 0, 1)]
    assert plan_rollout(4, 1, 0, growing) == {"busy": ClusterPlan(), "empty": ClusterPlan()}
