"""Properties of the pauses between corrections."""

from hypothesis import given
from hypothesis import strategies as st

from federation.planning.drift.fights import (
    CORRECTIONS_MAX,
    PAUSE_S_MAX,
    PAUSE_S_MIN,
    QUIET_S,
    WINDOW_S,
    Burst,
    after_correction,
    is_over,
    pause_left_s,
)

_GAPS = st.lists(st.tuples(st.floats(0.0, 900.0), st.sets(st.sampled_from("abc"), min_size=1)), max_size=60)


def _fight(gaps: list[tuple[float, set[str]]]) -> list[tuple[float, set[str], Burst]]:
    """Correct after each gap, or when the pause ends; return time, fields and the burst after every correction."""
    now_s, burst, found = 0.0, None, []
    for gap_s, fields in gaps:
        now_s = max(now_s + gap_s, now_s + pause_left_s(burst, now_s))
        burst = after_correction(burst, fields, now_s)
        found.append((now_s, fields, burst))
    return found


@given(_GAPS)
def test_a_pause_is_bounded_and_begins_only_in_a_fight(gaps: list[tuple[float, set[str]]]) -> None:
    made = _fight(gaps)
    for index, (now_s, fields, burst) in enumerate(made):
        left_s = pause_left_s(burst, now_s)
        assert left_s == 0.0 or PAUSE_S_MIN - 1e-6 <= left_s <= PAUSE_S_MAX + 1e-6
        if left_s and burst.pauses == 1:
            recent = [fields for time_s, fields, _ in made[: index + 1] if now_s - time_s < WINDOW_S]
            assert any(sum(name in each for each in recent) > CORRECTIONS_MAX for name in fields)


@given(_GAPS)
def test_no_field_is_corrected_more_than_six_times_in_a_minute(gaps: list[tuple[float, set[str]]]) -> None:
    made = _fight(gaps)
    for now_s, fields, _ in made:
        for name in fields:
            times = [time_s for time_s, each, _ in made if name in each and 0 <= now_s - time_s < 60.0]
            assert len(times) <= CORRECTIONS_MAX + 1


@given(_GAPS, st.floats(QUIET_S, 10 * QUIET_S))
def test_quiet_ends_a_fight(gaps: list[tuple[float, set[str]]], quiet_s: float) -> None:
    made = _fight(gaps)
    if not made:
        return
    _, _, burst = made[-1]
    now_s = max(burst.last_s, burst.paused_until_s) + quiet_s + 1e-3
    assert is_over(burst, now_s)
    after = after_correction(burst, {"a"}, now_s)
    assert (after.count, after.pauses, after.fought, pause_left_s(after, now_s)) == (1, 0, frozenset(), 0.0)


def test_an_opponent_that_never_rests_is_corrected_a_few_times_per_hour() -> None:
    made = _fight([(0.1, {"a"})] * 40)
    pauses = [pause_left_s(burst, now_s) for now_s, _, burst in made]
    assert [round(pause_s) for pause_s in pauses[:11]] == [0, 0, 0, 0, 0, 60, 120, 240, 480, 600, 600]
    assert len([now_s for now_s, _, _ in made if now_s <= 3600]) <= 14


def test_a_controller_that_repeats_its_work_every_minute_is_an_opponent() -> None:
    made = _fight([(60.0, {"a"})] * 60)
    assert [pause_left_s(burst, now_s) > 0 for now_s, _, burst in made[:7]] == [False] * 5 + [True] * 2
    assert len([now_s for now_s, _, _ in made if now_s <= 3600]) <= 14


@given(st.lists(st.integers(0, 10_000), min_size=300, max_size=300))
def test_new_names_evade_no_limit(fields: list[int]) -> None:
    made = _fight([(0.01, {str(name)}) for name in fields])
    assert made[-1][2].pauses > 0
    assert len(made[-1][2].recent) <= 34
