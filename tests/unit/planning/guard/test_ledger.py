"""The guard's ledger: what goes on, what waits, what is held."""

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.planning.guard.ledger import Cause, GuardOptions, Ledger, Permit, parse_cause

POLICY = Cause("PropagationPolicy", "default", "web")
OTHER = Cause("PropagationPolicy", "default", "other")
EAST = Cause("FederatedCluster", "", "east")
OPTIONS = GuardOptions()


def _verdicts(ledger: Ledger[int], keys: range, sizes: Mapping[Cause, int], now_s: float) -> list[Permit]:
    return [ledger.propose(key, sizes, now_s).permit for key in keys]


@pytest.mark.parametrize("cause", [POLICY, EAST, Cause("FederatedTypeConfig", "", "deployments.apps")], ids=str)
def test_a_cause_survives_its_text(cause: Cause) -> None:
    assert parse_cause(str(cause)) == cause


@pytest.mark.parametrize("text", ["", "PropagationPolicy", "PropagationPolicy "])
def test_a_malformed_cause_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="kind and a name"):
        parse_cause(text)


@pytest.mark.parametrize(("size", "allowed"), [(0, 10), (49, 10), (50, 10), (60, 12), (1000, 200)])
def test_a_share_and_a_number_may_move(size: int, allowed: int) -> None:
    assert OPTIONS.allowed(size) == allowed


def test_a_small_set_does_not_wait() -> None:
    assert set(_verdicts(Ledger(OPTIONS), range(10), {POLICY: 10}, 0.0)) == {Permit.GO}


def test_few_moves_of_a_large_set_go_on_after_a_moment() -> None:
    ledger: Ledger[int] = Ledger(OPTIONS)
    assert set(_verdicts(ledger, range(8), {POLICY: 60}, 0.0)) == {Permit.WAIT}
    assert ledger.propose(0, {POLICY: 60}, 0.5).wait_s == pytest.approx(0.5)
    assert set(_verdicts(ledger, range(8), {POLICY: 60}, 1.0)) == {Permit.GO}


def test_of_too_many_moves_none_goes_on() -> None:
    ledger: Ledger[int] = Ledger(OPTIONS)
    _verdicts(ledger, range(50), {POLICY: 60}, 0.0)
    assert set(_verdicts(ledger, range(50), {POLICY: 60}, 1.0)) == {Permit.HOLD}


def test_a_steady_trickle_waits_for_a_bounded_time_only() -> None:
    ledger: Ledger[int] = Ledger(GuardOptions(count=100, share=0.5))
    for second in range(31):
        ledger.propose(second, {POLICY: 1000}, second * 0.9)
    assert ledger.propose(0, {POLICY: 1000}, 30.0).permit is Permit.GO


def test_the_window_slides() -> None:
    ledger: Ledger[int] = Ledger(OPTIONS)
    ledger.record(99, [POLICY], 0.0)
    for key in range(9):
        ledger.record(key, [POLICY], 500.0)
    assert ledger.propose(50, {POLICY: 20}, 599.0).permit is Permit.HOLD
    ledger.propose(50, {POLICY: 20}, 600.0)
    assert ledger.propose(50, {POLICY: 20}, 601.0).permit is Permit.GO


def test_what_one_policy_holds_does_not_hold_moves_of_another_from_the_same_cluster() -> None:
    ledger: Ledger[int] = Ledger(OPTIONS)
    for now_s in (0.0, 1.0):
        _verdicts(ledger, range(50), {POLICY: 60, EAST: 200}, now_s)
    _verdicts(ledger, range(50, 55), {OTHER: 60, EAST: 200}, 2.0)
    assert set(_verdicts(ledger, range(50, 55), {OTHER: 60, EAST: 200}, 3.0)) == {Permit.GO}


def test_moves_of_many_policies_count_for_the_cluster_that_they_leave() -> None:
    ledger: Ledger[int] = Ledger(OPTIONS)
    for key in range(30):
        ledger.propose(key, {Cause("PropagationPolicy", "default", str(key)): 1, EAST: 30}, 0.0)
    judgement = ledger.propose(0, {Cause("PropagationPolicy", "default", "0"): 1, EAST: 30}, 1.0)
    assert (judgement.permit, judgement.cause) == (Permit.HOLD, EAST)


def test_the_first_of_several_exceeded_causes_is_named() -> None:
    ledger: Ledger[int] = Ledger(OPTIONS)
    for key in range(10):
        ledger.record(key, [POLICY, EAST], 0.0)
    judgement = ledger.propose(10, {POLICY: 20, EAST: 20, OTHER: 20}, 0.0)
    assert (judgement.permit, judgement.cause) == (Permit.HOLD, POLICY)


@pytest.mark.parametrize("earlier", ["held", "proposed", "moved"])
def test_a_move_that_is_taken_back_leaves_the_others_of_its_cause(earlier: str) -> None:
    ledger: Ledger[int] = Ledger(GuardOptions(count=1, share=0.0))
    match earlier:
        case "held":
            ledger.hold(0, POLICY)
        case "proposed":
            ledger.propose(0, {POLICY: 20}, 0.0)
        case "moved":
            ledger.record(0, [POLICY], 0.0)
    assert ledger.propose(1, {POLICY: 20}, 0.0).permit is Permit.HOLD
    ledger.withdraw(1)
    assert ledger.propose(2, {POLICY: 20}, 0.0).permit is Permit.HOLD


def test_held_moves_that_are_taken_back_do_not_count() -> None:
    ledger: Ledger[int] = Ledger(OPTIONS)
    _verdicts(ledger, range(50), {POLICY: 60}, 0.0)
    for key in range(45):
        ledger.withdraw(key)
    _verdicts(ledger, range(45, 50), {POLICY: 60}, 5.0)
    assert set(_verdicts(ledger, range(45, 50), {POLICY: 60}, 6.0)) == {Permit.GO}


def test_a_move_counts_no_longer_for_a_cause_that_it_lost() -> None:
    ledger: Ledger[int] = Ledger(GuardOptions(count=1, share=0.0))
    ledger.propose(0, {POLICY: 20, EAST: 20}, 0.0)
    ledger.propose(0, {EAST: 20}, 0.0)
    ledger.withdraw(0)
    assert ledger.propose(1, {POLICY: 20}, 0.0).permit is Permit.WAIT


@given(
    steps=st.lists(
        st.tuples(st.integers(0, 40), st.sampled_from([POLICY, OTHER, EAST]), st.floats(0.0, 60.0)), max_size=120
    ),
    size=st.integers(0, 40),
)
def test_no_window_has_more_moves_than_allowed(steps: list[tuple[int, Cause, float]], size: int) -> None:
    options = GuardOptions(count=3, share=0.2, window_s=100.0)
    ledger: Ledger[int] = Ledger(options)
    now_s, moved = 0.0, []
    for key, cause, passed_s in steps:
        now_s += passed_s
        if ledger.propose(key, {cause: size}, now_s).permit is Permit.GO:
            moved.append((key, cause, now_s))
    for _, cause, end_s in moved:
        keys = {key for key, other, at_s in moved if other == cause and end_s - options.window_s < at_s <= end_s}
        assert len(keys) <= options.allowed(size)
