"""The next step of every cluster, case by case; the random histories are in tests/properties/test_rollout_steps.py."""

from dataclasses import replace

from federation.planning.steps.steps import UNKNOWN_PODS, Step, Target, Unobserved, plan_steps
from federation.planning.steps.strategy import Limits, Strategy

DEFAULT = Strategy("25%", "25%")
SURGE = Strategy(1, 0)


def a_target(cluster: str, wanted: int, replicas: int, strategy: Strategy = DEFAULT) -> Target:
    """Return a target whose pods are all available."""
    return Target(cluster, wanted, replicas, replicas, replicas, strategy, strategy, exists=replicas > 0)


def plan(total: int, strategy: Strategy, *targets: Target) -> dict[str, int]:
    return {cluster: step.replicas for cluster, step in plan_steps(total, strategy, targets).items()}


def updating(total: int, strategy: Strategy, *targets: Target) -> list[str]:
    """Return the clusters that get the new pod template when all have an old one."""
    steps = plan_steps(total, strategy, [replace(target, has_old_template=True) for target in targets])
    return [cluster for cluster, step in steps.items() if step.gets_template]


def test_a_creation_is_one_step() -> None:
    targets = [a_target("a", 3, 0), a_target("b", 2, 0)]
    assert plan_steps(5, DEFAULT, targets) == {"a": Step(3), "b": Step(2)}


def test_scaling_up_and_down_is_one_step() -> None:
    assert plan(12, DEFAULT, a_target("a", 6, 2), a_target("b", 6, 2)) == {"a": 6, "b": 6}
    assert plan(4, DEFAULT, a_target("a", 2, 6), a_target("b", 2, 6)) == {"a": 2, "b": 2}


def test_replicas_are_added_before_others_are_removed() -> None:
    assert plan(4, SURGE, a_target("a", 0, 4), a_target("b", 4, 0)) == {"a": 4, "b": 1}
    assert plan(4, SURGE, a_target("a", 0, 4), a_target("b", 4, 1)) == {"a": 3, "b": 1}
    assert plan(4, SURGE, a_target("a", 0, 3), a_target("b", 4, 1)) == {"a": 3, "b": 2}
    assert plan(4, SURGE, a_target("a", 0, 1), a_target("b", 4, 4)) == {"a": 0, "b": 4}


def test_unavailable_pods_are_removed_at_once() -> None:
    broken = replace(a_target("a", 1, 4), available=1)
    assert plan(4, SURGE, broken, a_target("b", 3, 0)) == {"a": 1, "b": 1}


def test_a_cluster_that_does_not_answer_blocks_no_growth() -> None:
    dead = replace(a_target("a", 0, 4), is_answering=False)
    assert plan(4, SURGE, dead, a_target("b", 4, 0)) == {"a": 4, "b": 4}


def test_running_pods_stay_while_others_do_not_answer() -> None:
    dead = replace(a_target("a", 3, 3), is_answering=False)
    assert plan(4, DEFAULT, dead, a_target("b", 1, 3))["b"] == 3


def test_nothing_grows_while_a_cluster_is_not_known() -> None:
    unknown = Target("a", 0, pods=UNKNOWN_PODS)
    assert plan(4, DEFAULT, unknown, a_target("b", 4, 2))["b"] == 2


def test_replicas_of_users_and_autoscalers_are_written_as_they_are() -> None:
    fixed = replace(a_target("a", 9, 2), is_steered=False)
    assert plan(4, SURGE, fixed, a_target("b", 2, 2)) == {"a": 9, "b": 2}


def test_a_departing_cluster_with_an_autoscaler_is_emptied_when_the_others_suffice() -> None:
    autoscaled = replace(a_target("a", 0, 7), is_steered=False, is_departing=True)
    assert plan(4, SURGE, autoscaled, a_target("b", 4, 0)) == {"a": 7, "b": 4}
    assert plan(4, SURGE, autoscaled, a_target("b", 4, 4)) == {"a": 0, "b": 4}


def test_a_stateful_set_gets_replacements_before_unavailable_pods_are_removed() -> None:
    strategy = Strategy(0, 1)
    lost = replace(a_target("a", 1, 2, strategy), available=1, is_ordered=True)
    grown = replace(a_target("b", 2, 1, strategy), is_ordered=True)
    assert plan(3, strategy, lost, grown) == {"a": 2, "b": 2}


def test_clusters_update_at_once_as_far_as_their_own_limits_fit() -> None:
    targets = [a_target(name, 4, 4) for name in "abc"]
    assert updating(12, DEFAULT, *targets) == ["a", "b", "c"]
    small = [a_target(name, 2, 2) for name in "abc"]
    assert updating(6, DEFAULT, *small) == ["a", "b"]
    assert updating(12, SURGE, *(a_target(name, 4, 4, SURGE) for name in "abc")) == ["a"]


def test_an_update_with_smaller_limits_starts_when_nothing_else_is_updating() -> None:
    dead = replace(a_target("a", 4, 4), is_answering=False)
    targets = [dead, *(replace(a_target(name, 4, 4), has_old_template=True) for name in "bc")]
    steps = plan_steps(12, Strategy(1, 1), targets)
    assert steps["b"] == Step(4, limits=Limits(1, 0), scales_while_paused=False)
    assert not steps["c"].gets_template


def test_a_broken_update_is_replaced_by_the_next_one() -> None:
    broken = replace(a_target("a", 4, 4, SURGE), pods=5, has_old_template=True, is_updating=True)
    assert updating(8, SURGE, broken, a_target("b", 4, 4, SURGE)) == ["a"]


def test_no_second_update_begins_with_smaller_limits() -> None:
    first = replace(a_target("a", 4, 4, SURGE), is_updating=True)
    second = replace(a_target("b", 4, 4, Strategy(1, 1)), has_old_template=True)
    assert not plan_steps(8, Strategy(1, 1), [first, second])["b"].gets_template
    steps = plan_steps(8, Strategy(1, 1), [replace(first, is_answering=False), second])
    assert steps["b"].gets_template, "one in a cluster that does not answer is no reason to wait"


def test_a_broken_update_is_replaced_within_the_limits_that_are_left() -> None:
    broken = replace(a_target("a", 4, 4, SURGE), pods=5, has_old_template=True, is_updating=True)
    wider = replace(broken, wanted_strategy=Strategy(2, 2))
    steps = plan_steps(8, Strategy(1, 1), [wider, a_target("b", 4, 4)])
    assert steps["a"] == Step(4, limits=Limits(1, 1))


def test_an_update_gets_its_own_limits_as_soon_as_they_fit() -> None:
    narrowed = replace(a_target("a", 8, 8, Strategy(1, 0)), wanted_strategy=DEFAULT, is_updating=True)
    assert plan_steps(16, DEFAULT, [narrowed, a_target("b", 8, 8)])["a"].limits is None
    dead = replace(a_target("b", 8, 8), is_answering=False)
    assert plan_steps(16, DEFAULT, [narrowed, dead])["a"].limits == Limits(1, 0)


def test_held_templates_wait_and_replicas_do_not() -> None:
    held = replace(a_target("a", 6, 4), has_old_template=True, is_held=True)
    steps = plan_steps(10, DEFAULT, [held, a_target("b", 4, 4)])
    assert (steps["a"].replicas, steps["a"].gets_template) == (6, False)


def test_a_workload_without_replicas_gets_the_new_template() -> None:
    assert updating(0, DEFAULT, replace(a_target("a", 0, 0), exists=True)) == ["a"]
    assert updating(4, DEFAULT, replace(a_target("a", 0, 0), exists=True), a_target("b", 4, 4)) == ["a", "b"]


def test_recreate_and_on_delete_update_everywhere_at_once() -> None:
    for strategy in (Strategy(recreates=True), Strategy(is_rolling=False)):
        assert updating(8, strategy, *(a_target(name, 4, 4, strategy) for name in "ab")) == ["a", "b"]


def test_what_a_member_has_not_observed_counts_with_the_worst_case() -> None:
    shrinking = replace(a_target("a", 0, 2), pods=4, available=4, unobserved=Unobserved(2, 4, Limits(1, 1)))
    assert plan(4, SURGE, shrinking, a_target("b", 4, 2)) == {"a": 2, "b": 2}


def test_of_two_updates_with_small_limits_only_as_many_get_their_own_as_the_budget_allows() -> None:
    present, own = Strategy(1, 0), Strategy(0, 1)
    both = [replace(a_target(name, 2, 2, present), wanted_strategy=own, is_updating=True) for name in "ab"]
    assert plan_steps(4, own, both) == {"a": Step(2), "b": Step(2, limits=Limits(1, 0))}
    assert plan_steps(4, Strategy(0, 2), both) == {"a": Step(2), "b": Step(2)}


def test_if_no_whole_update_fits_one_cluster_that_answers_gets_a_part() -> None:
    own = Strategy("50%", 0)
    first, second = a_target("a", 4, 4, own), a_target("b", 4, 4, own)
    assert updating(8, SURGE, first, second) == ["a"]
    assert updating(8, SURGE, replace(first, is_answering=False), second) == ["b"]
    assert updating(8, SURGE, replace(first, is_held=True), second) == ["b"]


def test_updates_do_not_wait_for_a_cluster_with_an_object_that_is_not_ours() -> None:
    ordered = Strategy(0, 1)
    obstructed = replace(a_target("a", 1, 0, ordered), is_obstructed=True)
    running = a_target("b", 1, 1, ordered)
    assert "b" not in updating(2, ordered, replace(obstructed, is_obstructed=False), running)
    assert "b" in updating(2, ordered, obstructed, running)


def test_an_update_within_the_surge_does_not_wait_for_pods_that_an_object_of_others_keeps_from_beginning() -> None:
    obstructed = replace(a_target("a", 1, 0, SURGE), is_obstructed=True)
    running = a_target("b", 1, 2, SURGE)
    assert "b" not in updating(2, SURGE, replace(obstructed, is_obstructed=False), running)
    assert "b" in updating(2, SURGE, obstructed, running)


def test_replicas_move_to_other_clusters_than_the_obstructed_one_and_its_share_stays_where_it_runs() -> None:
    obstructed = replace(a_target("a", 2, 0, SURGE), is_obstructed=True)
    assert plan(4, SURGE, obstructed, a_target("b", 0, 4), a_target("c", 2, 0)) == {"a": 1, "b": 4, "c": 1}
    assert plan(4, SURGE, obstructed, a_target("b", 0, 3), a_target("c", 2, 1)) == {"a": 1, "b": 3, "c": 2}
    assert plan(4, SURGE, obstructed, a_target("b", 0, 3), a_target("c", 2, 2)) == {"a": 0, "b": 2, "c": 2}


def test_an_update_elsewhere_keeps_the_pods_that_can_be_available() -> None:
    ordered = Strategy(0, 1)
    obstructed = replace(a_target("a", 3, 0, ordered), is_obstructed=True)
    broken = replace(a_target("b", 1, 1, ordered), available=0)
    assert updating(5, ordered, obstructed, broken, a_target("c", 1, 1, ordered)) == ["a", "b"]
    # After a scaling the division may still be the earlier one: then the replicas that run are all that are wanted.
    assert "b" not in updating(1, SURGE, replace(obstructed, wanted=1), a_target("b", 1, 1, Strategy(0, 1)))
