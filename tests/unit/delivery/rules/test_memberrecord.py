"""The life of a member object's record: every state and event, what each event changes, and what may be forgotten."""

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federation.api import names
from federation.apimachinery.errors import Bug
from federation.apimachinery.resources import Object
from federation.delivery.rules.memberrecord import (
    NOTHING_KNOWN,
    TRANSITIONS,
    Event,
    MemberRecord,
    State,
    diagram,
    generation_of,
    next_failure,
)
from federation.delivery.rules.status import ClusterStatus


def obj(revision: int, generation: int | None = 1, uid: str = "u") -> Object:
    more = {} if generation is None else {"generation": generation}
    return {"metadata": {"name": "web", "resourceVersion": str(revision), "uid": uid, **more}}


WRITTEN = NOTHING_KNOWN.after_write(obj(10), "h", is_subset=True)
IN_STATE = {
    State.CACHED: NOTHING_KNOWN,
    State.WRITTEN: WRITTEN,
    State.UNCONFIRMED: WRITTEN.after_unanswered_write(),
    State.DELETED: WRITTEN.after_deletion("u"),
    State.GONE: WRITTEN.after_deletion("u", "owner").after_removal("u"),
    State.LOST: WRITTEN.after_removal("u"),
}
TAKE_PLACE: dict[Event, Callable[[MemberRecord], MemberRecord]] = {
    Event.WRITTEN: lambda record: record.after_write(obj(11), "h", is_subset=True),
    Event.UNANSWERED: lambda record: record.after_unanswered_write(),
    Event.SHOWN: lambda record: record.after_shown_write(obj(11), 0.0, is_newer=True),
    Event.DELETED: lambda record: record.after_deletion("other"),
    Event.LOST: lambda record: record.after_removal("u" if record.written else "other"),
    Event.ABSENT: lambda record: record.after_absence(),
}
FORBIDDEN = {
    (State.CACHED, Event.SHOWN),
    (State.DELETED, Event.SHOWN),
    (State.GONE, Event.SHOWN),
    (State.LOST, Event.SHOWN),
    (State.CACHED, Event.REMOVED),
    (State.WRITTEN, Event.REMOVED),
    (State.GONE, Event.REMOVED),
    (State.CACHED, Event.ENDED),
    (State.WRITTEN, Event.ENDED),
    (State.GONE, Event.ENDED),
}


@pytest.mark.parametrize(("state", "event"), list(product(State, Event)))
def test_every_event_has_a_next_state_or_cannot_happen(state: State, event: Event) -> None:
    record = IN_STATE[state]
    assert record.state is state
    if (state, event) in FORBIDDEN:
        assert event not in TRANSITIONS[state]
        return
    following = TRANSITIONS[state][event]
    if event in TAKE_PLACE:
        assert TAKE_PLACE[event](record).state is following


@pytest.mark.parametrize("owner", ["", "owner"])
def test_an_object_that_was_deleted_leaves_for_now_or_for_good(owner: str) -> None:
    after = State.GONE if owner else State.CACHED
    assert WRITTEN.after_deletion("u", owner).after_removal("u").state is after
    assert WRITTEN.after_removal("u").after_deletion("u", owner).state is after, "the watch was faster"
    unconfirmed = IN_STATE[State.UNCONFIRMED].after_deletion("u", owner).after_removal("u")
    assert unconfirmed.state is State.UNCONFIRMED, "the write may create it again"
    assert not unconfirmed.is_gone(owner)


def test_an_event_that_cannot_happen_is_a_bug() -> None:
    with pytest.raises(Bug, match="write shown"):
        NOTHING_KNOWN.after_shown_write(obj(1), 0.0)


def test_only_an_answer_ends_doubt_about_a_write() -> None:
    ends = {event for event, state in TRANSITIONS[State.UNCONFIRMED].items() if state is not State.UNCONFIRMED}
    assert ends == {Event.WRITTEN, Event.ABSENT}


def test_every_state_can_be_reached_and_left() -> None:
    for state in State:
        others = set(State) - {state}
        assert state is State.CACHED or any(state in TRANSITIONS[other].values() for other in others), state
        assert others & set(TRANSITIONS[state].values()), state


def test_the_diagram_has_every_state() -> None:
    drawn = diagram()
    assert drawn.startswith("stateDiagram-v2\n    [*] --> Cached\n")
    assert all(f"--> {state}:" in drawn for state in State)
    assert "Written --> Cached: write shown" in drawn


@given(st.lists(st.sampled_from(sorted(TAKE_PLACE)), max_size=12), st.sampled_from(["", "owner"]))
def test_a_record_never_knows_what_its_state_excludes(events: list[Event], owner: str) -> None:
    record = NOTHING_KNOWN
    for event in events:
        if event is Event.DELETED:
            record = record.after_deletion("u", owner)
        elif event in TRANSITIONS[record.state] and (event is not Event.SHOWN or record.written is not None):
            record = TAKE_PLACE[event](record)
        assert (record.state is State.WRITTEN) <= (record.written is not None)
        assert (record.state is State.DELETED) <= bool(record.deleted_uid)
        assert (record.state is State.GONE) <= bool(record.owner)
        assert record.written is None or record.state in (State.WRITTEN, State.UNCONFIRMED)
        assert not record.deleted_uid or record.state in (State.DELETED, State.UNCONFIRMED)
        assert not record.is_gone("another owner")


def _full() -> MemberRecord:
    return NOTHING_KNOWN.after_write(obj(10), "accepted", is_subset=False).after_unanswered_write()


def test_an_answered_write_ends_what_was_known_before() -> None:
    failure = next_failure(None, ClusterStatus.UPDATE_FAILED, "no", "h", 0.0)
    before = MemberRecord(State.LOST, lost_uid="u", failure=failure, finished={}, absent_since_s=1.0, content="kept")
    after = before.after_write(obj(11), "h", is_subset=True)
    assert after == MemberRecord(State.WRITTEN, written=obj(11), content="kept")


def test_the_removal_of_an_earlier_object_does_not_touch_the_one_in_its_place() -> None:
    assert WRITTEN.after_removal("earlier") == WRITTEN


def test_a_confirmed_absence_leaves_only_history() -> None:
    failure = next_failure(None, ClusterStatus.UPDATE_FAILED, "no", "h", 0.0)
    known = _full().after_deletion("u")
    assert known.state is State.UNCONFIRMED
    after = MemberRecord(State.UNCONFIRMED, failure=failure, content="h", lost_uid="u").after_absence()
    assert after == MemberRecord(content="h")
    assert not after.is_pending
    assert not known.after_absence().is_pending


@pytest.mark.parametrize(
    ("live", "is_accepted"),
    [(obj(12, 1), True), (obj(10, 2), False), (obj(10, 1, uid="other"), False)],
    ids=["a status moved the revision only", "another generation", "another object"],
)
def test_an_accepted_deviation_is_that_of_one_generation(live: Object, is_accepted: bool) -> None:
    found = NOTHING_KNOWN.after_write(obj(10), "h", is_subset=False)
    assert found.is_accepted("h", live) is is_accepted
    assert not found.is_accepted("other", live)


def test_without_generations_every_change_ends_an_accepted_deviation() -> None:
    found = NOTHING_KNOWN.after_write(obj(10, None), "h", is_subset=False)
    assert found.is_accepted("h", obj(10, None))
    assert not found.is_accepted("h", obj(11, None))


def test_a_deletion_is_requested_once_per_object() -> None:
    found = WRITTEN.after_deletion("u")
    assert found.is_deletion_requested("u")
    assert not found.is_deletion_requested("other")
    found = found.after_removal("u")
    assert not found.is_deletion_requested("u")
    assert not found.lost_uid
    assert not found.deleted_uid
    assert not WRITTEN.after_deletion("u").after_removal("other").deleted_uid


def test_the_uid_of_an_object_that_left_the_cache_is_known_until_the_next_write() -> None:
    found = WRITTEN.after_removal("u")
    assert found.lost_uid == "u"
    assert found.is_loss_seen
    assert not WRITTEN.after_removal("u", is_seen=False).is_loss_seen
    assert not found.after_write(obj(11), "h", is_subset=True).lost_uid
    assert not found.after_absence().lost_uid


@pytest.mark.parametrize("is_watch_faster", [False, True])
def test_a_final_deletion_that_the_watch_has_shown_needs_no_query(is_watch_faster: bool) -> None:
    failure = next_failure(None, ClusterStatus.DELETION_FAILED, "no", "u", 0.0)
    if is_watch_faster:
        found = NOTHING_KNOWN.after_removal("u")._replace(failure=failure).after_deletion("u", "federated")
    else:
        found = NOTHING_KNOWN.after_deletion("u", "federated")
        assert not found.is_gone("federated")
        found = found.after_removal("u")
    assert found.is_gone("federated")
    assert found.failure is None
    assert not found.is_gone("of a later federated object")
    assert not found.after_unanswered_write().is_gone("federated"), "an unanswered write may create it again"


@pytest.mark.parametrize(("removed", "owner"), [("other", "federated"), ("u", "")])
def test_another_removal_or_one_for_now_needs_a_query(removed: str, owner: str) -> None:
    found = NOTHING_KNOWN.after_deletion("u", owner).after_removal(removed)
    assert not found.is_gone("federated")
    assert not found.is_gone("")


def test_failures_back_off_and_a_server_that_names_a_pause_is_obeyed() -> None:
    delays, failure = [], None
    for _ in range(12):
        failure = next_failure(failure, ClusterStatus.UPDATE_FAILED, "no", "h", 100.0)
        delays.append(failure.retry_at_s - 100.0)
    assert delays[:3] == [0.25, 0.5, 1.0]
    assert delays[-1] == 60.0
    busy = next_failure(None, ClusterStatus.UPDATE_FAILED, "busy", "h", 100.0, retry_after_s=7.0)
    assert (busy.retry_at_s, busy.count) == (107.0, 1)
    found = MemberRecord(failure=busy)
    assert found.failure_of("h") == busy
    assert found.failure_of("other") is None, "other content starts without failures"


def _acknowledged(losses: int = 0) -> MemberRecord:
    """Return the record of a write that the member acknowledged at 100 s."""
    written = obj(10)
    written["metadata"]["annotations"] = {names.TEMPLATE_HASH: "h"}
    record = MemberRecord(content="h", losses=losses)
    return record.after_write(written, "h", is_subset=True, now_s=100.0)


def _shown(digest: str, revision: int, uid: str = "u", **more: Any) -> Object:
    found = obj(revision, uid=uid)
    found["metadata"] |= {"annotations": {names.TEMPLATE_HASH: digest}, **more}
    return found


def test_an_acknowledged_write_is_believed_for_15_seconds() -> None:
    record = _acknowledged()
    assert not record.is_overdue(114.9)
    assert record.is_overdue(115.0)
    assert not NOTHING_KNOWN.is_overdue(1e9)


@pytest.mark.parametrize(
    ("cached", "is_newer", "is_lost"),
    [
        (None, False, True),
        (_shown("h", 10), False, False),
        (_shown("h", 9), False, False),
        (_shown("older", 9), False, True),
        (_shown("older", 10), False, True),
        (_shown("h", 9, uid="other"), False, True),
        (_shown("older", 11), True, False),
    ],
    ids=["absent", "shown", "status was behind", "older", "same revision", "another object", "changed since"],
)
def test_a_cache_that_is_beyond_our_write_shows_whether_it_was_kept(
    cached: Object | None, is_newer: bool, is_lost: bool
) -> None:
    after = _acknowledged().after_shown_write(cached, 107.0, is_newer=is_newer)
    assert (after.state, after.losses) == (State.CACHED, int(is_lost))
    assert after.look_again_at_s == (122.0 if is_lost else None)


def test_a_member_that_confirms_a_write_is_asked_again_later_each_time() -> None:
    record, waits = _acknowledged(), []
    for _ in range(8):
        at_s = record.overdue_at_s
        assert at_s is not None
        record = record.after_check(_shown("h", 10), at_s)
        assert (record.state, record.losses) == (State.WRITTEN, 0)
        waits.append((record.overdue_at_s or 0.0) - at_s)
    assert waits[:3] == [30.0, 60.0, 120.0]
    assert waits[-1] == 600.0


@pytest.mark.parametrize("found", [None, _shown("older", 9)], ids=["absent", "older"])
def test_a_write_that_a_member_did_not_keep_is_written_again_and_told_after_three(found: Object | None) -> None:
    first = _acknowledged().after_check(found, 115.0)
    assert (first.losses, first.failure) == (1, None)
    third = _acknowledged(losses=2).after_check(found, 115.0)
    assert third.failure is not None
    assert third.failure.status is (ClusterStatus.CREATION_FAILED if found is None else ClusterStatus.UPDATE_FAILED)
    assert third.failure.message == "the cluster acknowledged the write and does not have it, 3 times in a row"
    assert (third.failure.hash, third.failure.retry_at_s) == ("h", 175.0)
    assert third.after_write(obj(12), "h", is_subset=True).losses == 3, "another acknowledgement proves nothing"


def test_a_deletion_that_a_member_did_not_keep_is_requested_again() -> None:
    record = WRITTEN.after_deletion("u", "owner", 100.0)
    assert record.is_overdue(115.0)
    alive = record.after_check(obj(10), 115.0)
    assert (alive.losses, alive.is_deletion_requested("u")) == (1, False)
    going = record.after_check({"metadata": {**obj(10)["metadata"], "deletionTimestamp": "t"}}, 115.0)
    assert (going.losses, going.failure) == (0, None)
    assert record.after_check(None, 115.0).losses == 0
    assert record.after_check(obj(10, uid="new"), 115.0).losses == 0
    third = MemberRecord(State.DELETED, deleted_uid="u", losses=2).after_check(obj(10), 115.0)
    assert third.failure is not None
    assert (third.failure.status, third.failure.hash) == (ClusterStatus.DELETION_FAILED, "u")


def test_an_event_before_the_answer_settles_the_question() -> None:
    settled = _acknowledged().after_shown_write(_shown("h", 10), 110.0)
    assert settled.after_check(None, 115.0) == settled


def test_the_generation_of_nothing_is_0() -> None:
    assert [generation_of(each) for each in (None, {}, {"metadata": {}}, obj(1, 3))] == [0, 0, 0, 3]
