"""Health with hysteresis: no flapping faster than the thresholds, and every loss is reported within the bound."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from federation.planning.clusters import health
from federation.planning.clusters.health import Cadence, Damping, HealthState, Observation, Pending

STATES = (health.healthy(), health.unreachable("x"), health.unhealthy("500"))
SECONDS = st.floats(0.0, 5.0, allow_nan=False)
DAMPINGS = st.builds(
    Damping,
    failures_min=st.integers(1, 4),
    failure_s=SECONDS,
    recoveries_min=st.integers(1, 4),
    recovery_s=SECONDS,
    watch_s_max=st.just(30.0),
)
CADENCES = st.builds(
    Cadence,
    period_s=st.floats(0.5, 10.0),
    busy_period_s=st.floats(0.5, 20.0),
    recheck_s=st.floats(0.1, 2.0),
    unready_period_s=st.floats(0.5, 5.0),
    timeout_s=st.floats(0.1, 3.0),
)
STEPS = st.lists(st.tuples(st.sampled_from(STATES), SECONDS, st.floats(0.0, 2.0)), max_size=40)


def _is_row(seen: list[Observation], *, is_ready: bool, count_min: int, wait_s: float) -> bool:
    """Return whether the last observations alone justify publishing this readiness."""
    row = []
    for observed in reversed(seen):
        if observed.state.is_ready != is_ready:
            break
        row.append(observed)
    return len(row) >= count_min and row[0].ended_s - row[-1].began_s >= wait_s


@given(DAMPINGS, STEPS)
def test_readiness_changes_only_after_a_row_of_equal_observations(
    damping: Damping, steps: list[tuple[HealthState, float, float]]
) -> None:
    published, pending, now_s = STATES[0], None, 0.0
    seen: list[Observation] = []
    for state, pause_s, took_s in steps:
        began_s = now_s + pause_s
        now_s = began_s + took_s
        observed = Observation(state, began_s, now_s)
        seen.append(observed)
        before = published
        published, pending = health.damp(published, pending, observed, damping)
        if published.is_ready != before.is_ready:
            count_min, wait_s = damping.failures_min, damping.failure_s
            if published.is_ready:
                count_min, wait_s = damping.recoveries_min, damping.recovery_s
            assert _is_row(seen, is_ready=published.is_ready, count_min=count_min, wait_s=wait_s)
            assert pending is None


@given(
    DAMPINGS,
    CADENCES,
    st.lists(st.floats(0.0, 60.0), max_size=20).map(sorted),
    st.floats(0.0, 60.0),
    st.lists(st.booleans(), min_size=1, max_size=8),
)
def test_a_silent_member_is_reported_within_the_bound(
    damping: Damping, cadence: Cadence, events_s: list[float], death_s: float, hangs: list[bool]
) -> None:
    """A member with watch events at `events_s` dies at `death_s`; then its connections hang or are refused."""
    published: HealthState = STATES[0]
    pending: Pending | None = None
    probed_s, number = 0.0, 0
    while published.is_ready:
        answered_s = max((at_s for at_s in (*events_s, probed_s) if at_s <= death_s), default=0.0)
        due_s = health.next_probe_s(published, pending, probed_s, answered_s, cadence)
        # The monitor looks again at the due time, after the watch events until then.
        later_s = max((at_s for at_s in events_s if probed_s < at_s <= min(due_s, death_s)), default=answered_s)
        due_s = health.next_probe_s(published, pending, probed_s, max(answered_s, later_s), cadence)
        if due_s < death_s:
            state, probed_s = STATES[0], due_s
        else:
            state = STATES[1]
            probed_s = due_s + (cadence.timeout_s if hangs[number % len(hangs)] else 0.0)
            number += 1
        last_s = max((at_s for at_s in (*events_s, due_s) if at_s <= min(death_s, probed_s)), default=0.0)
        published, pending = health.damp(published, pending, Observation(state, due_s, probed_s, last_s), damping)
    assert probed_s - death_s <= health.detection_s_max(cadence, damping) + 1e-6


@given(DAMPINGS, st.lists(st.sampled_from(STATES[1:]), min_size=2, max_size=30))
def test_a_member_that_never_answers_ok_is_never_published_as_ready(
    damping: Damping, states: list[HealthState]
) -> None:
    published, pending = states[0], None
    for at_s, state in enumerate(states):
        published, pending = health.damp(published, pending, Observation(state, float(at_s), at_s + 0.5), damping)
        assert not published.is_ready


def test_a_flapping_member_is_published_at_most_once_per_row() -> None:
    """With the defaults a member that changes every second stays as published."""
    published, pending, changes = STATES[0], None, [STATES[0]]
    for second in range(600):
        state = STATES[second % 2]
        published, pending = health.damp(published, pending, Observation(state, second, second + 0.1), Damping())
        changes.append(published)
    assert all(before is after for before, after in pairwise(changes))
