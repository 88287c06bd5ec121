"""What is believed about a member's capacity, step by step."""

from dataclasses import replace

from federation.planning.automigration.belief import Belief, Sight, Terms, find_openings, next_look_s, revise

TERMS = Terms(stable_s=60, trial_s=600, batch=2)
ANSWERED = Terms(stable_s=60, trial_s=600, batch=2, is_answered=True)
FULL = Belief(0)
OFFERED = Belief(0, offered=2)
ON_TRIAL = Belief(0, offered=2, since_s=100.0)
STUCK = Sight(placed=2, desired=2, pods=2, unschedulable=2, room=0)


def after(belief: Belief | None, sight: Sight, now_s: float = 100.0, terms: Terms = TERMS) -> Belief | None:
    before = {} if belief is None else {"c": belief}
    return revise(before, {"c": sight}, now_s, terms).get("c")


def test_replicas_that_cannot_be_scheduled_show_the_capacity() -> None:
    assert after(None, STUCK) == Belief(0)
    assert after(None, Sight(3, 3, 2, 3, 1, room=7)) == Belief(2, refuted=7)
    assert after(None, Sight(3, 3, 0, 0, 0)) is None
    # Pods that were not created yet count as schedulable, and more pods than wanted are no lack.
    assert after(None, Sight(5, 5, 0, 2, 1)) == Belief(4)
    assert after(None, Sight(2, 2, 2, 3, 1)) is None


def test_a_member_that_runs_fewer_is_believed_at_once() -> None:
    assert after(Belief(3), Sight(3, 3, 1, 3, 2)) == Belief(1)


def test_what_is_believed_stays_when_the_replicas_have_gone_elsewhere() -> None:
    assert after(FULL, Sight(room=0)) == FULL
    assert after(FULL, Sight(room=None)) == FULL
    assert after(Belief(0, refuted=5), Sight(room=5)) == Belief(0, refuted=5)


def test_room_has_to_last_before_it_is_offered_and_then_a_batch_of_it_is() -> None:
    returning = after(FULL, Sight(room=5), now_s=100.0)
    assert returning == Belief(0, since_s=100.0)
    assert next_look_s(returning, TERMS) == 160.0
    assert after(returning, Sight(room=1), now_s=159.0) == returning
    assert after(returning, Sight(room=0), now_s=159.0) == FULL
    assert after(returning, Sight(room=5), now_s=160.0) == OFFERED
    assert after(returning, Sight(room=1), now_s=160.0) == Belief(0, offered=1)
    assert next_look_s(OFFERED, TERMS) is None


def test_without_batches_room_that_lasts_only_ends_the_belief() -> None:
    stays = Terms(stable_s=60, trial_s=600, batch=0)
    assert after(Belief(0, since_s=40.0), Sight(room=5), terms=stays) is None


def test_an_offer_follows_the_room_until_it_is_taken() -> None:
    assert after(OFFERED, Sight(room=1)) == Belief(0, offered=1)
    assert after(OFFERED, Sight(room=0)) == FULL
    taken = after(OFFERED, Sight(placed=1, room=5), now_s=100.0, terms=ANSWERED)
    assert taken == ON_TRIAL
    assert next_look_s(taken, TERMS) == 700.0


def test_an_offer_that_nobody_wants_means_that_there_is_enough() -> None:
    assert after(OFFERED, Sight(room=5), terms=ANSWERED) is None


def test_an_offer_stands_while_the_batch_is_used_elsewhere() -> None:
    beliefs = {"c": OFFERED, "d": OFFERED, "hidden": Belief(1)}
    sights = {"c": Sight(room=5), "d": Sight(placed=2, room=5)}
    assert revise(beliefs, sights, 100.0, ANSWERED) == {"c": OFFERED, "d": ON_TRIAL, "hidden": Belief(1)}
    assert revise({"c": OFFERED, "d": ON_TRIAL}, {"c": Sight(room=5)}, 100.0, ANSWERED)["c"] == OFFERED


def test_replicas_on_trial_grow_the_capacity_when_all_of_them_run() -> None:
    assert after(ON_TRIAL, Sight(2, 0, 0, 0, 0, room=5), now_s=200.0) == ON_TRIAL
    assert after(ON_TRIAL, Sight(2, 2, 1, 2, 0, room=3), now_s=200.0) == ON_TRIAL
    assert after(ON_TRIAL, Sight(2, 2, 2, 2, 0, room=3), now_s=200.0) == Belief(2, offered=2)
    assert after(ON_TRIAL, Sight(2, 2, 2, 2, 0, room=0), now_s=200.0) == Belief(2)


def test_a_failed_trial_refutes_the_room_that_misled_us() -> None:
    assert after(ON_TRIAL, Sight(2, 2, 0, 2, 2, room=9)) == Belief(0, refuted=9)
    assert after(ON_TRIAL, Sight(2, 2, 1, 2, 1, room=9)) == Belief(1, refuted=9)
    assert after(Belief(0, 4, offered=1, since_s=0.0), Sight(1, 1, 0, 1, 1, room=None)) == Belief(0, refuted=4)


def test_replicas_that_have_a_node_stay_on_trial_when_others_of_it_cannot_be_scheduled() -> None:
    fewer = Belief(0, refuted=9, offered=1, since_s=100.0)
    assert after(ON_TRIAL, Sight(2, 2, 0, 2, 1, room=9), now_s=200.0) == fewer
    assert after(OFFERED, Sight(2, 2, 0, 2, 1, room=9), now_s=100.0) == fewer
    assert after(fewer, Sight(1, 1, 1, 1, 0, room=9), now_s=200.0) == Belief(1, refuted=9)


def test_a_trial_that_takes_too_long_has_failed() -> None:
    slow = Sight(2, 2, 0, 2, 0, room=3)
    assert after(ON_TRIAL, slow, now_s=699.0) == ON_TRIAL
    assert after(ON_TRIAL, slow, now_s=700.0) == Belief(0, refuted=5)


def test_a_trial_that_the_scheduler_takes_back_is_an_offer_again() -> None:
    assert after(ON_TRIAL, Sight(room=1), now_s=200.0) == Belief(0, offered=1)


def test_surplus_replicas_that_run_for_long_enough_are_believed() -> None:
    """With keepUnschedulableReplicas the replicas that waited are the probe."""
    returning = after(FULL, Sight(2, 2, 2, 2, 0, room=0))
    assert returning == Belief(0, since_s=100.0)
    assert after(returning, Sight(2, 2, 2, 2, 0, room=0), now_s=160.0) == Belief(2)
    assert after(returning, Sight(2, 2, 2, 2, 0, room=None), now_s=160.0) == Belief(2)
    # One of them still waits: it is no news, and the other's time runs on.
    assert after(returning, Sight(2, 2, 1, 2, 1, room=0), now_s=160.0) == Belief(1)
    assert after(FULL, STUCK) == FULL


def test_capacity_that_is_believed_in_and_not_used_is_no_new_room() -> None:
    known = Belief(3, refuted=2)
    assert after(known, Sight(1, 1, 1, 1, 0, room=4)) == known
    assert after(replace(known, since_s=40.0), Sight(1, 1, 1, 1, 0, room=5)) == replace(known, offered=1)


def test_as_many_are_told_to_fit_elsewhere_as_wait() -> None:
    stuck, free = Sight(4, 4, 1, 4, 3), Sight(room=9)
    assert find_openings({"west": Belief(1)}, {"west": stuck, "east": free, "north": Sight(room=2)}, 4) == {
        "east": 3,
        "north": 2,
    }
    # Where it was believed in, where nobody waits, and where replicas are on their way there already, there is none.
    assert find_openings({"west": Belief(1), "east": Belief(0)}, {"west": stuck, "east": free}, 4) == {}
    assert find_openings({}, {"west": Sight(4, 4, 4, 4), "east": free}, 4) == {}
    assert find_openings({}, {"west": stuck, "east": replace(free, placed=9)}, 4) == {}
    assert find_openings({"east": Belief(2)}, {"west": stuck, "east": free}, 4) == {"east": 2}
    # What is kept besides replicas that run elsewhere needs no other place.
    assert find_openings({}, {"west": stuck, "north": Sight(3, 3, 3, 3), "east": free}, 4) == {}
