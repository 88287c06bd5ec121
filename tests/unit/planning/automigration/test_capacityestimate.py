"""Capacity estimates, step by step."""

from dataclasses import replace

from federation.planning.automigration.capacityestimate import (
    CapacityEstimate,
    Observation,
    TrialRules,
    find_openings,
    next_change_s,
    revise_estimates,
)

RULES = TrialRules(stable_s=60, trial_s=600, batch=2)
ANSWERED = TrialRules(stable_s=60, trial_s=600, batch=2, is_answered=True)
FULL = CapacityEstimate(0)
OFFERED = CapacityEstimate(0, offered=2)
ON_TRIAL = CapacityEstimate(0, offered=2, since_s=100.0)
STUCK = Observation(placed=2, desired=2, pods=2, unschedulable=2, free=0)


def after(
    estimate: CapacityEstimate | None, observation: Observation, now_s: float = 100.0, rules: TrialRules = RULES
) -> CapacityEstimate | None:
    before = {} if estimate is None else {"c": estimate}
    return revise_estimates(before, {"c": observation}, now_s, rules).get("c")


def test_unschedulable_replicas_give_an_estimate() -> None:
    assert after(None, STUCK) == CapacityEstimate(0)
    assert after(None, Observation(3, 3, 2, 3, 1, free=7)) == CapacityEstimate(2, refuted=7)
    assert after(None, Observation(3, 3, 0, 0, 0)) is None
    # Pods that were not created yet count as schedulable, and more pods than wanted are no lack.
    assert after(None, Observation(5, 5, 0, 2, 1)) == CapacityEstimate(4)
    assert after(None, Observation(2, 2, 2, 3, 1)) is None


def test_a_lower_estimate_applies_at_once() -> None:
    assert after(CapacityEstimate(3), Observation(3, 3, 1, 3, 2)) == CapacityEstimate(1)


def test_more_schedulable_replicas_than_estimated_do_not_change_an_estimate_without_an_offer() -> None:
    observation = Observation(placed=6, desired=6, pods=6, ready=2, unschedulable=1, free=0)
    assert after(CapacityEstimate(3), observation) == CapacityEstimate(3)
    assert after(CapacityEstimate(5), observation) == CapacityEstimate(5), "neither do as many"


def test_an_estimate_stays_when_its_replicas_have_moved() -> None:
    assert after(FULL, Observation(free=0)) == FULL
    assert after(FULL, Observation(free=None)) == FULL
    assert after(CapacityEstimate(0, refuted=5), Observation(free=5)) == CapacityEstimate(0, refuted=5)


def test_free_capacity_must_last_before_a_batch_is_offered() -> None:
    returning = after(FULL, Observation(free=5), now_s=100.0)
    assert returning == CapacityEstimate(0, since_s=100.0)
    assert next_change_s(returning, RULES) == 160.0
    assert after(returning, Observation(free=1), now_s=159.0) == returning
    assert after(returning, Observation(free=0), now_s=159.0) == FULL
    assert after(returning, Observation(free=5), now_s=160.0) == OFFERED
    assert after(returning, Observation(free=1), now_s=160.0) == CapacityEstimate(0, offered=1)
    assert next_change_s(OFFERED, RULES) is None


def test_without_batches_lasting_free_capacity_only_ends_the_estimate() -> None:
    stays = TrialRules(stable_s=60, trial_s=600, batch=0)
    assert after(CapacityEstimate(0, since_s=40.0), Observation(free=5), rules=stays) is None


def test_an_offer_follows_the_free_capacity_until_it_is_accepted() -> None:
    assert after(OFFERED, Observation(free=1)) == CapacityEstimate(0, offered=1)
    assert after(OFFERED, Observation(free=0)) == FULL
    taken = after(OFFERED, Observation(placed=1, free=5), now_s=100.0, rules=ANSWERED)
    assert taken == ON_TRIAL
    assert next_change_s(taken, RULES) == 700.0


def test_a_declined_offer_ends_the_estimate() -> None:
    assert after(OFFERED, Observation(free=5), rules=ANSWERED) is None


def test_an_offer_stands_while_the_batch_is_used_elsewhere() -> None:
    estimates = {"c": OFFERED, "d": OFFERED, "hidden": CapacityEstimate(1)}
    observations = {"c": Observation(free=5), "d": Observation(placed=2, free=5)}
    assert revise_estimates(estimates, observations, 100.0, ANSWERED) == {
        "c": OFFERED,
        "d": ON_TRIAL,
        "hidden": CapacityEstimate(1),
    }
    assert revise_estimates({"c": OFFERED, "d": ON_TRIAL}, {"c": Observation(free=5)}, 100.0, ANSWERED)["c"] == OFFERED


def test_replicas_on_trial_grow_the_capacity_when_all_of_them_run() -> None:
    assert after(ON_TRIAL, Observation(2, 0, 0, 0, 0, free=5), now_s=200.0) == ON_TRIAL
    assert after(ON_TRIAL, Observation(2, 2, 1, 2, 0, free=3), now_s=200.0) == ON_TRIAL
    assert after(ON_TRIAL, Observation(2, 2, 2, 2, 0, free=3), now_s=200.0) == CapacityEstimate(2, offered=2)
    assert after(ON_TRIAL, Observation(2, 2, 2, 2, 0, free=0), now_s=200.0) == CapacityEstimate(2)


def test_a_failed_trial_refutes_the_free_capacity() -> None:
    assert after(ON_TRIAL, Observation(2, 2, 0, 2, 2, free=9)) == CapacityEstimate(0, refuted=9)
    assert after(ON_TRIAL, Observation(2, 2, 1, 2, 1, free=9)) == CapacityEstimate(1, refuted=9)
    assert after(
        CapacityEstimate(0, 4, offered=1, since_s=0.0), Observation(1, 1, 0, 1, 1, free=None)
    ) == CapacityEstimate(0, refuted=4)


def test_replicas_that_have_a_node_stay_on_trial_when_others_of_it_cannot_be_scheduled() -> None:
    fewer = CapacityEstimate(0, refuted=9, offered=1, since_s=100.0)
    assert after(ON_TRIAL, Observation(2, 2, 0, 2, 1, free=9), now_s=200.0) == fewer
    assert after(OFFERED, Observation(2, 2, 0, 2, 1, free=9), now_s=100.0) == fewer
    assert after(fewer, Observation(1, 1, 1, 1, 0, free=9), now_s=200.0) == CapacityEstimate(1, refuted=9)


def test_a_trial_that_takes_too_long_has_failed() -> None:
    slow = Observation(2, 2, 0, 2, 0, free=3)
    assert after(ON_TRIAL, slow, now_s=699.0) == ON_TRIAL
    assert after(ON_TRIAL, slow, now_s=700.0) == CapacityEstimate(0, refuted=5)


def test_a_trial_that_the_scheduler_withdraws_is_an_offer_again() -> None:
    assert after(ON_TRIAL, Observation(free=1), now_s=200.0) == CapacityEstimate(0, offered=1)


def test_surplus_replicas_that_run_for_long_enough_raise_the_estimate() -> None:
    """With keepUnschedulableReplicas the replicas that waited are the probe."""
    returning = after(FULL, Observation(2, 2, 2, 2, 0, free=0))
    assert returning == CapacityEstimate(0, since_s=100.0)
    assert after(returning, Observation(2, 2, 2, 2, 0, free=0), now_s=160.0) == CapacityEstimate(2)
    assert after(returning, Observation(2, 2, 2, 2, 0, free=None), now_s=160.0) == CapacityEstimate(2)
    # One of them still waits: it is no news, and the other's time runs on.
    assert after(returning, Observation(2, 2, 1, 2, 1, free=0), now_s=160.0) == CapacityEstimate(1)
    assert after(FULL, STUCK) == FULL


def test_unused_estimated_capacity_is_no_evidence() -> None:
    known = CapacityEstimate(3, refuted=2)
    assert after(known, Observation(1, 1, 1, 1, 0, free=4)) == known
    assert after(replace(known, since_s=40.0), Observation(1, 1, 1, 1, 0, free=5)) == replace(known, offered=1)


def test_openings_are_limited_by_the_waiting_replicas() -> None:
    stuck, free = Observation(4, 4, 1, 4, 3), Observation(free=9)
    assert find_openings(
        {"west": CapacityEstimate(1)}, {"west": stuck, "east": free, "north": Observation(free=2)}, 4
    ) == {
        "east": 3,
        "north": 2,
    }
    # Where it was believed in, where nobody waits, and where replicas are on their way there already, there is none.
    assert (
        find_openings({"west": CapacityEstimate(1), "east": CapacityEstimate(0)}, {"west": stuck, "east": free}, 4)
        == {}
    )
    assert find_openings({}, {"west": Observation(4, 4, 4, 4), "east": free}, 4) == {}
    assert find_openings({}, {"west": stuck, "east": replace(free, placed=9)}, 4) == {}
    assert find_openings({"east": CapacityEstimate(2)}, {"west": stuck, "east": free}, 4) == {"east": 2}
    # What is kept besides replicas that run elsewhere needs no other place.
    assert find_openings({}, {"west": stuck, "north": Observation(3, 3, 3, 3), "east": free}, 4) == {}
