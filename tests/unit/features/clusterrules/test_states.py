"""When a rule becomes active in a cluster and when it ends there."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.generated import examples

from federation.features.clusterrules.rules.matching import Verdict
from federation.features.clusterrules.rules.states import (
    NEXT,
    Entry,
    State,
    Times,
    advance,
    entries_of,
    is_forgotten,
    left_s,
    to_text,
    with_half_left,
)

NOW = datetime(2026, 7, 1, tzinfo=UTC)
TIMES = Times(60, 300)
H, C, N = Verdict.HOLDS, Verdict.CLEARS, Verdict.NEITHER


def run(*steps: tuple[float, Verdict], has_place: bool = True, entry: Entry | None = None) -> Entry:
    """Return the entry after looks at these seconds."""
    entry = entry or Entry()
    for at_s, verdict in steps:
        entry = advance(entry, verdict, TIMES, NOW + timedelta(seconds=at_s), has_place=has_place)
    return entry


def test_every_state_knows_every_verdict() -> None:
    assert set(NEXT) == {(state, verdict) for state in State for verdict in Verdict}


@pytest.mark.parametrize(
    ("steps", "state"),
    [
        ([(0, H)], State.PENDING),
        ([(0, H), (59, H)], State.PENDING),
        ([(0, H), (60, H)], State.ACTIVE),
        ([(0, H), (59, C), (61, H)], State.PENDING),
        ([(0, H), (59, N)], State.CALM),
        ([(0, H), (60, H), (61, C)], State.CLEARING),
        ([(0, H), (60, H), (61, C), (360, C)], State.CLEARING),
        ([(0, H), (60, H), (61, C), (361, C)], State.CALM),
        ([(0, H), (60, H), (61, C), (300, H), (301, C), (600, C)], State.CLEARING),
        ([(0, H), (60, H), (61, C), (300, N), (361, C)], State.CLEARING),
        ([(0, H), (60, H), (9999, N)], State.ACTIVE),
    ],
)
def test_times_count_without_interruption(steps: list[tuple[float, Verdict]], state: State) -> None:
    assert run(*steps).state is state


def test_without_a_place_it_waits_and_without_times_it_follows_at_once() -> None:
    assert run((0, H), (3600, H), has_place=False).state is State.PENDING
    entry = advance(Entry(), H, Times(0, 0), NOW, has_place=True)
    assert entry.state is State.ACTIVE
    assert advance(entry, C, Times(0, 0), NOW, has_place=True).state is State.CALM


def test_a_time_in_the_future_is_that_of_a_wrong_clock() -> None:
    late = Entry(State.PENDING, NOW + timedelta(days=9))
    assert advance(late, H, TIMES, NOW, has_place=True).since == NOW


def test_time_alone_changes_what_waits_for_it() -> None:
    assert left_s(run((0, H)), TIMES, NOW + timedelta(seconds=10)) == 50
    assert left_s(run((0, H), (60, H), (61, C)), TIMES, NOW + timedelta(seconds=61)) == 300
    assert left_s(run((0, H), (60, H)), TIMES, NOW) is None
    assert left_s(Entry(), TIMES, NOW) is None


@examples(200)
@given(st.lists(st.tuples(st.floats(0.1, 59), st.sampled_from(Verdict)), max_size=40))
def test_what_flaps_faster_than_both_times_changes_nothing(steps: list[tuple[float, Verdict]]) -> None:
    """Of a condition that never holds for a minute nothing becomes active, and what is active does not end."""
    for start, is_in_force in ((Entry(), False), (Entry(State.ACTIVE, NOW), True)):
        entry, at, since = start, NOW, NOW
        for number, (after_s, verdict) in enumerate(steps):
            at += timedelta(seconds=after_s)
            interrupted = (at - since).total_seconds() > 40 or number % 2
            seen = N if interrupted else verdict
            since = at if seen is N else since
            entry = advance(entry, seen, TIMES, at, has_place=True)
            assert entry.is_in_force is is_in_force


def test_states_survive_their_text_and_what_cannot_be_read_is_calm() -> None:
    entries = {"Remedy/a": Entry(State.ACTIVE, NOW, "Active"), "Remedy/b": Entry(State.PENDING, NOW)}
    assert entries_of(to_text(entries)) == entries
    assert to_text({}) is None
    for text in ("", None, "[]", "{", '{"a": 1}', '{"a": {"state": "Odd"}}', '{"a": {"state": "Calm", "since": 3}}'):
        assert entries_of(text) == {}


def test_what_webhooks_were_told_is_remembered_for_an_hour() -> None:
    active = Entry(State.ACTIVE, NOW)
    assert active.news == "Active"
    told = Entry(State.ACTIVE, NOW, "Active")
    assert told.news == ""
    ended = run((0, C), (300, C), entry=told)
    assert (ended.state, ended.news) == (State.CALM, "Cleared")
    assert not is_forgotten(ended, NOW + timedelta(seconds=3900))
    assert is_forgotten(ended, NOW + timedelta(seconds=3901))
    assert run((0, C), (300, C), entry=active).news == ""


def test_after_a_time_without_a_look_half_of_each_time_is_left() -> None:
    late = NOW + timedelta(hours=3)
    pending = with_half_left(Entry(State.PENDING, NOW), TIMES, late)
    assert left_s(pending, TIMES, late) == 30
    assert left_s(with_half_left(Entry(State.CLEARING, NOW), TIMES, late), TIMES, late) == 150
    recent = Entry(State.PENDING, late - timedelta(seconds=10))
    assert with_half_left(recent, TIMES, late) == recent
    unsent = with_half_left(Entry(State.CALM, NOW, "Active"), TIMES, late)
    assert not is_forgotten(unsent, late)
    for entry in (Entry(), Entry(State.ACTIVE, NOW)):
        assert with_half_left(entry, TIMES, late) == entry
