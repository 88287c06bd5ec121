"""An unexpected error in one job: the job waits with a reason, and the queues go on."""

from typing import Any

import pytest
from tests.unit.features.queues.test_queueledger import NOW_S, a_state, admitted, an_entry, started, used

from federation.apimachinery.errors import Forbidden
from federation.features.queues.rules.facts import Lack
from federation.features.queues.rules.faults import PER_ROUND_MAX, RETRY_S, JobFailed
from federation.features.queues.rules.queuestate import QueueState
from federation.features.queues.rules.queuestatus import compute_statuses

INTERNAL = "an internal error (TypeError), see the log of the host; it is tried again in minutes"
BROKEN: dict[str, dict[str, Any]] = {
    "while the round looks at it": {"limit_s": "an hour"},
    "while its facts are made": {"priority_classes": None},
}
"""Facts that no code of ours makes, and where they raise an error."""


def reasons(state: QueueState, now_s: float = NOW_S + 60) -> dict[str, str]:
    statuses = compute_statuses(state, state.decide(now_s), now_s)
    waiting = statuses.job_queues["team", "q"].get("waiting", ())
    return {line["name"]: line["waitsFor"] for line in waiting}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_the_others_start_and_the_broken_job_says_why_it_waits(broken: dict[str, Any]) -> None:
    state = a_state()
    for name in ("a", "b"):
        state.put(an_entry(name), NOW_S)
    state.put(an_entry("broken", created_s=-1.0, **broken), NOW_S)

    assert started(state) == ["team/a", "team/b"]
    assert reasons(state)["broken"] == INTERNAL
    assert [fault.key for fault in state.faults.take_new()] == ["team/broken"]
    assert state.faults.take_new() == [], "it is logged once"


def test_a_job_that_waits_says_why_although_its_line_cannot_be_made() -> None:
    state = a_state(cores="24")
    state.put(admitted("runs"), NOW_S)
    state.put(an_entry("waits", created_s=1.0), NOW_S)
    state.put(an_entry("broken", kind={"not": "comparable"}, created_s=float("nan")), NOW_S)

    found = reasons(state)

    assert found["waits"].startswith("needs 24 cores")
    assert set(found) == {"waits", "broken"}


def test_a_running_job_that_is_set_aside_keeps_its_quota() -> None:
    state = a_state()
    state.put(admitted("broken", priority_classes=None), NOW_S)
    state.put(an_entry("a"), NOW_S)
    state.put(an_entry("b"), NOW_S)

    assert len(started(state)) == 1
    assert used(state) == "24"


def test_it_is_tried_again_when_it_changes_and_after_minutes() -> None:
    state = a_state()
    state.put(an_entry("job", limit_s="an hour"), NOW_S)
    assert started(state) == []

    state.put(an_entry("job"), NOW_S)
    assert started(state) == ["team/job"]

    state.record_fault("team/job", Forbidden("a webhook refuses it"))
    assert started(state, NOW_S) == []
    assert reasons(state, NOW_S + 1) == {"job": "its admission was not accepted: a webhook refuses it"}
    assert started(state, NOW_S + RETRY_S) == ["team/job"]


def test_an_error_of_ours_does_not_show_its_text_to_tenants() -> None:
    state = a_state()
    state.put(an_entry("job"), NOW_S)
    state.record_fault("team/job", KeyError("of-another-tenant"))

    assert "of-another-tenant" not in reasons(state)["job"]


def test_many_broken_jobs_are_set_aside_in_several_calls() -> None:
    state = a_state()
    for number in range(PER_ROUND_MAX + 2):
        state.put(an_entry(f"broken-{number:02}", limit_s="an hour", created_s=-1.0), NOW_S)
    state.put(an_entry("job"), NOW_S)

    with pytest.raises(JobFailed):
        state.decide(NOW_S)

    decisions = state.decide(NOW_S)
    assert list(decisions.admitted) == ["team/job"]
    assert {waits.lack for waits in decisions.waits.values()} == {Lack.PROBLEM}


def test_many_jobs_that_stay_broken_hold_no_other_one_when_they_are_tried_again() -> None:
    state = a_state()
    for number in range(3 * PER_ROUND_MAX):
        state.put(an_entry(f"broken-{number:02}", limit_s="an hour", created_s=-1.0), NOW_S)
    for _ in range(2):
        with pytest.raises(JobFailed):
            state.decide(NOW_S)
    state.decide(NOW_S)
    state.faults.take_new()

    for number in range(4):
        now_s = NOW_S + RETRY_S + number
        state.put(an_entry("job", created_s=number), now_s)
        assert started(state, now_s) == ["team/job"]
    assert len(state.faults.take_new()) == 2 * PER_ROUND_MAX, "a few are tried again in each call"
